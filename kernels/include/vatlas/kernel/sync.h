// Flags, barriers, identity, cycle counter, contexts, tiling data.
#pragma once

#include <cstdint>
#include <cstring>

#include "vatlas/kernel/core.h"
#include "vatlas/kernel/enums.h"
#include "vatlas/kernel/tensor.h"

namespace AscendC {

namespace detail {
inline void checkEvent(vatlas::sim::CorePort& core, std::int32_t id, const char* call) {
  if (id < 0 || id > 7) [[unlikely]]
    vatlas::kernels::faultArgument(core, call, "event id", id, "0 to 7");
}
}  // namespace detail

template <HardEvent event>
inline void SetFlag(std::int32_t id) {
  auto& core = vatlas::kernels::core();
  detail::checkEvent(core, id, "SetFlag");
  core.setFlag(detail::sourceOf(event), detail::targetOf(event), id);
}

template <HardEvent event>
inline void WaitFlag(std::int32_t id) {
  auto& core = vatlas::kernels::core();
  detail::checkEvent(core, id, "WaitFlag");
  core.waitFlag(detail::sourceOf(event), detail::targetOf(event), id);
}

template <pipe_t pipe>
inline void PipeBarrier() {
  if constexpr (pipe == PIPE_ALL) {
    vatlas::kernels::core().pipeBarrierAll();
  } else {
    vatlas::kernels::core().pipeBarrier(detail::pipeOf(pipe));
  }
}

inline std::int64_t GetBlockIdx() {
  return vatlas::kernels::core().blockIdx();
}
inline std::int64_t GetBlockNum() {
  return vatlas::kernels::core().blockNum();
}
inline std::int64_t GetSubBlockIdx() {
  return vatlas::kernels::core().subBlockIdx();
}
inline std::int64_t GetSubBlockNum() {
  return 1;
}
inline std::int64_t GetTaskRatio() {
  return 1;
}

// 1000 cycles are one microsecond of simulated time on the 950.
inline std::int64_t GetSystemCycle() {
  return vatlas::kernels::core().systemCycle();
}

inline constexpr std::uint32_t HCCL_GROUP_ID_0 = 0;
inline constexpr std::uint32_t HCCL_GROUP_ID_1 = 1;
inline constexpr std::uint32_t HCCL_MAX_RANK_NUM = 64;

// The communicator context of the launch, null without a communicator.
template <std::uint32_t index>
inline __gm__ uint8_t* GetHcclContext() {
  return static_cast<__gm__ uint8_t*>(vatlas::kernels::core().hcclContext(static_cast<int>(index)));
}
// The launch has set the context already; a kernel's own call changes nothing.
template <std::uint32_t index>
inline void SetHcclContext(__gm__ uint8_t*) {}

// Data memory is coherent in the model.
template <typename T, CacheLine line, DcciDst target = DcciDst::CACHELINE_ALL>
inline void DataCacheCleanAndInvalid(const GlobalTensor<T>&) {
  vatlas::kernels::core().pipeBarrier(detail::Pipe::S);
}
template <typename T, CacheLine line, DcciDst target = DcciDst::CACHELINE_ALL>
inline void DataCacheCleanAndInvalid(const LocalTensor<T>&) {
  vatlas::kernels::core().pipeBarrier(detail::Pipe::S);
}

inline void InitSocState() {}

// Stores add nothing by default. The adding and comparing modes are not modelled; they fault and say so.
inline void SetAtomicNone() {}
inline void DisableDmaAtomic() {}
template <typename T>
inline void SetAtomicAdd() {
  vatlas::kernels::faultNotModelled("SetAtomicAdd");
}
template <typename T>
inline void SetAtomicMax() {
  vatlas::kernels::faultNotModelled("SetAtomicMax");
}
template <typename T>
inline void SetAtomicMin() {
  vatlas::kernels::faultNotModelled("SetAtomicMin");
}

template <typename T>
inline T loadTiling(const void* address) {
  vatlas::kernels::core().scalarLoad(address, sizeof(T));
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

}  // namespace AscendC

#define GET_TILING_DATA_WITH_STRUCT(type, name, address) \
  [[maybe_unused]] const type name = ::AscendC::loadTiling<type>(address)
