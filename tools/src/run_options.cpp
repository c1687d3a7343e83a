#include "run_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace vatlas::tools {
namespace {

constexpr std::uint64_t kMostElements = 1ULL << 40;  // far beyond the memory of any card

}  // namespace

std::uint64_t RunOptions::rows() const {
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

std::vector<std::uint64_t> RunOptions::scalesShape() const {
  std::vector<std::uint64_t> result(shape.begin(), shape.end() - 1);
  if (scales->acl == ACL_FLOAT8_E8M0) {
    result.push_back(hidden() / 64);
    result.push_back(2);
  } else {
    result.push_back(hidden() / 128);
  }
  return result;
}

std::vector<std::uint64_t> RunOptions::outputShape(int ranks) const {
  if (!scatter()) return shape;
  return {rows() / static_cast<std::uint64_t>(ranks), hidden()};
}

std::vector<std::uint64_t> parseShape(const std::string& text) {
  const auto refuse = [&] {
    return UsageError(fmt::format("--shape \"{:.60}\": allowed: bs,H or b,s,H, whole numbers from 1", text));
  };
  std::vector<std::uint64_t> shape;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    if (part.empty() || part.size() > 12 || part.find_first_not_of("0123456789") != std::string::npos)
      throw refuse();
    shape.push_back(std::stoull(part));
    at = comma + 1;
  }
  if (shape.size() < 2 || shape.size() > 3) throw refuse();
  std::uint64_t elements = 1;
  for (const std::uint64_t dim : shape) {
    if (dim == 0) throw refuse();
    if (dim > kMostElements / elements)
      throw UsageError(fmt::format("--shape {}: more than {} elements", text, kMostElements));
    elements *= dim;
  }
  return shape;
}

std::string rankFile(const std::string& pattern, int rank, int ranks) {
  const std::size_t at = pattern.find("{rank}");
  if (at == std::string::npos) {
    if (ranks > 1)
      throw UsageError(
          fmt::format("\"{}\": put {{rank}} into the name, each rank has a file of its own", pattern));
    return pattern;
  }
  return pattern.substr(0, at) + std::to_string(rank) + pattern.substr(at + 6);
}

}  // namespace vatlas::tools
