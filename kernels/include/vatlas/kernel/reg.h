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

// A whole register from UB, wherever the data ends.
template <typename T>
inline void DataCopy(RegTensor<T>& dst, const __local_mem__ T* src) {
  auto& core = vatlas::kernels::core();
  const auto* from = reinterpret_cast<const std::byte*>(src);
  const std::uint64_t offset = static_cast<std::uint64_t>(from - core.ub());
  vatlas::kernels::checkUb(core, src, 1, "Reg::DataCopy");
  const std::uint64_t room = core.ubBytes() - offset;
  std::memcpy(dst.bytes, from, room < kRegisterBytes ? room : kRegisterBytes);
}
template <typename T>
inline void DataCopy(__local_mem__ T* dst, const RegTensor<T>& src, const MaskReg& mask) {
  vatlas::kernels::checkUb(vatlas::kernels::core(), dst, mask.lanes * sizeof(T), "Reg::DataCopy");
  std::memcpy(dst, src.bytes, mask.lanes * sizeof(T));
}

// The lanes of two registers in turn: first halves into dst0, second halves into dst1.
template <typename T>
inline void Interleave(RegTensor<T>& dst0, RegTensor<T>& dst1, const RegTensor<T>& src0,
                       const RegTensor<T>& src1) {
  constexpr std::uint32_t kHalf = RegTensor<T>::kLanes / 2;
  RegTensor<T> low;
  RegTensor<T> high;
  const auto lane = [](auto& reg, std::uint32_t i) { return reg.bytes + i * sizeof(T); };
  for (std::uint32_t i = 0; i < kHalf; ++i) {
    std::memcpy(lane(low, 2 * i), lane(src0, i), sizeof(T));
    std::memcpy(lane(low, 2 * i + 1), lane(src1, i), sizeof(T));
    std::memcpy(lane(high, 2 * i), lane(src0, kHalf + i), sizeof(T));
    std::memcpy(lane(high, 2 * i + 1), lane(src1, kHalf + i), sizeof(T));
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
  for (std::uint32_t i = 0; i < codes.size(); ++i) codes[i] = src.bytes[2 * i + kFirst];
  vatlas::kernels::ConvertMode mode;
  mode.e8m0ZeroIsOcp = vatlas::kernels::core().switches().e8m0ZeroIsOcp;
  if constexpr (trait.mrgMode == MaskMergeMode::ZEROING) std::memset(dst.bytes, 0, kRegisterBytes);
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
