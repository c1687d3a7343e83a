// Launches: parts onto cores, blocks onto fibers, ends and faults.
#include <fmt/format.h>
#include <link.h>

#include <algorithm>

#include "machine.h"

namespace vatlas::sim {

void setCurrentCore(Core* core);

namespace {

// The loaded object that holds an address, for the watchdog.
struct ImageSearch {
  std::uintptr_t address;
  std::uintptr_t begin = 0, end = 0;
};

int matchImage(struct dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<ImageSearch*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (search.address >= begin && search.address < begin + segment.p_memsz) {
      search.begin = begin;
      search.end = begin + segment.p_memsz;
      return 1;
    }
  }
  return 0;
}

const char* faultName(KernelFault kind) {
  switch (kind) {
    case KernelFault::BadAccess:
      return "bad memory access";
    case KernelFault::Misaligned:
      return "misaligned access";
    case KernelFault::StackOverflow:
      return "stack overflow";
    case KernelFault::DivisionByZero:
      return "integer division by zero";
    case KernelFault::IllegalInstruction:
      return "illegal instruction";
    case KernelFault::Exception:
      return "the kernel threw an exception";
    case KernelFault::Endless:
      return "the block computes without end";
    case KernelFault::ApiMisuse:
      return "misuse of a kernel API call";
    case KernelFault::WindowOverrun:
      return "the communicator's window is too small";
  }
  return "fault";
}

}  // namespace

void Core::startBlock(LaunchPart& owner, int block, SimTime at) {
  part = &owner;
  blockIdx_ = block;
  blockNum_ = owner.spec.blocks;
  hcclContext_ = owner.spec.hcclContext;
  apiState_ = nullptr;
  state = BlockState::Ready;
  cancelled = faulted = mergeOpen = entered = false;
  unwinds = 0;
  flagReads.fill(0);
  nextFlagRead = 0;
  epoch = issue = 0;
  joinable = 0;
  spurious = 0;
  open.valid = open.polling = open.discarding = false;
  running.imageBegin = owner.imageBegin;
  running.imageEnd = owner.imageEnd;
  running.trapped = false;
  running.stopRequested = false;
  running.inApi = false;
  for (PipeState& p : pipes) {
    p.queue.clear();
    p.commit = 0;
    p.busy = p.done = at;
    p.inFlight = p.flowing = false;
  }
  for (auto& pair : flags) {
    if (pair) {
      for (FlagQueue& queue : *pair) queue.clear();
    }
  }
  epochTimes.assign(1, at);
  epochBase = 0;
  ++generation;
  sequence = 0;
}

void Machine::launch(std::vector<KernelLaunch> parts, LaunchDone done) {
  auto launch = std::make_unique<Launch>();
  launch->id = nextLaunch_++;
  launch->done = std::move(done);
  launch->open = parts.size();
  for (KernelLaunch& spec : parts) {
    auto part = std::make_unique<LaunchPart>();
    part->spec = std::move(spec);
    part->launch = launch.get();
    part->number = launch->parts.size();
    ImageSearch search{reinterpret_cast<std::uintptr_t>(part->spec.entry)};
    dl_iterate_phdr(matchImage, &search);
    part->imageBegin = search.begin;
    part->imageEnd = search.end;
    launch->parts.push_back(std::move(part));
  }
  Launch& stored = *launch;
  launches_.emplace(stored.id, std::move(launch));
  for (const auto& part : stored.parts) {
    LaunchPart* raw = part.get();
    const std::uint64_t id = stored.id;
    const SimTime begin = part->spec.start + cluster.product.launch.dispatch;
    schedule(begin, part->spec.order, [this, raw, id, begin] {
      if (launches_.count(id) == 0 || raw->ended) return;
      raw->taskStart = begin;
      queuePart(*raw);
    });
  }
}

// Launches of one card run one after another, in the order of their arrival.
void Machine::queuePart(LaunchPart& part) {
  waitingParts_[static_cast<std::size_t>(part.spec.device)].push_back(&part);
  startWaiting(part.spec.device);
}

void Machine::startWaiting(int card) {
  auto& queue = waitingParts_[static_cast<std::size_t>(card)];
  if (queue.empty() || busyCores_[static_cast<std::size_t>(card)] != 0) return;
  const SimTime free = cardFree_[static_cast<std::size_t>(card)];
  if (free > now) {  // the replay has gone ahead: the last launch ends then
    schedule(free, queue.front()->spec.order, [this, card] { startWaiting(card); });
    return;
  }
  LaunchPart* next = queue.front();
  queue.pop_front();
  next->taskStart = std::max(next->taskStart, free);
  beginPart(*next);
}

void Machine::beginPart(LaunchPart& part) {
  const LaunchConfig& costs = cluster.product.launch;
  const int cores = std::min(part.spec.blocks, cluster.product.aivCount);
  part.started = true;
  part.nextBlock = 0;
  part.stats.coresUsed = cores;
  if (part.spec.timeout != kNever) {
    part.deadline = part.taskStart + part.spec.timeout;
    timers_.emplace(part.deadline, part.launch->id, part.number);
  }
  const SimTime first = part.taskStart + costs.hardwareInit + costs.softwareInit;
  part.lastEnd = part.dispatch = first;
  for (int i = 0; i < cores; ++i) {
    startNextBlock(*cores_[static_cast<std::size_t>(part.spec.device * cluster.product.aivCount + i)], part,
                   first);
  }
}

// Blocks are handed out one after another, each `perBlock` after the one before; the first at once.
void Machine::startNextBlock(Core& core, LaunchPart& part, SimTime free) {
  const SimTime at = std::max(free, part.dispatch);
  part.dispatch = at + cluster.product.launch.perBlock;
  core.traced = trace_ != nullptr && trace_->wantsCore(core.card, core.index);
  core.startBlock(part, part.nextBlock++, at);
  ++part.runningBlocks;
  ++busyCores_[static_cast<std::size_t>(core.card)];
  if (!core.fiber) core.fiber = fibers_.take();
  core.running.fiber = core.fiber.get();
  core.fiber->prepare(&Machine::blockMain, &core);
  ready_.push_back(&core);
}

void Machine::endBlock(Core& core) {
  LaunchPart& part = *core.part;
  SimTime end = core.epochTimes.back() + core.issue;  // the last scalar work
  for (const Core::PipeState& pipe : core.pipes) end = std::max({end, pipe.done, pipe.busy});
  part.lastEnd = std::max(part.lastEnd, end);
  core.state = BlockState::None;
  if (part.nextBlock < part.spec.blocks) {
    // Who takes the next block is decided in time, not in the order of the replay.
    const std::uint64_t order = core.gid * 8u + kBlockEnd;
    heap_.push({end, (kCoreEvent << 62) | (order << 32) | core.sequence++, core.generation});
    return;
  }
  --part.runningBlocks;
  --busyCores_[static_cast<std::size_t>(core.card)];
  core.part = nullptr;
  fibers_.give(std::move(core.fiber));
  core.fiber.reset();
  if (part.runningBlocks == 0) endPart(part, std::nullopt, part.lastEnd);
}

// A core that has finished a block, at that time: the next one, if there still is one.
void Machine::takeBlock(Core& core, SimTime at) {
  LaunchPart& part = *core.part;
  if (part.nextBlock >= part.spec.blocks) {
    endBlock(core);
    return;
  }
  --part.runningBlocks;
  --busyCores_[static_cast<std::size_t>(core.card)];
  startNextBlock(core, part, at);
}

void Machine::endPart(LaunchPart& part, std::optional<FaultReport> fault, SimTime at) {
  part.ended = true;
  Launch& launch = *part.launch;
  if (part.deadline != kNever) timers_.erase({part.deadline, launch.id, part.number});
  LaunchResult result;
  result.start = part.taskStart;
  result.end = at + cluster.product.launch.report;
  result.fault = std::move(fault);
  result.stats = part.stats;
  if (trace_ != nullptr && part.started) {
    TraceSpan span;
    span.card = part.spec.device;
    span.stream = part.spec.order.stream;
    span.name = part.spec.name;
    span.start = part.taskStart;
    span.end = at;
    trace_->span(span);
  }
  const std::size_t number = part.number;
  const int card = part.spec.device;
  const bool started = part.started;
  const LaunchDone done = launch.done;
  const EventOrder order{card, 0, launch.id};
  if (--launch.open == 0) launches_.erase(launch.id);  // `part` and `launch` are gone after this
  if (started) cardFree_[static_cast<std::size_t>(card)] = at;
  startWaiting(card);
  schedule(result.end, order, [done, number, result] { done(number, result); });
}

FaultReport Machine::reportFault(const Core& core) const {
  FaultReport report;
  report.kind = core.faultKind;
  report.kernel = core.part->spec.name;
  report.device = core.card;
  report.block = core.blockIdx();
  report.address = core.faultAddress;
  report.what = fmt::format("{} in kernel {}, block {} of {} on device {}: {}", faultName(core.faultKind),
                            report.kernel, report.block, core.blockNum(), report.device, core.faultText);
  return report;
}

// Takes a block off its core. One that is in the middle of its kernel is resumed once more, to unwind.
void Machine::stopCore(Core& core) {
  if (core.part == nullptr) return;
  if (core.entered && core.state != BlockState::Finished && core.state != BlockState::None) {
    core.cancelled = true;
    switchTo(core);
  }
  for (auto waiter = memoryWaiters_.begin(); waiter != memoryWaiters_.end();) {
    waiter = waiter->second == &core ? memoryWaiters_.erase(waiter) : std::next(waiter);
  }
  ready_.erase(std::remove(ready_.begin(), ready_.end(), &core), ready_.end());
  pending.drop(core.gid);
  core.state = BlockState::None;
  ++core.generation;
  for (Core::PipeState& pipe : core.pipes) {
    pipe.queue.clear();
    pipe.commit = 0;
    pipe.inFlight = pipe.flowing = false;
  }
  --core.part->runningBlocks;
  --busyCores_[static_cast<std::size_t>(core.card)];
  core.part = nullptr;
  if (core.fiber) fibers_.give(std::move(core.fiber));
  core.fiber.reset();
}

// One block's fault ends every part: the others would wait for it for ever.
void Machine::failLaunch(Launch& launch, FaultReport report, SimTime at) {
  for (const auto& core : cores_) {
    if (core->part != nullptr && core->part->launch == &launch) stopCore(*core);
  }
  const std::uint64_t id = launch.id;
  std::vector<LaunchPart*> open;
  for (const auto& part : launch.parts) {
    if (!part->ended) open.push_back(part.get());
  }
  for (LaunchPart* part : open) {
    auto& queue = waitingParts_[static_cast<std::size_t>(part->spec.device)];
    queue.erase(std::remove(queue.begin(), queue.end(), part), queue.end());
  }
  for (LaunchPart* part : open) {
    if (launches_.count(id) == 0) return;
    endPart(*part, report, std::max(at, part->taskStart));
  }
}

void Machine::fireTimer() {
  const auto [at, id, number] = *timers_.begin();
  now = at;
  expire(*launches_.at(id)->parts[number]);
}

void Machine::expire(LaunchPart& part) {
  FaultReport report;
  report.timedOut = true;
  report.kind = KernelFault::Endless;
  report.kernel = part.spec.name;
  report.device = part.spec.device;
  report.block = -1;
  report.what = fmt::format("kernel {} on device {} had not ended {} ms of simulated time after its start{}",
                            part.spec.name, part.spec.device, part.spec.timeout / kMillisecond,
                            memoryWaiters_.empty() ? "" : "; blocks wait for memory that nobody writes");
  failLaunch(*part.launch, std::move(report), part.deadline);
}

void Machine::cancelAll() {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, launch] : launches_) ids.push_back(id);
  for (const std::uint64_t id : ids) {
    const auto found = launches_.find(id);
    if (found == launches_.end()) continue;
    FaultReport report;
    report.kernel = found->second->parts.front()->spec.name;
    report.device = found->second->parts.front()->spec.device;
    report.what = fmt::format("kernel {} was cancelled", report.kernel);
    failLaunch(*found->second, std::move(report), now);
  }
}

}  // namespace vatlas::sim
