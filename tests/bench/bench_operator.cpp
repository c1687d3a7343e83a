// Wall time of the emulated operator, with its reference measured in the same process; opening and closing a
// machine; processor time of an idle one.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "aclnnop/aclnn_quant_all_reduce.h"
#include "floor_loop.h"
#include "hccl/hccl.h"
#include "vatlas/vatlas.h"

namespace {

constexpr int kRanks = 8;
constexpr int64_t kHidden = 8192;

void check(int code, const char* what) {
  if (code == 0) return;
  const char* why = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s: %d %s\n", what, code, why == nullptr ? "" : why);
  std::exit(1);
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Eight ranks, driven by one host thread.
class Cluster {
 public:
  explicit Cluster(int64_t elements)
      : rows_(std::max<int64_t>(elements / kHidden, 8)), hidden_(elements / rows_) {
    check(vatlasUseCluster("ascend950dt_8p"), "cluster");
    check(aclInit(nullptr), "aclInit");
    int32_t devices[kRanks] = {0, 1, 2, 3, 4, 5, 6, 7};
    HcclComm comms[kRanks] = {};
    check(HcclCommInitAll(kRanks, devices, comms), "HcclCommInitAll");
    check(HcclGetCommName(comms[0], group_), "HcclGetCommName");
    const auto count = static_cast<std::size_t>(elements);
    std::vector<std::uint8_t> x(count);
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<std::uint8_t>((i * 2654435761u >> 13) % 0x7f);
    const std::vector<std::uint8_t> scales(count / 32, 127);
    for (int rank = 0; rank < kRanks; ++rank) {
      Rank& r = ranks_[rank];
      check(aclrtSetDevice(rank), "aclrtSetDevice");
      check(aclrtGetCurrentContext(&r.context), "context");
      r.x = upload(x);
      r.scales = upload(scales);
      check(aclrtMalloc(&r.output, count * 2, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
      check(aclrtMalloc(&r.workspace, 16 << 20, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
      const int64_t shape[2] = {rows_, hidden_};
      const int64_t scaleShape[3] = {rows_, hidden_ / 64, 2};
      r.tensors[0] = aclCreateTensor(shape, 2, ACL_FLOAT8_E4M3FN, nullptr, 0, ACL_FORMAT_ND, shape, 2, r.x);
      r.tensors[1] =
          aclCreateTensor(scaleShape, 3, ACL_FLOAT8_E8M0, nullptr, 0, ACL_FORMAT_ND, scaleShape, 3, r.scales);
      r.tensors[2] = aclCreateTensor(shape, 2, ACL_BF16, nullptr, 0, ACL_FORMAT_ND, shape, 2, r.output);
    }
  }
  ~Cluster() { aclFinalize(); }

  double run() {
    const double start = seconds();
    for (Rank& r : ranks_) {
      aclrtSetCurrentContext(r.context);
      uint64_t workspace = 0;
      aclOpExecutor* executor = nullptr;
      check(aclnnQuantAllReduceGetWorkspaceSize(r.tensors[0], r.tensors[1], group_, "sum", r.tensors[2],
                                                &workspace, &executor),
            "phase 1");
      check(aclnnQuantAllReduce(r.workspace, workspace, executor, nullptr), "phase 2");
    }
    for (Rank& r : ranks_) {
      aclrtSetCurrentContext(r.context);
      check(aclrtSynchronizeStream(nullptr), "synchronize");
    }
    return seconds() - start;
  }

  double floor() const {
    const std::uint8_t* x[kRanks];
    const std::uint8_t* scales[kRanks];
    for (int rank = 0; rank < kRanks; ++rank) {
      x[rank] = static_cast<const std::uint8_t*>(ranks_[rank].x);
      scales[rank] = static_cast<const std::uint8_t*>(ranks_[rank].scales);
    }
    const double start = seconds();
    for (const Rank& r : ranks_) {
      vatlas::bench::floorLoop(x, scales, static_cast<std::uint16_t*>(r.output),
                               static_cast<std::size_t>(rows_ * hidden_));
    }
    return seconds() - start;
  }

 private:
  struct Rank {
    aclrtContext context = nullptr;
    void* x = nullptr;
    void* scales = nullptr;
    void* output = nullptr;
    void* workspace = nullptr;
    aclTensor* tensors[3] = {};
  };
  static void* upload(const std::vector<std::uint8_t>& data) {
    void* memory = nullptr;
    check(aclrtMalloc(&memory, data.size(), ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    check(aclrtMemcpy(memory, data.size(), data.data(), data.size(), ACL_MEMCPY_HOST_TO_DEVICE),
          "aclrtMemcpy");
    return memory;
  }
  int64_t rows_;
  int64_t hidden_;
  char group_[128] = {};
  Rank ranks_[kRanks];
};

void quantAllReduce(benchmark::State& state) {
  Cluster cluster(state.range(0));
  for (int i = 0; i < 2; ++i) (void)cluster.run();  // first touch of memory, both halves of the windows
  double best = 1e9;
  double floor = 1e9;
  for (auto _ : state) {
    const double time = cluster.run();
    best = std::min(best, time);
    if (vatlas::bench::floorLoopRuns()) floor = std::min(floor, cluster.floor());
    state.SetIterationTime(time);
  }
  state.counters["best_ms"] = best * 1e3;
  if (!vatlas::bench::floorLoopRuns()) return;
  state.counters["floor_ms"] = floor * 1e3;
  state.counters["ratio"] = best / floor;
}
BENCHMARK(quantAllReduce)
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->Arg(16 << 20)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void openAndClose(benchmark::State& state) {
  for (auto _ : state) {
    check(vatlasUseCluster("ascend950dt_8p"), "cluster");
    check(aclInit(nullptr), "aclInit");
    for (int device = 0; device < kRanks; ++device) check(aclrtSetDevice(device), "aclrtSetDevice");
    for (int device = 0; device < kRanks; ++device) check(aclrtResetDevice(device), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
  }
}
BENCHMARK(openAndClose)->UseRealTime()->Unit(benchmark::kMillisecond);

double processorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

void idle(benchmark::State& state) {
  Cluster cluster(64 << 10);
  (void)cluster.run();
  for (auto _ : state) {
    const double before = processorSeconds();
    std::this_thread::sleep_for(std::chrono::seconds(10));
    state.counters["cpu_ms"] = (processorSeconds() - before) * 1e3;
  }
}
BENCHMARK(idle)->Iterations(1)->UseRealTime()->Unit(benchmark::kSecond);

}  // namespace

BENCHMARK_MAIN();
