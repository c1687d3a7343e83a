// Effects of vector instructions, put off until something else touches their operands.
//
// A kernel works through UB instruction by instruction, each over its whole operands, which are larger than
// the nearest cache. Instructions put off together are done strip by strip instead, all of them on one strip
// before the next, and what a later instruction overwrites unread is not written at all. The bytes that
// anything can see are those of program order.
//
// One unit serves all cores of a machine: a block that stops running leaves it empty.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "vatlas/sim/vector_work.h"

namespace vatlas::sim {

class VectorUnit {
 public:
  void add(const VectorWork& work);  // does it at once where putting it off gains nothing
  // Something else is about to read or write the range.
  void settle(const void* ub, std::uint64_t bytes, bool writes);
  void settleAll() { run(count_); }
  void discard();
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(count_); }

 private:
  static constexpr std::size_t kMost = 16;
  static constexpr std::size_t kStrip = 1024;    // elements
  static constexpr std::uint64_t kLeast = 1024;  // bytes of a destination worth putting off
  static constexpr std::size_t kScratches = 4;   // destinations that need not be written
  static constexpr std::size_t kCopies = 8;      // sources kept, for operands with groups
  static constexpr std::size_t kCopyBytes = 4096;
  static constexpr std::uint8_t kNoCopy = 0xff;

  // Addresses that an operand takes up; empty without one.
  struct Range {
    std::uintptr_t begin = 0, end = 0;
    bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
    bool operator==(const Range& other) const { return begin == other.begin && end == other.end; }
  };
  struct Entry {
    VectorWork work;
    Range dst, a, b;
    std::uint8_t copy = kNoCopy;  // its source is a copy
  };
  struct Step;

  static Range rangeOf(const VectorOperand& operand, std::uint64_t count);
  bool joins(const Entry& entry) const;
  void doNow(const Entry& entry);
  bool keep(Entry& entry);
  bool clashes(const Entry& entry) const;
  bool isOverwritten(const Range& dst, std::size_t from) const;
  void settle(const Range& range, bool writes);
  bool isMultiplyAccumulate(std::size_t first, std::size_t count) const;
  std::size_t plan(std::array<Step, kMost>& steps, std::size_t count);
  void run(std::size_t count);
  void drop(std::size_t count);

  std::size_t count_ = 0;
  std::uint32_t copiesTaken_ = 0;  // a bit each
  std::array<Entry, kMost> entries_;
  alignas(64) std::array<std::array<std::byte, kStrip * 8>, kScratches> scratch_;
  alignas(64) std::array<std::array<std::byte, kCopyBytes>, kCopies> copies_;
};

}  // namespace vatlas::sim
