// Blocks on their stacks: who runs, how far, and how a block ends.
#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "machine.h"

namespace vatlas::sim {

void setCurrentCore(Core* core);

namespace {

// A loop that polls for something nobody will write turns this often for real before it is left to its
// timeout: enough for kernels that give up by themselves after a few rounds.
constexpr int kSpuriousRounds = 64;

void runKernel(Core& core) {
  try {
    core.part->spec.entry(core.part->spec.args.data());
  } catch (const KernelUnwind&) {
    // cancelled, or a fault that the core has noted
  } catch (const std::exception& error) {
    core.faulted = true;
    core.faultKind = KernelFault::Exception;
    core.faultText = error.what();
  } catch (...) {
    core.faulted = true;
    core.faultKind = KernelFault::Exception;
    core.faultText = "an exception that is no std::exception";
  }
}

}  // namespace

void Machine::blockMain(void* core) {
  runKernel(*static_cast<Core*>(core));
}

bool Machine::switchTo(Core& core) {
  guard_.arm();
  core.entered = true;
  setCurrentCore(&core);
  guard_.setRunning(&core.running);
  const bool alive = core.fiber->resume();
  guard_.setRunning(nullptr);
  setCurrentCore(nullptr);
  vectors.discard();  // of a block that is over: nothing reads its UB any more
  core.forgetPutOff();
  return alive;
}

// Runs a block until it waits or ends, and replays what it has left.
void Machine::resumeBlock(Core& core) {
  core.state = BlockState::None;
  core.sliceStart = core.recordsPushed;
  const bool alive = switchTo(core);
  if (core.running.trapped && !core.faulted) {
    core.faulted = true;
    core.faultKind = core.running.kind;
    core.faultAddress = core.running.address;
    core.faultText =
        core.faultKind == KernelFault::Exception
            ? std::string("an exception left a noexcept function")
            : fmt::format("address {} ({})", fmt::ptr(core.faultAddress), memory.describe(core.faultAddress));
  }
  if (!alive) {
    core.state = BlockState::Finished;
    core.closeOpenRead();
  }
  if (core.faulted) {
    failLaunch(*core.part->launch, reportFault(core), std::max(now, core.epochTimes.back()));
    return;
  }
  for (std::size_t p = 0; p < kPipeCount; ++p) core.pipes[p].commit = core.commitOf(p);
  replay(core, kAllPipes);
}

void Machine::runFibers() {
  while (!ready_.empty()) {
    batch_.swap(ready_);
    ready_.clear();
    if (options.resumeSeed != 0) {
      std::shuffle(batch_.begin(), batch_.end(), shuffle_);
    } else {
      // The same block on every card, then the next: they touch the same memory, which stays in the cache.
      std::sort(batch_.begin(), batch_.end(), [](const Core* a, const Core* b) {
        return a->index != b->index ? a->index < b->index : a->card < b->card;
      });
    }
    for (std::size_t first = 0; first < batch_.size();) {
      std::size_t last = first + 1;
      while (last < batch_.size() && batch_[last]->index == batch_[first]->index) ++last;
      if (stopRequested()) {
        ready_.insert(ready_.end(), batch_.begin() + static_cast<std::ptrdiff_t>(first), batch_.end());
        batch_.clear();
        return;
      }
      runGroup(first, last);
      first = last;
    }
    batch_.clear();
  }
}

// Blocks of one number on several cards take turns until each waits or ends.
void Machine::runGroup(std::size_t first, std::size_t last) {
  slicing_ = last - first > 1;
  BlockState due = BlockState::Ready;
  for (std::size_t left = last - first; left != 0; due = BlockState::Slice) {
    left = 0;
    for (std::size_t i = first; i < last; ++i) {
      Core& core = *batch_[i];
      if (core.state != due || core.part == nullptr) continue;  // waits, or stopped by another's fault
      resumeBlock(core);
      if (core.part != nullptr && core.epochTimes.back() > core.part->deadline) expire(*core.part);
      if (core.state == BlockState::Slice) ++left;
    }
  }
}

// Called when nothing else can happen but timeouts.
bool Machine::wakeSpuriously() {
  bool any = false;
  for (auto waiter = memoryWaiters_.begin(); waiter != memoryWaiters_.end();) {
    Core& core = *waiter->second;
    if (core.state != BlockState::Memory || core.spurious >= kSpuriousRounds) {
      ++waiter;
      continue;
    }
    ++core.spurious;
    core.state = BlockState::Ready;
    ready_.push_back(&core);
    waiter = memoryWaiters_.erase(waiter);
    any = true;
  }
  return any;
}

void Machine::waitForWrite(Core& core) {
  memoryWaiters_.emplace(core.open.address, &core);
}

void Machine::stopWaiting(Core& core) {
  const auto [first, last] = memoryWaiters_.equal_range(core.open.address);
  for (auto waiter = first; waiter != last; ++waiter) {
    if (waiter->second != &core) continue;
    memoryWaiters_.erase(waiter);
    return;
  }
}

void Machine::noteWrite(std::uintptr_t address, std::uint64_t bytes) {
  if (memoryWaiters_.empty()) return;
  const std::uintptr_t first = address - std::min<std::uintptr_t>(address, PendingWrites::kLargest);
  for (auto waiter = memoryWaiters_.lower_bound(first);
       waiter != memoryWaiters_.end() && waiter->first < address + bytes;) {
    Core& core = *waiter->second;
    if (waiter->first + core.open.bytes <= address) {
      ++waiter;
      continue;
    }
    if (core.state != BlockState::Memory) {  // runs ahead, and has read this before
      core.open.changed = now;
      ++waiter;
      continue;
    }
    core.state = BlockState::Ready;
    ready_.push_back(&core);
    waiter = memoryWaiters_.erase(waiter);
  }
}

}  // namespace vatlas::sim
