#include "sync_map.h"

namespace vatlas::sim {

SyncMap::Page* SyncMap::findPage(std::uint64_t number) {
  if (number == lastNumber_) return &pages_[lastPage_];
  const auto found = pageIndex_.find(number);
  if (found == pageIndex_.end()) return nullptr;
  lastNumber_ = number;
  lastPage_ = found->second;
  return &pages_[lastPage_];
}

SyncMap::Page& SyncMap::page(std::uint64_t number) {
  if (Page* known = findPage(number)) return *known;
  lastNumber_ = number;
  lastPage_ = static_cast<std::uint32_t>(pages_.size());
  pages_.emplace_back().fill(kNoLink);
  pageIndex_.emplace(number, lastPage_);
  return pages_.back();
}

std::uint32_t SyncMap::addWrite(std::uintptr_t address, std::uint64_t bytes, std::uint32_t core) {
  if (bytes == 0 || bytes > kLargest) return kNoLink;
  const auto id = static_cast<std::uint32_t>(writes_.size());
  Write write;
  write.core = core;
  const std::uint64_t last = (address + bytes - 1) / kSlot;
  for (std::uint64_t slot = address / kSlot; slot <= last; ++slot) {
    std::uint32_t& owner = page(slot * kSlot / kPage)[slot % (kPage / kSlot)];
    if (owner != kNoLink && owner != id && write.previous == kNoLink && writes_[owner].core != core &&
        writes_[owner].arrival == kNever) {
      write.previous = owner;
    }
    owner = id;
  }
  writes_.push_back(write);
  return id;
}

void SyncMap::attach(std::uint32_t write, std::uint32_t core, std::uint32_t& dependency) {
  for (; write != kNoLink; write = writes_[write].previous) {
    Write& w = writes_[write];
    if (w.core == core) continue;
    if (dependency == kNoLink) {
      if (freeDependencies_.empty()) {
        dependency = static_cast<std::uint32_t>(dependencies_.size());
        dependencies_.emplace_back();
      } else {
        dependency = freeDependencies_.back();
        freeDependencies_.pop_back();
        dependencies_[dependency] = {};
      }
      dependencies_[dependency].core = core;
    }
    Dependency& d = dependencies_[dependency];
    if (w.arrival != kNever) {
      if (w.arrival > d.latest) d.latest = w.arrival;
      continue;
    }
    std::uint32_t node = static_cast<std::uint32_t>(waiters_.size());
    if (freeWaiters_.empty()) {
      waiters_.emplace_back();
    } else {
      node = freeWaiters_.back();
      freeWaiters_.pop_back();
    }
    waiters_[node] = {dependency, w.firstWaiter};
    w.firstWaiter = node;
    ++d.remaining;
  }
}

std::uint32_t SyncMap::dependOn(std::uintptr_t address, std::uint64_t bytes, std::uint32_t core) {
  if (bytes == 0 || bytes > kLargest) return kNoLink;
  std::uint32_t dependency = kNoLink;
  std::uint32_t previous = kNoLink;
  const std::uint64_t last = (address + bytes - 1) / kSlot;
  for (std::uint64_t slot = address / kSlot; slot <= last; ++slot) {
    const Page* known = findPage(slot * kSlot / kPage);
    if (known == nullptr) continue;
    const std::uint32_t owner = (*known)[slot % (kPage / kSlot)];
    if (owner == kNoLink || owner == previous) continue;
    previous = owner;
    attach(owner, core, dependency);
  }
  return dependency;
}

void SyncMap::clear() {
  pageIndex_.clear();
  pages_.clear();
  lastNumber_ = UINT64_MAX;
  writes_.clear();
  waiters_.clear();
  freeWaiters_.clear();
  dependencies_.clear();
  freeDependencies_.clear();
}

}  // namespace vatlas::sim
