#include "vatlas/sim/device_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#ifndef VATLAS_DEVICE_BASE
#error "VATLAS_DEVICE_BASE and VATLAS_DEVICE_SPAN are set by the build"
#endif

namespace vatlas::sim {
namespace {

constexpr std::uintptr_t kBase = VATLAS_DEVICE_BASE;
constexpr std::uint64_t kSpan = VATLAS_DEVICE_SPAN;
constexpr std::uint64_t kUnit = 32;  // sizes are multiples of this
constexpr std::uint64_t kMinAlign = 64;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kReturnAbove = 64 * 1024;  // freed blocks of this size go back to the host

constexpr std::uint64_t roundUp(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// The whole pages inside a range.
Range innerPages(std::uintptr_t begin, std::uint64_t bytes) {
  const std::uintptr_t first = roundUp(begin, kPage);
  const std::uintptr_t last = (begin + bytes) / kPage * kPage;
  return {first, std::max(first, last)};
}

void returnToHost(std::uintptr_t begin, std::uint64_t bytes) {
  const Range pages = innerPages(begin, bytes);
  if (pages.end > pages.begin) {
    madvise(reinterpret_cast<void*>(pages.begin), pages.end - pages.begin, MADV_DONTNEED);
  }
}

// One card's range: live allocations and free blocks by address. First fit, so that the same calls give the
// same addresses on every run.
struct CardMemory {
  mutable std::mutex mutex;
  std::uintptr_t base = 0;
  std::uint64_t bytes = 0;
  std::uint64_t used = 0;
  std::map<std::uintptr_t, std::uint64_t> live;
  std::map<std::uintptr_t, std::uint64_t> holes;
  std::atomic<std::uint64_t> generation{1};

  bool take(std::uint64_t size, std::uint64_t alignment, std::uintptr_t& address) {
    for (auto hole = holes.begin(); hole != holes.end(); ++hole) {
      const std::uintptr_t start = roundUp(hole->first, alignment);
      const std::uintptr_t end = hole->first + hole->second;
      if (start >= end || end - start < size) continue;
      const std::uintptr_t begin = hole->first;
      holes.erase(hole);
      if (start > begin) holes.emplace(begin, start - begin);
      if (start + size < end) holes.emplace(start + size, end - start - size);
      live.emplace(start, size);
      used += size;
      address = start;
      return true;
    }
    return false;
  }

  void give(std::map<std::uintptr_t, std::uint64_t>::iterator block) {
    std::uintptr_t begin = block->first;
    std::uint64_t size = block->second;
    live.erase(block);
    used -= size;
    auto next = holes.lower_bound(begin);
    if (next != holes.end() && begin + size == next->first) {
      size += next->second;
      next = holes.erase(next);
    }
    if (next != holes.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == begin) {
        begin = previous->first;
        size += previous->second;
        holes.erase(previous);
      }
    }
    holes.emplace(begin, size);
  }
};

}  // namespace

struct DeviceMemory::State {
  std::vector<std::unique_ptr<CardMemory>> cards;
  std::uint64_t ceiling = 0;
  std::atomic<std::uint64_t> committed{0};

  CardMemory* cardAt(std::uintptr_t address) const noexcept {
    if (address < kBase) return nullptr;
    const std::uint64_t index = (address - kBase) / kSpan;
    if (index >= cards.size()) return nullptr;
    CardMemory* card = cards[index].get();
    return address - card->base < card->bytes ? card : nullptr;
  }
};

DeviceMemory::DeviceMemory(int cards, std::uint64_t bytesPerCard, std::uint64_t ceilingBytes)
    : state_(std::make_unique<State>()) {
  state_->ceiling = ceilingBytes;
  const std::uint64_t bytes = std::min(bytesPerCard, kSpan) / kPage * kPage;
  for (int i = 0; i < cards; ++i) {
    auto card = std::make_unique<CardMemory>();
    card->base = kBase + static_cast<std::uint64_t>(i) * kSpan;
    card->bytes = bytes;
    void* wanted = reinterpret_cast<void*>(card->base);
    void* got = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != wanted) {
      if (got != MAP_FAILED) munmap(got, bytes);
      for (const auto& done : state_->cards) munmap(reinterpret_cast<void*>(done->base), done->bytes);
      throw std::runtime_error(fmt::format(
          "cannot reserve {} GiB of address space at {:#x} for card {}: lift `ulimit -v`, or allow "
          "overcommit (vm.overcommit_memory 0 or 1)",
          bytes >> 30, card->base, i));
    }
    madvise(got, bytes, MADV_DONTDUMP);
    madvise(got, bytes, MADV_HUGEPAGE);
    card->holes.emplace(card->base, bytes);
    state_->cards.push_back(std::move(card));
  }
}

DeviceMemory::~DeviceMemory() {
  for (const auto& card : state_->cards) munmap(reinterpret_cast<void*>(card->base), card->bytes);
}

MemoryStatus DeviceMemory::allocate(int card, std::uint64_t bytes, std::uint64_t alignment, bool zeroed,
                                    void*& address) {
  if (card < 0 || static_cast<std::size_t>(card) >= state_->cards.size() || bytes == 0) {
    return MemoryStatus::BadSize;
  }
  CardMemory& memory = *state_->cards[static_cast<std::size_t>(card)];
  if (bytes > memory.bytes) return MemoryStatus::OutOfDeviceMemory;
  const std::uint64_t size = roundUp(bytes, zeroed ? kPage : kUnit);
  const std::uint64_t align = std::max(alignment, zeroed ? kPage : kMinAlign);
  const std::lock_guard lock(memory.mutex);
  if (state_->committed.fetch_add(size) + size > state_->ceiling) {
    state_->committed.fetch_sub(size);
    return MemoryStatus::OutOfHostMemory;
  }
  std::uintptr_t start = 0;
  if (!memory.take(size, align, start)) {
    state_->committed.fetch_sub(size);
    return MemoryStatus::OutOfDeviceMemory;
  }
  if (zeroed) returnToHost(start, size);  // pages given back read as zero
  memory.generation.fetch_add(1, std::memory_order_release);
  address = reinterpret_cast<void*>(start);
  return MemoryStatus::Ok;
}

MemoryStatus DeviceMemory::release(void* address) {
  CardMemory* memory = state_->cardAt(reinterpret_cast<std::uintptr_t>(address));
  if (memory == nullptr) return MemoryStatus::NotAllocated;
  const std::lock_guard lock(memory->mutex);
  const auto block = memory->live.find(reinterpret_cast<std::uintptr_t>(address));
  if (block == memory->live.end()) return MemoryStatus::NotAllocated;
  const std::uint64_t size = block->second;
  if (size >= kReturnAbove) returnToHost(block->first, size);
  memory->give(block);
  state_->committed.fetch_sub(size);
  memory->generation.fetch_add(1, std::memory_order_release);
  return MemoryStatus::Ok;
}

int DeviceMemory::cardOf(const void* address) const noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return state_->cardAt(value) == nullptr ? -1 : static_cast<int>((value - kBase) / kSpan);
}

std::optional<Allocation> DeviceMemory::find(const void* address, std::uint64_t bytes) const {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  const CardMemory* memory = state_->cardAt(value);
  if (memory == nullptr) return std::nullopt;
  const std::lock_guard lock(memory->mutex);
  auto next = memory->live.upper_bound(value);
  if (next == memory->live.begin()) return std::nullopt;
  --next;
  const std::uint64_t offset = value - next->first;
  if (offset > next->second || bytes > next->second - offset) return std::nullopt;
  return Allocation{next->first, next->second};
}

std::string DeviceMemory::describe(const void* address) const {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  const CardMemory* memory = state_->cardAt(value);
  if (memory == nullptr) return fmt::format("{:#x} is no device address", value);
  const int card = cardOf(address);
  const std::lock_guard lock(memory->mutex);
  auto next = memory->live.upper_bound(value);
  if (next == memory->live.begin()) {
    return fmt::format("{:#x} lies in the memory of device {}, outside every allocation", value, card);
  }
  --next;
  const std::uint64_t offset = value - next->first;
  if (offset < next->second) {
    return fmt::format("{:#x} is byte {} of a {}-byte allocation on device {}", value, offset, next->second,
                       card);
  }
  return fmt::format(
      "{:#x} is {} bytes past the end of the nearest allocation on device {} ({} bytes at {:#x})", value,
      offset - next->second, card, next->second, next->first);
}

std::uint64_t DeviceMemory::freeBytes(int card) const {
  const CardMemory& memory = *state_->cards.at(static_cast<std::size_t>(card));
  const std::lock_guard lock(memory.mutex);
  return memory.bytes - memory.used;
}

std::uint64_t DeviceMemory::totalBytes(int card) const {
  return state_->cards.at(static_cast<std::size_t>(card))->bytes;
}

std::uint64_t DeviceMemory::ceilingBytes() const noexcept {
  return state_->ceiling;
}
std::uint64_t DeviceMemory::committedBytes() const {
  return state_->committed.load();
}

std::unique_ptr<DeviceMemory::Reader> DeviceMemory::reader() const {
  return std::make_unique<Reader>(*state_);
}

// A private copy of each card's allocations, renewed when the card's generation has moved on, and the
// allocations that were hit last.
struct DeviceMemory::Reader::View {
  struct Card {
    std::uint64_t generation = 0;
    std::vector<Range> ranges;
    std::array<Range, 4> recent{};
    std::size_t next = 0;
  };
  const State& state;
  std::vector<Card> cards;

  explicit View(const State& s) : state(s), cards(s.cards.size()) {}

  void refresh(const CardMemory& memory, Card& card) {
    const std::lock_guard lock(memory.mutex);
    card.generation = memory.generation.load(std::memory_order_relaxed);
    card.ranges.clear();
    for (const auto& [begin, size] : memory.live) card.ranges.push_back({begin, begin + size});
    card.recent = {};
  }
};

DeviceMemory::Reader::Reader(const State& state) : view_(std::make_unique<View>(state)) {}
DeviceMemory::Reader::~Reader() = default;

int DeviceMemory::Reader::check(const void* address, std::uint64_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const CardMemory* memory = view_->state.cardAt(begin);
  if (memory == nullptr || bytes > memory->bytes) return -1;
  const std::size_t index = (begin - kBase) / kSpan;
  View::Card& card = view_->cards[index];
  if (card.generation != memory->generation.load(std::memory_order_acquire)) view_->refresh(*memory, card);
  const std::uintptr_t end = begin + bytes;
  for (const Range& range : card.recent) {
    if (begin >= range.begin && end <= range.end) return static_cast<int>(index);
  }
  auto after = std::upper_bound(card.ranges.begin(), card.ranges.end(), begin,
                                [](std::uintptr_t value, const Range& range) { return value < range.begin; });
  if (after == card.ranges.begin()) return -1;
  --after;
  if (end > after->end) return -1;
  card.recent[card.next++ % card.recent.size()] = *after;
  return static_cast<int>(index);
}

}  // namespace vatlas::sim
