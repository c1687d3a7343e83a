// The result that the operator must give, computed with Eigen from the definition; shares nothing with the
// kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "inputs.h"
#include "run_options.h"
#include "vatlas/sim/config.h"

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

// Works through the outputs in pieces. The order of summation and the rounding are those that the operators
// document: in float, from +0, a rank's own contribution first and then the others' in a circle
// (deterministic: in rank order); one rounding to the output type, to nearest even. A group of elements
// shares a scale, so pieces begin and end at groups.
class Golden {
 public:
  Golden(const RunOptions& options, const Inputs& inputs, int ranks, const sim::Switches& switches);
  ~Golden();
  static constexpr std::uint64_t kPiece = 1 << 16;  // elements; the products of all ranks stay in the cache

  // Compares elements [first, first + count) of `rank`'s output.
  void compare(int rank, std::uint64_t first, std::uint64_t count, const std::uint8_t* output,
               Comparison& result);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vatlas::tools
