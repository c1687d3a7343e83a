// Element types of device code: 16-, 8- and 4-bit floating point as plain one- or two-byte classes. They have
// no arithmetic of their own: scalars convert to float, as device code does. NaN and overflow: float_bits.h,
// INF/NAN mode. Names and ranges: vendor documentation, built-in types.
#pragma once

#include <cstdint>
#include <type_traits>

#include "vatlas/kernel/float_bits.h"

namespace vatlas::kernels {

template <typename T>
inline constexpr bool kIsScalar = std::is_arithmetic_v<T>;

// A 16-bit float that converts freely, as the compiler's own types do.
template <typename F>
class Float16 {
 public:
  Float16() = default;
  template <typename T, typename = std::enable_if_t<kIsScalar<T>>>
  constexpr Float16(T value)  // NOLINT: implicit as on the card
      : bits_(static_cast<std::uint16_t>(
            bits::narrow<F, bits::Rounding::Nearest>(bits::asBits(static_cast<float>(value)), false))) {}
  constexpr operator float() const { return bits::asFloat(bits::widen<F>(bits_)); }  // NOLINT
  static constexpr Float16 fromBits(std::uint16_t code) {
    Float16 value;
    value.bits_ = code;
    return value;
  }
  constexpr std::uint16_t bits() const { return bits_; }
  constexpr Float16& operator+=(Float16 other) { return *this = Float16(float(*this) + float(other)); }
  constexpr Float16& operator-=(Float16 other) { return *this = Float16(float(*this) - float(other)); }
  constexpr Float16& operator*=(Float16 other) { return *this = Float16(float(*this) * float(other)); }
  constexpr Float16& operator/=(Float16 other) { return *this = Float16(float(*this) / float(other)); }

 private:
  std::uint16_t bits_;
};

enum class Format8 : std::uint8_t { E4m3, E5m2, Hif8, E8m0 };

// An 8-bit float: explicit conversions only.
template <Format8 format>
class Float8 {
 public:
  Float8() = default;
  explicit constexpr Float8(float value) : bits_(encode(bits::asBits(value))) {}
  explicit constexpr operator float() const { return bits::asFloat(decode(bits_)); }
  static constexpr Float8 fromBits(std::uint8_t code) {
    Float8 value;
    value.bits_ = code;
    return value;
  }
  constexpr std::uint8_t bits() const { return bits_; }

 private:
  static constexpr std::uint8_t encode(std::uint32_t u) {
    constexpr auto kNearest = bits::Rounding::Nearest;
    if constexpr (format == Format8::E4m3)
      return static_cast<std::uint8_t>(bits::narrow<bits::E4m3, kNearest>(u, false));
    if constexpr (format == Format8::E5m2)
      return static_cast<std::uint8_t>(bits::narrow<bits::E5m2, kNearest>(u, false));
    if constexpr (format == Format8::Hif8)
      return static_cast<std::uint8_t>(bits::narrowHif8<bits::Rounding::Away>(u, false, false, 0));
    return bits::bfloat16ToE8m0(u >> 16);
  }
  static constexpr std::uint32_t decode(std::uint8_t code) {
    if constexpr (format == Format8::E4m3) return bits::widen<bits::E4m3>(code);
    if constexpr (format == Format8::E5m2) return bits::widen<bits::E5m2>(code);
    if constexpr (format == Format8::Hif8) return bits::widenHif8(code);
    return static_cast<std::uint32_t>(bits::e8m0ToBfloat16(code, false)) << 16;
  }
  std::uint8_t bits_;
};

// Two 4-bit values in a byte, the even element in the low half.
template <int tag>
struct Float4x2 {
  std::uint8_t bits;
};

}  // namespace vatlas::kernels

// The device compiler has these built in, so they are global.
using half = vatlas::kernels::Float16<vatlas::kernels::bits::Half>;
using float16_t = half;
using bfloat16_t = vatlas::kernels::Float16<vatlas::kernels::bits::Bfloat16>;
using fp8_e4m3fn_t = vatlas::kernels::Float8<vatlas::kernels::Format8::E4m3>;
using fp8_e5m2_t = vatlas::kernels::Float8<vatlas::kernels::Format8::E5m2>;
using hifloat8_t = vatlas::kernels::Float8<vatlas::kernels::Format8::Hif8>;
using fp8_e8m0_t = vatlas::kernels::Float8<vatlas::kernels::Format8::E8m0>;
using fp4x2_e2m1_t = vatlas::kernels::Float4x2<0>;
using fp4x2_e1m2_t = vatlas::kernels::Float4x2<1>;

static_assert(sizeof(half) == 2 && sizeof(bfloat16_t) == 2 && sizeof(hifloat8_t) == 1);
static_assert(std::is_trivially_copyable_v<half> && std::is_trivially_default_constructible_v<fp8_e8m0_t>);

namespace AscendC {

using ::bfloat16_t;
using ::fp4x2_e1m2_t;
using ::fp4x2_e2m1_t;
using ::fp8_e4m3fn_t;
using ::fp8_e5m2_t;
using ::fp8_e8m0_t;
using ::half;
using ::hifloat8_t;

template <typename T, typename U>
struct IsSameType {
  static constexpr bool value = std::is_same_v<T, U>;
};

}  // namespace AscendC
