// The golden result against a scalar reference: values of the codes from the tables of the formats, sums in
// float in the documented order, roundings by searching the nearest value of the output format.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <vector>

#include "golden.h"

using namespace vatlas::tools;

namespace {

constexpr int kRanks = 4;
constexpr std::uint64_t kRows = 8;
constexpr std::uint64_t kHidden = 1024;

float fromBits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// Values of the 256 codes as the table gives them.
std::vector<float> table(const std::string& name) {
  std::vector<float> values(256);
  std::ifstream file(std::string(VATLAS_TEST_DATA) + "/" + name + "_decode.csv");
  REQUIRE(file);
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#' || line.rfind("code", 0) == 0) continue;
    const std::string text = line.substr(line.rfind(',') + 1);
    values[std::stoul(line.substr(0, 2), nullptr, 16)] =
        text == "nan" ? std::nanf("") : fromBits(static_cast<std::uint32_t>(std::stoul(text, nullptr, 16)));
  }
  return values;
}

std::vector<float> valuesOf(const std::string& dtype) {
  if (dtype != "int8") {
    const std::map<std::string, std::string> files = {
        {"hifloat8", "hif8"}, {"float8_e4m3fn", "e4m3fn"}, {"float8_e5m2", "e5m2"}, {"float8_e8m0", "e8m0"}};
    return table(files.at(dtype));
  }
  std::vector<float> values;
  for (int code = 0; code < 256; ++code) values.push_back(static_cast<float>(code < 128 ? code : code - 256));
  return values;
}

// The code of a 16-bit format nearest to the value; a tie goes to the even code. The first code of infinity
// counts as the number that would follow the largest one.
std::uint16_t nearest(float value, int exponentBits, int mantissaBits) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const int infinity = ((1 << exponentBits) - 1) << mantissaBits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity + 1);
  const int bias = (1 << (exponentBits - 1)) - 1;
  const auto size = [&](int code) {
    const int exponent = code >> mantissaBits;
    const int mantissa = code & ((1 << mantissaBits) - 1);
    const double significand = exponent == 0 ? mantissa : mantissa + (1 << mantissaBits);
    return std::ldexp(significand, std::max(exponent, 1) - bias - mantissaBits);
  };
  const double target = std::fabs(static_cast<double>(value));
  int low = 0;
  int high = infinity;
  if (target >= size(high)) return static_cast<std::uint16_t>(sign | infinity);
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (size(middle) <= target ? low : high) = middle;
  }
  const double below = target - size(low);
  const double above = size(high) - target;
  const int code = below < above || (below == above && low % 2 == 0) ? low : high;
  return static_cast<std::uint16_t>(sign | code);
}

std::vector<std::uint8_t> narrowed(const std::vector<float>& values, const std::string& dtype) {
  std::vector<std::uint8_t> bytes;
  for (const float value : values) {
    if (dtype == "float") {
      const auto* raw = reinterpret_cast<const std::uint8_t*>(&value);
      bytes.insert(bytes.end(), raw, raw + 4);
      continue;
    }
    const std::uint16_t code = dtype == "float16" ? nearest(value, 5, 10) : nearest(value, 8, 7);
    bytes.push_back(static_cast<std::uint8_t>(code & 0xff));
    bytes.push_back(static_cast<std::uint8_t>(code >> 8));
  }
  return bytes;
}

RunOptions optionsFor(const std::string& op, const std::string& x, const std::string& scales,
                      const std::string& output) {
  RunOptions o;
  o.op = op;
  o.x = findDType(x);
  o.scales = findDType(scales);
  o.output = findDType(output);
  o.shape = {kRows, kHidden};
  return o;
}

// The same bytes for all ranks' x and for all scales.
class Constant final : public Inputs {
 public:
  Constant(std::uint8_t code, std::vector<std::uint8_t> scale) : code_(code), scale_(std::move(scale)) {}
  void x(int, std::uint64_t, std::uint64_t count, std::uint8_t* to) const override {
    std::fill_n(to, count, code_);
  }
  void scales(int, std::uint64_t, std::uint64_t count, std::uint8_t* to) const override {
    for (std::uint64_t i = 0; i < count; ++i) std::copy(scale_.begin(), scale_.end(), to + i * scale_.size());
  }

 private:
  std::uint8_t code_;
  std::vector<std::uint8_t> scale_;
};

// What `rank` must hold after elements [first, first + count), added up beginning with rank `start`.
std::vector<float> reference(const RunOptions& o, const Inputs& inputs, int start, std::uint64_t first,
                             std::uint64_t count) {
  const std::vector<float> values = valuesOf(o.x->name);
  const std::vector<float> e8m0 = valuesOf("float8_e8m0");
  const std::uint64_t group = o.group();
  std::vector<float> sums(count, 0.0F);
  std::vector<std::uint8_t> x(count);
  std::vector<std::uint8_t> scales(count / group * o.scales->bytes);
  for (int k = 0; k < kRanks; ++k) {
    const int from = (start + k) % kRanks;
    inputs.x(from, first, count, x.data());
    inputs.scales(from, first / group, count / group, scales.data());
    for (std::uint64_t i = 0; i < count; ++i) {
      float scale = 0;
      if (o.scales->bytes == 1) {
        const std::uint8_t code = scales[i / group];
        scale = code == 0 ? 0.0F : e8m0[code];  // as the card widens code 0
      } else {
        std::memcpy(&scale, scales.data() + i / group * 4, 4);
      }
      volatile float product = values[x[i]] * scale;
      sums[i] = sums[i] + product;
    }
  }
  return sums;
}

std::uint64_t differences(const RunOptions& o, const Inputs& inputs, int rank,
                          const std::vector<std::uint8_t>& output,
                          const vatlas::sim::Switches& switches = {}) {
  Golden golden(o, inputs, kRanks, switches);
  Comparison result;
  const std::uint64_t count = output.size() / o.output->bytes;
  // In two pieces, as the command does with large tensors.
  const std::uint64_t half = count / 2;
  golden.compare(rank, 0, half, output.data(), result);
  golden.compare(rank, half, count - half, output.data() + half * o.output->bytes, result);
  CHECK(result.elements == count);
  return result.different;
}

}  // namespace

TEST_CASE("all legal types: the golden result is the scalar reference, for each rank") {
  for (const char* x : {"int8", "hifloat8", "float8_e4m3fn", "float8_e5m2"}) {
    for (const char* scales : {"float", "float8_e8m0"}) {
      if (scales[5] == '8' && std::string(x).find("float8_e") != 0) continue;
      for (const char* output : {"float", "float16", "bfloat16"}) {
        CAPTURE(x, scales, output);
        const RunOptions o = optionsFor("quant_all_reduce", x, scales, output);
        const auto inputs = makeInputs(o, kRanks);
        for (const int rank : {0, 3}) {
          const std::vector<float> sums = reference(o, *inputs, rank, 0, o.elements());
          CHECK(differences(o, *inputs, rank, narrowed(sums, output)) == 0);
        }
      }
    }
  }
}

TEST_CASE("the order of summation matters to the golden result") {
  const RunOptions o = optionsFor("quant_all_reduce", "float8_e4m3fn", "float", "float");
  const auto inputs = makeInputs(o, kRanks);
  const std::vector<float> other = reference(o, *inputs, 1, 0, o.elements());
  CHECK(differences(o, *inputs, 1, narrowed(other, "float")) == 0);
  CHECK(differences(o, *inputs, 0, narrowed(other, "float")) > 0);
}

TEST_CASE("exact inputs give the same bits in every order") {
  for (const char* x : {"int8", "hifloat8", "float8_e4m3fn", "float8_e5m2"}) {
    CAPTURE(x);
    RunOptions o = optionsFor("quant_all_reduce", x, "float", "float");
    o.input = InputKind::Exact;
    const auto inputs = makeInputs(o, kRanks);
    const std::vector<float> first = reference(o, *inputs, 0, 0, o.elements());
    for (int rank = 1; rank < kRanks; ++rank) CHECK(reference(o, *inputs, rank, 0, o.elements()) == first);
    CHECK(*std::max_element(first.begin(), first.end()) > 1);
  }
}

TEST_CASE("reduce-scatter: each rank's slice") {
  const RunOptions o = optionsFor("quant_reduce_scatter", "float8_e5m2", "float8_e8m0", "bfloat16");
  const auto inputs = makeInputs(o, kRanks);
  const std::uint64_t slice = o.elements() / kRanks;
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto place = static_cast<std::uint64_t>(rank) * slice;
    const std::vector<float> sums = reference(o, *inputs, rank, place, slice);
    CHECK(differences(o, *inputs, rank, narrowed(sums, "bfloat16")) == 0);
    CHECK(differences(o, *inputs, (rank + 1) % kRanks, narrowed(sums, "bfloat16")) > 0);
  }
}

TEST_CASE("special scales and values") {
  const RunOptions o = optionsFor("quant_all_reduce", "float8_e5m2", "float8_e8m0", "float");
  const auto outputOf = [&](float value) {
    return narrowed(std::vector<float>(o.elements(), value), "float");
  };
  const std::uint8_t one = 0x3c;
  // Code 0: +0.0 on the card, 2^-127 by the standard.
  CHECK(differences(o, Constant(one, {0}), 0, outputOf(0.0F)) == 0);
  vatlas::sim::Switches standard;
  standard.e8m0ZeroIsOcp = true;
  CHECK(differences(o, Constant(one, {0}), 0, outputOf(std::ldexp(1.0F, -125)), standard) == 0);
  // A NaN scale makes NaNs of all of its group, zeros too; infinity stays.
  CHECK(differences(o, Constant(0, {255}), 0, outputOf(std::nanf(""))) == 0);
  CHECK(differences(o, Constant(0, {255}), 0, outputOf(0.0F)) == o.elements());
  CHECK(differences(o, Constant(0x7c, {127}), 0, outputOf(std::numeric_limits<float>::infinity())) == 0);
}

TEST_CASE("overflow of the output: infinity, or the largest value where conversions saturate") {
  const RunOptions o = optionsFor("quant_all_reduce", "float8_e5m2", "float8_e8m0", "float16");
  const Constant large(0x7b, {127});  // 57344, four times
  const Constant infinite(0xfc, {127});
  const Constant nan(0x7d, {127});
  const auto outputOf = [&](std::uint16_t code) {
    std::vector<std::uint8_t> bytes;
    for (std::uint64_t i = 0; i < o.elements(); ++i) {
      bytes.push_back(static_cast<std::uint8_t>(code & 0xff));
      bytes.push_back(static_cast<std::uint8_t>(code >> 8));
    }
    return bytes;
  };
  CHECK(differences(o, large, 0, outputOf(0x7c00)) == 0);
  CHECK(differences(o, large, 0, outputOf(0x7bff)) == o.elements());
  vatlas::sim::Switches saturate;
  saturate.saturate = true;
  CHECK(differences(o, large, 0, outputOf(0x7bff), saturate) == 0);
  CHECK(differences(o, infinite, 0, outputOf(0xfbff), saturate) == 0);
  CHECK(differences(o, nan, 0, outputOf(0), saturate) == 0);
}
