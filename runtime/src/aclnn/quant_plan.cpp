// Phase 1 of the quantized operators: every check in the order in which the vendor's operator makes them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "aclnn/aclnn_base.h"
#include "aclnn/quant_op.h"
#include "vatlas/runtime/config.h"
#include "vatlas/runtime/handles.h"

namespace vatlas::runtime {
namespace {

using kernels::QuantOperator;
using kernels::QuantOutput;
using kernels::QuantScales;
using kernels::QuantX;

constexpr const char* kNames[3] = {"x", "scales", "output"};

int refuse(int code, QuantOperator op, const std::string& message, std::string solution = {}) {
  return fail(code, {code == ACLNN_ERR_INNER_TILING_ERROR ? "EZ9903" : "EZ1001",
                     "Operator call not possible",
                     fmt::format("{}: {}", quantFunction(op), message),
                     {},
                     std::move(solution)});
}

std::string typeName(aclDataType type) {
  switch (type) {
    case ACL_INT8:
      return "int8";
    case ACL_HIFLOAT8:
      return "hifloat8";
    case ACL_FLOAT8_E4M3FN:
      return "float8_e4m3fn";
    case ACL_FLOAT8_E5M2:
      return "float8_e5m2";
    case ACL_FLOAT8_E8M0:
      return "float8_e8m0";
    case ACL_FLOAT:
      return "float";
    case ACL_FLOAT16:
      return "float16";
    case ACL_BF16:
      return "bfloat16";
    default:
      return fmt::format("aclDataType {}", static_cast<int>(type));
  }
}

std::optional<QuantX> xKind(aclDataType type) {
  switch (type) {
    case ACL_INT8:
      return QuantX::Int8;
    case ACL_HIFLOAT8:
      return QuantX::HiFloat8;
    case ACL_FLOAT8_E4M3FN:
      return QuantX::E4m3fn;
    case ACL_FLOAT8_E5M2:
      return QuantX::E5m2;
    default:
      return std::nullopt;
  }
}
std::optional<QuantScales> scalesKind(aclDataType type) {
  if (type == ACL_FLOAT) return QuantScales::Float;
  if (type == ACL_FLOAT8_E8M0) return QuantScales::E8m0;
  return std::nullopt;
}
std::optional<QuantOutput> outputKind(aclDataType type) {
  if (type == ACL_FLOAT) return QuantOutput::Float;
  if (type == ACL_FLOAT16) return QuantOutput::Half;
  if (type == ACL_BF16) return QuantOutput::Bfloat16;
  return std::nullopt;
}

bool isPrivate(aclFormat format) {
  switch (format) {
    case ACL_FORMAT_NC1HWC0:
    case ACL_FORMAT_FRACTAL_Z:
    case ACL_FORMAT_NC1HWC0_C04:
    case ACL_FORMAT_FRACTAL_NZ:
    case ACL_FORMAT_NDC1HWC0:
    case ACL_FRACTAL_Z_3D:
    case ACL_FORMAT_FRACTAL_NZ_C0_16:
    case ACL_FORMAT_FRACTAL_NZ_C0_32:
    case ACL_FORMAT_FRACTAL_NZ_C0_2:
    case ACL_FORMAT_FRACTAL_NZ_C0_4:
    case ACL_FORMAT_FRACTAL_NZ_C0_8:
      return true;
    default:
      return false;
  }
}

int checkTypes(QuantOperator op, QuantPlan& plan) {
  const auto x = xKind(plan.tensors[0]->type);
  const auto scales = scalesKind(plan.tensors[1]->type);
  const auto output = outputKind(plan.tensors[2]->type);
  if (!x || !scales || !output || !kernels::quantTypesAreLegal(*x, *scales)) {
    return refuse(ACLNN_ERR_PARAM_INVALID, op,
                  fmt::format("no kernel for x {}, scales {}, output {}", typeName(plan.tensors[0]->type),
                              typeName(plan.tensors[1]->type), typeName(plan.tensors[2]->type)),
                  "x int8, hifloat8, float8_e4m3fn or float8_e5m2 with float scales, or one of the last two "
                  "with float8_e8m0 "
                  "scales; output float, float16 or bfloat16");
  }
  plan.x = *x;
  plan.scales = *scales;
  plan.output = *output;
  return ACLNN_SUCCESS;
}

// The checks of the operator's own layer.
int checkArguments(QuantOperator op, const QuantArguments& arguments, QuantPlan& plan) {
  const aclTensor* handles[3] = {arguments.x, arguments.scales, arguments.output};
  for (int i = 0; i < 3; ++i) {
    if (handles[i] == nullptr)
      return refuse(ACLNN_ERR_PARAM_NULLPTR, op, fmt::format("{} is null", kNames[i]));
  }
  for (int i = 0; i < 3; ++i) {
    plan.tensors[i] = findTensor(handles[i]);
    if (!plan.tensors[i])
      return refuse(ACLNN_ERR_PARAM_INVALID, op, fmt::format("{} was destroyed, or is no tensor", kNames[i]));
  }
  if (const int code = checkTypes(op, plan); code != ACLNN_SUCCESS) return code;
  for (int i = 0; i < 3 && op == QuantOperator::AllReduce; ++i) {
    if (isPrivate(plan.tensors[i]->format)) {
      return refuse(
          ACLNN_ERR_PARAM_INVALID, op,
          fmt::format("{} has the private format {}", kNames[i], static_cast<int>(plan.tensors[i]->format)),
          "use ACL_FORMAT_ND");
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (!plan.tensors[i]->contiguous())
      return refuse(ACLNN_ERR_PARAM_INVALID, op, fmt::format("{} is not contiguous", kNames[i]),
                    "copy it to a contiguous tensor first");
  }
  if (arguments.group == nullptr)
    return refuse(ACLNN_ERR_PARAM_INVALID, op, "group is null", "pass the name that HcclGetCommName gives");
  if (strnlen(arguments.group, 128) >= 128)
    return refuse(ACLNN_ERR_PARAM_INVALID, op, "group has 128 characters or more; allowed: up to 127");
  return ACLNN_SUCCESS;
}

int tilingError(QuantOperator op, const std::string& message, std::string solution = {}) {
  return refuse(ACLNN_ERR_INNER_TILING_ERROR, op, message, std::move(solution));
}

// The operators keep state in the windows between calls, which other users of the windows would destroy.
int checkUse(QuantOperator op, const CommunicatorInfo& communicator) {
  const CommunicatorUse use = communicatorUse(communicator.name, communicator.device);
  if (use == CommunicatorUse::None || use == CommunicatorUse::QuantizedOperators) return ACLNN_SUCCESS;
  return tilingError(op,
                     fmt::format("communicator {} has run {}, which use the same window", communicator.name,
                                 use == CommunicatorUse::Collectives ? "HCCL collectives" : "user kernels"),
                     "make a communicator of its own for the quantized operators");
}

int checkCommunicator(QuantOperator op, const QuantArguments& arguments, QuantPlan& plan) {
  if (*arguments.group == '\0') return tilingError(op, "group is empty");
  if (arguments.reduceOp == nullptr) return tilingError(op, "reduceOp is null", "pass \"sum\"");
  if (std::strcmp(arguments.reduceOp, "sum") != 0) {
    return tilingError(op, fmt::format("reduceOp is \"{:.40}\"; allowed: \"sum\"", arguments.reduceOp));
  }
  const int device = currentDevice();
  const std::optional<CommunicatorInfo> found = findCommunicator(arguments.group, device);
  if (!found) {
    return tilingError(
        op, device < 0 ? std::string("the calling thread has no device")
                       : fmt::format("there is no communicator {} on device {}", arguments.group, device));
  }
  plan.communicator = *found;
  if (found->rankSize != 2 && found->rankSize != 4 && found->rankSize != 8) {
    return tilingError(op, fmt::format("communicator {} has {} ranks; allowed: 2, 4 or 8", arguments.group,
                                       found->rankSize));
  }
  const auto session = Session::currentOrNull();
  if (!session) return tilingError(op, "no machine is open");
  const std::string feature(kernels::quantOperatorName(op));
  static const SupportMatrix matrix = loadSupportMatrix();  // the shipped one does not change
  if (const auto why = matrix.check(feature, session->cluster(), found->gang->devices))
    return tilingError(op, *why);
  if (session->cluster().product.npuArch != 3510) {
    return tilingError(
        op, fmt::format("{} has architecture {}; the operator needs 3510",
                        session->cluster().product.displayName, session->cluster().product.npuArch));
  }
  return checkUse(op, *found);
}

std::int64_t nearestLegalHidden(std::int64_t hidden) {
  const std::int64_t clamped = std::clamp<std::int64_t>(hidden, 1024, 8192);
  return (clamped + 64) / 128 * 128;
}

int checkX(QuantOperator op, QuantPlan& plan) {
  const std::vector<std::int64_t>& dims = plan.tensors[0]->view;
  if (dims.size() != 2 && dims.size() != 3)
    return tilingError(op,
                       fmt::format("x has {} dimensions; allowed: 2 (bs, H) or 3 (b, s, H)", dims.size()));
  for (const std::int64_t dim : dims) {
    if (dim == 0) return tilingError(op, fmt::format("x is empty: [{}]", fmt::join(dims, ", ")));
  }
  std::int64_t rows = dims[0];
  if (dims.size() == 3 && __builtin_mul_overflow(dims[0], dims[1], &rows))
    return tilingError(op, "x has more rows than can be counted");
  const std::int64_t hidden = dims.back();
  if (rows % plan.communicator.rankSize != 0) {
    return tilingError(op, fmt::format("x has {} rows, which the {} ranks do not divide evenly", rows,
                                       plan.communicator.rankSize));
  }
  if (hidden < 1024 || hidden > 8192 || hidden % 128 != 0) {
    return tilingError(op, fmt::format("H is {}; allowed: 1024 to 8192, a multiple of 128", hidden),
                       fmt::format("the nearest legal H is {}", nearestLegalHidden(hidden)));
  }
  std::int64_t total = 0;
  if (__builtin_mul_overflow(rows, hidden, &total) || total > (std::int64_t{1} << 40))
    return tilingError(op, fmt::format("x is too large: [{}]", fmt::join(dims, ", ")));
  plan.tiling.bs = static_cast<std::uint64_t>(rows);
  plan.tiling.hiddenSize = static_cast<std::uint64_t>(hidden);
  plan.tiling.scaleHiddenSize =
      static_cast<std::uint64_t>(hidden / (plan.scales == QuantScales::E8m0 ? 64 : 128));
  return ACLNN_SUCCESS;
}

int checkShapes(QuantOperator op, QuantPlan& plan) {
  if (const int code = checkX(op, plan); code != ACLNN_SUCCESS) return code;
  const std::vector<std::int64_t>& x = plan.tensors[0]->view;
  std::vector<std::int64_t> scales(x.begin(), x.end() - 1);
  scales.push_back(static_cast<std::int64_t>(plan.tiling.scaleHiddenSize));
  if (plan.scales == QuantScales::E8m0) scales.push_back(2);
  std::vector<std::int64_t> output = x;
  if (op == QuantOperator::ReduceScatter)
    output = {static_cast<std::int64_t>(plan.tiling.bs) / plan.communicator.rankSize, x.back()};
  for (const auto& [index, expected] : {std::pair{1, scales}, std::pair{2, output}}) {
    const std::vector<std::int64_t>& got = plan.tensors[index]->view;
    if (got != expected) {
      return tilingError(op,
                         fmt::format("{} has shape [{}]; with x [{}] it must be [{}]", kNames[index],
                                     fmt::join(got, ", "), fmt::join(x, ", "), fmt::join(expected, ", ")));
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (plan.tensors[i]->format != ACL_FORMAT_ND) {
      return tilingError(op, fmt::format("{} has format {}; allowed: ACL_FORMAT_ND", kNames[i],
                                         static_cast<int>(plan.tensors[i]->format)));
    }
  }
  return ACLNN_SUCCESS;
}

constexpr std::uint64_t align512(std::uint64_t bytes) {
  return (bytes + 511) / 512 * 512;
}

int checkWindow(QuantOperator op, QuantPlan& plan) {
  const std::uint64_t x = plan.tensors[0]->elements();
  const std::uint64_t scales = plan.tensors[1]->elements() * (plan.scales == QuantScales::Float ? 4 : 1);
  const std::uint64_t needed = 2 * (align512(x) + align512(scales) + (1ULL << 20));
  const std::uint64_t limit = windowLimit();
  if (needed > limit) {
    return tilingError(
        op, fmt::format("x and scales need a window of {} bytes, HCCL_BUFFSIZE gives {}", needed, limit),
        fmt::format("set HCCL_BUFFSIZE to {} or more", (needed + (1ULL << 20) - 1) >> 20));
  }
  plan.tiling.totalWinSize = limit;
  return ACLNN_SUCCESS;
}

// Deterministic computation, asked for by the calling thread's context, the process or the environment.
kernels::QuantOrder orderOfSummation() {
  std::int64_t option = 0;
  if (systemParameter(ACL_OPT_DETERMINISTIC, option) && option != 0) return kernels::QuantOrder::Rank;
  const char* text = std::getenv("HCCL_DETERMINISTIC");
  const bool asked = text != nullptr && (strcasecmp(text, "true") == 0 || strcasecmp(text, "strict") == 0);
  return asked ? kernels::QuantOrder::Rank : kernels::QuantOrder::OwnFirst;
}

}  // namespace

const char* quantFunction(QuantOperator op) {
  return op == QuantOperator::AllReduce ? "aclnnQuantAllReduce" : "aclnnQuantReduceScatter";
}

std::uint64_t windowLimit() {
  constexpr std::uint64_t kDefaultMb = 200;
  std::uint64_t mb = kDefaultMb;
  if (const char* text = std::getenv("HCCL_BUFFSIZE")) {
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end != text && value > 0 && value <= 65535) mb = static_cast<std::uint64_t>(value);
  }
  return mb << 20;
}

int planQuant(QuantOperator op, const QuantArguments& arguments, bool outputsGiven, QuantPlan& plan) {
  plan.op = op;
  if (const int code = checkArguments(op, arguments, plan); code != ACLNN_SUCCESS) return code;
  if (!outputsGiven) return refuse(ACLNN_ERR_PARAM_NULLPTR, op, "workspaceSize or executor is null");
  if (const int code = checkCommunicator(op, arguments, plan); code != ACLNN_SUCCESS) return code;
  if (const int code = checkShapes(op, plan); code != ACLNN_SUCCESS) return code;
  if (const int code = checkWindow(op, plan); code != ACLNN_SUCCESS) return code;
  const auto session = Session::currentOrNull();
  const auto cores = static_cast<std::uint64_t>(session->cluster().product.aivCount);
  const std::uint64_t slices =
      op == QuantOperator::ReduceScatter ? static_cast<std::uint64_t>(plan.communicator.rankSize) : 1;
  plan.tiling.aivNum = cores;
  plan.tiling.xPerBlock =
      kernels::hostElementsPerBlock(plan.tiling.bs * plan.tiling.hiddenSize / slices, cores);
  plan.tiling.alignBlock = kernels::kBlockAlign;
  plan.options.order = orderOfSummation();
  plan.signature = fmt::format("{}({} [{}], {}, {})",
                               op == QuantOperator::AllReduce ? "QuantAllReduce" : "QuantReduceScatter",
                               typeName(plan.tensors[0]->type), fmt::join(plan.tensors[0]->view, ","),
                               typeName(plan.tensors[1]->type), typeName(plan.tensors[2]->type));
  return ACLNN_SUCCESS;
}

}  // namespace vatlas::runtime
