// Who wrote a word that others may wait for, and when the write arrives.
//
// Effects on bytes happen at once; a small write (a status word, a flag) may therefore be seen by a reader whose
// simulated time is earlier than the write's. The map remembers the last small write to each 32-byte slot while
// launches run; a small read that meets writes of other cores becomes dependent on their arrival.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "record.h"
#include "vatlas/sim/time.h"

namespace vatlas::sim {

class SyncMap {
 public:
  static constexpr std::uint64_t kLargest = 4096;  // bytes of a write or read that is looked at

  struct Dependency {
    std::uint32_t remaining = 0;  // writes whose arrival is not known yet
    SimTime latest = 0;           // arrival of the last of the others
    std::uint32_t core = 0;
    Pipe pipe = Pipe::S;          // of the record that waits, when `blocked`
    bool blocked = false;
  };

  // A write by `core`; kNoLink when it is too large to be tracked.
  std::uint32_t addWrite(std::uintptr_t address, std::uint64_t bytes, std::uint32_t core);
  // What a read by `core` depends on; kNoLink when no other core wrote there.
  std::uint32_t dependOn(std::uintptr_t address, std::uint64_t bytes, std::uint32_t core);
  Dependency& dependency(std::uint32_t id) { return dependencies_[id]; }
  void release(std::uint32_t dependency) { freeDependencies_.push_back(dependency); }

  // The write arrives at `at`: calls wake(dependency) for every dependency that waits in time and now has all.
  template <class Wake>
  void resolve(std::uint32_t write, SimTime at, Wake&& wake) {
    Write& w = writes_[write];
    w.arrival = at;
    for (std::uint32_t i = w.firstWaiter; i != kNoLink;) {
      const Waiter waiter = waiters_[i];
      freeWaiters_.push_back(i);
      i = waiter.next;
      Dependency& d = dependencies_[waiter.dependency];
      if (at > d.latest) d.latest = at;
      if (--d.remaining == 0 && d.blocked) wake(d);
    }
    w.firstWaiter = kNoLink;
  }

  void clear();  // no launch is running

 private:
  static constexpr std::uint64_t kSlot = 32;
  static constexpr std::uint64_t kPage = 4096;
  using Page = std::array<std::uint32_t, kPage / kSlot>;

  struct Write {
    std::uint32_t core = 0;
    SimTime arrival = kNever;  // kNever: not replayed yet
    std::uint32_t firstWaiter = kNoLink;
    std::uint32_t previous = kNoLink;  // an earlier write of another core to the first slot
  };
  struct Waiter {
    std::uint32_t dependency;
    std::uint32_t next;
  };

  Page& page(std::uint64_t number);
  Page* findPage(std::uint64_t number);
  void attach(std::uint32_t write, std::uint32_t core, std::uint32_t& dependency);

  std::unordered_map<std::uint64_t, std::uint32_t> pageIndex_;  // looked up only, never walked
  std::vector<Page> pages_;
  std::uint64_t lastNumber_ = UINT64_MAX;
  std::uint32_t lastPage_ = 0;
  std::vector<Write> writes_;
  std::vector<Waiter> waiters_;
  std::vector<std::uint32_t> freeWaiters_;
  std::vector<Dependency> dependencies_;
  std::vector<std::uint32_t> freeDependencies_;
};

}  // namespace vatlas::sim
