// QuantAllReduce and QuantReduceScatter on the host: checks in their order, tiling, launch.
#pragma once

#include <memory>
#include <string>

#include "aclnn/tensor.h"
#include "vatlas/kernel/quant_tiling.h"
#include "vatlas/runtime/communicators.h"

namespace vatlas::runtime {

// What phase 1 hands to phase 2.
struct QuantPlan {
  kernels::QuantOperator op{};
  kernels::QuantX x{};
  kernels::QuantScales scales{};
  kernels::QuantOutput output{};
  std::shared_ptr<Tensor> tensors[3];  // x, scales, output
  kernels::QuantAllReduceTilingInfo tiling{};
  kernels::QuantOptions options{};
  CommunicatorInfo communicator;
  std::string signature;
};

struct QuantArguments {
  const aclTensor* x;
  const aclTensor* scales;
  const char* group;
  const char* reduceOp;
  aclTensor* output;
};

const char* quantFunction(kernels::QuantOperator op);  // "aclnnQuantAllReduce"
// 0 and a complete plan, or the status; the thread's message is set.
int planQuant(kernels::QuantOperator op, const QuantArguments& arguments, bool outputsGiven, QuantPlan& plan);
// Window of a communicator by the environment, in bytes; text that is no number leaves the default.
std::uint64_t windowLimit();

}  // namespace vatlas::runtime
