// One AI vector core: the block that runs on it, the records it leaves, and the state of its pipes in time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "fault_guard.h"
#include "fiber.h"
#include "pending_writes.h"
#include "record.h"
#include "vatlas/sim/core_port.h"

namespace vatlas::sim {

class Machine;
struct LaunchPart;

// Times at which a flag was set, waiting for their waits. Flags are binary on the card: one time is the rule.
class FlagQueue {
 public:
  bool empty() const noexcept { return count_ == 0; }
  void push(SimTime at) {
    if (count_++ == 0) {
      first_ = at;
      return;
    }
    if (!rest_) rest_ = std::make_unique<std::vector<SimTime>>();
    rest_->push_back(at);
  }
  SimTime pop() {
    const SimTime at = first_;
    if (--count_ > 0) {
      first_ = rest_->front();
      rest_->erase(rest_->begin());
    }
    return at;
  }
  void clear() {
    count_ = 0;
    if (rest_) rest_->clear();
  }

 private:
  SimTime first_ = 0;
  std::uint32_t count_ = 0;
  std::unique_ptr<std::vector<SimTime>> rest_;
};

enum class BlockState : std::uint8_t {
  None,      // no block
  Ready,     // in the list of blocks to resume
  Full,      // ran far ahead of time; goes on when the replay has caught up
  Memory,    // polls: waits for a write to a range
  Slice,     // has worked for a while; goes on after the blocks of its number on other cards
  Time,      // waits until the replay has come to its cycle record
  Finished,  // the kernel function has returned; records may be left
};

// The last small read, which may be one round of a poll. Its first round is real, and so is the look at its
// result (Decide). When the kernel then repeats the read, it polls: the block sleeps until the bytes change,
// tries a round that leaves no records, and so on until it goes on to something else; one Poll record then
// stands for all rounds.
struct OpenRead {
  bool valid = false;
  bool observed = false;  // the kernel has looked at the result
  bool scalar = false;
  bool polling = false;     // there is a Poll record, not released yet
  bool discarding = false;  // a repeated round is under way: it leaves no records
  std::uintptr_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t poll = 0;  // position of the Poll record
  SimTime arrival = 0;     // of the last change
  SimTime changed = -1;    // ... while the block was held up between the read and the look at it
  // What comes after the look, taken back if the kernel repeats the read.
  std::array<std::uint64_t, kPipeCount> tails{};
  std::uint32_t epoch = 0;
  std::uint32_t issue = 0;
  std::array<std::byte, PendingWrites::kLargest> content;
};

class Core final : public CorePort {
 public:
  Core(Machine& machine, int card, int index, std::uint32_t gid, std::byte* ub);
  ~Core() = default;

  static constexpr int kInternalFlag = 8;  // first flag id of the engine's own (barriers); kernels have 0..7
  static constexpr int kFlagIds = 9;
  static constexpr std::uint32_t kSlice = 96;  // records

  // The functional side (implemented in core_port.cpp)
  // -------------------------------------------------------------
  void beginCall();   // every API call passes here
  void scalarCost();  // the scalar work of one API call
  // Neither goes on to anything else when the record is one the block then waits for (`thenWaits`).
  bool join(Pipe pipe, const Record& record);
  void push(Pipe pipe, const Record& record, bool thenWaits = false);
  void mergeOrPushExec(std::uint64_t duration, std::uint8_t op);
  void startEpoch(const Record& record, bool thenWaits = false);  // a record the scalar unit waits for
  void closeOpenRead();
  bool repeatsOpenRead(std::uintptr_t address, std::uint64_t bytes, bool scalar) const;
  void awaitChange();  // a failed poll
  void openRead(std::uintptr_t address, std::uint64_t bytes, bool scalar);
  void markDecision();
  void rollBack();
  bool readsFlagAgain(std::uintptr_t address);
  bool beginSmallRead(std::uintptr_t address, std::uint64_t bytes, bool scalar);
  std::uint64_t commitOf(std::size_t p) const {
    return open.valid && open.observed ? open.tails[p] : pipes[p].queue.tail();
  }
  void yield(BlockState why);
  void endSlice();
  void settleAll();  // vector instructions put off
  void forgetPutOff() { putOff_ = 0; }
  std::size_t recordCount() const;
  bool tooFarAhead() const;

  // Resets for a block.
  void startBlock(LaunchPart& part, int block, SimTime at);

  struct PipeState {
    RecordQueue queue;
    std::uint64_t commit = 0;  // records before it are final
    SimTime busy = 0;          // free for the next instruction
    SimTime done = 0;          // results of all so far are there
    SimTime copyStart = 0;
    bool inFlight = false;  // a copy of it is in the heap or the fabric
    bool flowing = false;   // ... in the fabric
  };

  // The flags of one (source, destination) pair are made when the pair is first used.
  FlagQueue& flag(Pipe src, Pipe dst, int id) {
    std::unique_ptr<std::array<FlagQueue, kFlagIds>>& pair =
        flags[static_cast<std::size_t>(src) * kPipeCount + static_cast<std::size_t>(dst)];
    if (!pair) pair = std::make_unique<std::array<FlagQueue, kFlagIds>>();
    return (*pair)[static_cast<std::size_t>(id)];
  }
  bool epochIsOver(std::uint32_t e) const { return e - epochBase < epochTimes.size(); }
  SimTime epochTime(std::uint32_t e) const { return epochTimes[e - epochBase]; }
  void trimEpochs();  // forgets waits that no record refers to
  PipeState& pipe(Pipe p) { return pipes[static_cast<std::size_t>(p)]; }

  Machine& machine;
  const int card;
  const int index;
  const std::uint32_t gid;  // over all cards, the tie-break of simultaneous events

  // Replay state.
  std::array<PipeState, kPipeCount> pipes;
  std::array<std::unique_ptr<std::array<FlagQueue, kFlagIds>>, kPipeCount * kPipeCount> flags;
  std::vector<SimTime> epochTimes;  // [e - epochBase]: when scalar wait e was over
  std::uint32_t epochBase = 0;
  SimTime pollStart = 0;  // of the last small read
  SimTime decided = 0;    // of the last look at one
  std::uint32_t generation = 0;
  std::uint32_t sequence = 0;
  LaunchPart* part = nullptr;
  BlockState state = BlockState::None;
  bool traced = false;

  // Functional state.
  bool cancelled = false;
  bool mergeOpen = false;
  std::uint32_t joinable = 0;  // pipes whose last record may still be added to, a bit each
  bool entered = false;        // the block has run at least once
  int unwinds = 0;             // API calls since it was cancelled
  std::uint32_t recordsPushed = 0;
  std::uint32_t sliceStart = 0;
  std::uint32_t sinceOpen = 0;  // records since the open read
  std::array<std::uintptr_t, 16>
      flagReads{};  // addresses of the last flag-sized reads, for loops over several flags
  std::uint32_t nextFlagRead = 0;
  std::uint32_t epoch = 0;
  std::uint32_t issue = 0;
  std::uint32_t lastMergeIssue = 0;
  std::uint64_t lastMergeDuration = 0;
  int spurious = 0;
  OpenRead open;
  RunningBlock running;
  std::unique_ptr<Fiber> fiber;
  bool faulted = false;
  KernelFault faultKind = KernelFault::Exception;
  std::string faultText;
  const void* faultAddress = nullptr;
  SimTime cycleTime = 0;
};

Core& asCore(CorePort& port);

}  // namespace vatlas::sim
