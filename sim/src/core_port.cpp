// The functional side of a core: effects on the bytes in program order, and the records of what was done.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core.h"
#include "machine.h"

namespace vatlas::sim {
namespace {

// Keeps the signal handler from abandoning a block inside the engine's own code.
class ApiScope {
 public:
  explicit ApiScope(Core& core) : running_(core.running) {
    running_.inApi.store(true, std::memory_order_relaxed);
    core.beginCall();
  }
  ~ApiScope() { running_.inApi.store(false, std::memory_order_relaxed); }
  ApiScope(const ApiScope&) = delete;
  ApiScope& operator=(const ApiScope&) = delete;

 private:
  RunningBlock& running_;
};

bool covers(const Core& core, const std::byte* address, std::uint64_t bytes) {
  return address >= core.ub() && bytes <= core.ubBytes() &&
         static_cast<std::uint64_t>(address - core.ub()) <= core.ubBytes() - bytes;
}

// First byte and length of what a strided side touches. Rows may run backwards.
struct Span {
  std::int64_t first = 0;
  std::uint64_t bytes = 0;
};

Span spanOf(const CopyShape& shape, std::int64_t stride) {
  const std::int64_t reach = stride * static_cast<std::int64_t>(shape.count - 1);
  return {std::min<std::int64_t>(0, reach),
          static_cast<std::uint64_t>(std::max(reach, -reach)) + shape.bytes};
}

std::byte* checkUb(Core& core, const void* ub, const CopyShape& shape, const char* what) {
  auto* base = static_cast<std::byte*>(const_cast<void*>(ub));
  const Span span = spanOf(shape, shape.ubStride);
  if (!covers(core, base + span.first, span.bytes)) {
    core.fault(KernelFault::BadAccess,
               fmt::format(
                   "{} of {} x {} bytes touches UB offset {} and needs {} bytes; a block has {} bytes of UB",
                   what, shape.count, shape.bytes, base + span.first - core.ub(), span.bytes, core.ubBytes()),
               ub);
  }
  return base;
}

// The card whose memory the rows touch. Rows far apart may lie in several allocations, not on several cards.
int checkRows(Core& core, const std::byte* base, const CopyShape& shape, const char* what) {
  const Span span = spanOf(shape, shape.gmStride);
  int card = core.machine.checkGlobal(base + span.first, span.bytes);
  if (card >= 0) return card;
  for (std::uint32_t row = 0; row < shape.count; ++row) {
    const std::byte* address = base + shape.gmStride * static_cast<std::int64_t>(row);
    card = core.machine.checkGlobal(address, shape.bytes);
    if (card < 0) {
      core.fault(KernelFault::BadAccess,
                 fmt::format("{} of {} bytes at global memory {}: the range is in no live allocation ({})",
                             what, shape.bytes, fmt::ptr(address), core.machine.memory.describe(address)),
                 address);
    }
  }
  return card;
}

void moveRows(std::byte* to, std::int64_t toStride, const std::byte* from, std::int64_t fromStride,
              const CopyShape& shape) {
  for (std::uint32_t row = 0; row < shape.count; ++row) {
    std::memcpy(to, from, shape.bytes);
    to += toStride;
    from += fromStride;
  }
}

// Reads of this size and less may be of flags. One that is made again waits until the replay has come to it,
// so that it sees what is there at that time: loops over several flags, and flags that are looked at now and
// then.
constexpr std::uint64_t kFlagBytes = 64;
// A loop round a poll has fewer instructions than this; a read with more behind it is no poll.
constexpr std::uint32_t kLongestPoll = 1u << 16;

}  // namespace

Core& asCore(CorePort& port) {
  return static_cast<Core&>(port);
}

constinit thread_local CorePort* currentCorePort = nullptr;

void setCurrentCore(Core* core) {
  currentCorePort = core;
}

void CorePort::outsideKernel() {
  throw std::logic_error("a kernel API call outside a running kernel block");
}

void CorePort::vector(VectorOp op, std::uint32_t repeats) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  core.mergeOrPushExec(core.machine.vectorTime(op, repeats), static_cast<std::uint8_t>(op));
}

void CorePort::vector(VectorOp op, std::uint32_t repeats, const VectorWork& work) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  core.machine.vectors.add(work);
  putOff_ = core.machine.vectors.size();
  core.mergeOrPushExec(core.machine.vectorTime(op, repeats), static_cast<std::uint8_t>(op));
}

void CorePort::settlePutOff(const void* ub, std::uint64_t bytes, bool writes) {
  Core& core = asCore(*this);
  core.machine.vectors.settle(ub, bytes, writes);
  putOff_ = core.machine.vectors.size();
}

void CorePort::copyIn(void* ub, const void* gm, const CopyShape& shape) {
  if (shape.count == 0 || shape.bytes == 0) return;
  Core& core = asCore(*this);
  const ApiScope scope(core);
  std::byte* to = checkUb(core, ub, shape, "a copy into UB");
  const Span inUb = spanOf(shape, shape.ubStride);
  settle(to + inUb.first, inUb.bytes, true);
  const auto* from = static_cast<const std::byte*>(gm);
  const int memory = checkRows(core, from, shape, "a copy from global memory");
  const auto address = reinterpret_cast<std::uintptr_t>(gm);
  const bool small = shape.count == 1 && shape.bytes <= PendingWrites::kLargest;
  if (small) {
    if (!core.beginSmallRead(address, shape.bytes, false)) {
      std::memcpy(to, gm, shape.bytes);
      return;
    }
  } else {
    core.closeOpenRead();
  }
  const Span span = spanOf(shape, shape.gmStride);
  Record record;
  record.kind = RecordKind::Copy;
  record.path = core.machine.loadPath(core.card, memory);
  record.peer = memory == core.card ? kNoPeer : static_cast<std::uint8_t>(memory);
  record.value = static_cast<std::uint32_t>(shape.total());  // UB is smaller than 4 GiB
  record.small = small;
  record.hold =
      (small && shape.bytes <= kFlagBytes && core.readsFlagAgain(address)) ||
      core.machine.pending.overlaps(reinterpret_cast<std::uintptr_t>(from + span.first), span.bytes);
  core.push(Pipe::Mte2, record, record.hold);
  if (record.hold) core.yield(BlockState::Time);
  moveRows(to, shape.ubStride, from, shape.gmStride, shape);
  if (small) std::memcpy(core.open.content.data(), to, shape.bytes);
}

void CorePort::copyOut(void* gm, const void* ub, const CopyShape& shape) {
  if (shape.count == 0 || shape.bytes == 0) return;
  Core& core = asCore(*this);
  const ApiScope scope(core);
  const std::byte* from = checkUb(core, ub, shape, "a copy out of UB");
  const Span inUb = spanOf(shape, shape.ubStride);
  settle(from + inUb.first, inUb.bytes, false);
  auto* to = static_cast<std::byte*>(gm);
  const int memory = checkRows(core, to, shape, "a copy to global memory");
  core.closeOpenRead();
  const Span span = spanOf(shape, shape.gmStride);
  const auto address = reinterpret_cast<std::uintptr_t>(to + span.first);
  Record record;
  record.kind = RecordKind::Copy;
  record.path = core.machine.storePath(core.card, memory);
  record.peer = memory == core.card ? kNoPeer : static_cast<std::uint8_t>(memory);
  record.value = static_cast<std::uint32_t>(shape.total());  // UB is smaller than 4 GiB
  if (shape.count == 1 && shape.bytes <= PendingWrites::kLargest) {
    record.link = core.machine.pending.add(address, from, shape.bytes, core.gid);
  } else {
    core.machine.pending.applyOwn(core.gid, address, span.bytes);
    moveRows(to, shape.gmStride, from, shape.ubStride, shape);
    core.machine.noteWrite(address, span.bytes);
  }
  core.push(Pipe::Mte3, record);
  core.endSlice();
}

namespace {
void checkFlag(Core& core, Pipe src, Pipe dst, int id) {
  if (id < 0 || id >= Core::kInternalFlag || src == dst) {
    core.fault(KernelFault::ApiMisuse,
               fmt::format("event id {} between two pipes; ids are 0 to {}, and the pipes differ", id,
                           Core::kInternalFlag - 1));
  }
}
}  // namespace

void CorePort::setFlag(Pipe src, Pipe dst, int id) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  checkFlag(core, src, dst, id);
  Record record;
  record.kind = RecordKind::SetFlag;
  record.set = flagCode(dst, static_cast<std::uint8_t>(id));
  core.push(src, record);
}

void CorePort::waitFlag(Pipe src, Pipe dst, int id) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  checkFlag(core, src, dst, id);
  Record record;
  record.kind = RecordKind::WaitFlag;
  record.wait = flagCode(src, static_cast<std::uint8_t>(id));
  if (dst == Pipe::S) {
    if (src == Pipe::V) core.settleAll();
    core.startEpoch(record);
  } else {
    core.push(dst, record);
  }
}

void CorePort::pipeBarrier(Pipe pipe) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  if (pipe == Pipe::S || pipe == Pipe::V) return;  // in order, with results at the end of each instruction
  Record record;
  record.kind = RecordKind::Barrier;
  core.push(pipe, record);
}

void CorePort::pipeBarrierAll() {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  core.settleAll();
  for (const Pipe pipe : {Pipe::V, Pipe::M, Pipe::Mte1, Pipe::Mte2, Pipe::Mte3, Pipe::Fix}) {
    if (core.pipe(pipe).queue.tail() == 0) continue;  // never used by this block
    Record set;
    set.kind = RecordKind::SetFlag;
    set.set = flagCode(Pipe::S, Core::kInternalFlag);
    core.push(pipe, set);
    Record wait;
    wait.kind = RecordKind::WaitFlag;
    wait.wait = flagCode(pipe, Core::kInternalFlag);
    core.startEpoch(wait);
  }
}

void CorePort::observeUb(const void* ub, std::uint32_t bytes) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  settle(ub, bytes, true);  // the caller may write as well
  if (core.open.valid) core.markDecision();
}

void CorePort::scalarLoad(const void* gm, std::uint32_t bytes) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  const auto address = reinterpret_cast<std::uintptr_t>(gm);
  CopyShape shape;
  shape.bytes = bytes;
  checkRows(core, static_cast<const std::byte*>(gm), shape, "a scalar load");
  const bool small = bytes <= PendingWrites::kLargest;
  if (!small) core.closeOpenRead();
  if (small && !core.beginSmallRead(address, bytes, true)) {
    core.markDecision();
    return;
  }
  Record record;
  record.kind = RecordKind::Load;
  record.value = static_cast<std::uint32_t>(core.machine.scalarLoadTime);
  core.startEpoch(record, true);
  core.yield(BlockState::Time);
  if (!small) return;
  std::memcpy(core.open.content.data(), gm, bytes);
  core.markDecision();
}

void CorePort::scalarStore(void* gm, const void* value, std::uint32_t bytes) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  const auto address = reinterpret_cast<std::uintptr_t>(gm);
  CopyShape shape;
  shape.bytes = bytes;
  const int memory = checkRows(core, static_cast<const std::byte*>(gm), shape, "a scalar store");
  core.closeOpenRead();
  Record record;
  record.kind = RecordKind::Store;
  record.path = core.machine.storePath(core.card, memory);
  record.value = static_cast<std::uint32_t>(core.machine.fabric.info(record.path).latency);
  record.link = core.machine.pending.add(address, value, bytes, core.gid);
  core.push(Pipe::S, record);
}

std::int64_t CorePort::systemCycle() {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  core.closeOpenRead();
  Record record;
  record.kind = RecordKind::Cycle;
  core.startEpoch(record, true);
  core.yield(BlockState::Time);
  const double ticks =
      static_cast<double>(core.cycleTime) * core.machine.cluster.product.systemCounterMhz / 1e6;
  return static_cast<std::int64_t>(ticks);
}

void CorePort::print(std::string_view text) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  if (core.machine.printSink) core.machine.printSink(core.card, core.blockIdx(), text);
}

void CorePort::fault(KernelFault kind, std::string_view what, const void* address) {
  Core& core = asCore(*this);
  if (!core.faulted) {
    core.faulted = true;
    core.faultKind = kind;
    core.faultText = what;
    core.faultAddress = address;
  }
  core.cancelled = true;  // met again at the next call if the kernel swallows it
  throw KernelUnwind{};
}

// Core
// ---------------------------------------------------------------------------------------------------------------

Core::Core(Machine& m, int cardNumber, int number, std::uint32_t globalId, std::byte* ub)
    : machine(m), card(cardNumber), index(number), gid(globalId) {
  deviceId_ = cardNumber;
  ub_ = ub;
  ubUsable_ = static_cast<std::uint32_t>(m.cluster.product.core.ubUsableBytes);
  switches_ = &m.cluster.switches;
}

void Core::beginCall() {
  running.progress.store(running.progress.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (running.stopRequested.load(std::memory_order_relaxed)) {
    running.stopRequested.store(false, std::memory_order_relaxed);
    fault(KernelFault::Endless, "the block computed too long between two API calls");
  }
  if (cancelled) {
    if (++unwinds > 1000) fiber->abandon();  // the kernel swallows what would end it
    throw KernelUnwind{};
  }
  scalarCost();
}

void Core::scalarCost() {
  issue += static_cast<std::uint32_t>(machine.scalarIssue);
  if (issue < (1u << 31)) return;
  Record tick;  // the offset is about to overflow: a wait for nothing starts a new count
  tick.kind = RecordKind::Barrier;
  startEpoch(tick);
}

// Makes one record of a wait and the instruction behind it, or of an instruction and the flag behind it.
bool Core::join(Pipe p, const Record& record) {
  const std::uint32_t bit = 1u << static_cast<unsigned>(p);
  if ((joinable & bit) == 0) return false;
  RecordQueue& queue = pipe(p).queue;
  Record& last = queue.at(queue.tail() - 1);
  const auto isInstruction = [](const Record& r) {
    return r.kind == RecordKind::Exec || r.kind == RecordKind::Copy;
  };
  if (record.kind == RecordKind::SetFlag && isInstruction(last) && last.set == kNoFlag &&
      last.link == kNoLink) {
    last.set = record.set;
    last.link = issue;
    joinable &= ~bit;
    return true;
  }
  if (last.kind != RecordKind::WaitFlag || !isInstruction(record)) return false;
  const std::uint8_t wait = last.wait;
  last = record;
  last.wait = wait;
  last.epoch = epoch;
  last.issue = issue;
  return true;
}

void Core::push(Pipe p, const Record& record, bool thenWaits) {
  if (open.discarding) return;
  if (!join(p, record)) {
    RecordQueue& queue = pipe(p).queue;
    queue.push(record);
    ++recordsPushed;
    Record& stored = queue.at(queue.tail() - 1);
    stored.epoch = epoch;
    stored.issue = issue;
    joinable |= 1u << static_cast<unsigned>(p);
  }
  if (open.valid && open.observed && ++sinceOpen > kLongestPoll) closeOpenRead();
  if (p == Pipe::V) mergeOpen = false;
  if (!thenWaits && tooFarAhead()) yield(BlockState::Full);
}

// Back-to-back vector instructions become one record. That is exact when each is issued before its
// predecessor ends.
void Core::mergeOrPushExec(std::uint64_t duration, std::uint8_t op) {
  if (open.discarding) return;
  RecordQueue& queue = pipe(Pipe::V).queue;
  if (mergeOpen && !traced && issue - lastMergeIssue <= lastMergeDuration &&
      queue.at(queue.tail() - 1).value + duration <= UINT32_MAX) {
    queue.at(queue.tail() - 1).value += static_cast<std::uint32_t>(duration);
  } else {
    Record record;
    record.kind = RecordKind::Exec;
    record.value = static_cast<std::uint32_t>(std::min<std::uint64_t>(duration, UINT32_MAX));
    record.op = op;
    push(Pipe::V, record);
    mergeOpen = !queue.empty();
  }
  lastMergeIssue = issue;
  lastMergeDuration = duration;
}

void Core::startEpoch(const Record& record, bool thenWaits) {
  if (open.discarding) return;
  mergeOpen = false;
  joinable = 0;
  push(Pipe::S, record, thenWaits);
  joinable = 0;
  ++epoch;
  issue = 0;
}

void Core::trimEpochs() {
  std::uint32_t oldest = epoch;
  if (open.valid && open.observed) oldest = std::min(oldest, open.epoch);
  for (PipeState& p : pipes) {
    if (!p.queue.empty()) oldest = std::min(oldest, p.queue.front().epoch);
  }
  oldest = std::min(oldest, epochBase + static_cast<std::uint32_t>(epochTimes.size()) - 1);
  epochTimes.erase(epochTimes.begin(), epochTimes.begin() + (oldest - epochBase));
  epochBase = oldest;
}

std::size_t Core::recordCount() const {
  std::size_t count = 0;
  for (const PipeState& p : pipes) count += p.queue.size();
  return count;
}

// Ahead enough to stop, and both DMA queues hold work: the replay can then not need a request that is not
// there yet.
bool Core::tooFarAhead() const {
  if (open.valid && open.observed) return false;  // bounded by kLongestPoll
  const std::size_t limit = machine.options.recordLimit;
  const auto& in = pipes[static_cast<std::size_t>(Pipe::Mte2)];
  const auto& out = pipes[static_cast<std::size_t>(Pipe::Mte3)];
  if (in.queue.size() + out.queue.size() + pipes[static_cast<std::size_t>(Pipe::V)].queue.size() < limit)
    return false;
  const std::size_t total = recordCount();
  if (total < limit) return false;
  if (total >= limit * 64) return true;
  return !in.queue.empty() && !out.queue.empty();
}

void Core::settleAll() {
  if (putOff_ == 0) return;
  machine.vectors.settleAll();
  putOff_ = 0;
}

void Core::yield(BlockState why) {
  settleAll();
  joinable = 0;
  const bool watches = why == BlockState::Full && open.valid;
  if (watches) machine.waitForWrite(*this);
  state = why;
  running.inApi.store(true, std::memory_order_relaxed);
  fiber->suspend();
  running.inApi.store(true, std::memory_order_relaxed);
  if (watches) machine.stopWaiting(*this);
  if (cancelled) throw KernelUnwind{};
}

// Lets the other cards' blocks of this number work on the memory that is in the cache now.
void Core::endSlice() {
  if (!machine.slicing() || recordsPushed - sliceStart < kSlice || open.valid || open.discarding) return;
  yield(BlockState::Slice);
}

bool Core::repeatsOpenRead(std::uintptr_t address, std::uint64_t bytes, bool scalar) const {
  return open.valid && open.observed && open.address == address && open.bytes == bytes &&
         open.scalar == scalar;
}

bool Core::readsFlagAgain(std::uintptr_t address) {
  if (std::find(flagReads.begin(), flagReads.end(), address) != flagReads.end()) return true;
  flagReads[nextFlagRead++ % flagReads.size()] = address;
  return false;
}

// False: the read repeats one that has been looked at; what it waits for has happened, and it leaves no
// record.
bool Core::beginSmallRead(std::uintptr_t address, std::uint64_t bytes, bool scalar) {
  if (repeatsOpenRead(address, bytes, scalar)) awaitChange();
  if (open.discarding) return false;
  openRead(address, bytes, scalar);
  return true;
}

// The kernel goes on to something else: what it saw last was what it waited for.
void Core::closeOpenRead() {
  if (open.valid && open.polling) {
    Record& poll = pipe(Pipe::S).queue.at(open.poll);
    poll.setTime(open.arrival);
    poll.released = true;
    if (open.discarding) {
      epoch = open.epoch;
      issue = open.issue;
      joinable = 0;
    }
  }
  open.valid = open.polling = open.discarding = false;
}

void Core::rollBack() {
  for (std::size_t p = 0; p < kPipeCount; ++p) pipes[p].queue.truncate(open.tails[p]);
  epoch = open.epoch;
  issue = open.issue;
  mergeOpen = false;
  joinable = 0;
}

// The kernel looks at what the open read brought.
void Core::markDecision() {
  if (open.discarding) {  // a repeated round ends here
    open.discarding = false;
    rollBack();
    return;
  }
  if (open.observed) return;
  Record record;
  record.kind = RecordKind::Decide;
  startEpoch(record);
  open.observed = true;
  sinceOpen = 0;
  for (std::size_t p = 0; p < kPipeCount; ++p) open.tails[p] = pipes[p].queue.tail();
  open.epoch = epoch;
  open.issue = issue;
}

// The kernel looks again at what was not there yet. Sleeps until the bytes are no longer what it saw. A block
// that is woken with nothing changed turns once for real.
void Core::awaitChange() {
  rollBack();
  if (!open.polling) {
    Record record;
    record.kind = RecordKind::Poll;
    open.observed = false;  // not part of what can be taken back
    startEpoch(record);
    open.observed = true;
    open.poll = pipe(Pipe::S).queue.tail() - 1;
    open.polling = true;
    for (std::size_t p = 0; p < kPipeCount; ++p) open.tails[p] = pipes[p].queue.tail();
    open.epoch = epoch;
    open.issue = issue;
  }
  const auto* memory = reinterpret_cast<const std::byte*>(open.address);
  const auto changed = [&] { return std::memcmp(open.content.data(), memory, open.bytes) != 0; };
  bool waited = false;
  while (!changed()) {
    waited = true;
    machine.waitForWrite(*this);
    const int before = spurious;
    yield(BlockState::Memory);
    if (spurious != before && !changed()) {
      open.arrival = 0;
      closeOpenRead();
      return;
    }
  }
  std::memcpy(open.content.data(), memory, open.bytes);
  open.arrival = waited || open.changed < 0 ? machine.now : open.changed;
  open.changed = -1;
  open.discarding = true;
  sinceOpen = 0;
}

void Core::openRead(std::uintptr_t address, std::uint64_t bytes, bool scalar) {
  closeOpenRead();
  open.valid = true;
  open.changed = -1;
  open.observed = false;
  open.scalar = scalar;
  open.address = address;
  open.bytes = bytes;
}

}  // namespace vatlas::sim
