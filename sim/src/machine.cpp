#include "machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include "host_limits.h"

namespace vatlas::sim {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::uint64_t kHostCopyKey = std::uint64_t{1} << 63;

class DirectPort final : public TransferPort {
 public:
  void start(Fabric& fabric, const Transfer& t) override { fabric.start(t.now, t.path, t.bytes, t.key); }
  std::byte* deviceBytes(Machine&, const void* address) override {
    return static_cast<std::byte*>(const_cast<void*>(address));
  }
};

TransferPort& directPort() {
  static DirectPort port;  // has no state
  return port;
}

}  // namespace

Machine::Machine(const ClusterConfig& config, const SimulationOptions& simulationOptions)
    : cluster(config),
      options(simulationOptions),
      memory(config.ranks, config.product.memory.bytes,
             simulationOptions.hostMemoryCeiling != 0 ? simulationOptions.hostMemoryCeiling
                                                      : hostMemoryCeiling()),
      fabric(config),
      transferPort(&directPort()),
      ranks_(config.ranks),
      reader_(memory.reader()),
      fibers_(kStackBytes),
      guard_(simulationOptions.watchdogMilliseconds),
      shuffle_(simulationOptions.resumeSeed) {
  const CoreConfig& core = cluster.product.core;
  picosecondsPerCycle_ = 1e6 / core.clockMhz;
  scalarIssue = cyclePs(core.scalarIssueCycles);
  scalarLoadTime = cyclePs(core.scalarLoadCycles);
  for (int card = 0; card < ranks_; ++card) {
    for (int peer = 0; peer < ranks_; ++peer) {
      loadPaths_.push_back(fabric.path(Traffic::CoreLoad, card, peer));
      storePaths_.push_back(fabric.path(Traffic::CoreStore, card, peer));
    }
  }
  const auto perCard = static_cast<std::size_t>(cluster.product.aivCount);
  const std::size_t count = perCard * static_cast<std::size_t>(ranks_);
  ubMapped_ = count * core.ubBytes;
  void* mapping =
      mmap(nullptr, ubMapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  ubMemory_ = static_cast<std::byte*>(mapping);
  for (std::size_t i = 0; i < count; ++i) {
    cores_.push_back(std::make_unique<Core>(*this, static_cast<int>(i / perCard),
                                            static_cast<int>(i % perCard), static_cast<std::uint32_t>(i),
                                            ubMemory_ + i * core.ubBytes));
  }
  waitingParts_.resize(static_cast<std::size_t>(ranks_));
  busyCores_.assign(static_cast<std::size_t>(ranks_), 0);
  cardFree_.assign(static_cast<std::size_t>(ranks_), 0);
}

Machine::~Machine() {
  cancelAll();
  munmap(ubMemory_, ubMapped_);
}

void Machine::schedule(SimTime at, EventOrder order, std::function<void()> action) {
  std::uint32_t slot = static_cast<std::uint32_t>(actions_.size());
  if (freeActions_.empty()) {
    actions_.push_back(std::move(action));
  } else {
    slot = freeActions_.back();
    freeActions_.pop_back();
    actions_[slot] = std::move(action);
  }
  actionHeap_.push({at, order, scheduled_++, slot});
}

void Machine::copy(const Simulation::Copy& copy, std::function<void(SimTime)> done) {
  schedule(copy.start, copy.order,
           [this, copy, done = std::move(done)]() mutable { beginCopy(copy, std::move(done)); });
}

void Machine::beginCopy(const Simulation::Copy& copy, std::function<void(SimTime)> done) {
  using Kind = Simulation::Copy::Kind;
  const bool toHost = copy.kind == Kind::DeviceToHost;
  auto* to = static_cast<std::byte*>(copy.destination);
  auto* from = static_cast<const std::byte*>(copy.source);
  if (!toHost) to = transferPort->deviceBytes(*this, copy.destination);
  if (toHost || copy.kind == Kind::DeviceToDevice) from = transferPort->deviceBytes(*this, copy.source);
  if (copy.bytes != 0) {
    if (copy.kind == Kind::Set) {
      std::memset(to, copy.value, copy.bytes);
    } else {
      std::memmove(to, from, copy.bytes);
    }
  }
  if (!toHost) {
    const auto address = reinterpret_cast<std::uintptr_t>(to);
    noteWrite(address, copy.bytes);
  }
  PathId path = Fabric::kNoPath;
  switch (copy.kind) {
    case Kind::HostToDevice:
      path = fabric.path(Traffic::HostToDevice, copy.device, copy.device);
      break;
    case Kind::DeviceToHost:
      path = fabric.path(Traffic::DeviceToHost, copy.device, copy.device);
      break;
    case Kind::DeviceToDevice:
      path = fabric.path(Traffic::CardCopy, copy.device, copy.peer);
      break;
    case Kind::Set:
      path = fabric.path(Traffic::CardCopy, copy.device, copy.device);
      break;
  }
  if (path == Fabric::kNoPath) throw std::runtime_error("a copy between two cards that nothing connects");
  std::uint32_t slot = static_cast<std::uint32_t>(copies_.size());
  if (freeCopies_.empty()) {
    copies_.emplace_back();
  } else {
    slot = freeCopies_.back();
    freeCopies_.pop_back();
  }
  copies_[slot] = {std::move(done), fabric.info(path).latency};
  transferPort->start(fabric, {copy.device, copy.start, path, copy.bytes, kHostCopyKey | slot});
}

SimTime Machine::nextEvent() const {
  SimTime next = fabric.nextCompletion();
  if (!heap_.empty()) next = std::min(next, heap_.top().at);
  if (!actionHeap_.empty()) next = std::min(next, actionHeap_.top().at);
  if (!timers_.empty()) next = std::min(next, std::get<0>(*timers_.begin()));
  if (!ready_.empty()) next = std::min(next, now);
  return next;
}

bool Machine::stalled() const {
  return heap_.empty() && actionHeap_.empty() && fabric.nextCompletion() == kNever && ready_.empty() &&
         !memoryWaiters_.empty();
}

bool Machine::stopRequested() const {
  return stopFlag_ != nullptr && stopFlag_->load(std::memory_order_relaxed);
}

SimTime Machine::run(SimTime limit) {
  for (;;) {
    runFibers();
    if (stopRequested()) break;
    const SimTime next = nextEvent();
    if (next >= limit && !(limit == kNever && stalled())) break;
    if (stalled() && wakeSpuriously()) continue;
    if (next == kNever) break;
    prefetchSoon();
    handleNext(next);
  }
  guard_.disarm();
  return nextEvent();
}

// The cores of the events to come are cold more often than not: hundreds of them take turns.
void Machine::prefetchSoon() const {
  const auto touch = [this](std::uint64_t place) {
    const Core* core = cores_[place / 8].get();
    const Core::PipeState* pipe = &core->pipes[place % 8 < kPipeCount ? place % 8 : 0];
    __builtin_prefetch(pipe);
    __builtin_prefetch(reinterpret_cast<const char*>(pipe) + 64);
    __builtin_prefetch(&core->epochTimes);
    __builtin_prefetch(&core->state);
  };
  const std::vector<Event>& events = heap_.events();
  for (std::size_t i = 1; i < 3 && i < events.size(); ++i) touch(events[i].key >> 32 & 0x3fffffff);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint64_t key = fabric.keyNear(i);
    if ((key >> 63) == 0) touch(key & 0xffffff);
  }
}

// The earliest event; at one time writes arrive first, then come host actions, transfers that end, those that
// begin.
void Machine::handleNext(SimTime at) {
  now = at;  // may lie before the last: what a late thread submits to a card that has not come so far
  const bool coreEvent = !heap_.empty() && heap_.top().at == at;
  if (coreEvent && heap_.top().key >> 62 == kApplyEvent) {
    const std::uint32_t write = heap_.top().what;
    heap_.pop();
    const std::uintptr_t address = pending.at(write).address;
    const std::uint32_t bytes = pending.at(write).bytes;
    pending.apply(write);
    noteWrite(address, bytes);
  } else if (!actionHeap_.empty() && actionHeap_.top().at == at) {
    const std::uint32_t slot = actionHeap_.top().slot;
    actionHeap_.pop();
    const std::function<void()> action = std::move(actions_[slot]);
    actions_[slot] = nullptr;
    freeActions_.push_back(slot);
    action();
  } else if (fabric.nextCompletion() == at) {
    const Fabric::Completion completion = fabric.popCompletion();
    completeTransfer(completion.time, completion.key);
  } else if (coreEvent) {
    const Event event = heap_.top();
    heap_.pop();
    beginTransfer(event);
  } else {
    fireTimer();
  }
}

void Machine::setTrace(TraceSink* sink) {
  trace_ = sink;
  fabric.setObserver(sink != nullptr ? this : nullptr);
  if (sink != nullptr) return;
  for (const auto& core : cores_) core->traced = false;
}

}  // namespace vatlas::sim
