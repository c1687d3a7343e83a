#include "vector_unit.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace vatlas::sim {
namespace {

constexpr std::uint64_t kRepeatBytes = 256;

// Element i of one is element i of the other.
bool same(const VectorOperand& a, const VectorOperand& b) {
  return a.data == b.data && a.bytes == b.bytes && a.group == b.group;
}

const std::byte* at(const VectorOperand& operand, std::uint64_t element) {
  return operand.data == nullptr ? nullptr : operand.data + element / operand.group * operand.bytes;
}

void runWork(const VectorWork& work, std::uint64_t step) {
  for (std::uint64_t first = 0; first < work.count; first += step) {
    work.run(work, work.dst.data + first * work.dst.bytes, at(work.a, first), at(work.b, first),
             std::min(step, work.count - first));
  }
}

}  // namespace

// An instruction with its operands' places settled, in strips.
struct VectorUnit::Step {
  const VectorWork* work = nullptr;
  std::byte* dst = nullptr;
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  std::size_t dstStride = 0, aStride = 0, bStride = 0;  // bytes from strip to strip
  std::uint32_t group = 0;  // not 0: a widening, b's spreading, a multiplication and an addition in one go
};

VectorUnit::Range VectorUnit::rangeOf(const VectorOperand& operand, std::uint64_t count) {
  if (operand.data == nullptr) return {};
  const auto begin = reinterpret_cast<std::uintptr_t>(operand.data);
  return {begin, begin + operand.span(count)};
}

// Some operand shares bytes with one put off earlier, at other elements.
bool VectorUnit::clashes(const Entry& entry) const {
  const VectorWork& work = entry.work;
  for (std::size_t i = 0; i < count_; ++i) {
    const Entry& earlier = entries_[i];
    const VectorWork& before = earlier.work;
    if (entry.dst.overlaps(earlier.dst) && !same(work.dst, before.dst)) return true;
    if (entry.a.overlaps(earlier.dst) && !same(work.a, before.dst)) return true;
    if (entry.b.overlaps(earlier.dst) && !same(work.b, before.dst)) return true;
    if (entry.dst.overlaps(earlier.a) && !same(work.dst, before.a)) return true;
    if (entry.dst.overlaps(earlier.b) && !same(work.dst, before.b)) return true;
  }
  return false;
}

// A source with groups is small: a copy of it leaves the kernel free to overwrite it. False: it is not.
bool VectorUnit::keep(Entry& entry) {
  VectorOperand& source = entry.work.a;
  if (source.data == nullptr || source.group == 1) return true;
  const std::uint64_t bytes = entry.a.end - entry.a.begin;
  if (bytes > kCopyBytes) return false;
  if (std::popcount(copiesTaken_) == static_cast<int>(kCopies)) settleAll();
  entry.copy = static_cast<std::uint8_t>(std::countr_one(copiesTaken_));
  copiesTaken_ |= 1u << entry.copy;
  std::memcpy(copies_[entry.copy].data(), source.data, bytes);
  source.data = copies_[entry.copy].data();
  entry.a = {};
  return true;
}

// Whether it can join those put off: of one length, in whole strips, at the same elements.
bool VectorUnit::joins(const Entry& entry) const {
  const VectorWork& work = entry.work;
  if (entry.dst.end - entry.dst.begin < kLeast) return false;
  if (count_ != 0 && entries_[0].work.count != work.count) return false;
  if (work.a.bytes == 0 && work.a.data != nullptr) return false;
  if (kStrip % work.a.group != 0) return false;
  const bool byRepeats = (entry.a.overlaps(entry.dst) && !same(work.a, work.dst)) ||
                         (entry.b.overlaps(entry.dst) && !same(work.b, work.dst));
  return !byRepeats;
}

// Operands that overlap without being the same are worked on repeat by repeat, as the vector unit does.
void VectorUnit::doNow(const Entry& entry) {
  const VectorWork& work = entry.work;
  settle(entry.dst, true);
  settle(entry.a, false);
  settle(entry.b, false);
  const bool whole = work.a.data != nullptr && (work.a.bytes == 0 || work.a.group != 1);
  const bool byRepeats = (entry.a.overlaps(entry.dst) && !same(work.a, work.dst)) ||
                         (entry.b.overlaps(entry.dst) && !same(work.b, work.dst));
  const std::uint32_t widest = std::max({work.dst.bytes, work.a.bytes, work.b.bytes});
  runWork(work, byRepeats && !whole ? kRepeatBytes / widest : work.count);
}

void VectorUnit::add(const VectorWork& work) {
  Entry entry{work, rangeOf(work.dst, work.count), rangeOf(work.a, work.count), rangeOf(work.b, work.count)};
  if (!joins(entry)) return doNow(entry);
  if (count_ == kMost || clashes(entry)) settleAll();
  if (!keep(entry)) return doNow(entry);
  entries_[count_++] = entry;
}

void VectorUnit::settle(const void* ub, std::uint64_t bytes, bool writes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(ub);
  settle({begin, begin + bytes}, writes);
}

// Does what the access depends on, and goes on to the point where an intermediate result is given up, so that
// it need not be written.
void VectorUnit::settle(const Range& range, bool writes) {
  std::size_t needed = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const Entry& e = entries_[i];
    if (e.dst.overlaps(range) || (writes && (e.a.overlaps(range) || e.b.overlaps(range)))) needed = i + 1;
  }
  if (needed == 0) return;
  const auto restarts = [&](std::size_t i) {
    const Entry& next = entries_[i];
    if (next.dst == next.a || next.dst == next.b) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (entries_[j].dst == next.dst) return true;
    }
    return false;
  };
  while (needed < count_ && !restarts(needed)) ++needed;
  run(needed);
}

// The first instruction from `from` on that touches the range writes all of it, unread.
bool VectorUnit::isOverwritten(const Range& dst, std::size_t from) const {
  for (std::size_t i = from; i < count_; ++i) {
    const Entry& next = entries_[i];
    if (next.a.overlaps(dst) || next.b.overlaps(dst)) return false;
    if (next.dst == dst) return true;  // clashes() lets no other overlap in
  }
  return false;
}

// Widen, spread, multiply and accumulate from `first` on, with nothing else looking at what is between.
bool VectorUnit::isMultiplyAccumulate(std::size_t first, std::size_t count) const {
  if (first + 4 > count || entries_[first].work.multiplyAccumulate == nullptr) return false;
  const Entry& widen = entries_[first];
  const Entry& spread = entries_[first + 1];
  const Entry& multiply = entries_[first + 2];
  const Entry& add = entries_[first + 3];
  const bool parts = widen.work.part == VectorPart::Widen && spread.work.part == VectorPart::Spread &&
                     multiply.work.part == VectorPart::Multiply && add.work.part == VectorPart::Accumulate;
  if (!parts || spread.copy == kNoCopy) return false;
  const bool flows = multiply.dst == widen.dst && multiply.a == widen.dst && multiply.b == spread.dst &&
                     add.a == add.dst && add.b == widen.dst;
  const bool apart = !widen.dst.overlaps(spread.dst) && !add.dst.overlaps(widen.dst) &&
                     !add.dst.overlaps(spread.dst) && !add.dst.overlaps(widen.a) &&
                     !spread.dst.overlaps(widen.a);
  return flows && apart && isOverwritten(widen.dst, first + 4) && isOverwritten(spread.dst, first + 4);
}

// Places of the operands; destinations that are overwritten unread go to scratch strips. Returns the number
// of steps.
std::size_t VectorUnit::plan(std::array<Step, kMost>& steps, std::size_t count) {
  std::array<const std::byte*, kScratches> moved{};
  std::size_t used = 0;
  const auto scratchOf = [&](const VectorOperand& o) {
    return static_cast<std::size_t>(
        std::find(moved.begin(), moved.begin() + static_cast<std::ptrdiff_t>(used), o.data) - moved.begin());
  };
  const auto source = [&](const VectorOperand& o, const std::byte*& place, std::size_t& stride) {
    const std::size_t scratch = o.data == nullptr ? used : scratchOf(o);
    place = scratch < used ? scratch_[scratch].data() : o.data;
    stride = scratch < used ? 0 : kStrip / o.group * o.bytes;
  };
  const auto destination = [&](std::size_t i, Step& step) {
    const VectorOperand& dst = entries_[i].work.dst;
    std::size_t scratch = scratchOf(dst);
    if (scratch == used && used < kScratches && isOverwritten(entries_[i].dst, count))
      moved[used++] = dst.data;
    const bool away = scratch < used;
    step.dst = away ? scratch_[scratch].data() : dst.data;
    step.dstStride = away ? 0 : kStrip * dst.bytes;
  };
  std::size_t made = 0;
  for (std::size_t i = 0; i < count; ++made) {
    const VectorWork& work = entries_[i].work;
    Step& step = steps[made];
    const bool together = isMultiplyAccumulate(i, count);
    step.work = &work;
    step.group = together ? entries_[i + 1].work.a.group : 0;
    source(work.a, step.a, step.aStride);
    source(together ? entries_[i + 1].work.a : work.b, step.b, step.bStride);
    destination(together ? i + 3 : i, step);
    i += together ? 4 : 1;
  }
  return made;
}

void VectorUnit::run(std::size_t count) {
  if (count == 0) return;
  std::array<Step, kMost> steps;
  const std::size_t made = plan(steps, count);
  const std::uint64_t elements = entries_[0].work.count;
  for (std::uint64_t first = 0; first < elements; first += kStrip) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(kStrip, elements - first));
    for (std::size_t i = 0; i < made; ++i) {
      Step& step = steps[i];
      if (step.group != 0) {
        step.work->multiplyAccumulate(step.dst, step.a, step.b, step.group, part);
      } else {
        step.work->run(*step.work, step.dst, step.a, step.b, part);
      }
      step.dst += step.dstStride;
      if (step.a != nullptr) step.a += step.aStride;
      if (step.b != nullptr) step.b += step.bStride;
    }
  }
  drop(count);
}

void VectorUnit::drop(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (entries_[i].copy != kNoCopy) copiesTaken_ &= ~(1u << entries_[i].copy);
  }
  std::move(entries_.begin() + static_cast<std::ptrdiff_t>(count),
            entries_.begin() + static_cast<std::ptrdiff_t>(count_), entries_.begin());
  count_ -= count;
}

void VectorUnit::discard() {
  count_ = 0;
  copiesTaken_ = 0;
}

}  // namespace vatlas::sim
