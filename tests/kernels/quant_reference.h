// QuantAllReduce and QuantReduceScatter from their definition, one element at a time. Decoding by the tables
// of tests/data, rounding by integer arithmetic of its own; nothing is shared with the kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vatlas::test {

struct QuantCase {
  std::string x;       // "int8", "hif8", "e4m3fn", "e5m2"
  std::string scales;  // "f32", "e8m0"
  std::string output;  // "f32", "f16", "bf16"
  int ranks = 2;
  std::uint64_t rows = 0;
  std::uint64_t hidden = 0;
  bool rankOrder = false;

  std::uint64_t elements() const { return rows * hidden; }
  std::uint64_t group() const { return scales == "e8m0" ? 32 : 128; }
  std::uint64_t scaleCount() const { return elements() / group(); }
  std::uint64_t scaleBytes() const { return scaleCount() * (scales == "e8m0" ? 1 : 4); }
  std::uint64_t outputSize() const { return output == "f32" ? 4 : 2; }
};

// x[rank], scales[rank]: raw bytes. The output of `rank` as raw bytes; scatter: of its slice.
std::vector<std::uint8_t> quantReference(const QuantCase& c, const std::vector<std::vector<std::uint8_t>>& x,
                                         const std::vector<std::vector<std::uint8_t>>& scales, int rank,
                                         bool scatter);

}  // namespace vatlas::test
