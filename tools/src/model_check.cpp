// vatlas model-check: the model beside times measured on real cards. The first two rows are those that the
// model's copy parameters were fitted to; the others were not used.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "acl/acl.h"
#include "commands.h"
#include "model_check_args.h"
#include "vatlas/runtime/handles.h"
#include "vatlas/vatlas.h"

namespace vatlas::tools {
namespace {

constexpr std::uint64_t kCopyBytes = 302'000'000;  // read by all cores together

void check(int code, const char* what) {
  if (code == 0) return;
  const char* why = aclGetRecentErrMsg();
  throw std::runtime_error(fmt::format("{}: {}", what, why == nullptr ? "failed" : why));
}

// A machine for one measurement.
class Machine {
 public:
  explicit Machine(const char* cluster) {
    check(vatlasUseCluster(cluster), "cluster");
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
  }
  ~Machine() { aclFinalize(); }

  template <typename Args>
  void submit(const char* kernel, const Args& args, int blocks) {
    const runtime::Call call = runtime::enterCall();
    const runtime::StreamRef stream = runtime::resolveStream(call, nullptr);
    runtime::KernelRequest request;
    request.image = "model_check";
    request.kernel = kernel;
    request.args.resize(sizeof args);
    std::memcpy(request.args.data(), &args, sizeof args);
    request.blocks = blocks;
    call.session->submitKernel(*call.thread, stream.id, std::move(request));
  }
  // Task durations in microseconds, from the begin on the device to its report there.
  std::vector<double> finish() {
    const runtime::Call call = runtime::enterCall();
    check(aclrtSynchronizeDevice(), "aclrtSynchronizeDevice");
    std::vector<double> times;
    const sim::LaunchConfig& launch = call.session->cluster().product.launch;
    for (const runtime::KernelRecord& record : call.session->takeKernelRecords()) {
      times.push_back(static_cast<double>(record.end - record.start - launch.report) * 1e-6);
    }
    return times;
  }
};

double copyTime(std::uint32_t rows, std::uint32_t rowBytes) {
  Machine machine("ascend950pr_2p");
  constexpr int kBlocks = 64;
  const std::uint64_t perCopy = static_cast<std::uint64_t>(rows) * rowBytes;
  const std::uint32_t stride = rows > 1 ? rowBytes * 2 : rowBytes;
  CopyKernelArgs args{};
  args.blockStride = static_cast<std::uint64_t>(stride) * rows;
  args.instructions = kCopyBytes / kBlocks / perCopy;
  args.rows = rows;
  args.rowBytes = rowBytes;
  args.rowStride = stride;
  void* memory = nullptr;
  check(aclrtMalloc(&memory, args.blockStride * kBlocks, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  args.memory = static_cast<std::uint8_t*>(memory);
  machine.submit("copy", args, kBlocks);
  return machine.finish().at(0);
}

double emptyTime(int blocks) {
  Machine machine("ascend950pr_2p");
  machine.submit("empty", 0, blocks);
  return machine.finish().at(0);
}

double allReduceTime() {
  Machine machine("ascend950pr_2p");
  constexpr std::uint64_t kBytes = 16'900'000;
  constexpr std::uint64_t kTile = 64 * 1024;
  AllReduceKernelArgs args[2] = {};
  for (int device = 0; device < 2; ++device) {
    check(aclrtSetDevice(device), "aclrtSetDevice");
    void* data = nullptr;
    void* flags = nullptr;
    check(aclrtMalloc(&data, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    check(aclrtMalloc(&flags, 4096, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    check(aclrtMemset(flags, 4096, 0, 4096), "aclrtMemset");
    args[device].mine = args[1 - device].peer = static_cast<std::uint8_t*>(data);
    args[device].flag = args[1 - device].peerFlag = static_cast<std::uint8_t*>(flags);
    args[device].bytes = kBytes;
    args[device].tile = kTile;
  }
  for (int device = 0; device < 2; ++device) {
    check(aclrtSetDevice(device), "aclrtSetDevice");
    machine.submit("all_reduce", args[device], 24);
  }
  double longest = 0;
  for (int device = 0; device < 2; ++device) {
    check(aclrtSetDevice(device), "aclrtSetDevice");
    for (const double time : machine.finish()) longest = std::max(longest, time);
  }
  return longest;
}

}  // namespace

int modelCheckCommand() {
  struct Row {
    const char* what;
    double measured;
    double (*modelled)();
    double limit;  // percent; 0: shown only
  };
  const Row rows[] = {
      {"302 MB GM to UB, 64 x 2 KB strided copies", 188.5, [] { return copyTime(64, 2048); }, 5},
      {"302 MB GM to UB, one 128 B copy an instruction", 884, [] { return copyTime(1, 128); }, 5},
      {"302 MB GM to UB, 64 x 128 B strided copies", 206.0, [] { return copyTime(64, 128); }, 0},
      {"AllReduce of 16.9 MB on two 950PR, 24 AIV", 530.8, [] { return allReduceTime(); }, 0},
      {"empty kernel, 1 block", 1.22, [] { return emptyTime(1); }, 0},
      {"empty kernel, 64 blocks", 2.17, [] { return emptyTime(64); }, 0},
      {"empty kernel, 1024 blocks", 16.4, [] { return emptyTime(1024); }, 0},
  };
  fmt::print("{:<50} {:>12} {:>12} {:>10}\n", "case (950PR)", "measured us", "model us", "deviation");
  bool good = true;
  for (const Row& row : rows) {
    const double modelled = row.modelled();
    const double deviation = (modelled / row.measured - 1) * 100;
    const bool fits = row.limit == 0 || std::fabs(deviation) <= row.limit;
    good = good && fits;
    fmt::print("{:<50} {:>12.2f} {:>12.2f} {:>9.1f} %  {}\n", row.what, row.measured, modelled, deviation,
               row.limit == 0 ? "validation"
               : fits         ? "fit, within 5 %"
                              : "fit, NOT within 5 %");
  }
  fmt::print(
      "\nThe first two rows check the fit of the copy parameters; the others were not used for it. The "
      "measured empty\n"
      "kernels are SIMT kernels; the AllReduce is modelled without its atomic additions.\n");
  return good ? kExitEqual : kExitDifferent;
}

}  // namespace vatlas::tools
