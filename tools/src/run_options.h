// What `vatlas run` is asked to do.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "dtypes.h"

namespace vatlas::tools {

// Bad usage: the command ends with exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class InputKind : std::uint8_t { Random, Exact, Files };

struct RunOptions {
  std::string cluster;
  std::string op;
  const DType* x = nullptr;
  const DType* scales = nullptr;
  const DType* output = nullptr;
  std::vector<std::uint64_t> shape;
  InputKind input = InputKind::Random;
  std::uint64_t seed = 1;
  int repeat = 1;
  std::string xFile, scalesFile, outFile;  // with {rank}
  std::string traceFile, jsonFile;
  int traceCores = 1;
  bool deterministic = false;  // ACL_OPT_DETERMINISTIC
  bool digest = false;
  bool check = true;
  bool quiet = false;

  bool scatter() const { return op == "quant_reduce_scatter"; }
  std::uint64_t rows() const;
  std::uint64_t hidden() const { return shape.back(); }
  std::uint64_t elements() const { return rows() * hidden(); }
  std::uint64_t group() const { return scales->acl == ACL_FLOAT8_E8M0 ? 32 : 128; }
  std::vector<std::uint64_t> scalesShape() const;
  std::vector<std::uint64_t> outputShape(int ranks) const;
};

// "1024,5120"; throws UsageError.
std::vector<std::uint64_t> parseShape(const std::string& text);
// The file of a rank: {rank} replaced; throws UsageError when it is needed and not there.
std::string rankFile(const std::string& pattern, int rank, int ranks);

}  // namespace vatlas::tools
