#include "decode.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace vatlas::tools {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Sign, exponent and mantissa of a small IEEE-like format; no specials.
float plain(int code, int exponentBits, int mantissaBits) {
  const int exponent = code >> mantissaBits & ((1 << exponentBits) - 1);
  const int mantissa = code & ((1 << mantissaBits) - 1);
  const int bias = (1 << (exponentBits - 1)) - 1;
  const int significand = exponent == 0 ? mantissa : mantissa + (1 << mantissaBits);
  const float size = std::ldexp(static_cast<float>(significand), std::max(exponent, 1) - bias - mantissaBits);
  return (code & 0x80) != 0 ? -size : size;
}

float e4m3fn(int code) {
  return (code & 0x7f) == 0x7f ? kNan : plain(code, 4, 3);
}

float e5m2(int code) {
  const int size = code & 0x7f;
  if (size > 0x7c) return kNan;
  if (size == 0x7c) return (code & 0x80) != 0 ? -kInf : kInf;
  return plain(code, 5, 2);
}

// Sign, a prefix-coded dot field, exponent (sign and magnitude with a hidden leading one), mantissa.
float hifloat8(int code) {
  if (code == 0) return 0;
  if (code == 0x80) return kNan;
  const float sign = (code & 0x80) != 0 ? -1.0F : 1.0F;
  const int size = code & 0x7f;
  if (size == 0x6f) return sign * kInf;
  if (size < 8) return sign * std::ldexp(1.0F, size - 23);
  int dot = 0;
  int mantissaBits = 3;
  int rest = 0;  // exponent field and mantissa
  if (size >= 0x60) {
    dot = 4, mantissaBits = 1, rest = size & 0x1f;
  } else if (size >= 0x40) {
    dot = 3, mantissaBits = 2, rest = size & 0x1f;
  } else if (size >= 0x20) {
    dot = 2, mantissaBits = 3, rest = size & 0x1f;
  } else if (size >= 0x10) {
    dot = 1, mantissaBits = 3, rest = size & 0x0f;
  } else {
    rest = size & 0x07;
  }
  const int mantissa = rest & ((1 << mantissaBits) - 1);
  const int field = rest >> mantissaBits;
  int exponent = 0;
  if (dot > 0) {
    const int magnitude = (field & ((1 << (dot - 1)) - 1)) | 1 << (dot - 1);
    exponent = field >> (dot - 1) != 0 ? -magnitude : magnitude;
  }
  return sign *
         std::ldexp(1.0F + static_cast<float>(mantissa) / static_cast<float>(1 << mantissaBits), exponent);
}

}  // namespace

std::array<float, 256> decodeTable(std::string_view dtype, bool ocpZero) {
  std::array<float, 256> table{};
  for (int code = 0; code < 256; ++code) {
    float& value = table[static_cast<std::size_t>(code)];
    if (dtype == "int8") {
      value = static_cast<float>(code < 128 ? code : code - 256);
    } else if (dtype == "float8_e4m3fn") {
      value = e4m3fn(code);
    } else if (dtype == "float8_e5m2") {
      value = e5m2(code);
    } else if (dtype == "hifloat8") {
      value = hifloat8(code);
    } else if (dtype == "float8_e8m0") {
      value = code == 255 ? kNan : code == 0 && !ocpZero ? 0.0F : std::ldexp(1.0F, code - 127);
    } else {
      throw std::invalid_argument("no decode table for " + std::string(dtype));
    }
  }
  return table;
}

}  // namespace vatlas::tools
