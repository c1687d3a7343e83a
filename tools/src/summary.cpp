#include "summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

namespace vatlas::tools {
namespace {

using nlohmann::ordered_json;

double micros(std::int64_t ps) {
  return static_cast<double>(ps) * 1e-6;
}
double gigabytes(double bytes, std::int64_t ps) {
  return ps > 0 ? bytes / static_cast<double>(ps) * 1e3 : 0;
}

// The two cards that a link's name, "link 3>5", tells; nothing for links of switches.
std::optional<std::pair<std::size_t, std::size_t>> cardsOf(const LinkSummary& link, std::size_t ranks) {
  unsigned from = 0;
  unsigned to = 0;
  if (std::sscanf(link.name.c_str(), "link %u>%u", &from, &to) != 2 || from >= ranks || to >= ranks)
    return {};
  return std::pair<std::size_t, std::size_t>{from, to};
}

// A few links as a list; a mesh as a table by card.
void printLinks(const RunSummary& summary) {
  const std::size_t ranks = summary.ranks.size();
  std::vector<const LinkSummary*> cells(ranks * ranks, nullptr);
  bool mesh = summary.links.size() > 12;
  for (const LinkSummary& link : summary.links) {
    const auto cards = cardsOf(link, ranks);
    mesh = mesh && cards;
    if (cards) cells[cards->first * ranks + cards->second] = &link;
  }
  if (!mesh) {
    for (const LinkSummary& link : summary.links)
      fmt::print("  {:12} {:12} bytes  busy {:.2f} us\n", link.name, link.bytes, micros(link.busy));
    return;
  }
  fmt::print("  MB, busy us, from card (row) to card (column):\n     ");
  for (std::size_t to = 0; to < ranks; ++to) fmt::print(" {:>13}", to);
  fmt::print("\n");
  for (std::size_t from = 0; from < ranks; ++from) {
    fmt::print("  {:3}", from);
    for (std::size_t to = 0; to < ranks; ++to) {
      const LinkSummary* link = cells[from * ranks + to];
      const std::string text =
          link == nullptr
              ? "-"
              : fmt::format("{:.3f} {:6.2f}", static_cast<double>(link->bytes) / 1e6, micros(link->busy));
      fmt::print(" {:>13}", text);
    }
    fmt::print("\n");
  }
}

}  // namespace

RunSummary summarize(const std::string& report, const RunOptions& options, int ranks) {
  const ordered_json json = ordered_json::parse(report);
  RunSummary summary;
  summary.cluster = json.at("cluster");
  summary.orderUncertain = json.at("order_uncertain");
  summary.ranks.resize(static_cast<std::size_t>(ranks));
  std::int64_t first = INT64_MAX;
  std::int64_t last = 0;
  for (const ordered_json& kernel : json.at("kernels")) {
    RankSummary& rank = summary.ranks.at(kernel.at("device").get<std::size_t>());
    rank.start = kernel.at("start_ps");
    rank.end = kernel.at("end_ps");
    rank.cores = kernel.at("cores");
    rank.pipes.clear();
    for (const auto& [name, busy] : kernel.at("pipe_busy_ps").items())
      rank.pipes.emplace_back(name, busy.get<std::int64_t>());
    rank.peerWait = kernel.at("peer_wait_ps");
    rank.longestPeerWait = kernel.at("longest_peer_wait_ps");
    first = std::min(first, rank.start);
    last = std::max(last, rank.end);
  }
  std::uint64_t crossed = 0;
  for (const ordered_json& resource : json.at("resources")) {
    if (!resource.at("link").get<bool>()) continue;
    summary.links.push_back({resource.at("name"), resource.at("kind"), resource.at("bytes"),
                             resource.at("busy_ps"), resource.at("capacity_bytes_per_s")});
    crossed += summary.links.back().bytes;
  }
  for (const RankSummary& rank : summary.ranks) {
    if (rank.cores == 0) throw std::runtime_error("the machine's report lacks a rank's kernel");
  }
  summary.time = last - first;
  const auto contributed =
      static_cast<double>(options.elements() + options.elements() / options.group() * options.scales->bytes);
  summary.algorithmBandwidth = gigabytes(contributed, summary.time);
  summary.busBandwidth = gigabytes(static_cast<double>(crossed) / ranks, summary.time);
  return summary;
}

void printSummary(const RunSummary& summary, const RunOptions& options,
                  const std::vector<Comparison>& results) {
  fmt::print("{} on {} ({} ranks): x {} [{}], scales {}, output {}\n\n", options.op, summary.cluster,
             summary.ranks.size(), options.x->name, fmt::join(options.shape, ", "), options.scales->name,
             options.output->name);
  fmt::print(
      "rank  result                            time us    V us   MTE2 us  MTE3 us   S us   peer wait us "
      "(most)\n");
  for (std::size_t r = 0; r < summary.ranks.size(); ++r) {
    const RankSummary& rank = summary.ranks[r];
    std::string result = "not checked";
    if (r < results.size()) {
      const Comparison& c = results[r];
      result = c.different == 0 ? fmt::format("bitwise equal ({})", c.elements)
                                : fmt::format("{} of {} differ", c.different, c.elements);
    }
    const auto pipe = [&](const char* name) {
      for (const auto& [key, busy] : rank.pipes) {
        if (key == name) return micros(busy) / rank.cores;
      }
      return 0.0;
    };
    fmt::print("{:4}  {:32} {:9.2f} {:8.2f} {:9.2f} {:8.2f} {:7.2f}   {:.2f} ({:.2f})\n", r, result,
               micros(rank.end - rank.start), pipe("V"), pipe("MTE2"), pipe("MTE3"), pipe("S"),
               micros(rank.peerWait) / rank.cores, micros(rank.longestPeerWait));
  }
  fmt::print("      (pipes and peer wait: mean over the {} cores of a card)\n\n",
             summary.ranks.front().cores);
  for (std::size_t r = 0; r < results.size(); ++r) {
    const Comparison& c = results[r];
    if (c.different == 0) continue;
    fmt::print(
        "rank {}: first difference at index {}: {} instead of {}; largest error {:.3g}, relative {:.3g}\n", r,
        c.firstIndex, c.got, c.expected, c.largestError, c.largestRelativeError);
  }
  fmt::print("modelled time        {:.2f} us\n", micros(summary.time));
  fmt::print("algorithm bandwidth  {:.2f} GB/s   (bytes of x and scales of a rank, over the time)\n",
             summary.algorithmBandwidth);
  fmt::print("bus bandwidth        {:.2f} GB/s   (bytes that came in over a rank's links, over the time)\n\n",
             summary.busBandwidth);
  std::uint64_t least = UINT64_MAX;
  std::uint64_t most = 0;
  double busiest = 0;
  for (const LinkSummary& link : summary.links) {
    least = std::min(least, link.bytes);
    most = std::max(most, link.bytes);
    busiest = std::max(busiest, static_cast<double>(link.busy) /
                                    static_cast<double>(std::max<std::int64_t>(summary.time, 1)));
  }
  fmt::print("links                {} directions, {} to {} bytes each, busy up to {:.0f} % of the time\n",
             summary.links.size(), least, most, busiest * 100);
  printLinks(summary);
  if (summary.orderUncertain)
    fmt::print("\nnote: the host's timing may have changed simulated times in this run\n");
}

std::string summaryJson(const RunSummary& summary, const RunOptions& options,
                        const std::vector<Comparison>& results) {
  ordered_json json;
  json["op"] = options.op;
  json["cluster"] = summary.cluster;
  json["x_dtype"] = options.x->name;
  json["scales_dtype"] = options.scales->name;
  json["out_dtype"] = options.output->name;
  json["shape"] = options.shape;
  json["time_ps"] = summary.time;
  json["algorithm_bandwidth_gb_per_s"] = summary.algorithmBandwidth;
  json["bus_bandwidth_gb_per_s"] = summary.busBandwidth;
  json["order_uncertain"] = summary.orderUncertain;
  json["ranks"] = ordered_json::array();
  for (std::size_t r = 0; r < summary.ranks.size(); ++r) {
    const RankSummary& rank = summary.ranks[r];
    ordered_json entry = {{"rank", r}, {"start_ps", rank.start}, {"end_ps", rank.end}, {"cores", rank.cores}};
    for (const auto& [name, busy] : rank.pipes) entry["pipe_busy_ps"][name] = busy;
    entry["peer_wait_ps"] = rank.peerWait;
    entry["longest_peer_wait_ps"] = rank.longestPeerWait;
    if (r < results.size()) {
      const Comparison& c = results[r];
      entry["elements"] = c.elements;
      entry["different"] = c.different;
      if (c.different != 0) {
        entry["first_difference"] = {{"index", c.firstIndex}, {"got", c.got}, {"expected", c.expected}};
        entry["largest_error"] = c.largestError;
        entry["largest_relative_error"] = c.largestRelativeError;
      }
    }
    json["ranks"].push_back(entry);
  }
  json["links"] = ordered_json::array();
  for (const LinkSummary& link : summary.links) {
    json["links"].push_back({{"name", link.name},
                             {"kind", link.kind},
                             {"bytes", link.bytes},
                             {"busy_ps", link.busy},
                             {"capacity_bytes_per_s", link.capacity}});
  }
  return json.dump(2) + "\n";
}

}  // namespace vatlas::tools
