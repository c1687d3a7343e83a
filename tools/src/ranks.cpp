#include "ranks.h"

#include <fmt/format.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "aclnnop/aclnn_quant_all_reduce.h"
#include "aclnnop/aclnn_quant_reduce_scatter.h"
#include "vatlas/vatlas.h"

namespace vatlas::tools {
namespace {

struct CallFailed : std::runtime_error {
  CallFailed(int errorCode, const std::string& text) : std::runtime_error(text), code(errorCode) {}
  int code;
};

void check(int code, const char* call) {
  if (code == 0) return;
  const char* why = aclGetRecentErrMsg();
  throw CallFailed(code,
                   fmt::format("{} answered {}: {}", call, code, why == nullptr ? "(no message)" : why));
}

constexpr std::uint64_t kUploadPiece = 1 << 18;

aclTensor* makeTensor(const std::vector<std::uint64_t>& shape, aclDataType type, void* data) {
  const std::vector<int64_t> dims(shape.begin(), shape.end());
  aclTensor* tensor = aclCreateTensor(dims.data(), dims.size(), type, nullptr, 0, ACL_FORMAT_ND, dims.data(),
                                      dims.size(), data);
  if (tensor == nullptr) check(ACL_ERROR_FAILURE, "aclCreateTensor");
  return tensor;
}

struct Tensors {
  aclTensor* x = nullptr;
  aclTensor* scales = nullptr;
  aclTensor* output = nullptr;
  ~Tensors() {
    for (aclTensor* tensor : {x, scales, output}) aclDestroyTensor(tensor);
  }
};

class Rank {
 public:
  Rank(const RunOptions& options, const Inputs& inputs, int rank, int ranks, const Progress& progress,
       RankState& state)
      : options_(options), inputs_(inputs), rank_(rank), ranks_(ranks), progress_(progress), state_(state) {}

  void prepare() {
    check(aclrtSetDevice(rank_), "aclrtSetDevice");
    check(aclrtGetCurrentContext(&state_.context), "aclrtGetCurrentContext");
    check(aclrtCreateStream(&state_.stream), "aclrtCreateStream");
    if (options_.deterministic)
      check(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), "aclrtCtxSetSysParamOpt");
    const std::uint64_t n = options_.elements();
    const std::uint64_t groups = n / options_.group();
    const std::uint64_t outputs = options_.scatter() ? n / static_cast<std::uint64_t>(ranks_) : n;
    check(aclrtMalloc(&state_.x, n, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    check(aclrtMalloc(&state_.scales, groups * options_.scales->bytes, ACL_MEM_MALLOC_HUGE_FIRST),
          "aclrtMalloc");
    check(aclrtMalloc(&state_.output, outputs * options_.output->bytes, ACL_MEM_MALLOC_HUGE_FIRST),
          "aclrtMalloc");
    progress_(rank_, "uploading");
    upload(state_.x, n, 1, [&](std::uint64_t first, std::uint64_t count, std::uint8_t* to) {
      inputs_.x(rank_, first, count, to);
    });
    upload(state_.scales, groups, options_.scales->bytes,
           [&](std::uint64_t first, std::uint64_t count, std::uint8_t* to) {
             inputs_.scales(rank_, first, count, to);
           });
  }

  // Before the call that is reported. What earlier calls left in the output is overwritten, so that only this
  // call's own result can be right.
  void resume() {
    check(aclrtSetCurrentContext(state_.context), "aclrtSetCurrentContext");
    if (options_.repeat == 1) return;
    const std::uint64_t outputs =
        options_.elements() / static_cast<std::uint64_t>(options_.scatter() ? ranks_ : 1);
    const std::uint64_t bytes = outputs * options_.output->bytes;
    check(aclrtMemset(state_.output, bytes, 0xa5, bytes), "aclrtMemset");
  }

  void call() {
    progress_(rank_, "running");
    char group[COMM_NAME_MAX_LENGTH] = {};
    check(HcclGetCommName(state_.comm, group), "HcclGetCommName");
    Tensors tensors;
    tensors.x = makeTensor(options_.shape, options_.x->acl, state_.x);
    tensors.scales = makeTensor(options_.scalesShape(), options_.scales->acl, state_.scales);
    tensors.output = makeTensor(options_.outputShape(ranks_), options_.output->acl, state_.output);
    std::uint64_t workspaceSize = 0;
    aclOpExecutor* executor = nullptr;
    if (options_.scatter()) {
      check(aclnnQuantReduceScatterGetWorkspaceSize(tensors.x, tensors.scales, group, "sum", tensors.output,
                                                    &workspaceSize, &executor),
            "aclnnQuantReduceScatterGetWorkspaceSize");
    } else {
      check(aclnnQuantAllReduceGetWorkspaceSize(tensors.x, tensors.scales, group, "sum", tensors.output,
                                                &workspaceSize, &executor),
            "aclnnQuantAllReduceGetWorkspaceSize");
    }
    if (state_.workspace == nullptr && workspaceSize > 0)
      check(aclrtMalloc(&state_.workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    if (options_.scatter()) {
      check(aclnnQuantReduceScatter(state_.workspace, workspaceSize, executor, state_.stream),
            "aclnnQuantReduceScatter");
    } else {
      check(aclnnQuantAllReduce(state_.workspace, workspaceSize, executor, state_.stream),
            "aclnnQuantAllReduce");
    }
    check(aclrtSynchronizeStream(state_.stream), "aclrtSynchronizeStream");
  }

 private:
  template <typename Make>
  void upload(void* to, std::uint64_t count, std::uint64_t elementBytes, Make&& make) {
    std::vector<std::uint8_t> piece(std::min(count, kUploadPiece) * elementBytes);
    for (std::uint64_t first = 0; first < count; first += kUploadPiece) {
      const std::uint64_t part = std::min(kUploadPiece, count - first);
      make(first, part, piece.data());
      check(aclrtMemcpy(static_cast<std::uint8_t*>(to) + first * elementBytes, part * elementBytes,
                        piece.data(), part * elementBytes, ACL_MEMCPY_HOST_TO_DEVICE),
            "aclrtMemcpy");
    }
  }

  const RunOptions& options_;
  const Inputs& inputs_;
  int rank_;
  int ranks_;
  const Progress& progress_;
  RankState& state_;
};

}  // namespace

std::vector<RankState> runRanks(const RunOptions& options, const Inputs& inputs, int ranks,
                                const Progress& progress) {
  std::vector<RankState> states(static_cast<std::size_t>(ranks));
  std::vector<int32_t> devices;
  for (int rank = 0; rank < ranks; ++rank) devices.push_back(rank);
  std::vector<HcclComm> comms(static_cast<std::size_t>(ranks));
  try {
    check(HcclCommInitAll(static_cast<uint32_t>(ranks), devices.data(), comms.data()), "HcclCommInitAll");
  } catch (const CallFailed& failed) {
    states[0].code = failed.code;
    states[0].error = failed.what();
    return states;
  }
  std::atomic<bool> failed{false};
  const auto guard = [&](RankState& state, auto&& body) {
    if (failed) return;
    try {
      body();
    } catch (const CallFailed& call) {
      state.code = call.code;
      state.error = call.what();
      failed = true;
    } catch (const std::exception& error) {
      state.code = ACL_ERROR_FAILURE;
      state.error = error.what();
      failed = true;
    }
  };
  // Threads only meet by ending: a barrier of the program's own would make simulated time depend on the host.
  const auto onAllRanks = [&](auto&& body) {
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        RankState& state = states[static_cast<std::size_t>(r)];
        state.comm = comms[static_cast<std::size_t>(r)];
        Rank rank(options, inputs, r, ranks, progress, state);
        guard(state, [&] { body(rank); });
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  onAllRanks([&](Rank& rank) {
    rank.prepare();
    for (int i = 1; i < options.repeat; ++i) rank.call();
  });
  vatlasResetReport();
  onAllRanks([&](Rank& rank) {
    rank.resume();
    rank.call();
  });
  return states;
}

void fetchOutput(const RankState& state, const RunOptions& options, std::uint64_t first, std::uint64_t count,
                 std::uint8_t* to) {
  check(aclrtSetCurrentContext(state.context), "aclrtSetCurrentContext");
  const std::uint64_t bytes = count * options.output->bytes;
  check(aclrtMemcpy(to, bytes, static_cast<const std::uint8_t*>(state.output) + first * options.output->bytes,
                    bytes, ACL_MEMCPY_DEVICE_TO_HOST),
        "aclrtMemcpy");
}

void releaseRanks(std::vector<RankState>& states) {
  for (std::size_t rank = 0; rank < states.size(); ++rank) {
    RankState& state = states[rank];
    if (state.context == nullptr) continue;
    aclrtSetCurrentContext(state.context);
    HcclCommDestroy(state.comm);
    aclrtDestroyStream(state.stream);
    for (void* memory : {state.x, state.scales, state.output, state.workspace}) {
      if (memory != nullptr) aclrtFree(memory);
    }
    aclrtResetDevice(static_cast<int32_t>(rank));
  }
}

}  // namespace vatlas::tools
