// GlobalTensor and LocalTensor. Names and semantics: vendor documentation of Ascend C.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "vatlas/kernel/core.h"
#include "vatlas/kernel/enums.h"

namespace AscendC {

// A view of global memory (of any card). Scalar reads and writes take their time on the scalar pipe.
template <typename T>
class GlobalTensor {
 public:
  using PrimType = T;

  void SetGlobalBuffer(__gm__ T* buffer, std::uint64_t size) {
    data_ = buffer;
    size_ = size;
  }
  void SetGlobalBuffer(__gm__ T* buffer) { SetGlobalBuffer(buffer, 0); }
  __gm__ T* GetPhyAddr() const { return data_; }
  __gm__ T* GetPhyAddr(std::uint64_t offset) const { return data_ + offset; }
  std::uint64_t GetSize() const { return size_; }

  GlobalTensor operator[](std::uint64_t offset) const {
    GlobalTensor part = *this;
    part.data_ += offset;
    part.size_ = size_ > offset ? size_ - offset : 0;
    return part;
  }
  T GetValue(std::uint64_t offset) const {
    vatlas::kernels::core().scalarLoad(data_ + offset, sizeof(T));
    T value;
    std::memcpy(&value, data_ + offset, sizeof(T));
    return value;
  }
  void SetValue(std::uint64_t offset, T value) const {
    vatlas::kernels::core().scalarStore(data_ + offset, &value, sizeof(T));
  }
  T& operator()(std::uint64_t offset) const {
    vatlas::kernels::core().scalarLoad(data_ + offset, sizeof(T));
    return data_[offset];
  }
  template <typename U>
  GlobalTensor<U> ReinterpretCast() const {
    GlobalTensor<U> other;
    other.SetGlobalBuffer(reinterpret_cast<__gm__ U*>(data_), size_ * sizeof(T) / sizeof(U));
    return other;
  }
  template <CacheRwMode mode = CacheRwMode::RW>
  void SetL2CacheHint(CacheMode) {}  // the model has one cache policy

 private:
  T* data_ = nullptr;
  std::uint64_t size_ = 0;  // elements, 0: not given
};

// A view of UB. Holds the host address of the bytes, so element access costs what a pointer costs.
template <typename T>
class LocalTensor {
 public:
  using PrimType = T;

  LocalTensor() = default;
  // A tensor at a byte address of UB (static programming style).
  LocalTensor(TPosition position, std::uint32_t address, std::uint32_t size) : LocalTensor(address) {
    position_ = position;
    size_ = size;
  }
  explicit LocalTensor(std::uint32_t address) {
    auto& core = vatlas::kernels::core();
    if (address > core.ubBytes()) vatlas::kernels::faultRange(core, core.ub() + address, 0, "LocalTensor");
    data_ = reinterpret_cast<T*>(core.ub() + address);
    size_ = (core.ubBytes() - address) / static_cast<std::uint32_t>(sizeof(T));
  }
  // For the API itself.
  LocalTensor(T* data, std::uint32_t size, TPosition position, std::int32_t buffer)
      : data_(data), size_(size), buffer_(buffer), position_(position) {}

  LocalTensor operator[](std::uint32_t offset) const {
    LocalTensor part = *this;
    part.data_ += offset;
    part.size_ = size_ > offset ? size_ - offset : 0;
    return part;
  }
  T GetValue(std::uint32_t offset) const { return (*this)(offset); }
  template <typename U>
  void SetValue(std::uint32_t offset, U value) const {
    auto& core = vatlas::kernels::core();
    vatlas::kernels::checkUb(core, data_ + offset, sizeof(T), "SetValue", 1);
    core.settle(data_ + offset, sizeof(T), true);
    data_[offset] = static_cast<T>(value);
  }
  // A reference can be read: whoever waits in a loop for this value waits here.
  T& operator()(std::uint32_t offset) const {
    auto& core = vatlas::kernels::core();
    vatlas::kernels::checkUb(core, data_ + offset, sizeof(T), "GetValue", 1);
    core.observeUb(data_ + offset, sizeof(T));
    return data_[offset];
  }
  // Accesses through the pointer are ordered with instructions by flags and barriers, as on the card.
  __ubuf__ T* GetPhyAddr() const { return data_; }
  __ubuf__ T* GetPhyAddr(std::uint32_t offset) const { return data_ + offset; }
  std::uint32_t GetSize() const { return size_; }
  std::uint32_t GetLength() const { return size_ * static_cast<std::uint32_t>(sizeof(T)); }
  void SetSize(std::uint32_t size) { size_ = size; }
  TPosition GetPosition() const { return position_; }
  template <typename U>
  LocalTensor<U> ReinterpretCast() const {
    const std::uint64_t bytes = static_cast<std::uint64_t>(size_) * sizeof(T);
    return {reinterpret_cast<U*>(data_), static_cast<std::uint32_t>(bytes / sizeof(U)), position_, buffer_};
  }
  void SetUserTag(std::int32_t tag) { tag_ = tag; }
  std::int32_t GetUserTag() const { return tag_; }
  std::int32_t bufferIndex() const { return buffer_; }  // of the API itself: the TPipe buffer it came from

 private:
  T* data_ = nullptr;
  std::uint32_t size_ = 0;  // elements
  std::int32_t buffer_ = -1;
  std::int32_t tag_ = 0;
  TPosition position_ = TPosition::VECCALC;
};

}  // namespace AscendC
