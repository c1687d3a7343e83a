// The vector leaves of every instruction set, against definitions written here.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "vatlas/kernel/leaves.h"

using namespace vatlas::kernels;
using bits::Rounding;

namespace {

std::uint32_t bitsOf(float f) {
  std::uint32_t u;
  std::memcpy(&u, &f, 4);
  return u;
}
float floatOf(std::uint32_t u) {
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

struct Small {
  Elem elem;
  int exponent, mantissa;
  bool infinity;
  std::uint32_t nan;
};
const Small kHalf{Elem::F16, 5, 10, true, 0x7e00};
const Small kBf16{Elem::Bf16, 8, 7, true, 0x7fc0};
const Small kE4m3{Elem::E4m3, 4, 3, false, 0x7f};
const Small kE5m2{Elem::E5m2, 5, 2, true, 0x7e};

// Rounds by arithmetic on whole units of the target's last place.
std::uint32_t roundTo(const Small& f, float value, Rounding mode) {
  const std::uint32_t sign = (bitsOf(value) >> 31) << (f.exponent + f.mantissa);
  const std::uint32_t top = f.infinity ? ((1u << f.exponent) - 1) << f.mantissa : f.nan;
  if (std::isnan(value)) return f.nan;
  if (std::isinf(value)) return f.infinity ? sign | top : f.nan;
  const int bias = (1 << (f.exponent - 1)) - 1;
  const double size = std::fabs(static_cast<double>(value));
  if (size == 0) return sign;
  const int e = std::max(std::ilogb(size), 1 - bias);
  const double units = std::ldexp(size, f.mantissa - e);  // exact
  double whole = std::floor(units);
  const double rest = units - whole;
  const bool negative = value < 0;
  bool up = false;
  switch (mode) {
    case Rounding::Nearest:
      up = rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) == 1);
      break;
    case Rounding::Away:
      up = rest >= 0.5;
      break;
    case Rounding::Floor:
      up = negative && rest > 0;
      break;
    case Rounding::Ceil:
      up = !negative && rest > 0;
      break;
    case Rounding::Odd:
      up = rest > 0 && std::fmod(whole, 2) == 0;
      break;
    default:
      break;
  }
  if (up) ++whole;
  const double rounded = std::ldexp(whole, e - f.mantissa);
  const int least = 1 - bias;
  const double largest =
      f.infinity ? std::ldexp(2.0 - std::ldexp(1.0, -f.mantissa), (1 << f.exponent) - 2 - bias) : 448.0;
  if (rounded > largest) {
    const bool toward = mode == Rounding::Trunc || mode == Rounding::Odd ||
                        (mode == Rounding::Floor && !negative) || (mode == Rounding::Ceil && negative);
    if (toward) return sign | (top - 1);
    return f.infinity ? sign | top : f.nan;
  }
  if (rounded == 0) return sign;
  const int re = std::max(std::ilogb(rounded), least);
  const auto significand = static_cast<std::uint32_t>(std::ldexp(rounded, f.mantissa - re));
  const std::uint32_t hidden = 1u << f.mantissa;
  const std::uint32_t code =
      significand < hidden ? significand
                           : (static_cast<std::uint32_t>(re + bias) << f.mantissa) + (significand - hidden);
  return sign | code;
}

std::vector<float> interesting(std::size_t count) {
  std::mt19937 engine(3);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  std::vector<float> values;
  while (values.size() < count) {
    switch (random() % 4) {
      case 0:
        values.push_back(floatOf(random()));
        break;
      case 1:
        values.push_back(
            std::ldexp(1.0F + static_cast<float>(random() % 64) / 32, static_cast<int>(random() % 60) - 40));
        break;
      case 2:
        values.push_back(static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 16);
        break;
      default:
        values.push_back(
            floatOf(bitsOf(std::ldexp(1.0F, static_cast<int>(random() % 40) - 25)) + random() % 5 - 2));
    }
    if (random() % 2 == 0) values.back() = -values.back();
  }
  return values;
}

}  // namespace

TEST_CASE("all 8-bit codes widen as the tables say, on every instruction set") {
  REQUIRE(availableLeaves().size() >= 1);
  for (const LeafTable* table : availableLeaves()) {
    for (const auto& [elem, name] :
         {std::pair{Elem::E4m3, "e4m3fn"}, std::pair{Elem::E5m2, "e5m2"}, std::pair{Elem::Hif8, "hif8"}}) {
      std::vector<std::uint8_t> codes(256 + 13);
      for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i);
      std::vector<float> got(codes.size());
      table->convertOf(Elem::F32, elem)(got.data(), codes.data(), codes.size(), {});
      std::ifstream file(std::string(VATLAS_TEST_DATA) + "/" + name + "_decode.csv");
      std::string line;
      int rows = 0;
      while (std::getline(file, line)) {
        if (line[0] == '#' || line.rfind("code", 0) == 0) continue;
        const std::size_t code = std::stoul(line.substr(0, 2), nullptr, 16);
        const std::string text = line.substr(line.rfind(',') + 1);
        CAPTURE(table->name, name, code);
        CHECK(bitsOf(got[code]) == (text == "nan" ? 0x7fc00000u : std::stoul(text, nullptr, 16)));
        ++rows;
      }
      CHECK(rows == 256);
    }
    std::vector<std::uint8_t> scales = {0, 1, 127, 254, 255};
    std::vector<std::uint16_t> wide(scales.size());
    table->convertOf(Elem::Bf16, Elem::E8m0)(wide.data(), scales.data(), scales.size(), {});
    CHECK(wide == std::vector<std::uint16_t>{0x0000, 0x0080, 0x3f80, 0x7f00, 0x7fc0});
    ConvertMode ocp;
    ocp.e8m0ZeroIsOcp = true;
    table->convertOf(Elem::Bf16, Elem::E8m0)(wide.data(), scales.data(), 1, ocp);
    CHECK(wide[0] == 0x0040);
  }
}

TEST_CASE("narrowing rounds as its mode says") {
  const std::vector<float> values = interesting(20'000);
  for (const LeafTable* table : availableLeaves()) {
    for (const Small& f : {kHalf, kBf16, kE4m3, kE5m2}) {
      for (const Rounding mode :
           {Rounding::Nearest, Rounding::Floor, Rounding::Ceil, Rounding::Away, Rounding::Trunc}) {
        ConvertMode how;
        how.rounding = mode;
        std::vector<std::uint16_t> got16(values.size());
        std::vector<std::uint8_t> got8(values.size());
        const bool wide = f.elem == Elem::F16 || f.elem == Elem::Bf16;
        table->convertOf(f.elem, Elem::F32)(wide ? static_cast<void*>(got16.data()) : got8.data(),
                                            values.data(), values.size(), how);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::uint32_t got = wide ? got16[i] : got8[i];
          const std::uint32_t expected = roundTo(f, values[i], mode);
          if (got == expected) continue;
          CAPTURE(table->name, f.exponent, static_cast<int>(mode), values[i], bitsOf(values[i]));
          REQUIRE(got == expected);
        }
      }
    }
  }
}

TEST_CASE("every half and every bfloat16 widens exactly, and comes back") {
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  for (const LeafTable* table : availableLeaves()) {
    for (const Small& f : {kHalf, kBf16}) {
      std::vector<float> wide(codes.size());
      std::vector<std::uint16_t> back(codes.size());
      table->convertOf(Elem::F32, f.elem)(wide.data(), codes.data(), codes.size(), {});
      table->convertOf(f.elem, Elem::F32)(back.data(), wide.data(), codes.size(), {});
      const int bias = (1 << (f.exponent - 1)) - 1;
      for (std::uint32_t code = 0; code < 65536; ++code) {
        const std::uint32_t exponent = code >> f.mantissa & ((1u << f.exponent) - 1);
        const std::uint32_t mantissa = code & ((1u << f.mantissa) - 1);
        if (exponent == (1u << f.exponent) - 1) {
          REQUIRE((mantissa == 0 ? std::isinf(wide[code]) : std::isnan(wide[code])));
          continue;
        }
        const double size =
            std::ldexp(static_cast<double>(exponent == 0 ? mantissa : mantissa + (1u << f.mantissa)),
                       static_cast<int>(std::max(exponent, 1u)) - bias - f.mantissa);
        REQUIRE(static_cast<double>(wide[code]) == ((code >> 15) != 0 ? -size : size));
        REQUIRE(back[code] == code);
      }
    }
  }
}

TEST_CASE("arithmetic is IEEE's, in two roundings, the same on every instruction set") {
  const std::vector<float> a = interesting(5003);
  std::vector<float> b = interesting(5003);
  std::rotate(b.begin(), b.begin() + 777, b.end());
  for (const LeafTable* table : availableLeaves()) {
    std::vector<float> product(a.size());
    std::vector<float> sum(a.size());
    table->binaryOf(BinaryLeaf::Mul, Elem::F32)(product.data(), a.data(), b.data(), a.size(), false);
    table->binaryOf(BinaryLeaf::Add, Elem::F32)(sum.data(), product.data(), a.data(), a.size(), false);
    for (std::size_t i = 0; i < a.size(); ++i) {
      volatile float p = a[i] * b[i];
      volatile float s = p + a[i];
      CAPTURE(table->name, a[i], b[i]);
      REQUIRE(bitsOf(product[i]) == (std::isnan(p) ? 0x7fc00000u : bitsOf(p)));
      REQUIRE(bitsOf(sum[i]) == (std::isnan(s) ? 0x7fc00000u : bitsOf(s)));
    }
    std::vector<float> spread(7 * 32);
    table->spread[2](spread.data(), a.data(), 7, 32);
    for (std::size_t i = 0; i < spread.size(); ++i) REQUIRE(bitsOf(spread[i]) == bitsOf(a[i / 32]));
  }
}

TEST_CASE("multiply and accumulate in one pass gives the bits of its four steps") {
  std::mt19937 random(5);
  const std::vector<float> values = interesting(5003);
  for (const LeafTable* table : availableLeaves()) {
    for (const Elem elem : {Elem::E4m3, Elem::E5m2, Elem::Hif8}) {
      const auto fused = table->multiplyAccumulate[static_cast<std::size_t>(elem)];
      if (fused == nullptr) continue;
      for (const std::size_t group : {1u, 7u, 32u, 64u, 96u, 128u, 256u}) {
        for (const std::size_t count : {1u, 31u, 64u, 257u, 1024u}) {
          std::vector<std::uint8_t> x(count);
          std::vector<float> scales(count / group + 1);
          std::vector<float> sum(count);
          for (std::uint8_t& code : x) code = static_cast<std::uint8_t>(random());
          for (float& s : scales) s = values[random() % values.size()];
          for (float& s : sum) s = values[random() % values.size()];
          std::vector<float> wide(count);
          table->convertOf(Elem::F32, elem)(wide.data(), x.data(), count, {});
          std::vector<float> expected = sum;
          for (std::size_t i = 0; i < count; ++i) {
            volatile float product = wide[i] * scales[i / group];
            volatile float total = expected[i] + product;
            expected[i] = std::isnan(total) ? floatOf(0x7fc00000u) : total;
          }
          fused(sum.data(), x.data(), scales.data(), group, count);
          CAPTURE(table->name, static_cast<int>(elem), group, count);
          REQUIRE(std::memcmp(sum.data(), expected.data(), count * 4) == 0);
        }
      }
    }
  }
}
