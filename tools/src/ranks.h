// One host thread a rank: the operator as a user's own program would run it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "inputs.h"
#include "run_options.h"

namespace vatlas::tools {

struct RankState {
  aclrtContext context = nullptr;
  aclrtStream stream = nullptr;
  void* x = nullptr;
  void* scales = nullptr;
  void* output = nullptr;
  void* workspace = nullptr;
  HcclComm comm = nullptr;
  int code = 0;       // of the first call that failed
  std::string error;  // what it was
};

using Progress = std::function<void(int rank, const char* what)>;

// Runs the operator `options.repeat` times on every rank and returns when all threads have ended; buffers
// stay for the caller. Reports are reset before the last call.
std::vector<RankState> runRanks(const RunOptions& options, const Inputs& inputs, int ranks,
                                const Progress& progress);
// Elements of a rank's output; needs the rank's state.
void fetchOutput(const RankState& state, const RunOptions& options, std::uint64_t first, std::uint64_t count,
                 std::uint8_t* to);
// Gives everything back.
void releaseRanks(std::vector<RankState>& states);

}  // namespace vatlas::tools
