// vatlas validate, info.
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <map>

#include "commands.h"
#include "vatlas/hccl/rank_table.h"
#include "vatlas/runtime/config.h"
#include "vatlas/vatlas.h"

namespace vatlas::tools {

std::filesystem::path clusterFile(const std::string& given) {
  if (!given.empty()) return runtime::findCluster(given);
  const char* fromEnvironment = std::getenv("VATLAS_CLUSTER");
  const bool set = fromEnvironment != nullptr && *fromEnvironment != '\0';
  return set ? runtime::findCluster(fromEnvironment) : runtime::defaultCluster();
}

int validateCommand(const std::vector<std::string>& files) {
  int exitCode = kExitEqual;
  for (const std::string& file : files) {
    const auto foreign = [](const std::filesystem::path& path, runtime::FileKind kind) {
      return kind == runtime::FileKind::RankTable ? hccl::validateRankTable(path)
                                                  : std::vector<runtime::ConfigError>{};
    };
    const std::vector<runtime::ConfigError> errors = runtime::validateFile(file, foreign);
    if (errors.empty()) {
      fmt::print("{}: good\n", file);
      continue;
    }
    exitCode = kExitUsage;
    for (const runtime::ConfigError& error : errors) fmt::print(stderr, "{}\n", error.what());
  }
  return exitCode;
}

namespace {

std::string linksOf(const sim::ClusterConfig& cluster, int card) {
  std::map<std::string, std::vector<int>> groups;
  for (const sim::LinkConfig& link : cluster.links) {
    if (link.cardA != card && link.cardB != card) continue;
    const std::string kind = link.kind == sim::LinkKind::Pcie ? "PCIe" : fmt::format("UB x{}", link.ports);
    groups[kind].push_back(link.cardA == card ? link.cardB : link.cardA);
  }
  std::string text;
  for (const auto& [kind, peers] : groups)
    text += fmt::format("{}{} to {} cards", text.empty() ? "" : ", ", kind, peers.size());
  return text.empty() ? "none" : text;
}

}  // namespace

int infoCommand(const std::string& name) {
  const sim::ClusterConfig c = runtime::loadCluster(clusterFile(name));
  const sim::ProductConfig& p = c.product;
  fmt::print("cluster {}   topology {}   driver {}   toolkit {}   vatlas {}\n", c.name, c.topologyName,
             c.driverVersion, c.toolkitVersion, vatlasVersion());
  constexpr std::array<int, 6> kWidths = {3, 18, 18, 9, 9, 32};
  std::string rule = "+";
  for (const int width : kWidths) rule += std::string(static_cast<std::size_t>(width) + 2, '-') + "+";
  rule += "\n";
  const auto row = [&](const std::array<std::string, 6>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) fmt::print("| {:<{}} ", cells[i], kWidths[i]);
    fmt::print("|\n");
  };
  fmt::print("{}", rule);
  row({"NPU", "Name", "Chip", "AIC / AIV", "Memory GB", "Links"});
  fmt::print("{}", rule);
  for (int card = 0; card < c.ranks; ++card) {
    row({std::to_string(card), p.displayName, p.socVersion, fmt::format("{} / {}", p.aicCount, p.aivCount),
         std::to_string(p.memory.bytes >> 30), linksOf(c, card)});
  }
  fmt::print("{}", rule);
  fmt::print(
      "clock {:.0f} MHz   memory {:.2f} TB/s   UB {} KiB a core   port {:.0f} GB/s (raw {:.0f})   "
      "communicator buffer {} MB\n",
      p.core.clockMhz, p.memory.bandwidthBytesPerSecond / 1e12, p.core.ubUsableBytes / 1024,
      p.port.bandwidthBytesPerSecond / 1e9, p.port.rawBytesPerSecond / 1e9, c.hcclBufferSizeMb);
  if (!name.empty()) return kExitEqual;
  fmt::print("\nshipped clusters:");
  for (const std::string& shipped : runtime::listShippedClusters()) fmt::print(" {}", shipped);
  fmt::print("\n");
  return kExitEqual;
}

}  // namespace vatlas::tools
