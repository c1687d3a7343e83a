// The result that the operator must give, computed with Eigen from the definition; shares nothing with the
// kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inputs.h"
#include "run_options.h"

namespace vatlas::tools {

// How a rank's result compares with the golden one.
struct Comparison {
  std::uint64_t elements = 0;
  std::uint64_t different = 0;   // not the same bits (any NaN equals any NaN)
  std::uint64_t firstIndex = 0;  // of the first difference
  std::string got, expected;     // there
  double largestError = 0;       // absolute
  double largestRelativeError = 0;
};

// Works through all outputs in pieces: `fetch(rank, first, count, to)` gives elements of a rank's output as
// bytes.
class Golden {
 public:
  Golden(const RunOptions& options, const Inputs& inputs, int ranks, bool e8m0ZeroIsOcp);
  ~Golden();
  static constexpr std::uint64_t kPiece = 1 << 18;  // elements

  // Compares elements [first, first + count) of `rank`'s output.
  void compare(int rank, std::uint64_t first, std::uint64_t count, const std::uint8_t* output,
               Comparison& result);

 private:
  struct State;
  State* state_;
};

}  // namespace vatlas::tools
