// Qualifiers and build-time markers of kernel source. Device memory is ordinary memory here, so address-space
// words mean nothing; overloads that differ only by one of them collide (vendor documentation names the same
// limit).
#pragma once

#include <cstdint>

#ifndef __NPU_ARCH__
#define __NPU_ARCH__ 3510
#endif
#ifndef ASC_DEVKIT_MAJOR
#define ASC_DEVKIT_MAJOR 9
#endif
#ifndef SPLIT_CORE_VEC
#define SPLIT_CORE_VEC
#endif
#ifndef __DAV_VEC__
#define __DAV_VEC__
#endif

#define __aicore__
#define __global__
#define __gm__
#define __ubuf__
#define __local_mem__ __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __ssbuf__
#define __vector__
#define __cube__
#define __mix__(...)
#define __simd_vf__
#define __simd_callee__
#define __VEC_SCOPE__

#define GM_ADDR __gm__ uint8_t*

// Every block runs as an AIV core. Written so that both `if ASCEND_IS_AIC {` and `if constexpr`-dependent
// code work.
#define ASCEND_IS_AIV constexpr(::AscendC::g_coreType == ::AscendC::AIV)
#define ASCEND_IS_AIC constexpr(::AscendC::g_coreType == ::AscendC::AIC)
#define ASCEND_IS_NOT_AIV constexpr(::AscendC::g_coreType != ::AscendC::AIV)
#define ASCEND_IS_NOT_AIC constexpr(::AscendC::g_coreType != ::AscendC::AIC)

namespace AscendC {

enum KernelCoreType : int { AIC = 1, AIV = 2 };
inline constexpr int g_coreType = AIV;

enum KernelMetaType : std::uint32_t {
  KERNEL_TYPE_AIV_ONLY = 0,
  KERNEL_TYPE_AIC_ONLY,
  KERNEL_TYPE_MIX_AIV_1_0,
  KERNEL_TYPE_MIX_AIC_1_0,
  KERNEL_TYPE_MIX_AIC_1_1,
  KERNEL_TYPE_MIX_AIC_1_2,
};

}  // namespace AscendC

using AscendC::KERNEL_TYPE_AIC_ONLY;
using AscendC::KERNEL_TYPE_AIV_ONLY;
using AscendC::KERNEL_TYPE_MIX_AIC_1_0;
using AscendC::KERNEL_TYPE_MIX_AIC_1_1;
using AscendC::KERNEL_TYPE_MIX_AIC_1_2;
using AscendC::KERNEL_TYPE_MIX_AIV_1_0;

// Markers for the build scanner: checked for sense, without code.
#define KERNEL_TASK_TYPE_DEFAULT(type) \
  static_assert((type) <= ::AscendC::KERNEL_TYPE_MIX_AIC_1_2, "kernel type")
#define KERNEL_TASK_TYPE(key, type) \
  static_assert((key) >= 0 && (type) <= ::AscendC::KERNEL_TYPE_MIX_AIC_1_2, "kernel type")
#define REGISTER_TILING_DEFAULT(type) static_assert(sizeof(type) > 0, "tiling struct")
#define REGISTER_TILING_FOR_TILINGKEY(expression, type) static_assert(sizeof(type) > 0, "tiling struct")
