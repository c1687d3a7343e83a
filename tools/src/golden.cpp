#include "golden.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "decode.h"

namespace vatlas::tools {
namespace {

using Floats = Eigen::ArrayXf;

std::uint32_t bitsOf(float value) {
  return Eigen::numext::bit_cast<std::uint32_t>(value);
}

float widen(const DType& type, const std::uint8_t* bytes) {
  if (type.acl == ACL_FLOAT16) {
    std::uint16_t code;
    std::memcpy(&code, bytes, 2);
    return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(code));
  }
  if (type.acl == ACL_BF16) {
    std::uint16_t code;
    std::memcpy(&code, bytes, 2);
    return static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(code));
  }
  float value;
  std::memcpy(&value, bytes, 4);
  return value;
}

// The largest finite value where conversions saturate, and 0 for a NaN.
template <typename T>
float saturated(T value) {
  if (Eigen::numext::isnan(value)) return 0;
  const auto most = static_cast<float>(std::numeric_limits<T>::max());
  return std::clamp(static_cast<float>(value), -most, most);
}

// The value as the output type would hold it, widened again: rounded to nearest even. Float is not converted.
float rounded(const DType& type, float value, bool saturate) {
  if (type.acl == ACL_FLOAT16) {
    const Eigen::half narrow(value);
    return saturate ? saturated(narrow) : static_cast<float>(narrow);
  }
  if (type.acl == ACL_BF16) {
    const Eigen::bfloat16 narrow(value);
    return saturate ? saturated(narrow) : static_cast<float>(narrow);
  }
  return value;
}

}  // namespace

struct Golden::State {
  const RunOptions& options;
  const Inputs& inputs;
  int ranks;
  bool saturate;
  std::array<float, 256> x, e8m0;
  std::vector<Floats> products;  // by rank: x * scale of the piece at `first`
  std::uint64_t first = UINT64_MAX;
  std::uint64_t count = 0;
  std::vector<std::uint8_t> bytes;

  // x * scale of every rank for elements [begin, begin + n) of the whole tensor.
  void load(std::uint64_t begin, std::uint64_t n) {
    if (begin == first && n == count) return;
    first = begin;
    count = n;
    const std::uint64_t group = options.group();
    const std::uint64_t groups = n / group;
    for (int rank = 0; rank < ranks; ++rank) {
      Floats& product = products[static_cast<std::size_t>(rank)];
      product.resize(static_cast<Eigen::Index>(n));
      bytes.resize(n);
      inputs.x(rank, begin, n, bytes.data());
      for (std::uint64_t i = 0; i < n; ++i) product[static_cast<Eigen::Index>(i)] = x[bytes[i]];
      bytes.resize(groups * options.scales->bytes);
      inputs.scales(rank, begin / group, groups, bytes.data());
      for (std::uint64_t g = 0; g < groups; ++g) {
        const float scale =
            options.scales->bytes == 1 ? e8m0[bytes[g]] : widen(*options.scales, bytes.data() + 4 * g);
        product.segment(static_cast<Eigen::Index>(g * group), static_cast<Eigen::Index>(group)) *= scale;
      }
    }
  }
};

Golden::Golden(const RunOptions& options, const Inputs& inputs, int ranks, const sim::Switches& switches)
    : state_(new State{options,
                       inputs,
                       ranks,
                       switches.saturate,
                       decodeTable(options.x->name),
                       decodeTable("float8_e8m0", switches.e8m0ZeroIsOcp),
                       {},
                       UINT64_MAX,
                       0,
                       {}}) {
  state_->products.resize(static_cast<std::size_t>(ranks));
}

Golden::~Golden() = default;

void Golden::compare(int rank, std::uint64_t first, std::uint64_t count, const std::uint8_t* output,
                     Comparison& result) {
  State& s = *state_;
  const std::uint64_t slice =
      s.options.scatter() ? s.options.elements() / static_cast<std::uint64_t>(s.ranks) : 0;
  s.load(first + slice * static_cast<std::uint64_t>(rank), count);
  Floats sum = Floats::Zero(static_cast<Eigen::Index>(count));
  const int start = s.options.deterministic ? 0 : rank;
  for (int k = 0; k < s.ranks; ++k) sum += s.products[static_cast<std::size_t>((start + k) % s.ranks)];
  const DType& type = *s.options.output;
  for (std::uint64_t i = 0; i < count; ++i) {
    const float expected = rounded(type, sum[static_cast<Eigen::Index>(i)], s.saturate);
    const float got = widen(type, output + i * type.bytes);
    if (bitsOf(expected) == bitsOf(got) || (std::isnan(expected) && std::isnan(got))) continue;
    if (result.different++ == 0) {
      result.firstIndex = first + i;
      result.got = fmt::format("{:.9g}", got);
      result.expected = fmt::format("{:.9g}", expected);
    }
    const double error = std::fabs(static_cast<double>(got) - static_cast<double>(expected));
    result.largestError = std::max(result.largestError, error);
    if (expected != 0)
      result.largestRelativeError =
          std::max(result.largestRelativeError, error / std::fabs(static_cast<double>(expected)));
  }
  result.elements += count;
}

}  // namespace vatlas::tools
