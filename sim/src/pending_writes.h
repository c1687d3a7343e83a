// Small writes on their way: flags, status words, counters.
//
// A large write has its effect on the bytes at once, because a correct program reads it only after a flag.
// The flag itself is a small write, and takes effect when it arrives in simulated time, so that whoever polls
// it sees it in the order of time. Between the two a small write is here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vatlas::sim {

class PendingWrites {
 public:
  static constexpr std::uint64_t kLargest = 512;  // bytes of a small write

  struct Write {
    std::uintptr_t address = 0;
    std::uint32_t bytes = 0;
    std::uint32_t core = 0;
    std::uint64_t sequence = 0;  // in program order
    std::uint32_t place = 0;     // in its bucket
    bool scheduled = false;      // the time of its arrival is known
    bool applied = false;        // its effect came early, for a later write of the same core
    std::array<std::byte, kLargest> content;
  };

  PendingWrites() : buckets_(kBuckets) {}
  std::uint32_t add(std::uintptr_t address, const void* content, std::uint64_t bytes, std::uint32_t core);
  const Write& at(std::uint32_t id) const { return writes_[id]; }
  void schedule(std::uint32_t id) { writes_[id].scheduled = true; }
  void apply(std::uint32_t id);  // the bytes, now; the write is no longer pending
  bool overlaps(std::uintptr_t address, std::uint64_t bytes) const;
  // A large write of the core covers the range: what the core wrote there before comes first.
  void applyOwn(std::uint32_t core, std::uintptr_t address, std::uint64_t bytes);
  void drop(std::uint32_t core);  // the core's block has been cancelled

 private:
  // Found by the 1 KiB of address space they begin in.
  static constexpr unsigned kShift = 10;
  static constexpr std::size_t kBuckets = 4096;
  static std::size_t bucketOf(std::uintptr_t address) { return (address >> kShift) & (kBuckets - 1); }
  template <class Visit>
  void near(std::uintptr_t address, std::uint64_t bytes, Visit&& visit) const;
  void forget(std::uint32_t id);

  std::vector<std::vector<std::uint32_t>> buckets_;
  std::vector<Write> writes_;
  std::vector<std::uint32_t> free_;
  std::uint64_t sequence_ = 0;
  std::size_t live_ = 0;
};

}  // namespace vatlas::sim
