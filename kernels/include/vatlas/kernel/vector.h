// Vector instructions on UB, count form. Names and semantics: vendor documentation of Ascend C for the 950.
// Every call checks its ranges (32-byte alignment, inside UB), has its effect through the leaves (at the
// latest when something looks at its operands), and costs one instruction of the product's price list.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "vatlas/kernel/core.h"
#include "vatlas/kernel/enums.h"
#include "vatlas/kernel/tensor.h"

namespace AscendC {

namespace detail {

using vatlas::kernels::BinaryLeaf;
using vatlas::kernels::kElemOf;
using vatlas::kernels::LeafTable;
using vatlas::kernels::UnaryLeaf;
using vatlas::sim::VectorOp;
using vatlas::sim::VectorPart;
using vatlas::sim::VectorWork;

template <typename T>
inline void checkOperand(vatlas::sim::CorePort& core, const LocalTensor<T>& tensor, std::uint64_t count,
                         const char* call) {
  vatlas::kernels::checkUb(core, tensor.GetPhyAddr(), count * sizeof(T), call);
}

inline bool positive(vatlas::sim::CorePort& core, std::int64_t count, const char* call) {
  if (count < 0) vatlas::kernels::faultArgument(core, call, "count", count, "0 or more");
  return count > 0;
}

template <typename T>
inline vatlas::sim::VectorOperand operandOf(const LocalTensor<T>& tensor) {
  return {reinterpret_cast<std::byte*>(tensor.GetPhyAddr()), sizeof(T)};
}

template <typename Leaf>
inline Leaf leafOf(const VectorWork& work) {
  return reinterpret_cast<Leaf>(work.leaf);
}

inline void runBinary(const VectorWork& work, void* dst, const void* a, const void* b, std::size_t count) {
  leafOf<LeafTable::Binary>(work)(dst, a, b, count, work.mode != 0);
}
inline void runWithScalar(const VectorWork& work, void* dst, const void* a, const void*, std::size_t count) {
  leafOf<LeafTable::Binary>(work)(dst, a, &work.scalar, count, work.mode != 0);
}
inline void runUnary(const VectorWork& work, void* dst, const void* a, const void*, std::size_t count) {
  leafOf<LeafTable::Unary>(work)(dst, a, count, work.mode != 0);
}
inline void runFill(const VectorWork& work, void* dst, const void*, const void*, std::size_t count) {
  leafOf<LeafTable::Fill>(work)(dst, &work.scalar, count);
}
inline void runSpread(const VectorWork& work, void* dst, const void* a, const void*, std::size_t count) {
  leafOf<LeafTable::Spread>(work)(dst, a, count / work.a.group, work.a.group);
}
inline void runConvert(const VectorWork& work, void* dst, const void* a, const void*, std::size_t count) {
  leafOf<LeafTable::Convert>(work)(dst, a, count, vatlas::kernels::unpackMode(work.mode));
}

template <typename Leaf>
inline VectorWork workOf(VectorWork::Run run, Leaf leaf, std::size_t count) {
  VectorWork work;
  work.run = run;
  work.leaf = reinterpret_cast<void (*)()>(leaf);
  work.count = count;
  return work;
}

template <typename T>
inline std::uint64_t scalarBits(const T& value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

constexpr VectorPart partOf(BinaryLeaf leaf) {
  return leaf == BinaryLeaf::Mul   ? VectorPart::Multiply
         : leaf == BinaryLeaf::Add ? VectorPart::Accumulate
                                   : VectorPart::None;
}

template <typename T>
inline void binary(BinaryLeaf leaf, VectorOp op, const LocalTensor<T>& dst, const LocalTensor<T>& a,
                   const LocalTensor<T>& b, std::int64_t count, const char* call) {
  auto& core = vatlas::kernels::core();
  if (!positive(core, count, call)) return;
  const auto n = static_cast<std::size_t>(count);
  checkOperand(core, dst, n, call);
  checkOperand(core, a, n, call);
  checkOperand(core, b, n, call);
  VectorWork work = workOf(&runBinary, vatlas::kernels::leaves().binaryOf(leaf, kElemOf<T>), n);
  work.mode = core.switches().saturate;
  work.dst = operandOf(dst);
  work.a = operandOf(a);
  work.b = operandOf(b);
  if (std::is_same_v<T, float>) work.part = partOf(leaf);
  core.vector(op, vatlas::kernels::repeatsOf(n * sizeof(T)), work);
}

template <typename T, typename U>
inline void withScalar(BinaryLeaf leaf, VectorOp op, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                       U scalar, std::int64_t count, const char* call) {
  auto& core = vatlas::kernels::core();
  if (!positive(core, count, call)) return;
  const auto n = static_cast<std::size_t>(count);
  checkOperand(core, dst, n, call);
  checkOperand(core, src, n, call);
  VectorWork work = workOf(&runWithScalar, vatlas::kernels::leaves().withScalarOf(leaf, kElemOf<T>), n);
  work.mode = core.switches().saturate;
  work.scalar = scalarBits(static_cast<T>(scalar));
  work.dst = operandOf(dst);
  work.a = operandOf(src);
  core.vector(op, vatlas::kernels::repeatsOf(n * sizeof(T)), work);
}

template <typename T>
inline void unary(UnaryLeaf leaf, VectorOp op, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                  std::int64_t count, const char* call) {
  auto& core = vatlas::kernels::core();
  if (!positive(core, count, call)) return;
  const auto n = static_cast<std::size_t>(count);
  checkOperand(core, dst, n, call);
  checkOperand(core, src, n, call);
  VectorWork work = workOf(&runUnary, vatlas::kernels::leaves().unaryOf(leaf, kElemOf<T>), n);
  work.mode = core.switches().saturate;
  work.dst = operandOf(dst);
  work.a = operandOf(src);
  core.vector(op, vatlas::kernels::repeatsOf(n * sizeof(T)), work);
}

template <typename T, typename... Us>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Us> || ...);
template <typename T>
inline constexpr bool kIsArithmetic = kIsOneOf<T, float, half, bfloat16_t, std::int32_t, std::int16_t,
                                               std::int8_t, std::uint32_t, std::uint16_t, std::uint8_t>;
template <typename T>
inline constexpr bool kIsReal = kIsOneOf<T, float, half>;

}  // namespace detail

// dst[i] = src0[i] op src1[i], i < count. float, half, bfloat16_t and integers of 8 to 32 bits (which wrap
// around).
template <typename T>
inline void Add(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const std::int32_t& count) {
  static_assert(detail::kIsArithmetic<T>, "Add: element type");
  detail::binary(detail::BinaryLeaf::Add, detail::VectorOp::Add, dst, src0, src1, count, "Add");
}
template <typename T>
inline void Sub(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const std::int32_t& count) {
  static_assert(detail::kIsArithmetic<T>, "Sub: element type");
  detail::binary(detail::BinaryLeaf::Sub, detail::VectorOp::Sub, dst, src0, src1, count, "Sub");
}
template <typename T>
inline void Mul(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const std::int32_t& count) {
  static_assert(detail::kIsArithmetic<T>, "Mul: element type");
  detail::binary(detail::BinaryLeaf::Mul, detail::VectorOp::Mul, dst, src0, src1, count, "Mul");
}
template <typename T>
inline void Div(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const std::int32_t& count) {
  static_assert(detail::kIsOneOf<T, float, half, bfloat16_t>, "Div: element type");
  detail::binary(detail::BinaryLeaf::Div, detail::VectorOp::Div, dst, src0, src1, count, "Div");
}
template <typename T>
inline void Max(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const std::int32_t& count) {
  static_assert(detail::kIsArithmetic<T>, "Max: element type");
  detail::binary(detail::BinaryLeaf::Max, detail::VectorOp::MaxMin, dst, src0, src1, count, "Max");
}
template <typename T>
inline void Min(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const std::int32_t& count) {
  static_assert(detail::kIsArithmetic<T>, "Min: element type");
  detail::binary(detail::BinaryLeaf::Min, detail::VectorOp::MaxMin, dst, src0, src1, count, "Min");
}
template <typename T>
inline void And(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const std::int32_t& count) {
  static_assert(detail::kIsOneOf<T, std::int32_t, std::int16_t, std::uint32_t, std::uint16_t>,
                "And: element type");
  detail::binary(detail::BinaryLeaf::And, detail::VectorOp::Logic, dst, src0, src1, count, "And");
}
template <typename T>
inline void Or(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
               const std::int32_t& count) {
  static_assert(detail::kIsOneOf<T, std::int32_t, std::int16_t, std::uint32_t, std::uint16_t>,
                "Or: element type");
  detail::binary(detail::BinaryLeaf::Or, detail::VectorOp::Logic, dst, src0, src1, count, "Or");
}

// dst[i] = src[i] op scalar.
template <typename T, typename U>
inline void Adds(const LocalTensor<T>& dst, const LocalTensor<T>& src, const U& scalar,
                 const std::int32_t& count) {
  static_assert(detail::kIsArithmetic<T>, "Adds: element type");
  detail::withScalar(detail::BinaryLeaf::Add, detail::VectorOp::Add, dst, src, scalar, count, "Adds");
}
template <typename T, typename U>
inline void Muls(const LocalTensor<T>& dst, const LocalTensor<T>& src, const U& scalar,
                 const std::int32_t& count) {
  static_assert(detail::kIsArithmetic<T>, "Muls: element type");
  detail::withScalar(detail::BinaryLeaf::Mul, detail::VectorOp::Mul, dst, src, scalar, count, "Muls");
}
template <typename T, typename U>
inline void Maxs(const LocalTensor<T>& dst, const LocalTensor<T>& src, const U& scalar,
                 const std::int32_t& count) {
  static_assert(detail::kIsArithmetic<T>, "Maxs: element type");
  detail::withScalar(detail::BinaryLeaf::Max, detail::VectorOp::MaxMin, dst, src, scalar, count, "Maxs");
}
template <typename T, typename U>
inline void Mins(const LocalTensor<T>& dst, const LocalTensor<T>& src, const U& scalar,
                 const std::int32_t& count) {
  static_assert(detail::kIsArithmetic<T>, "Mins: element type");
  detail::withScalar(detail::BinaryLeaf::Min, detail::VectorOp::MaxMin, dst, src, scalar, count, "Mins");
}

template <typename T>
inline void Abs(const LocalTensor<T>& dst, const LocalTensor<T>& src, const std::int32_t& count) {
  static_assert(detail::kIsOneOf<T, float, half, std::int32_t, std::int16_t>, "Abs: element type");
  detail::unary(detail::UnaryLeaf::Abs, detail::VectorOp::Logic, dst, src, count, "Abs");
}
template <typename T>
inline void Relu(const LocalTensor<T>& dst, const LocalTensor<T>& src, const std::int32_t& count) {
  static_assert(detail::kIsOneOf<T, float, half, std::int32_t>, "Relu: element type");
  detail::unary(detail::UnaryLeaf::Relu, detail::VectorOp::MaxMin, dst, src, count, "Relu");
}
template <typename T>
inline void Sqrt(const LocalTensor<T>& dst, const LocalTensor<T>& src, const std::int32_t& count) {
  static_assert(detail::kIsReal<T>, "Sqrt: element type");
  detail::unary(detail::UnaryLeaf::Sqrt, detail::VectorOp::Transcendental, dst, src, count, "Sqrt");
}
template <typename T>
inline void Reciprocal(const LocalTensor<T>& dst, const LocalTensor<T>& src, const std::int32_t& count) {
  static_assert(detail::kIsReal<T>, "Reciprocal: element type");
  detail::unary(detail::UnaryLeaf::Reciprocal, detail::VectorOp::Div, dst, src, count, "Reciprocal");
}
template <typename T>
inline void Exp(const LocalTensor<T>& dst, const LocalTensor<T>& src, const std::int32_t& count) {
  static_assert(detail::kIsReal<T>, "Exp: element type");
  detail::unary(detail::UnaryLeaf::Exp, detail::VectorOp::Transcendental, dst, src, count, "Exp");
}
template <typename T>
inline void Ln(const LocalTensor<T>& dst, const LocalTensor<T>& src, const std::int32_t& count) {
  static_assert(detail::kIsReal<T>, "Ln: element type");
  detail::unary(detail::UnaryLeaf::Ln, detail::VectorOp::Transcendental, dst, src, count, "Ln");
}

// dst[i] = value.
template <typename T>
inline void Duplicate(const LocalTensor<T>& dst, const T& value, const std::int32_t& count) {
  auto& core = vatlas::kernels::core();
  if (!detail::positive(core, count, "Duplicate")) return;
  const auto n = static_cast<std::size_t>(count);
  detail::checkOperand(core, dst, n, "Duplicate");
  detail::VectorWork work = detail::workOf(
      &detail::runFill, vatlas::kernels::leaves().fill[vatlas::kernels::kSizeIndex<sizeof(T)>], n);
  work.scalar = detail::scalarBits(value);
  work.dst = detail::operandOf(dst);
  core.vector(detail::VectorOp::Duplicate, vatlas::kernels::repeatsOf(n * sizeof(T)), work);
}

namespace detail {

constexpr vatlas::kernels::bits::Rounding roundingOf(RoundMode mode) {
  using vatlas::kernels::bits::Rounding;
  switch (mode) {
    case RoundMode::CAST_FLOOR:
      return Rounding::Floor;
    case RoundMode::CAST_CEIL:
      return Rounding::Ceil;
    case RoundMode::CAST_ROUND:
      return Rounding::Away;
    case RoundMode::CAST_TRUNC:
    case RoundMode::CAST_ZERO:
      return Rounding::Trunc;
    case RoundMode::CAST_ODD:
      return Rounding::Odd;
    case RoundMode::CAST_HYBRID:
      return Rounding::Hybrid;
    default:
      return Rounding::Nearest;
  }
}

}  // namespace detail

// dst[i] = src[i] in the other type. CAST_NONE: exact where widening, to nearest even otherwise. A pair of
// types the card does not convert between faults.
template <typename T, typename U>
inline void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& mode,
                 const std::uint32_t count) {
  using vatlas::kernels::kElemOf;
  auto& core = vatlas::kernels::core();
  if (count == 0) return;
  const std::size_t n = count;
  constexpr bool kHalfByte = detail::kIsOneOf<U, fp4x2_e2m1_t, fp4x2_e1m2_t>;
  detail::checkOperand(core, dst, n, "Cast");
  detail::checkOperand(core, src, kHalfByte ? (n + 1) / 2 : n, "Cast");
  const auto fn = vatlas::kernels::leaves().convertOf(kElemOf<T>, kElemOf<U>);
  if (fn == nullptr) vatlas::kernels::faultNotModelled("Cast between these two types");
  vatlas::kernels::ConvertMode how;
  how.rounding = detail::roundingOf(mode);
  how.saturate = core.switches().saturate;
  how.e8m0ZeroIsOcp = core.switches().e8m0ZeroIsOcp;
  detail::VectorWork work = detail::workOf(&detail::runConvert, fn, n);
  work.mode = vatlas::kernels::packMode(how);
  work.dst = detail::operandOf(dst);
  work.a = detail::operandOf(src);
  if (kHalfByte) work.a.bytes = 0;
  if (std::is_same_v<T, float> && sizeof(U) == 1) {
    work.part = detail::VectorPart::Widen;
    work.multiplyAccumulate =
        vatlas::kernels::leaves().multiplyAccumulate[static_cast<std::size_t>(kElemOf<U>)];
  }
  constexpr std::size_t kWide = sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U);
  constexpr bool kFrom8 = sizeof(U) == 1 && sizeof(T) > 1;
  core.vector(kFrom8 ? detail::VectorOp::CastWiden8 : detail::VectorOp::Cast,
              vatlas::kernels::repeatsOf(n * kWide), work);
}

// dst[row] = sum of the first n elements of each row, in pairs: ((s0+s1)+(s2+s3))+... as a tree over n.
template <typename T>
inline void Sum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const SumParams& params) {
  static_assert(detail::kIsReal<T>, "Sum: element type");
  auto& core = vatlas::kernels::core();
  if (params.n == 0 || params.n > params.inner)
    vatlas::kernels::faultArgument(core, "Sum", "n", params.n, "1 to inner");
  if (params.inner * sizeof(T) % 32 != 0)
    vatlas::kernels::faultArgument(core, "Sum", "inner", params.inner, "rows of a multiple of 32 bytes");
  detail::checkOperand(core, dst, params.outter, "Sum");
  detail::checkOperand(core, src, static_cast<std::uint64_t>(params.outter) * params.inner, "Sum");
  core.settle(src.GetPhyAddr(), std::uint64_t{params.outter} * params.inner * sizeof(T), false);
  core.settle(dst.GetPhyAddr(), params.outter * sizeof(T), true);
  for (std::uint32_t row = 0; row < params.outter; ++row) {
    const T* s = src.GetPhyAddr() + static_cast<std::size_t>(row) * params.inner;
    float sums[64];
    float carry = 0;
    for (std::uint32_t at = 0; at < params.n; at += 64) {
      const std::uint32_t part = params.n - at < 64 ? params.n - at : 64;
      for (std::uint32_t i = 0; i < 64; ++i) sums[i] = i < part ? static_cast<float>(s[at + i]) : 0.0F;
      for (std::uint32_t width = 1; width < 64; width *= 2) {
        for (std::uint32_t i = 0; i < 64; i += 2 * width) sums[i] += sums[i + width];
      }
      carry += sums[0];
    }
    dst.GetPhyAddr()[row] = static_cast<T>(carry);
  }
  core.vector(
      detail::VectorOp::ReduceSum,
      vatlas::kernels::repeatsOf(static_cast<std::uint64_t>(params.outter) * params.inner * sizeof(T)));
}

// {rows, 1} to {rows, width} (axis 1), or {1, width} to {rows, width} (axis 0).
template <typename T, std::int32_t dim, std::int32_t axis>
inline void BroadCast(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                      const std::uint32_t (&dstShape)[dim], const std::uint32_t (&srcShape)[dim]) {
  static_assert(dim == 2 && (axis == 0 || axis == 1), "BroadCast: two dimensions are modelled");
  auto& core = vatlas::kernels::core();
  const std::size_t rows = dstShape[0];
  const std::size_t width = dstShape[1];
  const bool fits = axis == 1 ? srcShape[0] == dstShape[0] && srcShape[1] == 1
                              : srcShape[0] == 1 && srcShape[1] == dstShape[1];
  if (!fits)
    vatlas::kernels::faultArgument(core, "BroadCast", "source size along the axis", srcShape[axis], "1");
  if (rows == 0 || width == 0) return;
  detail::checkOperand(core, dst, rows * width, "BroadCast");
  detail::checkOperand(core, src, axis == 1 ? rows : width, "BroadCast");
  const std::uint32_t repeats = vatlas::kernels::repeatsOf(rows * width * sizeof(T));
  if constexpr (axis == 1) {
    detail::VectorWork work = detail::workOf(
        &detail::runSpread, vatlas::kernels::leaves().spread[vatlas::kernels::kSizeIndex<sizeof(T)>],
        rows * width);
    work.dst = detail::operandOf(dst);
    work.a = detail::operandOf(src);
    work.a.group = static_cast<std::uint32_t>(width);
    if (std::is_same_v<T, float>) work.part = detail::VectorPart::Spread;
    core.vector(detail::VectorOp::Broadcast, repeats, work);
  } else {
    core.settle(src.GetPhyAddr(), width * sizeof(T), false);
    core.settle(dst.GetPhyAddr(), rows * width * sizeof(T), true);
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(dst.GetPhyAddr() + r * width, src.GetPhyAddr(), width * sizeof(T));
    core.vector(detail::VectorOp::Broadcast, repeats);
  }
}

}  // namespace AscendC
