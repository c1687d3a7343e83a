// Executors, phase 2, and the operators' public functions.
#include <fmt/format.h>

#include <cstring>

#include "aclnn/aclnn_base.h"
#include "aclnn/quant_op.h"
#include "aclnnop/aclnn_quant_all_reduce.h"
#include "aclnnop/aclnn_quant_reduce_scatter.h"
#include "vatlas/runtime/handles.h"

using namespace vatlas::runtime;
namespace kernels = vatlas::kernels;

namespace {

struct Executor {
  QuantPlan plan;
  bool repeatable = false;
};

struct ExecutorTable {
  std::mutex mutex;
  HandleTable<Executor> executors{HandleKind::Executor};
};
ExecutorTable& executorTable() {
  static auto* table = new ExecutorTable;  // leaked: used while the process exits
  return *table;
}

int inner(kernels::QuantOperator op, const std::string& message) {
  return fail(ACLNN_ERR_INNER,
              {"EZ9999", "Error", fmt::format("{}: {}", quantFunction(op), message), {}, {}});
}

int badExecutor(const char* function) {
  return fail(ACLNN_ERR_INNER_NULLPTR,
              {"EZ9999",
               "Error",
               fmt::format("{}: the executor is null, was used up, or is none", function),
               {},
               {}});
}

int phase1(kernels::QuantOperator op, const QuantArguments& arguments, uint64_t* workspaceSize,
           aclOpExecutor** executor) {
  return guarded(quantFunction(op), [&] {
    auto made = std::make_shared<Executor>();
    const int code = planQuant(op, arguments, workspaceSize != nullptr && executor != nullptr, made->plan);
    if (code != ACLNN_SUCCESS) return code;
    ExecutorTable& table = executorTable();
    const std::lock_guard lock(table.mutex);
    *executor = reinterpret_cast<aclOpExecutor*>(table.executors.add(std::move(made)));
    *workspaceSize = kernels::kQuantWorkspaceBytes;
    return ACLNN_SUCCESS;
  });
}

// One-shot executors are gone after this.
std::shared_ptr<Executor> takeExecutor(aclOpExecutor* executor) {
  ExecutorTable& table = executorTable();
  const std::lock_guard lock(table.mutex);
  const auto id = reinterpret_cast<std::uint64_t>(executor);
  std::shared_ptr<Executor> found = table.executors.find(id);
  if (found && !found->repeatable) table.executors.remove(id);
  return found;
}

std::uint8_t* addressOf(const Tensor& tensor) {
  return static_cast<std::uint8_t*>(tensor.data) +
         tensor.offset * static_cast<std::int64_t>(aclDataTypeSize(tensor.type));
}

// The tiling data in device memory, until the kernel has ended.
std::shared_ptr<void> uploadTiling(const std::shared_ptr<Session>& session, int device,
                                   const QuantPlan& plan) {
  kernels::QuantTiling data{};
  data.data.quantAllReduceTilingInfo = plan.tiling;
  data.options = plan.options;
  void* address = nullptr;
  if (session->memory().allocate(device, sizeof data, 64, false, address) != vatlas::sim::MemoryStatus::Ok)
    return nullptr;
  std::memcpy(address, &data, sizeof data);
  return {address, [keep = std::weak_ptr<Session>(session)](void* p) {
            if (const auto alive = keep.lock()) alive->memory().release(p);
          }};
}

int launch(const Call& call, const QuantPlan& plan, const StreamRef& ref) {
  kernels::QuantKernelArgs args{};
  args.x = addressOf(*plan.tensors[0]);
  args.scales = addressOf(*plan.tensors[1]);
  args.output = addressOf(*plan.tensors[2]);
  KernelRequest request;
  request.keepAlive = uploadTiling(call.session, ref.device, plan);
  if (!request.keepAlive) {
    return fail(ACLNN_ERR_RUNTIME_ERROR,
                {"EZ9999",
                 "Error",
                 fmt::format("{}: no device memory for the tiling data", quantFunction(plan.op)),
                 {},
                 {}});
  }
  args.tiling = static_cast<std::uint8_t*>(request.keepAlive.get());
  request.image = std::string(kernels::quantOperatorName(plan.op));
  request.kernel = std::string(kernels::quantKernelName(plan.op, plan.x, plan.scales, plan.output).view());
  request.args.resize(sizeof args);
  std::memcpy(request.args.data(), &args, sizeof args);
  request.blocks = static_cast<int>(plan.tiling.aivNum);
  request.gang = plan.communicator.gang;
  request.gangRank = plan.communicator.rank;
  request.hcclContext = plan.communicator.hcclContext;
  request.signature = plan.signature;
  if (!call.session->submitKernel(*call.thread, ref.id, std::move(request)))
    return inner(plan.op, "the stream is gone");
  return ACLNN_SUCCESS;
}

int phase2(kernels::QuantOperator op, void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
           aclrtStream stream) {
  return guarded(quantFunction(op), [&] {
    const Call call = enterCall();
    if (call.code != 0) return inner(op, "the machine cannot be opened");
    const std::shared_ptr<Executor> found = takeExecutor(executor);
    if (!found) return inner(op, "the executor is null, has been used, or is none");
    const QuantPlan& plan = found->plan;
    if (plan.op != op) return inner(op, fmt::format("the executor is one of {}", quantFunction(plan.op)));
    const StreamRef ref = resolveStream(call, stream);
    if (ref.code != 0) return inner(op, "the stream is not valid: " + std::string(takeErrorMessage()));
    if (ref.device != plan.communicator.device)
      return inner(op, fmt::format("the stream is on device {}, the communicator's rank on device {}",
                                   ref.device, plan.communicator.device));
    if (workspace == nullptr || workspaceSize < kernels::kQuantWorkspaceBytes) {
      return inner(op, fmt::format("the workspace has {} bytes, {} were asked for",
                                   workspace == nullptr ? 0 : workspaceSize, kernels::kQuantWorkspaceBytes));
    }
    if (!call.session->memory().find(workspace, workspaceSize))
      return inner(op, "the workspace is not device memory of that size");
    for (int i = 0; i < 3; ++i) {
      if (plan.tensors[i]->data == nullptr)
        return inner(op, fmt::format("{} has no data", i == 0 ? "x" : i == 1 ? "scales" : "output"));
    }
    const auto now = findCommunicator(plan.communicator.name, plan.communicator.device);
    if (!now || now->gang != plan.communicator.gang)
      return inner(op, fmt::format("communicator {} has been destroyed", plan.communicator.name));
    if (noteCommunicatorUse(plan.communicator.name, plan.communicator.device,
                            CommunicatorUse::QuantizedOperators) != CommunicatorUse::QuantizedOperators) {
      return inner(op, fmt::format("communicator {} has run other operators, which use the same window",
                                   plan.communicator.name));
    }
    return launch(call, plan, ref);
  });
}

}  // namespace

aclnnStatus aclnnQuantAllReduceGetWorkspaceSize(const aclTensor* x, const aclTensor* scales,
                                                const char* group, const char* reduceOp, aclTensor* output,
                                                uint64_t* workspaceSize, aclOpExecutor** executor) {
  return phase1(kernels::QuantOperator::AllReduce, {x, scales, group, reduceOp, output}, workspaceSize,
                executor);
}
aclnnStatus aclnnQuantAllReduce(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                const aclrtStream stream) {
  return phase2(kernels::QuantOperator::AllReduce, workspace, workspaceSize, executor, stream);
}
aclnnStatus aclnnQuantReduceScatterGetWorkspaceSize(const aclTensor* x, const aclTensor* scales,
                                                    const char* group, const char* reduceOp,
                                                    aclTensor* output, uint64_t* workspaceSize,
                                                    aclOpExecutor** executor) {
  return phase1(kernels::QuantOperator::ReduceScatter, {x, scales, group, reduceOp, output}, workspaceSize,
                executor);
}
aclnnStatus aclnnQuantReduceScatter(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                    const aclrtStream stream) {
  return phase2(kernels::QuantOperator::ReduceScatter, workspace, workspaceSize, executor, stream);
}

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  ExecutorTable& table = executorTable();
  const std::lock_guard lock(table.mutex);
  const auto found = table.executors.find(reinterpret_cast<std::uint64_t>(executor));
  if (!found) return badExecutor("aclSetAclOpExecutorRepeatable");
  found->repeatable = true;
  return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  ExecutorTable& table = executorTable();
  const std::lock_guard lock(table.mutex);
  if (table.executors.remove(reinterpret_cast<std::uint64_t>(executor))) return ACLNN_SUCCESS;
  return badExecutor("aclDestroyAclOpExecutor");
}
