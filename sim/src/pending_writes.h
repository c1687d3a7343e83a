// Small writes on their way: flags, status words, counters.
//
// A large write has its effect on the bytes at once, because a correct program reads it only after a flag. The flag
// itself is a small write, and takes effect when it arrives in simulated time, so that whoever polls it sees it in the
// order of time. Between the two a small write is here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace vatlas::sim {

class PendingWrites {
 public:
  static constexpr std::uint64_t kLargest = 4096;  // bytes of a small write

  struct Write {
    std::uintptr_t address = 0;
    std::uint32_t bytes = 0;
    std::uint32_t core = 0;
    bool scheduled = false;  // the time of its arrival is known
    bool applied = false;    // its effect came early, for a later write of the same core
    std::vector<std::byte> content;
  };

  std::uint32_t add(std::uintptr_t address, const void* content, std::uint64_t bytes, std::uint32_t core);
  const Write& at(std::uint32_t id) const { return writes_[id]; }
  void schedule(std::uint32_t id) { writes_[id].scheduled = true; }
  void apply(std::uint32_t id);  // the bytes, now; the write is no longer pending
  bool overlaps(std::uintptr_t address, std::uint64_t bytes) const;
  // A large write of the core covers the range: what the core wrote there before comes first.
  void applyOwn(std::uint32_t core, std::uintptr_t address, std::uint64_t bytes);
  void drop(std::uint32_t core);  // the core's block has been cancelled

 private:
  using Index = std::multimap<std::uintptr_t, std::uint32_t>;
  Index::const_iterator firstNear(std::uintptr_t address) const;
  void forget(Index::iterator entry);

  Index index_;
  std::vector<Write> writes_;
  std::vector<std::uint32_t> free_;
};

}  // namespace vatlas::sim
