// What every API call does around its effect: find the core, check the UB ranges, count the repeats.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vatlas/kernel/leaves.h"
#include "vatlas/kernel/types.h"
#include "vatlas/sim/core_port.h"

namespace vatlas::kernels {

// Cold paths, out of line: they word the fault and end the block.
[[noreturn]] void faultRange(sim::CorePort& core, const void* address, std::uint64_t bytes, const char* call);
[[noreturn]] void faultAlignment(sim::CorePort& core, const void* address, std::uint32_t alignment,
                                 const char* call);
[[noreturn]] void faultUbBudget(sim::CorePort& core, std::uint64_t asked, std::uint64_t used);
[[noreturn]] void faultQueue(sim::CorePort& core, const char* call, const char* why, std::uint32_t have);
[[noreturn]] void faultArgument(sim::CorePort& core, const char* call, const char* what, std::int64_t value,
                                const char* allowed);
[[noreturn]] void faultWindow(sim::CorePort& core, std::uint64_t needed, std::uint64_t available);
[[noreturn]] void faultNotModelled(const char* call);

inline sim::CorePort& core() {
  return sim::CorePort::current();
}

// The range must lie in UB and start on `alignment` bytes.
inline void checkUb(sim::CorePort& core, const void* address, std::uint64_t bytes, const char* call,
                    std::uint32_t alignment = 32) {
  const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(core.ub());
  if (offset > core.ubBytes() || bytes > core.ubBytes() - offset) [[unlikely]]
    faultRange(core, address, bytes, call);
  if ((offset & (alignment - 1)) != 0) [[unlikely]]
    faultAlignment(core, address, alignment, call);
}

inline std::uint32_t repeatsOf(std::uint64_t bytes) {
  return bytes <= 256 ? 1U : static_cast<std::uint32_t>((bytes + 255) / 256);
}

template <typename T>
struct ElemOf;
#define VATLAS_ELEM(type, elem)               \
  template <>                                 \
  struct ElemOf<type> {                       \
    static constexpr Elem kElem = Elem::elem; \
  }
VATLAS_ELEM(float, F32);
VATLAS_ELEM(half, F16);
VATLAS_ELEM(bfloat16_t, Bf16);
VATLAS_ELEM(std::int32_t, I32);
VATLAS_ELEM(std::int16_t, I16);
VATLAS_ELEM(std::int8_t, I8);
VATLAS_ELEM(std::uint32_t, U32);
VATLAS_ELEM(std::uint16_t, U16);
VATLAS_ELEM(std::uint8_t, U8);
VATLAS_ELEM(std::int64_t, I64);
VATLAS_ELEM(fp8_e4m3fn_t, E4m3);
VATLAS_ELEM(fp8_e5m2_t, E5m2);
VATLAS_ELEM(hifloat8_t, Hif8);
VATLAS_ELEM(fp8_e8m0_t, E8m0);
VATLAS_ELEM(fp4x2_e2m1_t, Fp4E2m1);
VATLAS_ELEM(fp4x2_e1m2_t, Fp4E1m2);
#undef VATLAS_ELEM

template <typename T>
inline constexpr Elem kElemOf = ElemOf<T>::kElem;

template <std::size_t bytes>
inline constexpr std::size_t kSizeIndex = bytes == 1   ? 0
                                          : bytes == 2 ? 1
                                          : bytes == 4 ? 2
                                                       : 3;

}  // namespace vatlas::kernels
