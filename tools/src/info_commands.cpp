// vatlas validate, info, doctor.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/version.hpp>
#include <fstream>
#include <iostream>
#include <map>

#include "acl/acl.h"
#include "commands.h"
#include "vatlas/hccl/rank_table.h"
#include "vatlas/runtime/config.h"
#include "vatlas/sim/simulation.h"
#include "vatlas/vatlas.h"

namespace vatlas::tools {

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
  const std::filesystem::path path = name.empty() ? runtime::defaultCluster() : runtime::findCluster(name);
  const sim::ClusterConfig c = runtime::loadCluster(path);
  const sim::ProductConfig& p = c.product;
  fmt::print("cluster {}   topology {}   driver {}   toolkit {}   vatlas {}\n", c.name, c.topologyName,
             c.driverVersion, c.toolkitVersion, vatlasVersion());
  const std::string rule =
      "+-----+------------------+--------------------+-----------+------------+------------------------------"
      "----+\n";
  fmt::print(
      "{}| NPU | Name             | Chip               | AIC / AIV | Memory GB  | Links                      "
      "      |\n{}",
      rule, rule);
  for (int card = 0; card < c.ranks; ++card) {
    fmt::print("| {:<3} | {:<16} | {:<18} | {:<9} | {:<10} | {:<32} |\n", card, p.displayName, p.socVersion,
               fmt::format("{} / {}", p.aicCount, p.aivCount), p.memory.bytes >> 30, linksOf(c, card));
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

namespace {

class Doctor {
 public:
  void report(bool good, const std::string& what, const std::string& advice) {
    fmt::print("{}  {}\n", good ? "ok  " : "BAD ", what);
    if (good) return;
    fmt::print("      {}\n", advice);
    sick_ = true;
  }
  int exitCode() const { return sick_ ? kExitUsage : kExitEqual; }

 private:
  bool sick_ = false;
};

std::uint64_t availableMemory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::uint64_t kib = 0;
    if (word == "MemAvailable:" && file >> kib) return kib << 10;
  }
  return 0;
}

void checkConfigs(Doctor& doctor) {
  try {
    const auto clusters = runtime::listShippedClusters();
    for (const std::string& name : clusters) (void)runtime::loadCluster(runtime::findCluster(name));
    (void)runtime::loadSupportMatrix();
    doctor.report(
        true,
        fmt::format("configurations in {}: {} clusters", runtime::configRoot().string(), clusters.size()),
        {});
  } catch (const std::exception& error) {
    doctor.report(false, error.what(),
                  "build or install vatlas again, or set VATLAS_CONFIG_DIR to its configs folder");
  }
}

void checkMachine(Doctor& doctor) {
  const int code = aclInit(nullptr);
  const char* why = code == 0 ? nullptr : aclGetRecentErrMsg();
  doctor.report(code == 0,
                code == 0 ? fmt::format("a machine opens ({})", aclrtGetSocName())
                          : std::string(why == nullptr ? "no machine" : why),
                "follow the message; `vatlas validate` looks at a cluster file");
  if (code == 0) aclFinalize();
}

}  // namespace

int doctorCommand() {
  Doctor doctor;
  fmt::print("vatlas {}, compiler GCC {}, Boost {}, fmt {}\n", vatlasVersion(), __VERSION__,
             BOOST_LIB_VERSION, FMT_VERSION);
  const std::string systemc = sim::SystemCShell::description();
  doctor.report(true, systemc, {});
  const std::uint64_t memory = availableMemory();
  doctor.report(memory >= (std::uint64_t{2} << 30),
                fmt::format("{:.1f} GiB of memory available", static_cast<double>(memory) / (1 << 30)),
                "8 cards with windows of 200 MB want about 4 GiB: close other programs, use fewer ranks, or "
                "lower HCCL_BUFFSIZE");
  struct rlimit limit {};
  getrlimit(RLIMIT_AS, &limit);
  doctor.report(limit.rlim_cur == RLIM_INFINITY,
                limit.rlim_cur == RLIM_INFINITY ? "address space is not limited"
                                                : "address space is limited (ulimit -v)",
                "device memories are reserved address ranges: run `ulimit -v unlimited` first");
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  doctor.report(cores >= 1, fmt::format("{} processors", cores), {});
  checkConfigs(doctor);
  checkMachine(doctor);
  return doctor.exitCode();
}

}  // namespace vatlas::tools
