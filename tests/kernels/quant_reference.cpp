#include "quant_reference.h"

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>

namespace vatlas::test {
namespace {

std::uint32_t bitsOf(float f) {
  std::uint32_t u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}
float floatOf(std::uint32_t u) {
  float f;
  std::memcpy(&f, &u, sizeof f);
  return f;
}

using Table = std::array<float, 256>;

Table readTable(const std::string& format) {
  std::ifstream file(std::string(VATLAS_TEST_DATA) + "/" + format + "_decode.csv");
  Table table{};
  std::string line;
  int rows = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#' || line.rfind("code", 0) == 0) continue;
    const std::size_t code = std::stoul(line.substr(0, 2), nullptr, 16);
    const std::string bits = line.substr(line.rfind(',') + 1);
    table[code] =
        bits == "nan" ? std::nanf("") : floatOf(static_cast<std::uint32_t>(std::stoul(bits, nullptr, 16)));
    ++rows;
  }
  if (rows != 256) throw std::runtime_error("decode table of " + format);
  if (format == "e8m0") table[0] = 0.0F;  // what the card makes of the code
  return table;
}

const Table& tableOf(const std::string& format) {
  static std::map<std::string, Table> tables;
  const auto found = tables.find(format);
  return found != tables.end() ? found->second : tables.emplace(format, readTable(format)).first->second;
}

float decodeX(const std::string& format, std::uint8_t code) {
  return format == "int8" ? static_cast<float>(static_cast<std::int8_t>(code)) : tableOf(format)[code];
}

float scaleAt(const QuantCase& c, const std::vector<std::uint8_t>& scales, std::uint64_t index) {
  if (c.scales == "e8m0") return tableOf("e8m0")[scales[index]];
  float value;
  std::memcpy(&value, scales.data() + 4 * index, 4);
  return value;
}

// Round to nearest even by exact arithmetic: value = m * 2^e, with `keep` significant bits, least exponent
// `lowest`.
std::uint16_t narrow(float value, int exponentBits, int mantissaBits) {
  const auto sign = static_cast<std::uint16_t>(bitsOf(value) >> 31 << 15);
  const int bias = (1 << (exponentBits - 1)) - 1;
  const auto infinity = static_cast<std::uint16_t>(((1 << exponentBits) - 1) << mantissaBits);
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | (1 << (mantissaBits - 1)));
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  if (value == 0) return sign;
  const double magnitude = std::fabs(static_cast<double>(value));
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  double units =
      std::nearbyint(std::ldexp(magnitude, mantissaBits - exponent));  // default mode: ties to even
  if (units >= std::ldexp(1.0, mantissaBits + 1)) {
    units /= 2;
    ++exponent;
  }
  if (exponent > bias) return static_cast<std::uint16_t>(sign | infinity);
  const auto whole = static_cast<std::uint32_t>(units);
  const std::uint32_t hidden = 1U << mantissaBits;
  const std::uint32_t code =
      whole < hidden ? whole
                     : (static_cast<std::uint32_t>(exponent + bias) << mantissaBits) + (whole - hidden);
  return static_cast<std::uint16_t>(sign | code);
}

void store(const std::string& format, float value, std::uint8_t* to) {
  if (format == "f32") {
    const std::uint32_t bits = std::isnan(value) ? 0x7FC00000U : bitsOf(value);
    std::memcpy(to, &bits, 4);
    return;
  }
  const std::uint16_t code = format == "f16" ? narrow(value, 5, 10) : narrow(value, 8, 7);
  std::memcpy(to, &code, 2);
}

}  // namespace

std::vector<std::uint8_t> quantReference(const QuantCase& c, const std::vector<std::vector<std::uint8_t>>& x,
                                         const std::vector<std::vector<std::uint8_t>>& scales, int rank,
                                         bool scatter) {
  const std::uint64_t count = scatter ? c.elements() / static_cast<std::uint64_t>(c.ranks) : c.elements();
  const std::uint64_t first = scatter ? count * static_cast<std::uint64_t>(rank) : 0;
  std::vector<std::uint8_t> out(count * c.outputSize());
  for (std::uint64_t i = 0; i < count; ++i) {
    volatile float sum = 0;
    for (int k = 0; k < c.ranks; ++k) {
      const auto r = static_cast<std::size_t>(c.rankOrder ? k : (rank + k) % c.ranks);
      const std::uint64_t at = first + i;
      volatile float product = decodeX(c.x, x[r][at]) * scaleAt(c, scales[r], at / c.group());
      sum = sum + product;
    }
    store(c.output, sum, out.data() + i * c.outputSize());
  }
  return out;
}

}  // namespace vatlas::test
