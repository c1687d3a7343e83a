// The functional side of a core: effects on the bytes in program order, and the records of what was done.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core.h"
#include "machine.h"

namespace vatlas::sim {
namespace {

// The core whose block runs on this thread; set around every switch onto a block.
thread_local Core* currentCore __attribute__((tls_model("initial-exec"))) = nullptr;

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
               fmt::format("{} of {} x {} bytes touches UB offset {} and needs {} bytes; a block has {} bytes of UB",
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
                 fmt::format("{} of {} bytes at global memory {}: the range is in no live allocation ({})", what,
                             shape.bytes, fmt::ptr(address), core.machine.memory.describe(address)),
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

// A loop round a poll has fewer instructions than this; a read with more behind it is no poll.
constexpr std::uint32_t kLongestPoll = 1u << 16;

[[noreturn]] void outsideKernel() { throw std::logic_error("a kernel API call outside a running kernel block"); }

}  // namespace

Core& asCore(CorePort& port) { return static_cast<Core&>(port); }

void setCurrentCore(Core* core) { currentCore = core; }

CorePort& CorePort::current() {
  if (currentCore == nullptr) outsideKernel();
  return *currentCore;
}

CorePort* CorePort::currentOrNull() noexcept { return currentCore; }

void CorePort::vector(VectorOp op, std::uint32_t repeats) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  core.mergeOrPushExec(core.machine.vectorTime(op, repeats), static_cast<std::uint8_t>(op));
}

void CorePort::copyIn(void* ub, const void* gm, const CopyShape& shape) {
  if (shape.count == 0 || shape.bytes == 0) return;
  Core& core = asCore(*this);
  const ApiScope scope(core);
  std::byte* to = checkUb(core, ub, shape, "a copy into UB");
  const auto* from = static_cast<const std::byte*>(gm);
  const int memory = checkRows(core, from, shape, "a copy from global memory");
  const auto address = reinterpret_cast<std::uintptr_t>(gm);
  const bool small = shape.count == 1 && shape.bytes <= SyncMap::kLargest;
  if (small) {
    if (core.repeatsOpenRead(address, shape.bytes, false)) core.awaitChange();
    core.openRead(address, shape.bytes, false);
  } else {
    core.closeOpenRead();
  }
  moveRows(to, shape.ubStride, from, shape.gmStride, shape);
  Record record;
  record.kind = RecordKind::Copy;
  record.path = core.machine.loadPath(core.card, memory);
  record.peer = memory == core.card ? std::uint16_t{0xffff} : static_cast<std::uint16_t>(memory);
  record.value = shape.total();
  record.link = small ? core.open.link : kNoLink;
  core.push(Pipe::Mte2, record);
}

void CorePort::copyOut(void* gm, const void* ub, const CopyShape& shape) {
  if (shape.count == 0 || shape.bytes == 0) return;
  Core& core = asCore(*this);
  const ApiScope scope(core);
  const std::byte* from = checkUb(core, ub, shape, "a copy out of UB");
  auto* to = static_cast<std::byte*>(gm);
  const int memory = checkRows(core, to, shape, "a copy to global memory");
  core.closeOpenRead();
  moveRows(to, shape.gmStride, from, shape.ubStride, shape);
  const Span span = spanOf(shape, shape.gmStride);
  const auto address = reinterpret_cast<std::uintptr_t>(to + span.first);
  Record record;
  record.kind = RecordKind::Copy;
  record.path = core.machine.storePath(core.card, memory);
  record.peer = memory == core.card ? std::uint16_t{0xffff} : static_cast<std::uint16_t>(memory);
  record.value = shape.total();
  record.link = core.machine.syncMap.addWrite(address, span.bytes, core.gid);
  core.machine.noteWrite(address, span.bytes);
  core.push(Pipe::Mte3, record);
}

namespace {
void checkFlag(Core& core, Pipe src, Pipe dst, int id) {
  if (id < 0 || id >= Core::kInternalFlag || src == dst) {
    core.fault(KernelFault::ApiMisuse, fmt::format("event id {} between two pipes; ids are 0 to {}, and the pipes differ",
                                                   id, Core::kInternalFlag - 1));
  }
}
}  // namespace

void CorePort::setFlag(Pipe src, Pipe dst, int id) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  checkFlag(core, src, dst, id);
  Record record;
  record.kind = RecordKind::SetFlag;
  record.other = dst;
  record.flag = static_cast<std::uint8_t>(id);
  core.push(src, record);
}

void CorePort::waitFlag(Pipe src, Pipe dst, int id) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  checkFlag(core, src, dst, id);
  Record record;
  record.kind = RecordKind::WaitFlag;
  record.other = src;
  record.flag = static_cast<std::uint8_t>(id);
  if (dst == Pipe::S) {
    core.startEpoch(record);
  } else {
    core.push(dst, record);
  }
}

void CorePort::pipeBarrier(Pipe pipe) {
  if (pipe == Pipe::S) return;  // the scalar unit is in order
  Core& core = asCore(*this);
  const ApiScope scope(core);
  Record record;
  record.kind = RecordKind::Barrier;
  core.push(pipe, record);
}

void CorePort::pipeBarrierAll() {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  for (const Pipe pipe : {Pipe::V, Pipe::M, Pipe::Mte1, Pipe::Mte2, Pipe::Mte3, Pipe::Fix}) {
    if (core.pipe(pipe).queue.tail() == 0) continue;  // never used by this block
    Record record;
    record.kind = RecordKind::SetFlag;
    record.other = Pipe::S;
    record.flag = Core::kInternalFlag;
    core.push(pipe, record);
    record.kind = RecordKind::WaitFlag;
    record.other = pipe;
    core.startEpoch(record);
  }
}

void CorePort::observeUb(const void*, std::uint32_t) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  if (!core.open.valid || core.open.observed) return;
  core.open.observed = true;
  if (core.open.link == kNoLink) return;
  // The wait moves from the read to the decision: a poll goes round its loop until the write has arrived.
  Record& read = core.pipe(Pipe::Mte2).queue.at(core.open.record);
  read.link = kNoLink;
  read.pollRead = true;
  Record record;
  record.kind = RecordKind::Poll;
  record.link = core.open.link;
  core.startEpoch(record);
}

void CorePort::scalarLoad(const void* gm, std::uint32_t bytes) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  const auto address = reinterpret_cast<std::uintptr_t>(gm);
  CopyShape shape;
  shape.bytes = bytes;
  checkRows(core, static_cast<const std::byte*>(gm), shape, "a scalar load");
  if (core.repeatsOpenRead(address, bytes, true)) core.awaitChange();
  core.openRead(address, bytes, true);
  Record record;
  record.kind = RecordKind::Load;
  record.value = static_cast<std::uint64_t>(core.machine.scalarLoadTime);
  record.link = core.open.link;
  core.startEpoch(record);
}

void CorePort::scalarStore(void* gm, const void* value, std::uint32_t bytes) {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  const auto address = reinterpret_cast<std::uintptr_t>(gm);
  CopyShape shape;
  shape.bytes = bytes;
  const int memory = checkRows(core, static_cast<const std::byte*>(gm), shape, "a scalar store");
  core.closeOpenRead();
  std::memcpy(gm, value, bytes);
  Record record;
  record.kind = RecordKind::Store;
  record.path = core.machine.storePath(core.card, memory);
  record.value = static_cast<std::uint64_t>(core.machine.fabric.info(record.path).latency);
  record.link = core.machine.syncMap.addWrite(address, bytes, core.gid);
  core.machine.noteWrite(address, bytes);
  core.push(Pipe::S, record);
}

std::int64_t CorePort::systemCycle() {
  Core& core = asCore(*this);
  const ApiScope scope(core);
  core.closeOpenRead();
  Record record;
  record.kind = RecordKind::Cycle;
  core.startEpoch(record);
  core.yield(BlockState::Time);
  const double ticks = static_cast<double>(core.cycleTime) * core.machine.cluster.product.systemCounterMhz / 1e6;
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

// Core ---------------------------------------------------------------------------------------------------------------

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

void Core::push(Pipe p, const Record& record) {
  RecordQueue& queue = pipe(p).queue;
  queue.push(record);
  Record& stored = queue.at(queue.tail() - 1);
  stored.epoch = epoch;
  stored.issue = issue;
  if (open.valid && ++sinceOpen > kLongestPoll) closeOpenRead();
  if (p == Pipe::V) mergeOpen = false;
  if (tooFarAhead()) yield(BlockState::Full);
}

// Back-to-back vector instructions become one record. That is exact when each is issued before its predecessor ends.
void Core::mergeOrPushExec(std::uint64_t duration, std::uint8_t op) {
  RecordQueue& queue = pipe(Pipe::V).queue;
  if (mergeOpen && !traced && issue - lastMergeIssue <= lastMergeDuration) {
    queue.at(queue.tail() - 1).value += duration;
  } else {
    Record record;
    record.kind = RecordKind::Exec;
    record.value = duration;
    record.flag = op;
    push(Pipe::V, record);
    mergeOpen = !queue.empty();
  }
  lastMergeIssue = issue;
  lastMergeDuration = duration;
}

void Core::startEpoch(const Record& record) {
  mergeOpen = false;
  push(Pipe::S, record);
  ++epoch;
  issue = 0;
}

void Core::trimEpochs() {
  std::uint32_t oldest = epoch;
  if (open.valid) oldest = std::min(oldest, open.epoch);
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

// Ahead enough to stop, and both DMA queues hold work: the replay can then not need a request that is not there yet.
bool Core::tooFarAhead() const {
  const std::size_t limit = machine.options.recordLimit;
  const auto& in = pipes[static_cast<std::size_t>(Pipe::Mte2)];
  const auto& out = pipes[static_cast<std::size_t>(Pipe::Mte3)];
  if (in.queue.size() + out.queue.size() + pipes[static_cast<std::size_t>(Pipe::V)].queue.size() < limit) return false;
  const std::size_t total = recordCount();
  if (total < limit) return false;
  if (total >= limit * 64) return true;
  const std::uint64_t inEnd = open.valid ? open.tails[static_cast<std::size_t>(Pipe::Mte2)] : in.queue.tail();
  const std::uint64_t outEnd = open.valid ? open.tails[static_cast<std::size_t>(Pipe::Mte3)] : out.queue.tail();
  return inEnd > in.queue.head() && outEnd > out.queue.head();
}

void Core::yield(BlockState why) {
  state = why;
  running.inApi.store(true, std::memory_order_relaxed);
  fiber->suspend();
  running.inApi.store(true, std::memory_order_relaxed);
  if (cancelled) throw KernelUnwind{};
}

bool Core::repeatsOpenRead(std::uintptr_t address, std::uint64_t bytes, bool scalar) const {
  return open.valid && open.address == address && open.bytes == bytes && open.scalar == scalar &&
         (open.observed || scalar);
}

// Called when a read repeats the open one. Waits until what it would see has changed, and takes back the failed round:
// the replay works out the rounds by arithmetic. A block woken with nothing changed keeps its round as a real one.
void Core::awaitChange() {
  const auto* memory = reinterpret_cast<const std::byte*>(open.address);
  const auto changed = [&] { return std::memcmp(open.content.data(), memory, open.bytes) != 0; };
  while (!changed()) {
    machine.waitForWrite(*this);
    const int before = spurious;
    yield(BlockState::Memory);
    if (spurious != before && !changed()) {
      open.valid = false;
      return;
    }
  }
  for (std::size_t p = 0; p < kPipeCount; ++p) pipes[p].queue.truncate(open.tails[p]);
  epoch = open.epoch;
  issue = open.issue;
  mergeOpen = false;
  if (open.link != kNoLink && machine.syncMap.dependency(open.link).remaining == 0) machine.syncMap.release(open.link);
  open.link = kNoLink;
}

void Core::openRead(std::uintptr_t address, std::uint64_t bytes, bool scalar) {
  open.valid = true;
  sinceOpen = 0;
  open.observed = scalar;
  open.scalar = scalar;
  open.address = address;
  open.bytes = bytes;
  open.record = pipe(Pipe::Mte2).queue.tail();
  for (std::size_t p = 0; p < kPipeCount; ++p) open.tails[p] = pipes[p].queue.tail();
  open.epoch = epoch;
  open.issue = issue;
  mergeOpen = false;
  std::memcpy(open.content.data(), reinterpret_cast<const void*>(address), bytes);
  open.link = machine.syncMap.dependOn(address, bytes, gid);
}

}  // namespace vatlas::sim
