// The time side: records through each pipe's queue, transfers through the fabric.
#include <algorithm>

#include "machine.h"

namespace vatlas::sim {
namespace {

constexpr std::uint64_t kHostCopyKey = std::uint64_t{1} << 63;

constexpr std::uint64_t coreKey(const Core& core, Pipe p) {
  return (static_cast<std::uint64_t>(core.generation) << 24) | (core.gid * 8u) |
         static_cast<std::uint64_t>(p);
}

std::string_view vectorName(std::uint8_t op) {
  static constexpr std::array<std::string_view, kVectorOpCount> kNames = {
      "Add",           "Mul",       "Sub",
      "Div",           "Max/Min",   "Logic",
      "Duplicate",     "Cast",      "Cast (8-bit source)",
      "Broadcast",     "ReduceSum", "Copy",
      "Transcendental"};
  return op < kNames.size() ? kNames[op] : std::string_view("vector");
}

}  // namespace

std::uint64_t Machine::vectorTime(VectorOp op, std::uint32_t repeats) const {
  const VectorCost& cost = cluster.product.core.vector[static_cast<std::size_t>(op)];
  return static_cast<std::uint64_t>(
      (cost.fixedCycles + cost.cyclesPerRepeat * repeats) * picosecondsPerCycle_ + 0.5);
}

void Machine::traceExec(Core& core, Pipe p, std::string_view name, SimTime start, SimTime end,
                        std::uint64_t bytes, int peer) {
  TraceSpan span;
  span.card = core.card;
  span.track = TraceTrack::CorePipe;
  span.core = static_cast<std::uint32_t>(core.index);
  span.pipe = p;
  span.name = name;
  span.start = start;
  span.end = end;
  span.bytes = bytes;
  span.peer = peer;
  trace_->span(span);
}

// Takes the core's pipes as far as their records allow.
void Machine::replay(Core& core, std::uint32_t runnable) {
  while (runnable != 0) {
    pending_ = 0;
    for (std::size_t p = 0; p < kPipeCount; ++p) {
      if ((runnable >> p & 1u) == 0) continue;
      while (step(core, static_cast<Pipe>(p))) {
      }
    }
    runnable = pending_;
  }
  afterStep(core);
}

// One record of one pipe; false when the pipe has to wait (or has nothing).
bool Machine::step(Core& core, Pipe p) {
  Core::PipeState& pipe = core.pipe(p);
  if (pipe.inFlight || pipe.queue.head() >= pipe.commit) return false;
  Record& record = pipe.queue.front();
  if (!core.epochIsOver(record.epoch)) return false;  // issued after a scalar wait that is not over
  if (p == Pipe::S) return stepScalar(core, record);
  const SimTime issue = core.epochTime(record.epoch) + record.issue;
  if (record.wait != kNoFlag) {
    FlagQueue& flags = core.flag(flagPipe(record.wait), p, flagId(record.wait));
    if (flags.empty()) return false;
    pipe.busy = std::max({pipe.busy, issue, flags.pop()});
    record.wait = kNoFlag;
  }
  switch (record.kind) {
    case RecordKind::Exec: {
      const SimTime start = std::max(pipe.busy, issue);
      pipe.busy = start + static_cast<SimTime>(record.value);
      pipe.done = std::max(pipe.done, pipe.busy);
      core.part->stats.busy[static_cast<std::size_t>(p)] += static_cast<SimTime>(record.value);
      if (core.traced && trace_ != nullptr)
        traceExec(core, p, vectorName(record.op), start, pipe.busy, 0, -1);
      if (record.set != kNoFlag) wake(pending_, setFlagAfter(core, p, record));
      break;
    }
    case RecordKind::Copy:
      return stepCopy(core, p, record);
    case RecordKind::SetFlag:
      record.link = record.issue;
      wake(pending_, setFlagAfter(core, p, record));
      break;
    case RecordKind::Barrier:
      pipe.busy = std::max({pipe.busy, pipe.done, issue});
      break;
    default:
      break;  // a wait, done above; scalar kinds are not pushed to other pipes
  }
  pipe.queue.pop();
  return true;
}

// The flag behind an instruction; returns the pipe it is for.
Pipe Machine::setFlagAfter(Core& core, Pipe p, const Record& record) {
  const SimTime issue = core.epochTime(record.epoch) + record.link;
  core.flag(p, flagPipe(record.set), flagId(record.set)).push(std::max(core.pipe(p).done, issue));
  return flagPipe(record.set);
}

bool Machine::stepCopy(Core& core, Pipe p, Record& record) {
  Core::PipeState& pipe = core.pipe(p);
  pipe.flowing = false;
  pushCoreEvent(core, p, std::max(pipe.busy, core.epochTime(record.epoch) + record.issue));
  return false;
}

void Machine::pushCoreEvent(Core& core, Pipe p, SimTime at) {
  core.pipe(p).inFlight = true;
  const std::uint64_t order = core.gid * 8u + static_cast<std::uint64_t>(p);
  heap_.push({at, (kCoreEvent << 62) | (order << 32) | core.sequence++, core.generation});
}

void Machine::wakeAtTime(Core& core) {
  if (core.state != BlockState::Time) return;
  core.state = BlockState::Ready;
  ready_.push_back(&core);
}

void Machine::finishScalarWait(Core& core, SimTime at) {
  core.epochTimes.push_back(at);
  core.pipe(Pipe::S).queue.pop();
  pending_ |= kAllPipes;  // every pipe may have waited for it
}

// The scalar unit: its records are waits (each opens an epoch), flags it sets, and its own memory accesses.
bool Machine::stepScalar(Core& core, Record& record) {
  const SimTime time = core.epochTime(record.epoch) + record.issue;
  LaunchStats& stats = core.part->stats;
  switch (record.kind) {
    case RecordKind::SetFlag:
      core.flag(Pipe::S, flagPipe(record.set), flagId(record.set)).push(time);
      wake(pending_, flagPipe(record.set));
      core.pipe(Pipe::S).queue.pop();
      return true;
    case RecordKind::Store:
      scheduleWrite(core, record.link, time + static_cast<SimTime>(record.value));
      core.pipe(Pipe::S).done = std::max(core.pipe(Pipe::S).done, time + static_cast<SimTime>(record.value));
      core.pipe(Pipe::S).queue.pop();
      return true;
    case RecordKind::WaitFlag: {
      FlagQueue& flags = core.flag(flagPipe(record.wait), Pipe::S, flagId(record.wait));
      if (flags.empty()) return false;
      stats.busy[0] += record.issue;
      finishScalarWait(core, std::max(time, flags.pop()));
      return true;
    }
    case RecordKind::Load:
      pushCoreEvent(core, Pipe::S, time);
      return false;
    case RecordKind::Decide:
      core.decided = time;
      stats.busy[0] += record.issue;
      finishScalarWait(core, time);
      return true;
    case RecordKind::Poll:
      if (!record.released) return false;
      finishPoll(core, record.time());
      return true;
    case RecordKind::Cycle:
      core.cycleTime = time;
      finishScalarWait(core, time);
      wakeAtTime(core);
      return true;
    default:
      stats.busy[0] += record.issue;
      finishScalarWait(core, time);
      return true;
  }
}

// The first round has been replayed. Further ones take as long each, until the first that starts after the
// arrival.
void Machine::finishPoll(Core& core, SimTime arrival) {
  SimTime end = core.decided;
  if (arrival > core.pollStart) {
    const SimTime period = std::max<SimTime>(core.decided - core.pollStart, 1);
    const SimTime rounds = (arrival - core.pollStart + period - 1) / period;
    end = core.pollStart + (rounds + 1) * period;
    LaunchStats& stats = core.part->stats;
    stats.peerWait += end - core.decided;
    stats.longestPeerWait = std::max(stats.longestPeerWait, end - core.decided);
    if (core.traced && trace_ != nullptr) traceExec(core, Pipe::S, "poll", core.pollStart, end, 0, -1);
  }
  finishScalarWait(core, end);
}

void Machine::scheduleWrite(const Core& core, std::uint32_t write, SimTime at) {
  pending.schedule(write);
  const std::uint64_t order = core.gid * 8u;
  heap_.push({at, (kApplyEvent << 62) | (order << 32) | applySequence_++, write});
}

void Machine::afterStep(Core& core) {
  if (core.epochTimes.size() > 65536) core.trimEpochs();
  if (core.state == BlockState::Full) {
    const auto starving = [&](Pipe p) {
      const Core::PipeState& pipe = core.pipe(p);
      return !pipe.inFlight && pipe.queue.head() >= pipe.commit;
    };
    const std::size_t count = core.recordCount();
    if (count < options.recordLimit / 2 ||
        (count < options.recordLimit * 32 && (starving(Pipe::Mte2) || starving(Pipe::Mte3)))) {
      core.state = BlockState::Ready;
      ready_.push_back(&core);
    }
    return;
  }
  if (core.state != BlockState::Finished) return;
  for (const Core::PipeState& pipe : core.pipes) {
    if (pipe.inFlight || !pipe.queue.empty()) return;
  }
  endBlock(core);
}

void Machine::beginTransfer(const Event& event) {
  const std::uint64_t order = event.key >> 32 & 0x3fffffff;
  Core& core = *cores_[order / 8];
  if (core.generation != event.what || core.part == nullptr) return;  // cancelled meanwhile
  if (order % 8 == kBlockEnd) {
    takeBlock(core, event.at);
    return;
  }
  const auto p = static_cast<Pipe>(order % 8);
  Core::PipeState& pipe = core.pipe(p);
  const Record& record = pipe.queue.front();
  if (p == Pipe::S) {  // a scalar load
    pipe.inFlight = false;
    core.pollStart = event.at;
    wakeAtTime(core);
    core.part->stats.busy[0] += record.issue;
    finishScalarWait(core, event.at + static_cast<SimTime>(record.value));
    replay(core, kAllPipes);
    return;
  }
  pipe.copyStart = event.at;
  pipe.flowing = true;
  if (record.small) core.pollStart = event.at;
  if (record.hold) wakeAtTime(core);
  transferPort->start(fabric, {core.card, event.at, record.path, record.value, coreKey(core, p)});
}

void Machine::completeTransfer(SimTime at, std::uint64_t key) {
  if ((key & kHostCopyKey) != 0) {
    const auto index = static_cast<std::uint32_t>(key & 0xffffffffu);
    HostCopy copy = std::move(copies_[index]);
    copies_[index] = {};
    freeCopies_.push_back(index);
    copy.done(at + copy.latency);
    return;
  }
  Core& core = *cores_[(key & 0xffffffu) / 8];
  const auto p = static_cast<Pipe>(key % 8);
  Core::PipeState& pipe = core.pipe(p);
  if (core.part == nullptr || coreKey(core, p) != key || !pipe.flowing) return;
  const Record record = pipe.queue.front();
  pipe.queue.pop();
  pipe.inFlight = pipe.flowing = false;
  const SimTime visible = at + fabric.info(record.path).latency;
  const SimTime free = std::max(at, pipe.copyStart + cyclePs(cluster.product.core.mteIssueCycles));
  pipe.busy = free;
  pipe.done = std::max(pipe.done, visible);
  LaunchStats& stats = core.part->stats;
  stats.busy[static_cast<std::size_t>(p)] += free - pipe.copyStart;
  const bool remote = record.peer != kNoPeer;
  if (p == Pipe::Mte2) {
    (remote ? stats.remoteLoadBytes : stats.localLoadBytes) += record.value;
  } else {
    (remote ? stats.remoteStoreBytes : stats.localStoreBytes) += record.value;
    if (record.set == kNoFlag && record.link != kNoLink) scheduleWrite(core, record.link, visible);
  }
  if (core.traced && trace_ != nullptr) {
    traceExec(core, p, p == Pipe::Mte2 ? "load" : "store", pipe.copyStart, free, record.value,
              remote ? record.peer : -1);
  }
  std::uint32_t runnable = 1u << static_cast<unsigned>(p);
  if (record.set != kNoFlag) wake(runnable, setFlagAfter(core, p, record));
  replay(core, runnable);
}

void Machine::resourceRate(int resource, SimTime at, double bytesPerSecond) {
  if (trace_ != nullptr) trace_->counter(resource, fabric.use(resource).name, at, bytesPerSecond);
}

}  // namespace vatlas::sim
