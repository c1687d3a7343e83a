// Vector effects that are put off, against the same instructions done one after another.
#include "vector_unit.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

using namespace vatlas::sim;

namespace {

constexpr std::size_t kBytes = 96 * 1024;

// dst[i] = 3 a[i] + b[i] + 1, of 1, 2 or 4 byte elements, each operand of its own size.
std::uint32_t get(const void* data, std::uint32_t bytes, std::size_t i) {
  std::uint32_t value = 0;
  std::memcpy(&value, static_cast<const std::byte*>(data) + i * bytes, bytes);
  return value;
}
void put(void* data, std::uint32_t bytes, std::size_t i, std::uint32_t value) {
  std::memcpy(static_cast<std::byte*>(data) + i * bytes, &value, bytes);
}
void combine(const VectorWork& w, void* dst, const void* a, const void* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t value = 1;
    if (w.a.data != nullptr) value += 3 * get(a, w.a.bytes, i / w.a.group);
    if (w.b.data != nullptr) value += get(b, w.b.bytes, i);
    put(dst, w.dst.bytes, i, value);
  }
}
void accumulate(void* acc, const void* x, const void* s, std::size_t group, std::size_t count) {
  auto* sum = static_cast<float*>(acc);
  for (std::size_t i = 0; i < count; ++i)
    sum[i] +=
        static_cast<float>(static_cast<const std::uint8_t*>(x)[i]) * static_cast<const float*>(s)[i / group];
}

bool overlaps(const VectorOperand& a, const VectorOperand& b, std::uint64_t count) {
  return a.data != nullptr && a.data < b.data + b.span(count) && b.data < a.data + a.span(count) &&
         (a.data != b.data || a.bytes != b.bytes);
}

// The instruction by itself: whole, or repeat by repeat where operands overlap partly.
void alone(const VectorWork& w) {
  std::uint64_t step = w.count;
  if (w.a.group == 1 && (overlaps(w.a, w.dst, w.count) || overlaps(w.b, w.dst, w.count)))
    step = 256 / std::max({w.dst.bytes, w.a.bytes, w.b.bytes});
  const auto at = [](const VectorOperand& o, std::uint64_t i) {
    return o.data == nullptr ? nullptr : o.data + i / o.group * o.bytes;
  };
  for (std::uint64_t i = 0; i < w.count; i += step)
    w.run(w, at(w.dst, i), at(w.a, i), at(w.b, i), std::min(step, w.count - i));
}

class Pair {
 public:
  explicit Pair(std::uint64_t seed) : tidy_(seed % 2 == 0), random_(seed), now_(kBytes), later_(kBytes) {
    for (std::byte& b : now_) b = static_cast<std::byte>(random_());
    later_ = now_;
  }
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  void instruction() {
    static constexpr std::uint64_t kCounts[] = {8, 64, 1000, 1024, 2048, 4096, 5000};
    const std::uint64_t count = !tidy_ && draw(4) == 0 ? kCounts[draw(7)] : 2048;
    VectorWork w;
    w.run = &combine;
    w.count = count;
    w.dst = operand(count);
    if (draw(5) != 0) w.a = draw(3) == 0 ? w.dst : operand(count);
    if (draw(2) == 0) w.b = draw(3) == 0 ? w.dst : operand(count);
    if (w.a.data != nullptr && draw(5) == 0) {
      w.a.group = draw(2) == 0 ? 32 : 100;
      if (overlaps(w.a, w.dst, count)) w.a.group = 1;
    }
    issue(w);
  }
  void access() {
    const std::size_t bytes = 1 + draw(3000);
    const std::size_t first = draw((tidy_ ? 4 * 8192 : kBytes) - bytes);
    const bool writes = draw(2) == 0;
    unit_.settle(later_.data() + first, bytes, writes);
    REQUIRE(std::memcmp(now_.data() + first, later_.data() + first, bytes) == 0);
    if (!writes) return;
    const int value = static_cast<int>(draw(256));
    std::memset(now_.data() + first, value, bytes);
    std::memset(later_.data() + first, value, bytes);
  }
  void all() {
    unit_.settleAll();
    REQUIRE(unit_.size() == 0);
    REQUIRE(now_ == later_);
  }
  std::uint32_t waiting() const { return unit_.size(); }

  // Places are of `now_`; the unit gets the same ones of `later_`.
  void issue(VectorWork w) {
    alone(w);
    for (VectorOperand* o : {&w.dst, &w.a, &w.b})
      if (o->data != nullptr) o->data = later_.data() + (o->data - now_.data());
    unit_.add(w);
  }
  std::byte* place(std::size_t offset) { return now_.data() + offset; }

 private:
  VectorOperand operand(std::uint64_t count) {
    const auto bytes = static_cast<std::uint32_t>(1u << draw(3));
    if (tidy_) return {now_.data() + 8192 * draw(4), 4};
    // A few places, so that operands meet: alike, and one in the middle of another.
    static constexpr std::size_t kPlaces[] = {0, 8192, 16384, 17408, 32768, 40960, 49152, 65536};
    const std::size_t offset = kPlaces[draw(8)] + (draw(8) == 0 ? 32 * draw(20) : 0);
    VectorOperand o{now_.data() + offset, bytes};
    if (offset + o.span(count) > kBytes) o.data = now_.data();
    return o;
  }

  const bool tidy_;  // all operands alike, and few of them
  std::mt19937_64 random_;
  std::vector<std::byte> now_, later_;
  VectorUnit unit_;
};

}  // namespace

TEST_CASE("effects put off are those of program order") {
  std::uint32_t most = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Pair pair(seed);
    for (int i = 0; i < 200; ++i) {
      CAPTURE(seed, i);
      if (pair.draw(6) == 0) {
        pair.access();
      } else {
        pair.instruction();
      }
      most = std::max(most, pair.waiting());
    }
    pair.all();
  }
  CHECK(most > 4);
}

TEST_CASE("multiply and accumulate in one go, whatever looks at the steps between") {
  const auto widen = [](const VectorWork&, void* dst, const void* a, const void*, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      static_cast<float*>(dst)[i] = static_cast<float>(static_cast<const std::uint8_t*>(a)[i]);
  };
  const auto spread = [](const VectorWork& w, void* dst, const void* a, const void*, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      static_cast<float*>(dst)[i] = static_cast<const float*>(a)[i / w.a.group];
  };
  const auto multiply = [](const VectorWork&, void* dst, const void* a, const void* b, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      static_cast<float*>(dst)[i] = static_cast<const float*>(a)[i] * static_cast<const float*>(b)[i];
  };
  const auto add = [](const VectorWork&, void* dst, const void* a, const void* b, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      static_cast<float*>(dst)[i] = static_cast<const float*>(a)[i] + static_cast<const float*>(b)[i];
  };
  constexpr std::uint64_t kCount = 2048;
  // Offsets: x 0, scales 4096, widened 8192, spread 16384, sum 24576. Kinds of 0: the plain chain.
  for (int kind = 0; kind < 6; ++kind) {
    CAPTURE(kind);
    Pair pair(17);
    for (std::size_t i = 0; i < 6144; ++i) {
      const float value = static_cast<float>(pair.draw(100)) * 0.5F;
      VectorWork w;  // floats in place of random bits, in both memories
      w.count = 1;
      w.dst = {pair.place(8192 + 4 * i), 4};
      w.scalar = static_cast<std::uint64_t>(value * 2);
      w.run = [](const VectorWork& work, void* dst, const void*, const void*, std::size_t) {
        *static_cast<float*>(dst) = static_cast<float>(work.scalar) * 0.5F;
      };
      pair.issue(w);
      if (i < 64) {
        w.dst.data = pair.place(4096 + 4 * i);
        pair.issue(w);
      }
    }
    const auto instruction = [&](auto run, VectorPart part, VectorOperand dst, VectorOperand a,
                                 VectorOperand b) {
      VectorWork w;
      w.run = run;
      w.part = part;
      w.count = kCount;
      w.dst = dst;
      w.a = a;
      w.b = b;
      if (part == VectorPart::Widen) w.multiplyAccumulate = &accumulate;
      pair.issue(w);
    };
    const VectorOperand x{pair.place(0), 1};
    const VectorOperand scales{pair.place(4096), 4, 32};
    const VectorOperand wide{pair.place(8192), 4};
    const VectorOperand factor{pair.place(16384), 4};
    const VectorOperand sum{pair.place(24576), 4};
    for (int rank = 0; rank < 3; ++rank) {
      instruction(+widen, VectorPart::Widen, wide, x, {});
      instruction(+spread, VectorPart::Spread, factor, scales, {});
      instruction(+multiply, VectorPart::Multiply, wide, wide, kind == 1 ? wide : factor);
      instruction(+add, VectorPart::Accumulate, sum, kind == 2 ? factor : sum, wide);
      if (kind == 3) instruction(+add, VectorPart::Accumulate, sum, sum, factor);
      if (kind == 4) instruction(+multiply, VectorPart::Multiply, factor, wide, factor);
      if (kind == 5 && rank == 1) pair.access();
    }
    pair.all();
  }
}
