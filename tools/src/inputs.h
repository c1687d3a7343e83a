// Where the inputs of a rank come from: a generator that can begin anywhere, or files.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "npy.h"
#include "run_options.h"

namespace vatlas::tools {

class Inputs {
 public:
  virtual ~Inputs() = default;
  // Bytes of elements [first, first + count); thread-safe.
  virtual void x(int rank, std::uint64_t first, std::uint64_t count, std::uint8_t* to) const = 0;
  virtual void scales(int rank, std::uint64_t first, std::uint64_t count, std::uint8_t* to) const = 0;
};

// Throws FileError or UsageError.
std::unique_ptr<Inputs> makeInputs(const RunOptions& options, int ranks);

}  // namespace vatlas::tools
