// The part of the register-level API that the built-in kernels need. A register is 256 bytes; a vector
// function (VF_CALL) costs one vector instruction for each of its register instructions.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "vatlas/kernel/core.h"
#include "vatlas/kernel/enums.h"

namespace AscendC::Reg {

enum class RegLayout : std::uint8_t { ZERO = 0, ONE, TWO, THREE, UNKNOWN = 0xFF };
enum class SatMode : std::uint8_t { NO_SAT = 0, SAT, UNKNOWN = 0xFF };
enum class MaskMergeMode : std::uint8_t { MERGING = 0, ZEROING, UNKNOWN = 0xFF };

struct CastTrait {
  RegLayout layoutMode = RegLayout::ZERO;
  SatMode satMode = SatMode::NO_SAT;
  MaskMergeMode mrgMode = MaskMergeMode::ZEROING;
  RoundMode roundMode = RoundMode::CAST_NONE;
};

inline constexpr std::uint32_t kRegisterBytes = 256;

template <typename T>
struct RegTensor {
  static constexpr std::uint32_t kLanes = kRegisterBytes / sizeof(T);
  RegTensor() {}  // NOLINT: what a register held before is not defined
  alignas(64) std::byte bytes[kRegisterBytes];
};

struct MaskReg {
  std::uint32_t lanes = 0;  // the first lanes are on
};

// The mask of the next register of `count` elements; takes them off the count.
template <typename T>
inline MaskReg UpdateMask(std::uint32_t& count) {
  const std::uint32_t lanes = count < RegTensor<T>::kLanes ? count : RegTensor<T>::kLanes;
  count -= lanes;
  return {lanes};
}

namespace detail {

inline constexpr std::uint32_t kVectorBytes = 16;
typedef unsigned char Bytes __attribute__((vector_size(16)));
typedef std::uint16_t Words __attribute__((vector_size(16)));
typedef std::uint32_t Doublewords __attribute__((vector_size(16)));

template <typename V>
inline V loadVector(const std::byte* from) {
  V vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}
template <typename V>
inline void storeVectors(std::byte* to, const V& first, const V& second) {
  std::memcpy(to, &first, sizeof first);
  std::memcpy(to + sizeof first, &second, sizeof second);
}

// Short copies without a call or a string instruction.
inline void copyBytes(std::byte* dst, const std::byte* src, std::uint64_t bytes) {
  std::uint64_t at = 0;
  for (; at + kVectorBytes <= bytes; at += kVectorBytes) {
    const auto vector = loadVector<Bytes>(src + at);
    std::memcpy(dst + at, &vector, sizeof vector);
  }
  for (; at < bytes; ++at) dst[at] = src[at];
}
inline void clearRegister(std::byte* dst) {
  const Bytes zero{};
  for (std::uint32_t at = 0; at < kRegisterBytes; at += kVectorBytes)
    std::memcpy(dst + at, &zero, sizeof zero);
}

// Lanes of 16 bytes of a and of b in turn.
template <std::size_t bytes>
inline void interleave(std::byte* dst, const std::byte* a, const std::byte* b) {
  static_assert(bytes == 1 || bytes == 2 || bytes == 4, "Interleave: element size");
  if constexpr (bytes == 1) {
    const auto x = loadVector<Bytes>(a);
    const auto y = loadVector<Bytes>(b);
    storeVectors(dst, __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
                 __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
  } else if constexpr (bytes == 2) {
    const auto x = loadVector<Words>(a);
    const auto y = loadVector<Words>(b);
    storeVectors(dst, __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11),
                 __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15));
  } else {
    const auto x = loadVector<Doublewords>(a);
    const auto y = loadVector<Doublewords>(b);
    storeVectors(dst, __builtin_shufflevector(x, y, 0, 4, 1, 5), __builtin_shufflevector(x, y, 2, 6, 3, 7));
  }
}

// Every second byte of 32, from the first (0) or the second (1) on.
template <std::uint32_t first>
inline void everySecond(std::byte* dst, const std::byte* src) {
  const auto words = [&](std::uint32_t at) { return (loadVector<Words>(src + at) >> (8 * first)) & 0xff; };
  const auto x = reinterpret_cast<Bytes>(words(0));
  const auto y = reinterpret_cast<Bytes>(words(kVectorBytes));
  const Bytes packed =
      __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  std::memcpy(dst, &packed, sizeof packed);
}

}  // namespace detail

// A whole register from UB, wherever the data ends.
template <typename T>
inline void DataCopy(RegTensor<T>& dst, const __local_mem__ T* src) {
  auto& core = vatlas::kernels::core();
  const auto* from = reinterpret_cast<const std::byte*>(src);
  const std::uint64_t offset = static_cast<std::uint64_t>(from - core.ub());
  vatlas::kernels::checkUb(core, src, 1, "Reg::DataCopy");
  const std::uint64_t room = core.ubBytes() - offset;
  core.settle(from, room < kRegisterBytes ? room : kRegisterBytes, false);
  detail::copyBytes(dst.bytes, from, room < kRegisterBytes ? room : kRegisterBytes);
}
template <typename T>
inline void DataCopy(__local_mem__ T* dst, const RegTensor<T>& src, const MaskReg& mask) {
  auto& core = vatlas::kernels::core();
  vatlas::kernels::checkUb(core, dst, mask.lanes * sizeof(T), "Reg::DataCopy");
  core.settle(dst, mask.lanes * sizeof(T), true);
  detail::copyBytes(reinterpret_cast<std::byte*>(dst), src.bytes, mask.lanes * sizeof(T));
}

// The lanes of two registers in turn: first halves into dst0, second halves into dst1.
template <typename T>
inline void Interleave(RegTensor<T>& dst0, RegTensor<T>& dst1, const RegTensor<T>& src0,
                       const RegTensor<T>& src1) {
  RegTensor<T> low;
  RegTensor<T> high;
  for (std::uint32_t at = 0; at < kRegisterBytes / 2; at += detail::kVectorBytes) {
    detail::interleave<sizeof(T)>(low.bytes + 2 * at, src0.bytes + at, src1.bytes + at);
    detail::interleave<sizeof(T)>(high.bytes + 2 * at, src0.bytes + kRegisterBytes / 2 + at,
                                  src1.bytes + kRegisterBytes / 2 + at);
  }
  dst0 = low;
  dst1 = high;
}

// e8m0 to bfloat16: lane i of the destination from lane 2i (layout ZERO) or 2i + 1 (ONE) of the source.
template <typename T, typename U, const CastTrait& trait>
inline void Cast(RegTensor<T>& dst, const RegTensor<U>& src, const MaskReg& mask) {
  static_assert(std::is_same_v<T, bfloat16_t> && std::is_same_v<U, fp8_e8m0_t>,
                "Reg::Cast: bfloat16_t from fp8_e8m0_t is modelled");
  constexpr std::uint32_t kFirst = trait.layoutMode == RegLayout::ONE ? 1 : 0;
  std::array<std::byte, RegTensor<T>::kLanes> codes;
  for (std::uint32_t at = 0; at < mask.lanes; at += detail::kVectorBytes)
    detail::everySecond<kFirst>(codes.data() + at, src.bytes + 2 * at);
  vatlas::kernels::ConvertMode mode;
  mode.e8m0ZeroIsOcp = vatlas::kernels::core().switches().e8m0ZeroIsOcp;
  if constexpr (trait.mrgMode == MaskMergeMode::ZEROING) detail::clearRegister(dst.bytes);
  vatlas::kernels::leaves().convertOf(vatlas::kernels::Elem::Bf16, vatlas::kernels::Elem::E8m0)(
      dst.bytes, codes.data(), mask.lanes, mode);
}

}  // namespace AscendC::Reg

namespace AscendC {

namespace MicroAPI = Reg;

// Runs a vector function: its register instructions occupy the vector unit together.
template <auto function, typename... Args>
inline void VF_CALL(Args... args) {
  function(args...);
  vatlas::kernels::core().vector(vatlas::sim::VectorOp::CastWiden8, 1);
}

}  // namespace AscendC
