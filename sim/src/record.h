// What a core leaves behind for the replay of its time: one record an instruction, one queue a pipe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vatlas/sim/core_port.h"
#include "vatlas/sim/time.h"

namespace vatlas::sim {

enum class RecordKind : std::uint8_t {
  Exec,      // occupies its pipe for `value` picoseconds
  Copy,      // moves `value` bytes over path `path`
  SetFlag,   // `set`
  WaitFlag,  // `wait`
  Barrier,   // waits for the pipe's own results
  Decide,    // scalar: looks at what the last small read brought
  Poll,      // scalar: that was not it; goes round until a write that arrives at `value`; waits while not
             // `released`
  Load,      // scalar: a load from global memory, `value` picoseconds
  Store,  // scalar: a store to global memory, `value` picoseconds to visibility; `link` is the pending write
  Cycle,  // scalar: the block waits until time has come here
};

inline constexpr std::uint32_t kNoLink = UINT32_MAX;
inline constexpr std::uint8_t kNoPeer = 0xff;

// A flag on another pipe, in a byte.
inline constexpr std::uint8_t kNoFlag = 0xff;
constexpr std::uint8_t flagCode(Pipe other, std::uint8_t id) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(other) << 4 | id);
}
constexpr Pipe flagPipe(std::uint8_t code) {
  return static_cast<Pipe>(code >> 4);
}
constexpr int flagId(std::uint8_t code) {
  return code & 0xf;
}

// Kept small: a run-ahead core leaves thousands, and they pass through the cache twice. An Exec or a Copy
// holds the flag that its pipe waits for right before it, and the one that is set right after it.
struct Record {
  RecordKind kind = RecordKind::Exec;
  std::uint8_t op = 0;           // Exec: VectorOp
  std::uint8_t wait = kNoFlag;   // flag of another pipe that comes first
  std::uint8_t set = kNoFlag;    // flag for another pipe that comes last
  std::uint32_t epoch = 0;       // scalar waits that precede it in program order
  std::uint32_t issue = 0;       // picoseconds of scalar work since that wait
  std::uint32_t value = 0;       // picoseconds or bytes
  std::uint32_t link = kNoLink;  // pending write (stores); with `set` beside something else, its issue
  std::uint16_t path = 0;
  std::uint8_t peer = kNoPeer;  // card of a remote memory
  bool small : 1 = false;       // Copy in: may be what a Poll starts from
  bool hold : 1 = false;        // Copy in: the block waits for its start
  bool released : 1 = false;    // Poll

  void setTime(SimTime at) {  // Poll: of the arrival
    value = static_cast<std::uint32_t>(at);
    link = static_cast<std::uint32_t>(at >> 32);
  }
  SimTime time() const { return static_cast<SimTime>(static_cast<std::uint64_t>(link) << 32 | value); }
};
static_assert(sizeof(Record) == 24);

// A ring of records addressed by ever-growing positions, so that a position stays valid while the ring moves.
class RecordQueue {
 public:
  bool empty() const noexcept { return head_ == tail_; }
  std::uint64_t head() const noexcept { return head_; }
  std::uint64_t tail() const noexcept { return tail_; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(tail_ - head_); }
  Record& at(std::uint64_t position) noexcept { return ring_[position & mask_]; }
  Record& front() noexcept { return at(head_); }
  void pop() noexcept { ++head_; }
  void push(const Record& record) {
    if (size() == ring_.size()) grow();
    ring_[tail_++ & mask_] = record;
  }
  void truncate(std::uint64_t tail) noexcept { tail_ = tail; }
  void clear() noexcept { head_ = tail_ = 0; }

 private:
  void grow() {
    std::vector<Record> bigger(ring_.empty() ? 32 : ring_.size() * 2);
    const std::uint64_t mask = bigger.size() - 1;
    for (std::uint64_t i = head_; i != tail_; ++i) bigger[i & mask] = ring_[i & mask_];
    ring_ = std::move(bigger);
    mask_ = mask;
  }

  std::vector<Record> ring_;
  std::uint64_t mask_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
};

}  // namespace vatlas::sim
