#include "pending_writes.h"

#include <algorithm>
#include <cstring>

namespace vatlas::sim {

std::uint32_t PendingWrites::add(std::uintptr_t address, const void* content, std::uint64_t bytes,
                                 std::uint32_t core) {
  std::uint32_t id = static_cast<std::uint32_t>(writes_.size());
  if (free_.empty()) {
    writes_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  std::vector<std::uint32_t>& bucket = buckets_[bucketOf(address)];
  Write& write = writes_[id];
  write.address = address;
  write.bytes = static_cast<std::uint32_t>(bytes);
  write.core = core;
  write.sequence = sequence_++;
  write.place = static_cast<std::uint32_t>(bucket.size());
  write.scheduled = write.applied = false;
  std::memcpy(write.content.data(), content, bytes);
  bucket.push_back(id);
  ++live_;
  return id;
}

// Calls visit(id) for every pending write that overlaps the range, until it answers false.
template <class Visit>
void PendingWrites::near(std::uintptr_t address, std::uint64_t bytes, Visit&& visit) const {
  if (live_ == 0) return;
  const std::uintptr_t first = (address - std::min<std::uintptr_t>(address, kLargest - 1)) >> kShift;
  const std::uintptr_t last = std::min((address + bytes - 1) >> kShift, first + kBuckets - 1);
  for (std::uintptr_t region = first; region <= last; ++region) {
    for (const std::uint32_t id : buckets_[region & (kBuckets - 1)]) {
      const Write& write = writes_[id];
      if (write.address < address + bytes && write.address + write.bytes > address && !visit(id)) return;
    }
  }
}

void PendingWrites::forget(std::uint32_t id) {
  std::vector<std::uint32_t>& bucket = buckets_[bucketOf(writes_[id].address)];
  const std::uint32_t place = writes_[id].place;
  bucket[place] = bucket.back();
  writes_[bucket[place]].place = place;
  bucket.pop_back();
  free_.push_back(id);
  --live_;
}

void PendingWrites::apply(std::uint32_t id) {
  const Write& write = writes_[id];
  if (!write.applied) std::memcpy(reinterpret_cast<void*>(write.address), write.content.data(), write.bytes);
  forget(id);
}

bool PendingWrites::overlaps(std::uintptr_t address, std::uint64_t bytes) const {
  bool any = false;
  near(address, bytes, [&](std::uint32_t) {
    any = true;
    return false;
  });
  return any;
}

void PendingWrites::applyOwn(std::uint32_t core, std::uintptr_t address, std::uint64_t bytes) {
  std::vector<std::uint32_t> own;
  near(address, bytes, [&](std::uint32_t id) {
    if (writes_[id].core == core && !writes_[id].applied) own.push_back(id);
    return true;
  });
  std::sort(own.begin(), own.end(),
            [&](std::uint32_t a, std::uint32_t b) { return writes_[a].sequence < writes_[b].sequence; });
  for (const std::uint32_t id : own) {
    Write& write = writes_[id];
    std::memcpy(reinterpret_cast<void*>(write.address), write.content.data(), write.bytes);
    write.applied = true;
  }
}

void PendingWrites::drop(std::uint32_t core) {
  for (std::vector<std::uint32_t>& bucket : buckets_) {
    for (std::size_t i = bucket.size(); i-- > 0;) {
      const Write& write = writes_[bucket[i]];
      if (write.core == core && !write.scheduled) forget(bucket[i]);
    }
  }
}

}  // namespace vatlas::sim
