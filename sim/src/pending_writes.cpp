#include "pending_writes.h"

#include <algorithm>
#include <cstring>

namespace vatlas::sim {

std::uint32_t PendingWrites::add(std::uintptr_t address, const void* content, std::uint64_t bytes, std::uint32_t core) {
  std::uint32_t id = static_cast<std::uint32_t>(writes_.size());
  if (free_.empty()) {
    writes_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Write& write = writes_[id];
  write.address = address;
  write.bytes = static_cast<std::uint32_t>(bytes);
  write.core = core;
  write.scheduled = write.applied = false;
  const auto* first = static_cast<const std::byte*>(content);
  write.content.assign(first, first + bytes);
  index_.emplace(address, id);
  return id;
}

PendingWrites::Index::const_iterator PendingWrites::firstNear(std::uintptr_t address) const {
  return index_.lower_bound(address - std::min<std::uintptr_t>(address, kLargest - 1));
}

void PendingWrites::forget(Index::iterator entry) {
  free_.push_back(entry->second);
  index_.erase(entry);
}

void PendingWrites::apply(std::uint32_t id) {
  const Write& write = writes_[id];
  if (!write.applied) std::memcpy(reinterpret_cast<void*>(write.address), write.content.data(), write.bytes);
  const auto [begin, end] = index_.equal_range(write.address);
  forget(std::find_if(begin, end, [id](const auto& entry) { return entry.second == id; }));
}

bool PendingWrites::overlaps(std::uintptr_t address, std::uint64_t bytes) const {
  if (index_.empty()) return false;
  for (auto entry = firstNear(address); entry != index_.end() && entry->first < address + bytes; ++entry) {
    if (entry->first + writes_[entry->second].bytes > address) return true;
  }
  return false;
}

void PendingWrites::applyOwn(std::uint32_t core, std::uintptr_t address, std::uint64_t bytes) {
  if (index_.empty()) return;
  // In the order in which they were written: ids are reused, the order of equal keys is that of insertion, and writes
  // of one core to different addresses that overlap are rare enough for any order among them.
  for (auto entry = firstNear(address); entry != index_.end() && entry->first < address + bytes; ++entry) {
    Write& write = writes_[entry->second];
    if (write.core != core || write.applied || write.address + write.bytes <= address) continue;
    std::memcpy(reinterpret_cast<void*>(write.address), write.content.data(), write.bytes);
    write.applied = true;
  }
}

void PendingWrites::drop(std::uint32_t core) {
  for (auto entry = index_.begin(); entry != index_.end();) {
    const auto here = entry++;
    const Write& write = writes_[here->second];
    if (write.core == core && !write.scheduled) forget(here);
  }
}

}  // namespace vatlas::sim
