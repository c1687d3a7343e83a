// The communicator context that a kernel gets from GetHcclContext, in the layout that kernels for the 950
// assume. Plain data: the host runtime fills it, device code reads it. Source: public sources of the vendor's
// fused operators.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vatlas::kernels {

inline constexpr std::uint32_t kMaxRanksInContext = 64;

// Each rank owns one buffer of winSize bytes, zeroed when the communicator is made: windowsIn[r] is its start
// and windowsOut[r] its middle. All addresses can be loaded and stored from every rank.
struct HcclCombinOpParam {
  std::uint64_t workSpace;
  std::uint64_t workSpaceSize;
  std::uint32_t rankId;
  std::uint32_t rankDim;
  std::uint64_t winSize;  // bytes of the whole buffer, both halves together
  std::uint64_t windowsIn[kMaxRanksInContext];
  std::uint64_t windowsOut[kMaxRanksInContext];
  std::uint64_t xnAddr;
  std::uint64_t ckeAddr;
  std::uint64_t msAddr;
  std::uint64_t msSize;
};
static_assert(offsetof(HcclCombinOpParam, rankId) == 16);
static_assert(offsetof(HcclCombinOpParam, winSize) == 24);
static_assert(offsetof(HcclCombinOpParam, windowsIn) == 32);
static_assert(offsetof(HcclCombinOpParam, windowsOut) == 544);
static_assert(sizeof(HcclCombinOpParam) == 1088);

}  // namespace vatlas::kernels
