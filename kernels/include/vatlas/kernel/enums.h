// Enumerations and small parameter structs of the kernel API. Names and values: vendor documentation of
// Ascend C.
#pragma once

#include <cstdint>

#include "vatlas/kernel/qualifiers.h"
#include "vatlas/sim/core_port.h"

// The device compiler has the pipes built in, so they are global.
enum pipe_t : std::uint8_t {
  PIPE_S = 0,
  PIPE_V = 1,
  PIPE_M = 2,
  PIPE_MTE1 = 3,
  PIPE_MTE2 = 4,
  PIPE_MTE3 = 5,
  PIPE_ALL = 6,
  PIPE_FIX = 10
};

namespace AscendC {

enum class TPosition : std::uint8_t {
  GM,
  A1,
  A2,
  B1,
  B2,
  C1,
  C2,
  CO1,
  CO2,
  VECIN,
  VECOUT,
  VECCALC,
  LCM = VECCALC,
  SPM,
  SHM = SPM,
  TSCM,
  C2PIPE2GM,
  C2PIPE2LOCAL,
  MAX
};
using QuePosition = TPosition;

enum class Hardware : std::uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

using TEventID = std::int8_t;
inline constexpr TEventID INVALID_TEVENTID = -1;

enum class RoundMode : std::uint8_t {
  CAST_NONE = 0,
  CAST_RINT,
  CAST_FLOOR,
  CAST_CEIL,
  CAST_ROUND,
  CAST_TRUNC,
  CAST_ODD,
  CAST_HYBRID,
  CAST_EVEN,
  CAST_ZERO,
  UNKNOWN = 0xFF
};

namespace detail {
using Pipe = vatlas::sim::Pipe;
constexpr std::uint8_t pairOf(Pipe src, Pipe dst) {
  return static_cast<std::uint8_t>(static_cast<std::uint8_t>(src) * 8 + static_cast<std::uint8_t>(dst));
}
constexpr Pipe pipeOf(pipe_t pipe) {
  switch (pipe) {
    case PIPE_V:
      return Pipe::V;
    case PIPE_M:
      return Pipe::M;
    case PIPE_MTE1:
      return Pipe::Mte1;
    case PIPE_MTE2:
      return Pipe::Mte2;
    case PIPE_MTE3:
      return Pipe::Mte3;
    case PIPE_FIX:
      return Pipe::Fix;
    default:
      return Pipe::S;
  }
}
}  // namespace detail

// SRC_DST: dst waits for src. The value is the pair of pipes.
enum class HardEvent : std::uint8_t {
  S_V = detail::pairOf(detail::Pipe::S, detail::Pipe::V),
  S_M = detail::pairOf(detail::Pipe::S, detail::Pipe::M),
  S_MTE1 = detail::pairOf(detail::Pipe::S, detail::Pipe::Mte1),
  S_MTE2 = detail::pairOf(detail::Pipe::S, detail::Pipe::Mte2),
  S_MTE3 = detail::pairOf(detail::Pipe::S, detail::Pipe::Mte3),
  S_FIX = detail::pairOf(detail::Pipe::S, detail::Pipe::Fix),
  V_S = detail::pairOf(detail::Pipe::V, detail::Pipe::S),
  V_V = detail::pairOf(detail::Pipe::V, detail::Pipe::V),
  V_M = detail::pairOf(detail::Pipe::V, detail::Pipe::M),
  V_MTE1 = detail::pairOf(detail::Pipe::V, detail::Pipe::Mte1),
  V_MTE2 = detail::pairOf(detail::Pipe::V, detail::Pipe::Mte2),
  V_MTE3 = detail::pairOf(detail::Pipe::V, detail::Pipe::Mte3),
  V_FIX = detail::pairOf(detail::Pipe::V, detail::Pipe::Fix),
  M_S = detail::pairOf(detail::Pipe::M, detail::Pipe::S),
  M_V = detail::pairOf(detail::Pipe::M, detail::Pipe::V),
  M_MTE1 = detail::pairOf(detail::Pipe::M, detail::Pipe::Mte1),
  M_MTE2 = detail::pairOf(detail::Pipe::M, detail::Pipe::Mte2),
  M_MTE3 = detail::pairOf(detail::Pipe::M, detail::Pipe::Mte3),
  M_FIX = detail::pairOf(detail::Pipe::M, detail::Pipe::Fix),
  MTE1_S = detail::pairOf(detail::Pipe::Mte1, detail::Pipe::S),
  MTE1_V = detail::pairOf(detail::Pipe::Mte1, detail::Pipe::V),
  MTE1_M = detail::pairOf(detail::Pipe::Mte1, detail::Pipe::M),
  MTE1_MTE2 = detail::pairOf(detail::Pipe::Mte1, detail::Pipe::Mte2),
  MTE1_MTE3 = detail::pairOf(detail::Pipe::Mte1, detail::Pipe::Mte3),
  MTE1_FIX = detail::pairOf(detail::Pipe::Mte1, detail::Pipe::Fix),
  MTE2_S = detail::pairOf(detail::Pipe::Mte2, detail::Pipe::S),
  MTE2_V = detail::pairOf(detail::Pipe::Mte2, detail::Pipe::V),
  MTE2_M = detail::pairOf(detail::Pipe::Mte2, detail::Pipe::M),
  MTE2_MTE1 = detail::pairOf(detail::Pipe::Mte2, detail::Pipe::Mte1),
  MTE2_MTE3 = detail::pairOf(detail::Pipe::Mte2, detail::Pipe::Mte3),
  MTE2_FIX = detail::pairOf(detail::Pipe::Mte2, detail::Pipe::Fix),
  MTE3_S = detail::pairOf(detail::Pipe::Mte3, detail::Pipe::S),
  MTE3_V = detail::pairOf(detail::Pipe::Mte3, detail::Pipe::V),
  MTE3_MTE1 = detail::pairOf(detail::Pipe::Mte3, detail::Pipe::Mte1),
  MTE3_MTE2 = detail::pairOf(detail::Pipe::Mte3, detail::Pipe::Mte2),
  MTE3_FIX = detail::pairOf(detail::Pipe::Mte3, detail::Pipe::Fix),
  FIX_S = detail::pairOf(detail::Pipe::Fix, detail::Pipe::S),
  FIX_V = detail::pairOf(detail::Pipe::Fix, detail::Pipe::V),
  FIX_M = detail::pairOf(detail::Pipe::Fix, detail::Pipe::M),
  FIX_MTE1 = detail::pairOf(detail::Pipe::Fix, detail::Pipe::Mte1),
  FIX_MTE2 = detail::pairOf(detail::Pipe::Fix, detail::Pipe::Mte2),
  FIX_MTE3 = detail::pairOf(detail::Pipe::Fix, detail::Pipe::Mte3),
};

namespace detail {
constexpr Pipe sourceOf(HardEvent event) {
  return static_cast<Pipe>(static_cast<std::uint8_t>(event) / 8);
}
constexpr Pipe targetOf(HardEvent event) {
  return static_cast<Pipe>(static_cast<std::uint8_t>(event) % 8);
}
}  // namespace detail

enum class PaddingMode : std::uint8_t { Normal = 0, Compact };
enum class CacheMode : std::uint8_t {
  CACHE_MODE_DISABLE,
  CACHE_MODE_NORMAL,
  CACHE_MODE_LAST,
  CACHE_MODE_PERSISTENT
};
enum class CacheRwMode : std::uint8_t { READ = 1, WRITE = 2, RW = 3 };
enum class CacheLine : std::uint64_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE };
enum class DcciDst : std::uint64_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };

// Units: 32-byte blocks for DataCopy; for DataCopyPad bytes on the global-memory side.
struct DataCopyParams {
  std::uint16_t blockCount = 1;
  std::uint16_t blockLen = 0;
  union {
    std::uint16_t srcGap;
    std::uint16_t srcStride = 0;
  };
  union {
    std::uint16_t dstGap;
    std::uint16_t dstStride = 0;
  };
  constexpr DataCopyParams() = default;
  constexpr DataCopyParams(std::uint16_t count, std::uint16_t length, std::uint16_t srcGapIn = 0,
                           std::uint16_t dstGapIn = 0)
      : blockCount(count), blockLen(length), srcStride(srcGapIn), dstStride(dstGapIn) {}
};

struct DataCopyExtParams {
  std::uint16_t blockCount = 1;
  std::uint32_t blockLen = 0;  // bytes
  std::int64_t srcStride = 0;  // end of a block to the start of the next
  std::int64_t dstStride = 0;
  std::uint32_t rsv = 0;
  constexpr DataCopyExtParams() = default;
  constexpr DataCopyExtParams(std::uint16_t count, std::uint32_t length, std::int64_t srcStrideIn,
                              std::int64_t dstStrideIn, std::uint32_t reserved)
      : blockCount(count), blockLen(length), srcStride(srcStrideIn), dstStride(dstStrideIn), rsv(reserved) {}
};

struct DataCopyPadParams {
  bool isPad = false;
  std::uint8_t leftPadding = 0;   // elements
  std::uint8_t rightPadding = 0;  // elements
  std::uint64_t paddingValue = 0;
  constexpr DataCopyPadParams() = default;
  constexpr DataCopyPadParams(bool pad, std::uint8_t left, std::uint8_t right, std::uint64_t value)
      : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};

template <typename T>
struct DataCopyPadExtParams {
  bool isPad = false;
  std::uint8_t leftPadding = 0;
  std::uint8_t rightPadding = 0;
  T paddingValue{};
  constexpr DataCopyPadExtParams() = default;
  constexpr DataCopyPadExtParams(bool pad, std::uint8_t left, std::uint8_t right, T value)
      : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};

// Units: 32-byte blocks (stride between blocks of a repeat, and between repeats).
struct UnaryRepeatParams {
  std::uint16_t dstBlkStride = 1;
  std::uint16_t srcBlkStride = 1;
  std::uint8_t dstRepStride = 8;
  std::uint8_t srcRepStride = 8;
};
struct BinaryRepeatParams {
  std::uint8_t dstBlkStride = 1;
  std::uint8_t src0BlkStride = 1;
  std::uint8_t src1BlkStride = 1;
  std::uint8_t dstRepStride = 8;
  std::uint8_t src0RepStride = 8;
  std::uint8_t src1RepStride = 8;
};

struct SumParams {
  std::uint32_t outter = 1;  // rows
  std::uint32_t inner = 0;   // elements from one row to the next, a multiple of 32 bytes
  std::uint32_t n = 0;       // elements of a row that are summed
};

inline constexpr std::uint32_t TOTAL_UB_SIZE = 248 * 1024;
inline constexpr std::uint32_t CACHE_LINE_SIZE = 64;
inline constexpr std::uint32_t ONE_BLK_SIZE = 32;
inline constexpr std::uint32_t ONE_REPEAT_BYTE_SIZE = 256;
inline constexpr std::uint32_t DEFAULT_BLK_STRIDE = 1;
inline constexpr std::uint32_t DEFAULT_REPEAT_STRIDE = 8;

}  // namespace AscendC

using AscendC::TEventID;
inline constexpr TEventID EVENT_ID0 = 0;
inline constexpr TEventID EVENT_ID1 = 1;
inline constexpr TEventID EVENT_ID2 = 2;
inline constexpr TEventID EVENT_ID3 = 3;
inline constexpr TEventID EVENT_ID4 = 4;
inline constexpr TEventID EVENT_ID5 = 5;
inline constexpr TEventID EVENT_ID6 = 6;
inline constexpr TEventID EVENT_ID7 = 7;
