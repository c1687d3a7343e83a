// The figures of a run, from the machine's report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "golden.h"
#include "run_options.h"

namespace vatlas::tools {

struct RankSummary {
  std::int64_t start = 0, end = 0;  // picoseconds
  int cores = 0;
  std::vector<std::pair<std::string, std::int64_t>> pipes;  // busy, summed over cores
  std::int64_t peerWait = 0, longestPeerWait = 0;
};

struct LinkSummary {
  std::string name;
  std::string kind;
  std::uint64_t bytes = 0;
  std::int64_t busy = 0;
  double capacity = 0;
};

struct RunSummary {
  std::string cluster;
  bool orderUncertain = false;
  std::vector<RankSummary> ranks;
  std::vector<LinkSummary> links;
  std::int64_t time = 0;          // first start to last end
  double algorithmBandwidth = 0;  // bytes of x and scales of a rank, over the time
  double busBandwidth = 0;        // bytes that crossed a rank's links (in), over the time
};

// From vatlasReportJson(). Throws std::runtime_error when the report lacks a rank's kernel.
RunSummary summarize(const std::string& report, const RunOptions& options, int ranks);

void printSummary(const RunSummary& summary, const RunOptions& options,
                  const std::vector<Comparison>& results);
std::string summaryJson(const RunSummary& summary, const RunOptions& options,
                        const std::vector<Comparison>& results);

}  // namespace vatlas::tools
