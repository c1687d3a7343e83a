// A vector instruction's effect on UB, described so that it can be put off and done together with others.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vatlas::sim {

// A range of UB, element by element.
struct VectorOperand {
  std::byte* data = nullptr;
  std::uint32_t bytes = 0;  // of an element; 0: half a byte, two elements share one
  std::uint32_t group = 1;  // elements of the destination that one element of this operand is for

  std::uint64_t span(std::uint64_t count) const {
    return bytes == 0 ? (count + 1) / 2 : (count + group - 1) / group * bytes;
  }
};

// The part an instruction can play in acc += widen(x) * spread(s), which is then done in one go.
enum class VectorPart : std::uint8_t { None, Widen, Spread, Multiply, Accumulate };

// dst[i] from a[i / a.group] and b[i], i < count, each element by itself. An operand without data is not
// there.
struct VectorWork {
  // Does `count` elements at the given places, which may be a part of the operands, or copies of them.
  using Run = void (*)(const VectorWork& work, void* dst, const void* a, const void* b, std::size_t count);

  // acc[i] += widen(x[i]) * s[i / group], all in float, in two roundings.
  using MultiplyAccumulate = void (*)(void* acc, const void* x, const void* s, std::size_t group,
                                      std::size_t count);

  Run run = nullptr;
  void (*leaf)() = nullptr;  // of the runner's own, as are the next two
  std::uint64_t scalar = 0;
  std::uint32_t mode = 0;
  VectorPart part = VectorPart::None;
  MultiplyAccumulate multiplyAccumulate = nullptr;  // Widen: for this type of x
  VectorOperand dst, a, b;
  std::uint64_t count = 0;
};

}  // namespace vatlas::sim
