// Vector instructions on UB, count form. Names and semantics: vendor documentation of Ascend C for the 950.
// Every call checks its ranges (32-byte alignment, inside UB), has its effect through the leaves, and costs
// one instruction of the product's price list.
#pragma once

#include <cstdint>
#include <type_traits>

#include "vatlas/kernel/core.h"
#include "vatlas/kernel/enums.h"
#include "vatlas/kernel/tensor.h"

namespace AscendC {

namespace detail {

using vatlas::kernels::BinaryLeaf;
using vatlas::kernels::kElemOf;
using vatlas::kernels::UnaryLeaf;
using vatlas::sim::VectorOp;

template <typename T>
inline void checkOperand(vatlas::sim::CorePort& core, const LocalTensor<T>& tensor, std::uint64_t count,
                         const char* call) {
  vatlas::kernels::checkUb(core, tensor.GetPhyAddr(), count * sizeof(T), call);
}

inline bool positive(vatlas::sim::CorePort& core, std::int64_t count, const char* call) {
  if (count < 0) vatlas::kernels::faultArgument(core, call, "count", count, "0 or more");
  return count > 0;
}

// Elements between which a leaf may be cut: operands that overlap without being equal work repeat by repeat.
template <typename D, typename S>
inline std::size_t stepOf(const D* dst, const S* src, std::size_t count) {
  const bool partly = vatlas::kernels::overlapsPartly(dst, count * sizeof(D), src, count * sizeof(S));
  return partly ? 256 / (sizeof(D) > sizeof(S) ? sizeof(D) : sizeof(S)) : count;
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
  T* d = dst.GetPhyAddr();
  const T* x = a.GetPhyAddr();
  const T* y = b.GetPhyAddr();
  const auto fn = vatlas::kernels::leaves().binaryOf(leaf, kElemOf<T>);
  const bool saturate = core.switches().saturate;
  const std::size_t step = std::min(stepOf(d, x, n), stepOf(d, y, n));
  for (std::size_t i = 0; i < n; i += step) fn(d + i, x + i, y + i, std::min(step, n - i), saturate);
  core.vector(op, vatlas::kernels::repeatsOf(n * sizeof(T)));
}

template <typename T, typename U>
inline void withScalar(BinaryLeaf leaf, VectorOp op, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                       U scalar, std::int64_t count, const char* call) {
  auto& core = vatlas::kernels::core();
  if (!positive(core, count, call)) return;
  const auto n = static_cast<std::size_t>(count);
  checkOperand(core, dst, n, call);
  checkOperand(core, src, n, call);
  T* d = dst.GetPhyAddr();
  const T* x = src.GetPhyAddr();
  const T value = static_cast<T>(scalar);
  const auto fn = vatlas::kernels::leaves().withScalarOf(leaf, kElemOf<T>);
  const std::size_t step = stepOf(d, x, n);
  for (std::size_t i = 0; i < n; i += step)
    fn(d + i, x + i, &value, std::min(step, n - i), core.switches().saturate);
  core.vector(op, vatlas::kernels::repeatsOf(n * sizeof(T)));
}

template <typename T>
inline void unary(UnaryLeaf leaf, VectorOp op, const LocalTensor<T>& dst, const LocalTensor<T>& src,
                  std::int64_t count, const char* call) {
  auto& core = vatlas::kernels::core();
  if (!positive(core, count, call)) return;
  const auto n = static_cast<std::size_t>(count);
  checkOperand(core, dst, n, call);
  checkOperand(core, src, n, call);
  T* d = dst.GetPhyAddr();
  const T* x = src.GetPhyAddr();
  const auto fn = vatlas::kernels::leaves().unaryOf(leaf, kElemOf<T>);
  const std::size_t step = stepOf(d, x, n);
  for (std::size_t i = 0; i < n; i += step) fn(d + i, x + i, std::min(step, n - i), core.switches().saturate);
  core.vector(op, vatlas::kernels::repeatsOf(n * sizeof(T)));
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
  vatlas::kernels::leaves().fill[vatlas::kernels::kSizeIndex<sizeof(T)>](dst.GetPhyAddr(), &value, n);
  core.vector(detail::VectorOp::Duplicate, vatlas::kernels::repeatsOf(n * sizeof(T)));
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
  T* d = dst.GetPhyAddr();
  const U* s = src.GetPhyAddr();
  const std::size_t step = kHalfByte ? n : detail::stepOf(d, s, n);
  for (std::size_t i = 0; i < n; i += step) fn(d + i, s + i, std::min(step, n - i), how);
  constexpr std::size_t kWide = sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U);
  constexpr bool kFrom8 = sizeof(U) == 1 && sizeof(T) > 1;
  core.vector(kFrom8 ? detail::VectorOp::CastWiden8 : detail::VectorOp::Cast,
              vatlas::kernels::repeatsOf(n * kWide));
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
  if constexpr (axis == 1) {
    vatlas::kernels::leaves().spread[vatlas::kernels::kSizeIndex<sizeof(T)>](dst.GetPhyAddr(),
                                                                             src.GetPhyAddr(), rows, width);
  } else {
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(dst.GetPhyAddr() + r * width, src.GetPhyAddr(), width * sizeof(T));
  }
  core.vector(detail::VectorOp::Broadcast, vatlas::kernels::repeatsOf(rows * width * sizeof(T)));
}

}  // namespace AscendC
