#include "inputs.h"

#include <array>
#include <cmath>
#include <cstring>

#include "decode.h"

namespace vatlas::tools {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Every element is a function of (seed, rank, index), so that any piece can be made at any time.
class Generated final : public Inputs {
 public:
  explicit Generated(const RunOptions& options) : options_(options) {
    const std::array<float, 256> values = decodeTable(options.x->name);
    for (int code = 0; code < 256; ++code) {
      const float v = values[static_cast<std::size_t>(code)];
      const bool fits =
          options.input == InputKind::Exact ? std::fabs(v) <= 8 && v == std::trunc(v) : std::isfinite(v);
      if (fits) codes_.push_back(static_cast<std::uint8_t>(code));
    }
  }

  void x(int rank, std::uint64_t first, std::uint64_t count, std::uint8_t* to) const override {
    const std::uint64_t base = key(rank, 0);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t h =
          mix(base + (first + i) / 4) >> (16 * ((first + i) % 4)) & 0xffff;  // four a hash
      to[i] = codes_[h * codes_.size() >> 16];
    }
  }

  void scales(int rank, std::uint64_t first, std::uint64_t count, std::uint8_t* to) const override {
    const std::uint64_t base = key(rank, 1);
    const bool exact = options_.input == InputKind::Exact;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t h = mix(base + first + i);
      if (options_.scales->acl == ACL_FLOAT8_E8M0) {
        to[i] = static_cast<std::uint8_t>(exact ? 126 + h % 3 : 120 + h % 12);
      } else {
        const float f =
            exact ? std::ldexp(1.0F, static_cast<int>(h % 3) - 1)
                  : static_cast<float>(static_cast<std::int64_t>(h % 6'000'001) - 3'000'000) * 1e-6F;
        std::memcpy(to + 4 * i, &f, 4);
      }
    }
  }

 private:
  std::uint64_t key(int rank, std::uint64_t what) const {
    return mix(mix(options_.seed) + static_cast<std::uint64_t>(rank) * 2 + what) << 32;
  }
  const RunOptions& options_;
  std::vector<std::uint8_t> codes_;
};

class Files final : public Inputs {
 public:
  Files(const RunOptions& options, int ranks) : scaleBytes_(options.scales->bytes) {
    for (int rank = 0; rank < ranks; ++rank) {
      x_.push_back(std::make_unique<ArrayReader>(rankFile(options.xFile, rank, ranks), options.shape, 1,
                                                 options.x->npyTypes));
      scales_.push_back(std::make_unique<ArrayReader>(rankFile(options.scalesFile, rank, ranks),
                                                      options.scalesShape(), options.scales->bytes,
                                                      options.scales->npyTypes));
    }
  }
  void x(int rank, std::uint64_t first, std::uint64_t count, std::uint8_t* to) const override {
    x_[static_cast<std::size_t>(rank)]->read(first, to, count);
  }
  void scales(int rank, std::uint64_t first, std::uint64_t count, std::uint8_t* to) const override {
    scales_[static_cast<std::size_t>(rank)]->read(first * scaleBytes_, to, count * scaleBytes_);
  }

 private:
  std::uint64_t scaleBytes_;
  std::vector<std::unique_ptr<ArrayReader>> x_, scales_;
};

}  // namespace

std::unique_ptr<Inputs> makeInputs(const RunOptions& options, int ranks) {
  if (options.input == InputKind::Files) return std::make_unique<Files>(options, ranks);
  return std::make_unique<Generated>(options);
}

}  // namespace vatlas::tools
