// The engine behind Simulation: the ordered heap, the cores, the launches.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core.h"
#include "fabric.h"
#include "pending_writes.h"
#include "vatlas/sim/simulation.h"
#include "vector_unit.h"

namespace vatlas::sim {

struct Launch;

// One rank's part of a launch.
struct LaunchPart {
  KernelLaunch spec;
  Launch* launch = nullptr;
  std::size_t number = 0;
  bool started = false;
  bool ended = false;
  SimTime deadline = kNever;
  SimTime dispatch = 0;  // the scheduler can hand out the next block
  int nextBlock = 0;
  int runningBlocks = 0;
  SimTime taskStart = 0;
  SimTime lastEnd = 0;
  LaunchStats stats;
  std::uintptr_t imageBegin = 0, imageEnd = 0;
};

struct Launch {
  std::uint64_t id = 0;
  std::vector<std::unique_ptr<LaunchPart>> parts;
  std::size_t open = 0;
  LaunchDone done;
};

// One transfer on its way into the fabric.
struct Transfer {
  int card = 0;  // whose engine moves the bytes
  SimTime now = 0;
  PathId path = 0;
  std::uint64_t bytes = 0;
  std::uint64_t key = 0;
};

// Where transfers enter the fabric; the SystemC shell puts its sockets in between.
class TransferPort {
 public:
  virtual ~TransferPort() = default;
  virtual void start(Fabric& fabric, const Transfer& transfer) = 0;
  // Where the host finds the bytes of device memory (DMI).
  virtual std::byte* deviceBytes(Machine& machine, const void* address) = 0;
};

class Machine final : private FabricObserver {
 public:
  Machine(const ClusterConfig& cluster, const SimulationOptions& options);
  ~Machine() override;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // For Simulation.
  void schedule(SimTime at, EventOrder order, std::function<void()> action);
  void launch(std::vector<KernelLaunch> parts, LaunchDone done);
  void copy(const Simulation::Copy& copy, std::function<void(SimTime)> done);
  SimTime run(SimTime limit);
  SimTime nextEvent() const;
  bool stalled() const;
  void cancelAll();
  void setStopFlag(const std::atomic<bool>* flag) { stopFlag_ = flag; }
  void setTrace(TraceSink* sink);

  // For the cores' functional side.
  SimTime cyclePs(double cycles) const { return static_cast<SimTime>(cycles * picosecondsPerCycle_ + 0.5); }
  std::uint64_t vectorTime(VectorOp op, std::uint32_t repeats) const;
  int checkGlobal(const void* address, std::uint64_t bytes) { return reader_->check(address, bytes); }
  void noteWrite(std::uintptr_t address, std::uint64_t bytes);
  void waitForWrite(Core& core);
  bool slicing() const { return slicing_; }
  void stopWaiting(Core& core);
  PathId loadPath(int card, int peer) const {
    return loadPaths_[static_cast<std::size_t>(card * ranks_ + peer)];
  }
  PathId storePath(int card, int peer) const {
    return storePaths_[static_cast<std::size_t>(card * ranks_ + peer)];
  }

  const ClusterConfig cluster;
  const SimulationOptions options;
  DeviceMemory memory;
  Fabric fabric;
  PendingWrites pending;
  VectorUnit vectors;  // of the block that runs
  std::function<void(int, int, std::string_view)> printSink;
  TransferPort* transferPort;  // never null
  SimTime now = 0;
  SimTime scalarIssue = 0;
  SimTime scalarLoadTime = 0;

 private:
  // Two heaps, so that the events of the cores stay small. Order at one time: small writes arrive, then the
  // host acts, then copies and scalar loads start; within a kind by card, core, pipe and sequence, or by
  // rank, stream, sequence.
  static constexpr std::uint64_t kApplyEvent = 0;
  static constexpr std::uint64_t kCoreEvent = 1;
  static constexpr std::uint64_t kBlockEnd = 7;  // in the place of a pipe: the core has finished a block
  struct Event {
    SimTime at;
    std::uint64_t key;   // kind, core * 8 + pipe, sequence
    std::uint32_t what;  // pending write, or generation of the core's block
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : key > other.key; }
  };
  struct Action {
    SimTime at;
    EventOrder order;
    std::uint64_t scheduled;  // at last by the order of scheduling
    std::uint32_t slot;
    bool operator>(const Action& other) const {
      const auto key = [](const Action& a) {
        return std::tie(a.at, a.order.rank, a.order.stream, a.order.sequence, a.scheduled);
      };
      return key(*this) > key(other);
    }
  };
  struct HostCopy {
    std::function<void(SimTime)> done;
    SimTime latency = 0;
  };

  // machine.cpp
  void beginCopy(const Simulation::Copy& copy, std::function<void(SimTime)> done);
  void handleNext(SimTime at);
  void prefetchSoon() const;
  bool stopRequested() const;

  // launches.cpp
  void beginPart(LaunchPart& part);
  void queuePart(LaunchPart& part);
  void startNextBlock(Core& core, LaunchPart& part, SimTime at);
  void endBlock(Core& core);
  void takeBlock(Core& core, SimTime at);
  void endPart(LaunchPart& part, std::optional<FaultReport> fault, SimTime at);
  void failLaunch(Launch& launch, FaultReport report, SimTime at);
  void stopCore(Core& core);
  void fireTimer();
  void expire(LaunchPart& part);
  void startWaiting(int card);
  FaultReport reportFault(const Core& core) const;

  // fibers.cpp
  void runFibers();
  void runGroup(std::size_t first, std::size_t last);
  void resumeBlock(Core& core);
  bool switchTo(Core& core);  // false: the block is over
  static void blockMain(void* core);
  bool wakeSpuriously();

  // replay.cpp
  static constexpr std::uint32_t kAllPipes = (1u << kPipeCount) - 1;
  void replay(Core& core, std::uint32_t runnable);
  bool step(Core& core, Pipe p);
  bool stepScalar(Core& core, Record& record);
  Pipe setFlagAfter(Core& core, Pipe p, const Record& record);
  bool stepCopy(Core& core, Pipe p, Record& record);
  void wake(std::uint32_t& pipes, Pipe p) const { pipes |= 1u << static_cast<unsigned>(p); }
  void beginTransfer(const Event& event);
  void completeTransfer(SimTime at, std::uint64_t key);
  void scheduleWrite(const Core& core, std::uint32_t write, SimTime at);
  void pushCoreEvent(Core& core, Pipe p, SimTime at);
  void wakeAtTime(Core& core);
  void finishScalarWait(Core& core, SimTime at);
  void finishPoll(Core& core, SimTime arrival);
  void afterStep(Core& core);
  void traceExec(Core& core, Pipe p, std::string_view name, SimTime start, SimTime end, std::uint64_t bytes,
                 int peer);
  void resourceRate(int resource, SimTime at, double bytesPerSecond) override;

  const int ranks_;
  double picosecondsPerCycle_ = 0;
  std::unique_ptr<DeviceMemory::Reader> reader_;
  std::vector<PathId> loadPaths_, storePaths_;
  std::byte* ubMemory_ = nullptr;
  std::size_t ubMapped_ = 0;
  std::vector<std::unique_ptr<Core>> cores_;  // by gid
  FiberPool fibers_;
  FaultGuard guard_;
  std::mt19937_64 shuffle_;

  struct EventHeap : std::priority_queue<Event, std::vector<Event>, std::greater<>> {
    const std::vector<Event>& events() const {
      return c;
    }  // the first is the next; the next two are likely after it
  };
  EventHeap heap_;
  std::vector<std::function<void()>> actions_;
  std::vector<std::uint32_t> freeActions_;
  std::priority_queue<Action, std::vector<Action>, std::greater<>> actionHeap_;
  std::uint64_t scheduled_ = 0;
  std::uint32_t applySequence_ = 0;
  std::vector<Core*> ready_;
  std::vector<Core*> batch_;
  bool slicing_ = false;  // several blocks take turns
  std::multimap<std::uintptr_t, Core*> memoryWaiters_;
  std::map<std::uint64_t, std::unique_ptr<Launch>> launches_;
  std::uint64_t nextLaunch_ = 1;
  std::set<std::tuple<SimTime, std::uint64_t, std::size_t>> timers_;  // (deadline, launch, part)
  std::vector<std::deque<LaunchPart*>> waitingParts_;                 // by card: no core free yet
  std::vector<int> busyCores_;                                        // by card
  std::vector<SimTime> cardFree_;                                     // by card: when its last launch ended
  std::vector<HostCopy> copies_;
  std::vector<std::uint32_t> freeCopies_;
  TraceSink* trace_ = nullptr;
  const std::atomic<bool>* stopFlag_ = nullptr;
  std::uint32_t pending_ = 0;  // pipes of the core being replayed that may go on
  friend class Core;
};

}  // namespace vatlas::sim
