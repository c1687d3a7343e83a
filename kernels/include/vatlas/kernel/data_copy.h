// DataCopy and DataCopyPad. Global memory to UB runs on MTE2, UB to global memory on MTE3, UB to UB on the
// vector unit. Units and rounding: vendor documentation.
#pragma once

#include <cstdint>
#include <cstring>

#include "vatlas/kernel/core.h"
#include "vatlas/kernel/enums.h"
#include "vatlas/kernel/tensor.h"

namespace AscendC {

namespace detail {

using vatlas::sim::CopyShape;

// Bytes from the first to behind the last one that a strided copy touches in UB (strides are not negative
// there).
inline std::uint64_t ubSpan(const CopyShape& shape) {
  if (shape.count == 0 || shape.bytes == 0) return 0;
  return static_cast<std::uint64_t>(shape.ubStride) * (shape.count - 1) + shape.bytes;
}

inline void copyIn(void* ub, const void* gm, const CopyShape& shape, const char* call) {
  if (shape.count == 0 || shape.bytes == 0) return;
  auto& core = vatlas::kernels::core();
  vatlas::kernels::checkUb(core, ub, ubSpan(shape), call);
  core.copyIn(ub, gm, shape);
}
inline void copyOut(void* gm, const void* ub, const CopyShape& shape, const char* call) {
  if (shape.count == 0 || shape.bytes == 0) return;
  auto& core = vatlas::kernels::core();
  vatlas::kernels::checkUb(core, ub, ubSpan(shape), call);
  core.copyOut(gm, ub, shape);
}
inline CopyShape flat(std::uint64_t bytes) {
  return {1, bytes, static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(bytes)};
}
inline std::uint64_t wholeBlocks(std::uint64_t bytes) {
  return bytes & ~std::uint64_t{31};
}

}  // namespace detail

// `count` elements; the bytes are rounded down to a multiple of 32, as the card does.
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const std::uint32_t count) {
  detail::copyIn(dst.GetPhyAddr(), src.GetPhyAddr(), detail::flat(detail::wholeBlocks(count * sizeof(T))),
                 "DataCopy");
}
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const std::uint32_t count) {
  detail::copyOut(dst.GetPhyAddr(), src.GetPhyAddr(), detail::flat(detail::wholeBlocks(count * sizeof(T))),
                  "DataCopy");
}
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const std::uint32_t count) {
  const std::uint64_t bytes = detail::wholeBlocks(count * sizeof(T));
  if (bytes == 0) return;
  auto& core = vatlas::kernels::core();
  vatlas::kernels::checkUb(core, dst.GetPhyAddr(), bytes, "DataCopy");
  vatlas::kernels::checkUb(core, src.GetPhyAddr(), bytes, "DataCopy");
  core.settle(src.GetPhyAddr(), bytes, false);
  core.settle(dst.GetPhyAddr(), bytes, true);
  std::memmove(dst.GetPhyAddr(), src.GetPhyAddr(), bytes);
  core.vector(vatlas::sim::VectorOp::Copy, vatlas::kernels::repeatsOf(bytes));
}

// blockCount blocks of blockLen * 32 bytes; gaps in units of 32 bytes.
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params) {
  const std::int64_t bytes = params.blockLen * 32;
  detail::copyIn(dst.GetPhyAddr(), src.GetPhyAddr(),
                 {params.blockCount, static_cast<std::uint64_t>(bytes), bytes + params.srcStride * 32,
                  bytes + params.dstStride * 32},
                 "DataCopy");
}
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params) {
  const std::int64_t bytes = params.blockLen * 32;
  detail::copyOut(dst.GetPhyAddr(), src.GetPhyAddr(),
                  {params.blockCount, static_cast<std::uint64_t>(bytes), bytes + params.dstStride * 32,
                   bytes + params.srcStride * 32},
                  "DataCopy");
}
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(params.blockLen) * 32;
  if (bytes == 0 || params.blockCount == 0) return;
  auto& core = vatlas::kernels::core();
  const std::uint64_t dstStep = bytes + params.dstStride * 32U;
  const std::uint64_t srcStep = bytes + params.srcStride * 32U;
  vatlas::kernels::checkUb(core, dst.GetPhyAddr(), dstStep * (params.blockCount - 1U) + bytes, "DataCopy");
  vatlas::kernels::checkUb(core, src.GetPhyAddr(), srcStep * (params.blockCount - 1U) + bytes, "DataCopy");
  auto* to = reinterpret_cast<std::byte*>(dst.GetPhyAddr());
  const auto* from = reinterpret_cast<const std::byte*>(src.GetPhyAddr());
  core.settle(from, srcStep * (params.blockCount - 1U) + bytes, false);
  core.settle(to, dstStep * (params.blockCount - 1U) + bytes, true);
  for (std::uint32_t i = 0; i < params.blockCount; ++i)
    std::memmove(to + i * dstStep, from + i * srcStep, bytes);
  core.vector(vatlas::sim::VectorOp::Copy, vatlas::kernels::repeatsOf(bytes * params.blockCount));
}

namespace detail {

// One DataCopyPad into UB: rows of `bytes` bytes, each behind `left` and before `right` elements of padding.
template <typename T>
struct PadIn {
  std::uint32_t count;
  std::uint32_t bytes;
  std::int64_t srcStride;  // bytes
  std::int64_t dstStride;  // 32-byte blocks
  bool fills;  // with `value`; else with the row's first element, or with zero beside explicit padding
  std::uint32_t left;
  std::uint32_t right;
  T value;
};

template <typename T>
inline void padRow(T* row, std::uint32_t left, std::uint32_t elements, std::uint32_t total, const T& value) {
  for (std::uint32_t i = 0; i < left; ++i) row[i] = value;
  for (std::uint32_t i = left + elements; i < total; ++i) row[i] = value;
}

template <typename T, PaddingMode mode>
inline void copyPadIn(T* ub, const T* gm, const PadIn<T>& pad) {
  if (pad.count == 0 || pad.bytes == 0) return;
  auto& core = vatlas::kernels::core();
  if (pad.bytes % sizeof(T) != 0)
    vatlas::kernels::faultArgument(core, "DataCopyPad", "blockLen", pad.bytes,
                                   "a multiple of the element size");
  if (pad.left * sizeof(T) > 32 || pad.right * sizeof(T) > 32)
    vatlas::kernels::faultArgument(core, "DataCopyPad", "padding elements",
                                   pad.left > pad.right ? pad.left : pad.right,
                                   "at most 32 bytes on each side");
  constexpr bool kCompact = mode == PaddingMode::Compact;
  const std::uint32_t elements = pad.bytes / static_cast<std::uint32_t>(sizeof(T));
  const std::uint64_t used = pad.bytes + (pad.left + pad.right) * sizeof(T);
  const std::uint64_t row = kCompact ? used : (used + 31) / 32 * 32;
  const std::uint64_t step = kCompact ? used : row + static_cast<std::uint64_t>(pad.dstStride * 32);
  const std::uint64_t span = step * (pad.count - 1) + (kCompact ? (used + 31) / 32 * 32 : row);
  vatlas::kernels::checkUb(core, ub, span, "DataCopyPad");
  core.settle(ub, span, true);
  core.copyIn(ub + pad.left, gm,
              {pad.count, pad.bytes, pad.bytes + pad.srcStride, static_cast<std::int64_t>(step)});
  if (kCompact) {
    const std::uint64_t end = step * pad.count;
    for (std::uint32_t i = 0; i < pad.count && (pad.left | pad.right) != 0; ++i)
      padRow(reinterpret_cast<T*>(reinterpret_cast<std::byte*>(ub) + i * step), pad.left, elements,
             static_cast<std::uint32_t>(used / sizeof(T)), pad.value);
    padRow(reinterpret_cast<T*>(reinterpret_cast<std::byte*>(ub) + end), 0, 0,
           static_cast<std::uint32_t>((span - end) / sizeof(T)), pad.fills ? pad.value : *ub);
    return;
  }
  if (row == pad.bytes) return;
  for (std::uint32_t i = 0; i < pad.count; ++i) {
    T* start = reinterpret_cast<T*>(reinterpret_cast<std::byte*>(ub) + i * step);
    T value = pad.value;
    if (!pad.fills) {
      value = start[0];
      if ((pad.left | pad.right) != 0) std::memset(static_cast<void*>(&value), 0, sizeof(T));
    }
    padRow(start, pad.left, elements, static_cast<std::uint32_t>(row / sizeof(T)), value);
  }
}

template <typename T, PaddingMode mode>
inline void copyPadOut(T* gm, const T* ub, std::uint32_t count, std::uint32_t bytes, std::int64_t srcStride,
                       std::int64_t dstStride) {
  const std::int64_t row = mode == PaddingMode::Compact ? bytes : (bytes + 31) / 32 * 32 + srcStride * 32;
  copyOut(gm, ub, {count, bytes, bytes + dstStride, row}, "DataCopyPad");
}

template <typename T>
inline T paddingOf(std::uint64_t code) {
  T value;
  std::memcpy(static_cast<void*>(&value), &code, sizeof(T));
  return value;
}

}  // namespace detail

template <typename T, PaddingMode mode = PaddingMode::Normal>
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params,
                        const DataCopyPadParams& pad) {
  detail::copyPadIn<T, mode>(
      dst.GetPhyAddr(), src.GetPhyAddr(),
      {params.blockCount, params.blockLen, params.srcStride, params.dstStride, pad.isPad, pad.leftPadding,
       pad.rightPadding, detail::paddingOf<T>(pad.paddingValue)});
}
template <typename T, PaddingMode mode = PaddingMode::Normal>
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                        const DataCopyExtParams& params, const DataCopyPadExtParams<T>& pad) {
  detail::copyPadIn<T, mode>(dst.GetPhyAddr(), src.GetPhyAddr(),
                             {params.blockCount, params.blockLen, params.srcStride, params.dstStride,
                              pad.isPad, pad.leftPadding, pad.rightPadding, pad.paddingValue});
}
template <typename T, PaddingMode mode = PaddingMode::Normal>
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params) {
  detail::copyPadOut<T, mode>(dst.GetPhyAddr(), src.GetPhyAddr(), params.blockCount, params.blockLen,
                              params.srcStride, params.dstStride);
}
template <typename T, PaddingMode mode = PaddingMode::Normal>
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                        const DataCopyExtParams& params) {
  detail::copyPadOut<T, mode>(dst.GetPhyAddr(), src.GetPhyAddr(), params.blockCount, params.blockLen,
                              params.srcStride, params.dstStride);
}

}  // namespace AscendC
