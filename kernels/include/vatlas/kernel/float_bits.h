// Scalar codecs of the low-precision formats, on bit patterns. Formats and rounding rules: vendor
// documentation of built-in types and Cast, OCP OFP8 and MX. Every NaN that a conversion makes is the
// positive quiet one of its destination (float 0x7FC00000, half 0x7E00, bfloat16 0x7FC0, e4m3fn 0x7F, e5m2
// 0x7E, hif8 0x80).
//
// Everything here is forced inline: the vector leaves are compiled for several instruction sets, and an
// out-of-line copy of an inline function made by one of them must never be the one that the linker keeps for
// all.
#pragma once

#include <cstdint>

#define VATLAS_INLINE [[gnu::always_inline]] inline constexpr

namespace vatlas::kernels::bits {

enum class Rounding : std::uint8_t { Nearest, Floor, Ceil, Away, Trunc, Odd, Hybrid };

inline constexpr std::uint32_t kNan32 = 0x7FC00000U;
inline constexpr std::uint32_t kInf32 = 0x7F800000U;
inline constexpr std::uint32_t kAbs32 = 0x7FFFFFFFU;

VATLAS_INLINE float asFloat(std::uint32_t u) {
  return __builtin_bit_cast(float, u);
}
VATLAS_INLINE std::uint32_t asBits(float f) {
  return __builtin_bit_cast(std::uint32_t, f);
}
VATLAS_INLINE bool isNan32(std::uint32_t u) {
  return (u & kAbs32) > kInf32;
}
VATLAS_INLINE float canonical(float f) {
  return f != f ? asFloat(kNan32) : f;
}

// A binary format with `exponent` and `mantissa` bits. `top` is the code of infinity, or of NaN when there is
// none.
template <int exponent, int mantissa, bool hasInfinity>
struct Format {
  static constexpr int kExponent = exponent;
  static constexpr int kMantissa = mantissa;
  static constexpr int kSignShift = exponent + mantissa;
  static constexpr bool kHasInfinity = hasInfinity;
  static constexpr int kBias = (1 << (exponent - 1)) - 1;
  static constexpr std::uint32_t kAbs = (1U << kSignShift) - 1;
  static constexpr std::uint32_t kTop = hasInfinity ? ((1U << exponent) - 1) << mantissa : kAbs;
  static constexpr std::uint32_t kNan = hasInfinity ? kTop | (1U << (mantissa - 1)) : kAbs;
};
using Half = Format<5, 10, true>;
using Bfloat16 = Format<8, 7, true>;
using E4m3 = Format<4, 3, false>;
using E5m2 = Format<5, 2, true>;

// To float, exact. Arithmetic on normal numbers only: subnormal operands are slow on many processors.
template <typename F>
VATLAS_INLINE std::uint32_t widen(std::uint32_t code) {
  constexpr std::uint32_t kShift = 127 - F::kBias;
  constexpr int kUp = 23 - F::kMantissa;
  const std::uint32_t magnitude = code & F::kAbs;
  const std::uint32_t sign = (code >> F::kSignShift) << 31;
  const std::uint32_t moved = magnitude << kUp;
  const std::uint32_t normal = moved + (kShift << 23);
  const std::uint32_t small = asBits(asFloat(moved + ((kShift + 1) << 23)) - asFloat((kShift + 1) << 23));
  std::uint32_t value = (magnitude < (1U << F::kMantissa) ? small : normal) | sign;
  if constexpr (F::kHasInfinity) {
    value = magnitude == F::kTop ? (kInf32 | sign) : value;
    return magnitude > F::kTop ? kNan32 : value;
  } else {
    return magnitude == F::kTop ? kNan32 : value;
  }
}
template <>
[[gnu::always_inline]] inline constexpr std::uint32_t widen<Bfloat16>(std::uint32_t code) {
  const std::uint32_t value = code << 16;
  return isNan32(value) ? kNan32 : value;
}

// Whether the last kept unit goes up: `rest` of `unit`, `odd` last kept bit.
template <Rounding mode>
VATLAS_INLINE bool roundsUp(std::uint32_t rest, std::uint32_t unit, bool odd, bool negative) {
  if constexpr (mode == Rounding::Nearest) return rest > unit / 2 || (rest == unit / 2 && odd);
  if constexpr (mode == Rounding::Away) return rest >= unit / 2;
  if constexpr (mode == Rounding::Floor) return negative && rest != 0;
  if constexpr (mode == Rounding::Ceil) return !negative && rest != 0;
  if constexpr (mode == Rounding::Odd) return rest != 0 && !odd;
  return false;
}

// From float. A finite value beyond the range becomes infinity (NaN without one) where its rounding leads
// away from zero, the largest finite value where it leads towards it. Saturating: the largest finite value,
// and NaN becomes 0.
template <typename F, Rounding mode>
VATLAS_INLINE std::uint32_t narrow(std::uint32_t bits, bool saturate) {
  const bool negative = (bits >> 31) != 0;
  const std::uint32_t sign = (bits >> 31) << F::kSignShift;
  const std::uint32_t magnitude = bits & kAbs32;
  if (magnitude > kInf32) return saturate ? 0 : F::kNan;
  const std::uint32_t beyond = saturate          ? (sign | (F::kTop - 1))
                               : F::kHasInfinity ? (sign | F::kTop)
                                                 : F::kNan;
  if (magnitude == kInf32) return beyond;
  const int exponentField = static_cast<int>(magnitude >> 23);
  const int exponent = (exponentField == 0 ? 1 : exponentField) - 127;
  const std::uint32_t significand = (magnitude & 0x7FFFFFU) | (exponentField == 0 ? 0U : 0x800000U);
  constexpr int kLeast = 1 - F::kBias;
  int drop = 23 - F::kMantissa + (exponent < kLeast ? kLeast - exponent : 0);
  drop = drop > 25 ? 25 : drop;  // enough to keep "not zero, below half a unit"
  const std::uint32_t unit = 1U << drop;
  std::uint32_t kept = significand >> drop;
  if (roundsUp<mode>(significand & (unit - 1), unit, (kept & 1) != 0, negative)) ++kept;
  const std::uint32_t base =
      exponent < kLeast ? 0U : static_cast<std::uint32_t>(exponent - kLeast) << F::kMantissa;
  const std::uint32_t code = base + kept;
  constexpr bool kToZero = mode == Rounding::Trunc || mode == Rounding::Odd;
  if (code < F::kTop) return sign | code;
  const bool inward =
      kToZero || (mode == Rounding::Floor && !negative) || (mode == Rounding::Ceil && negative);
  return inward ? (sign | (F::kTop - 1)) : beyond;
}

// Branch-free forms of the most used conversions, round to nearest even.
VATLAS_INLINE std::uint16_t nearestBfloat16(std::uint32_t bits, bool saturate) {
  const std::uint32_t magnitude = bits & kAbs32;
  std::uint32_t code = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  if (saturate) {
    code = (code & 0x7FFFU) >= 0x7F80U ? ((code & 0x8000U) | 0x7F7FU) : code;
    return static_cast<std::uint16_t>(magnitude > kInf32 ? 0U : code);
  }
  return static_cast<std::uint16_t>(magnitude > kInf32 ? 0x7FC0U : code);
}

VATLAS_INLINE std::uint16_t nearestHalf(std::uint32_t bits, bool saturate) {
  const std::uint32_t magnitude = bits & kAbs32;
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t normal = (magnitude + 0xC8000FFFU + ((magnitude >> 13) & 1U)) >> 13;
  const std::uint32_t clipped = magnitude < 0x38800000U ? magnitude : 0U;
  const std::uint32_t small = asBits(asFloat(clipped) + 0.5F) - 0x3F000000U;
  std::uint32_t code = magnitude < 0x38800000U ? small : normal;
  code = magnitude >= 0x477FF000U ? (saturate ? 0x7BFFU : 0x7C00U) : code;  // 65520
  code |= sign;
  code = magnitude > kInf32 ? (saturate ? 0U : 0x7E00U) : code;
  return static_cast<std::uint16_t>(code);
}

// HiFloat8
// ------------------------------------------------------------------------------------------------------

VATLAS_INLINE std::uint32_t widenHif8(std::uint32_t code) {
  const std::uint32_t m = code & 0x7FU;
  const std::uint32_t sign = (code & 0x80U) << 24;
  if (code == 0x80U) return kNan32;
  if (m == 0) return 0;
  if (m == 0x6FU) return sign | kInf32;
  if (m < 8) return sign | ((m + 127 - 23) << 23);
  std::uint32_t size = 0;   // magnitude of the exponent
  std::uint32_t minus = 0;  // its sign
  std::uint32_t mantissa = (m & 7U) << 20;
  if (m >= 0x60U) {
    size = 8U | ((m >> 1) & 7U);
    minus = (m >> 4) & 1U;
    mantissa = (m & 1U) << 22;
  } else if (m >= 0x40U) {
    size = 4U | ((m >> 2) & 3U);
    minus = (m >> 4) & 1U;
    mantissa = (m & 3U) << 21;
  } else if (m >= 0x20U) {
    size = 2U | ((m >> 3) & 1U);
    minus = (m >> 4) & 1U;
  } else if (m >= 0x10U) {
    size = 1U;
    minus = (m >> 3) & 1U;
  }
  const std::uint32_t exponent = minus != 0 ? 127U - size : 127U + size;
  return sign | (exponent << 23) | mantissa;
}

// What a carry is decided on: 14 bits for a float source, 2 for a half (`fromHalf`; `bits` is the exact float
// then).
struct Hif8Threshold {
  std::uint32_t value;
  int width;
};
VATLAS_INLINE Hif8Threshold hif8Threshold(std::uint32_t bits, bool fromHalf, std::uint32_t halfBits) {
  return fromHalf ? Hif8Threshold{((halfBits & 1U) << 1) | 1U, 2} : Hif8Threshold{bits & 0x3FFFU, 14};
}

VATLAS_INLINE std::uint32_t packHif8(int exponent, std::uint32_t mantissa) {
  if (exponent < -15) return static_cast<std::uint32_t>(exponent + 23);
  const std::uint32_t size = static_cast<std::uint32_t>(exponent < 0 ? -exponent : exponent);
  const std::uint32_t minus = exponent < 0 ? 1U : 0U;
  if (size >= 8) return 0x60U | (minus << 4) | ((size & 7U) << 1) | mantissa;
  if (size >= 4) return 0x40U | (minus << 4) | ((size & 3U) << 2) | mantissa;
  if (size >= 2) return 0x20U | (minus << 4) | ((size & 1U) << 3) | mantissa;
  if (size == 1) return 0x10U | (minus << 3) | mantissa;
  return 0x08U | mantissa;
}

// `mode` is Away (CAST_ROUND) or Hybrid (CAST_HYBRID).
template <Rounding mode>
VATLAS_INLINE std::uint32_t narrowHif8(std::uint32_t bits, bool saturate, bool fromHalf,
                                       std::uint32_t halfBits) {
  const std::uint32_t sign = (bits >> 24) & 0x80U;
  const std::uint32_t magnitude = bits & kAbs32;
  const std::uint32_t beyond = sign | (saturate ? 0x6EU : 0x6FU);
  if (magnitude > kInf32) return saturate ? 0U : 0x80U;
  int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent > 15) return beyond;
  if (exponent < -23) return 0;
  const std::uint32_t fraction = magnitude & 0x7FFFFFU;
  const Hif8Threshold threshold = hif8Threshold(bits, fromHalf, halfBits);
  if (exponent == -23) {
    const std::uint32_t seen = (0x800000U | fraction) >> (24 - threshold.width);
    return mode != Rounding::Hybrid || seen >= threshold.value ? sign | 1U : 0U;
  }
  const int size = exponent < 0 ? -exponent : exponent;
  const int kept = size > 15 ? 0 : size > 7 ? 1 : size > 3 ? 2 : 3;
  std::uint32_t mantissa = fraction >> (23 - kept);
  const bool next = ((fraction >> (22 - kept)) & 1U) != 0;
  const std::uint32_t seen = (fraction >> (23 - kept - threshold.width)) & ((1U << threshold.width) - 1);
  const bool carry = mode == Rounding::Hybrid && size > 3 ? seen >= threshold.value : next;
  if (carry && ++mantissa == (1U << kept)) {
    mantissa = 0;
    ++exponent;
  }
  const std::uint32_t code = exponent > 15 ? 0x6FU : packHif8(exponent, mantissa);
  return code == 0x6FU ? beyond : sign | code;
}

// E8M0 and FP4
// --------------------------------------------------------------------------------------------------

// The card's own widening shifts the code into place, so that code 0 is +0.0; OCP reads it as 2^-127.
VATLAS_INLINE std::uint16_t e8m0ToBfloat16(std::uint32_t code, bool zeroIsOcp) {
  const std::uint32_t moved = code << 7;
  const std::uint32_t fixed = moved == 0x7F80U ? 0x7FC0U : moved;
  return static_cast<std::uint16_t>(zeroIsOcp && code == 0 ? 0x0040U : fixed);
}
VATLAS_INLINE std::uint8_t bfloat16ToE8m0(std::uint32_t code) {
  return static_cast<std::uint8_t>((code >> 7) & 0xFFU);
}

}  // namespace vatlas::kernels::bits
