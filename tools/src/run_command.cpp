#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

#include "commands.h"
#include "golden.h"
#include "ranks.h"
#include "sha256.h"
#include "summary.h"
#include "vatlas/runtime/config.h"
#include "vatlas/vatlas.h"

namespace vatlas::tools {
namespace {

std::atomic<bool> interruptSeen{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may take no lock");

// The first Ctrl-C ends the run in order; the second ends the process.
extern "C" void onInterrupt(int) {
  if (interruptSeen.exchange(true)) _exit(kExitInterrupted);
  const int kept = errno;
  vatlasInterrupt();
  errno = kept;
}

// No file may be written that is also read, or written twice: data would be lost.
void refuseClashes(const RunOptions& options, int ranks) {
  std::map<std::string, std::string> uses;  // by file, what it is for
  const auto add = [&](const std::string& path, const std::string& use) {
    std::error_code failed;
    const std::string file = std::filesystem::weakly_canonical(path, failed).string();
    if (failed || !(std::filesystem::is_regular_file(file, failed) || !std::filesystem::exists(file, failed)))
      return;
    const auto [known, fresh] = uses.try_emplace(file, use);
    if (!fresh && (use[0] == '-' || known->second != use))
      throw UsageError(fmt::format("{}: is named twice, for {} and for {}", path, known->second, use));
  };
  for (int rank = 0; rank < ranks; ++rank) {
    if (!options.xFile.empty()) add(rankFile(options.xFile, rank, ranks), "inputs");
    if (!options.scalesFile.empty()) add(rankFile(options.scalesFile, rank, ranks), "inputs");
  }
  for (int rank = 0; rank < ranks && !options.outFile.empty(); ++rank)
    add(rankFile(options.outFile, rank, ranks), "--out");
  if (!options.jsonFile.empty()) add(options.jsonFile, "--json");
  if (!options.traceFile.empty()) add(options.traceFile, "--trace");
}

// Paths that will be written are opened before the run, so that a bad one costs nothing.
struct Outputs {
  std::vector<std::unique_ptr<ArrayWriter>> arrays;
  std::unique_ptr<OutputFile> json;
};

void openOutputs(const RunOptions& options, int ranks, Outputs& outputs) {
  refuseClashes(options, ranks);
  for (int rank = 0; rank < ranks && !options.outFile.empty(); ++rank) {
    outputs.arrays.push_back(std::make_unique<ArrayWriter>(
        rankFile(options.outFile, rank, ranks), options.outputShape(ranks), options.output->npyWrite));
  }
  if (!options.jsonFile.empty()) outputs.json = std::make_unique<OutputFile>(options.jsonFile);
  if (!options.traceFile.empty() && vatlasStartTrace(options.traceFile.c_str(), options.traceCores) != 0)
    throw FileError(fmt::format("{}: cannot be written", options.traceFile));
}

// What a failed call means for the exit code: our own faults apart from what the caller asked for.
int exitCodeOf(int code) {
  if (interrupted()) return kExitInterrupted;
  const bool ours = code == ACL_ERROR_INTERNAL_ERROR || code == 507000 || code == 507034 || code == 507035 ||
                    code == 561000;
  return ours ? kExitFault : kExitUsage;
}

class StatusLine {
 public:
  explicit StatusLine(bool on) : on_(on && isatty(STDERR_FILENO) != 0) {}
  ~StatusLine() {
    if (on_) fmt::print(stderr, "\r\033[K");
  }
  void show(const std::string& text) {
    if (!on_) return;
    const std::lock_guard lock(mutex_);
    fmt::print(stderr, "\r\033[K{}", text);
    std::fflush(stderr);
  }

 private:
  bool on_;
  std::mutex mutex_;
};

// Fetches every output once: compares, writes and sums it up.
std::vector<Comparison> examine(const RunOptions& options, const Inputs& inputs,
                                const std::vector<RankState>& states, const sim::Switches& switches,
                                Outputs& outputs, Sha256& digest, StatusLine& status) {
  const int ranks = static_cast<int>(states.size());
  std::vector<Comparison> results(options.check ? states.size() : 0);
  Golden golden(options, inputs, ranks, switches);
  const std::uint64_t count = options.elements() / (options.scatter() ? states.size() : 1);
  std::vector<std::uint8_t> piece(std::min(count, Golden::kPiece) * options.output->bytes);
  std::vector<Sha256> sums(states.size());
  for (std::uint64_t first = 0; first < count && !interrupted(); first += Golden::kPiece) {
    status.show(fmt::format("checking {} %", first * 100 / count));
    const std::uint64_t part = std::min(Golden::kPiece, count - first);
    for (std::size_t rank = 0; rank < states.size(); ++rank) {
      fetchOutput(states[rank], options, first, part, piece.data());
      const std::uint64_t bytes = part * options.output->bytes;
      if (!outputs.arrays.empty()) outputs.arrays[rank]->append(piece.data(), bytes);
      if (options.digest) sums[rank].add(piece.data(), bytes);
      if (options.check) golden.compare(static_cast<int>(rank), first, part, piece.data(), results[rank]);
    }
  }
  for (Sha256& sum : sums) {
    const std::string hex = sum.hex();
    digest.add(hex.data(), hex.size());
  }
  return results;
}

// What went into a pipe or a device cannot be read back.
void addFile(Sha256& digest, const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return;
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(1 << 16);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
    digest.add(piece.data(), static_cast<std::uint64_t>(file.gcount()));
  }
}

int reportFailure(const std::vector<RankState>& states) {
  int exitCode = kExitEqual;
  for (std::size_t rank = 0; rank < states.size(); ++rank) {
    if (states[rank].code == 0) continue;
    if (exitCode == kExitEqual && !interrupted())
      fmt::print(stderr, "vatlas: rank {}: {}\n", rank, states[rank].error);
    exitCode = std::max(exitCode, exitCodeOf(states[rank].code));
  }
  return exitCode;
}

// Loads the cluster as the machine will, and refuses what it does not support before anything runs.
sim::ClusterConfig checkedCluster(const RunOptions& options) {
  const sim::ClusterConfig cluster = runtime::loadCluster(clusterFile(options.cluster));
  if (const auto why = runtime::loadSupportMatrix().check(options.op, cluster)) throw UsageError(*why);
  return cluster;
}

// Checks the outputs, ends the machine, and shows what came out; gives the exit code.
int conclude(const RunOptions& options, const sim::ClusterConfig& cluster, const Inputs& inputs,
             std::vector<RankState>& states, Outputs& outputs, StatusLine& status) {
  const char* report = vatlasReportJson();
  if (report == nullptr) throw std::runtime_error("the machine gives no report");
  const std::string reportText = report;
  const RunSummary summary = summarize(reportText, options, cluster.ranks);
  Sha256 digest;
  const std::vector<Comparison> results =
      examine(options, inputs, states, cluster.switches, outputs, digest, status);
  releaseRanks(states);
  const bool traced = vatlasStopTrace() == 0;
  if (interrupted()) return kExitInterrupted;
  status.show("");
  if (!options.quiet) printSummary(summary, options, results);
  for (const auto& array : outputs.arrays) array->finish();
  if (outputs.json) {
    const std::string text = summaryJson(summary, options, results);
    outputs.json->append(text.data(), text.size());
    outputs.json->finish();
  }
  if (!traced) throw FileError(fmt::format("{}: cannot be written", options.traceFile));
  if (options.digest) {
    digest.add(reportText.data(), reportText.size());
    if (!options.traceFile.empty()) addFile(digest, options.traceFile);
    fmt::print("sha256 {}\n", digest.hex());
  }
  const bool equal =
      std::all_of(results.begin(), results.end(), [](const Comparison& c) { return c.different == 0; });
  return equal ? kExitEqual : kExitDifferent;
}

int runChecked(const RunOptions& options) {
  const sim::ClusterConfig cluster = checkedCluster(options);
  if (vatlasUseCluster(cluster.path.c_str()) != 0) throw UsageError(aclGetRecentErrMsg());
  const std::unique_ptr<Inputs> inputs = makeInputs(options, cluster.ranks);
  Outputs outputs;
  openOutputs(options, cluster.ranks, outputs);
  if (aclInit(nullptr) != 0) throw UsageError(aclGetRecentErrMsg());
  StatusLine status(!options.quiet);
  std::vector<RankState> states = runRanks(options, *inputs, cluster.ranks, [&](int, const char* what) {
    if (interrupted()) throw std::runtime_error("interrupted");
    status.show(what);
  });
  int exitCode = reportFailure(states);
  if (exitCode == kExitEqual && !interrupted())
    exitCode = conclude(options, cluster, *inputs, states, outputs, status);
  aclFinalize();
  return interrupted() ? kExitInterrupted : exitCode;
}

}  // namespace

bool interrupted() noexcept {
  return interruptSeen;
}

void catchInterrupts() {
  struct sigaction action {};
  action.sa_handler = onInterrupt;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int runCommand(const RunOptions& options) {
  catchInterrupts();
  const int code = runChecked(options);
  if (code == kExitInterrupted) fmt::print(stderr, "vatlas: interrupted\n");
  return code;
}

}  // namespace vatlas::tools
