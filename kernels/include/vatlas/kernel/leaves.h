// The vector leaves: the effect of vector instructions on the bytes. One table for each instruction set the
// library was built for; the best one the machine has is chosen once. All tables give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vatlas/kernel/float_bits.h"

namespace vatlas::kernels {

enum class Elem : std::uint8_t {
  F32,
  F16,
  Bf16,
  I32,
  I16,
  I8,
  U32,
  U16,
  U8,
  I64,
  E4m3,
  E5m2,
  Hif8,
  E8m0,
  Fp4E2m1,
  Fp4E1m2,
  Count
};
inline constexpr std::size_t kElemCount = static_cast<std::size_t>(Elem::Count);

enum class BinaryLeaf : std::uint8_t { Add, Sub, Mul, Div, Max, Min, And, Or, Xor, Count };
enum class UnaryLeaf : std::uint8_t { Abs, Relu, Sqrt, Rsqrt, Reciprocal, Exp, Ln, Not, Count };

struct ConvertMode {
  bits::Rounding rounding = bits::Rounding::Nearest;
  bool saturate = false;
  bool e8m0ZeroIsOcp = false;
};

inline std::uint32_t packMode(const ConvertMode& mode) {
  return static_cast<std::uint32_t>(mode.rounding) | (mode.saturate ? 0x100U : 0U) |
         (mode.e8m0ZeroIsOcp ? 0x200U : 0U);
}
inline ConvertMode unpackMode(std::uint32_t packed) {
  return {static_cast<bits::Rounding>(packed & 0xff), (packed & 0x100) != 0, (packed & 0x200) != 0};
}

// Counts are elements. Operands are the same range or do not overlap. A null entry: the combination does not
// exist.
struct LeafTable {
  using Binary = void (*)(void* dst, const void* a, const void* b, std::size_t count, bool saturate);
  using Unary = void (*)(void* dst, const void* src, std::size_t count, bool saturate);
  using Convert = void (*)(void* dst, const void* src, std::size_t count, ConvertMode mode);
  using Fill = void (*)(void* dst, const void* value, std::size_t count);
  using Spread = void (*)(void* dst, const void* src, std::size_t rows, std::size_t width);

  const char* name = nullptr;  // "baseline", "avx2", "avx512", "avx512_vbmi"
  Binary binary[static_cast<std::size_t>(BinaryLeaf::Count)][kElemCount] = {};
  Binary withScalar[static_cast<std::size_t>(BinaryLeaf::Count)][kElemCount] = {};  // b: one element
  Unary unary[static_cast<std::size_t>(UnaryLeaf::Count)][kElemCount] = {};
  Convert convert[kElemCount][kElemCount] = {};  // [destination][source]
  // dst[0..count) = value; element sizes 1, 2, 4, 8 at index log2.
  Fill fill[4] = {};
  // dst[r * width + i] = src[r], i < width; element sizes as above.
  Spread spread[4] = {};
  // acc[i] += float(x[i]) * s[i / group], all in float, in two roundings; null where the steps are as fast.
  using MultiplyAccumulate = void (*)(void* acc, const void* x, const void* s, std::size_t group,
                                      std::size_t count);
  MultiplyAccumulate multiplyAccumulate[kElemCount] = {};
  // dst += src * scalar as two roundings.
  Binary axpy[kElemCount] = {};

  Binary binaryOf(BinaryLeaf op, Elem elem) const {
    return binary[static_cast<std::size_t>(op)][static_cast<std::size_t>(elem)];
  }
  Binary withScalarOf(BinaryLeaf op, Elem elem) const {
    return withScalar[static_cast<std::size_t>(op)][static_cast<std::size_t>(elem)];
  }
  Unary unaryOf(UnaryLeaf op, Elem elem) const {
    return unary[static_cast<std::size_t>(op)][static_cast<std::size_t>(elem)];
  }
  Convert convertOf(Elem dst, Elem src) const {
    return convert[static_cast<std::size_t>(dst)][static_cast<std::size_t>(src)];
  }
};

// The table of this machine. Chosen at the first call; VATLAS_SIMD (baseline, avx2, avx512, avx512_vbmi) can
// lower the choice.
const LeafTable& leaves() noexcept;

// Every table that this machine can run, baseline first.
std::span<const LeafTable* const> availableLeaves() noexcept;

}  // namespace vatlas::kernels
