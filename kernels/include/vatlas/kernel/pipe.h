// TPipe, queues and buffers: UB allocation and the flags that order its users. Semantics: vendor
// documentation.
//
// UB is handed out in order, in units of 32 bytes. A queue's buffer carries two flags: "full" (EnQue to
// DeQue) and "free" (FreeTensor to the next AllocTensor), on the pipes of the queue's two ends.
#pragma once

#include <array>
#include <cstdint>
#include <exception>

#include "vatlas/kernel/core.h"
#include "vatlas/kernel/enums.h"
#include "vatlas/kernel/sync.h"
#include "vatlas/kernel/tensor.h"

namespace AscendC {

namespace detail {

enum class BufferState : std::uint8_t { Idle, Taken, Queued, Dequeued };

struct Buffer {
  std::byte* data = nullptr;
  std::uint32_t bytes = 0;
  BufferState state = BufferState::Idle;
  bool freeSet = false;  // a "free" flag is set and not yet waited for
  TEventID fullId = 0;
  TEventID freeId = 0;
  HardEvent freeEvent = HardEvent::S_V;
};

// Pipe that writes into a queue at `position`, and pipe that reads from it.
constexpr Pipe producerOf(TPosition src, TPosition dst) {
  const bool fromMemory = src == TPosition::GM || src == TPosition::VECIN;
  return fromMemory && (dst == TPosition::VECIN || dst == TPosition::VECOUT || dst == TPosition::VECCALC)
             ? Pipe::Mte2
             : Pipe::V;
}
constexpr Pipe consumerOf(TPosition dst) {
  return dst == TPosition::GM || dst == TPosition::VECOUT ? Pipe::Mte3 : Pipe::V;
}

constexpr bool isVectorPosition(TPosition position) {
  return position == TPosition::GM || position == TPosition::VECIN || position == TPosition::VECOUT ||
         position == TPosition::VECCALC;
}

}  // namespace detail

template <TPosition src, TPosition dst, std::int32_t depth, auto mask = 0>
class TQueBind;
template <TPosition position = TPosition::VECCALC>
class TBuf;

class TPipe {
 public:
  static constexpr std::uint32_t kMaxBuffers = 64;

  TPipe() : core_(vatlas::kernels::core()) { core_.apiState() = this; }
  TPipe(const TPipe&) = delete;
  TPipe& operator=(const TPipe&) = delete;
  // Waits for the flags that freed buffers left set, so that every flag is paired; may throw as any API call.
  ~TPipe() noexcept(false) {
    if (core_.apiState() == this) core_.apiState() = nullptr;
    if (std::uncaught_exceptions() == 0) settle();
  }

  void Init() {
    used_ = 0;
    buffers_ = 0;
    eventsTaken_ = {};
  }
  void Destroy() { Reset(); }
  // Gives all of UB back; queues and buffers must be set up again.
  void Reset() {
    settle();
    Init();
  }

  // `num` buffers of `bytes` bytes each for a queue.
  template <TPosition src, TPosition dst, std::int32_t depth, auto mask>
  bool InitBuffer(TQueBind<src, dst, depth, mask>& queue, std::uint8_t num, std::uint32_t bytes) {
    if (num == 0 || buffers_ + num > kMaxBuffers)
      vatlas::kernels::faultArgument(core_, "InitBuffer", "number of buffers", buffers_ + num,
                                     "1 to 64 in a TPipe");
    queue.attach(*this, static_cast<std::int32_t>(buffers_), num);
    for (std::uint32_t i = 0; i < num; ++i) {
      detail::Buffer& buffer = pool_[buffers_++];
      buffer = detail::Buffer{};
      buffer.bytes = roundUp(bytes);
      buffer.data = take(buffer.bytes);
    }
    return true;
  }
  template <TPosition position>
  bool InitBuffer(TBuf<position>& buffer, std::uint32_t bytes) {
    const std::uint32_t rounded = roundUp(bytes);
    buffer.attach(take(rounded), rounded);
    return true;
  }

  // An id whose flag is in nobody's use; Alloc keeps it until Release, Fetch does not.
  template <HardEvent event>
  TEventID AllocEventID() {
    return takeEvent(event);
  }
  template <HardEvent event>
  void ReleaseEventID(TEventID id) {
    giveEvent(event, id);
  }
  TEventID FetchEventID(HardEvent event) { return freeEvent(event); }
  template <HardEvent event>
  TEventID FetchEventID() {
    return freeEvent(event);
  }

  std::uint64_t GetQueueEndAddress() const { return used_; }
  detail::Buffer& buffer(std::int32_t index) { return pool_[static_cast<std::size_t>(index)]; }
  vatlas::sim::CorePort& port() const { return core_; }

  TEventID takeEvent(HardEvent event) {
    const TEventID id = freeEvent(event);
    eventsTaken_[static_cast<std::size_t>(event)] |= static_cast<std::uint8_t>(1U << id);
    return id;
  }
  void giveEvent(HardEvent event, TEventID id) {
    eventsTaken_[static_cast<std::size_t>(event)] &= static_cast<std::uint8_t>(~(1U << id));
  }

 private:
  static std::uint32_t roundUp(std::uint32_t bytes) { return (bytes + 31) / 32 * 32; }

  std::byte* take(std::uint32_t bytes) {
    if (bytes > core_.ubBytes() - used_) vatlas::kernels::faultUbBudget(core_, bytes, used_);
    std::byte* data = core_.ub() + used_;
    used_ += bytes;
    return data;
  }
  TEventID freeEvent(HardEvent event) const {
    const std::uint8_t taken = eventsTaken_[static_cast<std::size_t>(event)];
    if (taken == 0xFF)
      vatlas::kernels::faultArgument(core_, "FetchEventID", "ids in use", 8, "at most 8 a pair of pipes");
    return static_cast<TEventID>(__builtin_ctz(~static_cast<unsigned>(taken)));
  }
  void settle() {
    for (std::uint32_t i = 0; i < buffers_; ++i) {
      detail::Buffer& buffer = pool_[i];
      if (!buffer.freeSet) continue;
      buffer.freeSet = false;
      core_.waitFlag(detail::sourceOf(buffer.freeEvent), detail::targetOf(buffer.freeEvent), buffer.freeId);
    }
  }

  vatlas::sim::CorePort& core_;
  std::uint32_t used_ = 0;
  std::uint32_t buffers_ = 0;
  std::array<std::uint8_t, 64> eventsTaken_{};  // by HardEvent, a bit an id
  std::array<detail::Buffer, kMaxBuffers> pool_{};
};

// The pipe made last on this core.
inline TPipe* GetTPipePtr() {
  return static_cast<TPipe*>(vatlas::kernels::core().apiState());
}

template <TPosition src, TPosition dst, std::int32_t depth, auto mask>
class TQueBind {
  static_assert(detail::isVectorPosition(src) && detail::isVectorPosition(dst),
                "queues of the cube unit are not modelled: use VECIN, VECOUT or VECCALC");

 public:
  static constexpr detail::Pipe kProducer = detail::producerOf(src, dst);
  static constexpr detail::Pipe kConsumer = detail::consumerOf(dst);
  static constexpr HardEvent kFull = static_cast<HardEvent>(detail::pairOf(kProducer, kConsumer));
  static constexpr HardEvent kFree = static_cast<HardEvent>(detail::pairOf(kConsumer, kProducer));
  static constexpr bool kFlags = kProducer != kConsumer;
  static constexpr TPosition kPosition = dst == TPosition::GM ? src : dst;

  // A buffer that is not in use, once its last reader has finished.
  template <typename T>
  LocalTensor<T> AllocTensor() {
    for (std::uint8_t tried = 0; tried < count_; ++tried) {
      const std::int32_t index = first_ + next_;
      next_ = next_ + 1 == count_ ? 0 : next_ + 1;
      detail::Buffer& buffer = pipe_->buffer(index);
      if (buffer.state != detail::BufferState::Idle) continue;
      buffer.state = detail::BufferState::Taken;
      if (kFlags && buffer.freeSet) {
        buffer.freeSet = false;
        WaitFlag<kFree>(buffer.freeId);
        pipe_->giveEvent(kFree, buffer.freeId);
      }
      return tensor<T>(index);
    }
    vatlas::kernels::faultQueue(port(), "AllocTensor", "all buffers are in use", count_);
  }
  template <typename T>
  void AllocTensor(LocalTensor<T>& tensorOut) {
    tensorOut = AllocTensor<T>();
  }

  template <typename T>
  bool EnQue(const LocalTensor<T>& tensorIn) {
    detail::Buffer& buffer = own(tensorIn.bufferIndex(), "EnQue", detail::BufferState::Taken);
    if (kFlags) {
      buffer.fullId = pipe_->takeEvent(kFull);
      SetFlag<kFull>(buffer.fullId);
    }
    buffer.state = detail::BufferState::Queued;
    ring_[(head_ + queued_) % kRing] = static_cast<std::int8_t>(tensorIn.bufferIndex() - first_);
    ++queued_;
    return true;
  }

  template <typename T>
  LocalTensor<T> DeQue() {
    if (queued_ == 0) vatlas::kernels::faultQueue(port(), "DeQue", "the queue is empty", 0);
    const std::int32_t index = first_ + ring_[head_];
    head_ = static_cast<std::uint8_t>((head_ + 1) % kRing);
    --queued_;
    detail::Buffer& buffer = pipe_->buffer(index);
    buffer.state = detail::BufferState::Dequeued;
    if (kFlags) {
      WaitFlag<kFull>(buffer.fullId);
      pipe_->giveEvent(kFull, buffer.fullId);
    }
    return tensor<T>(index);
  }
  template <typename T>
  void DeQue(LocalTensor<T>& tensorOut) {
    tensorOut = DeQue<T>();
  }

  template <typename T>
  void FreeTensor(const LocalTensor<T>& tensorIn) {
    detail::Buffer& buffer = own(tensorIn.bufferIndex(), "FreeTensor", detail::BufferState::Dequeued);
    buffer.state = detail::BufferState::Idle;
    if (kFlags) {
      buffer.freeId = pipe_->takeEvent(kFree);
      buffer.freeEvent = kFree;
      buffer.freeSet = true;
      SetFlag<kFree>(buffer.freeId);
    }
  }

  bool VacantInQue() const { return queued_ < count_; }
  bool HasTensorInQue() const { return queued_ > 0; }
  std::int32_t GetTensorCountInQue() const { return queued_; }
  bool HasIdleBuffer() const {
    for (std::int32_t i = 0; i < count_; ++i)
      if (pipe_->buffer(first_ + i).state == detail::BufferState::Idle) return true;
    return false;
  }
  void FreeAllEvent() {
    for (std::int32_t i = 0; i < count_; ++i) {
      detail::Buffer& buffer = pipe_->buffer(first_ + i);
      if (!buffer.freeSet) continue;
      buffer.freeSet = false;
      WaitFlag<kFree>(buffer.freeId);
      pipe_->giveEvent(kFree, buffer.freeId);
    }
  }

  void attach(TPipe& pipe, std::int32_t first, std::uint8_t count) {
    pipe_ = &pipe;
    first_ = first;
    count_ = count;
    next_ = 0;
    head_ = 0;
    queued_ = 0;
  }

 private:
  static constexpr std::uint8_t kRing = TPipe::kMaxBuffers;

  vatlas::sim::CorePort& port() const { return vatlas::kernels::core(); }
  template <typename T>
  LocalTensor<T> tensor(std::int32_t index) const {
    detail::Buffer& buffer = pipe_->buffer(index);
    return {reinterpret_cast<T*>(buffer.data), buffer.bytes / static_cast<std::uint32_t>(sizeof(T)),
            kPosition, index};
  }
  detail::Buffer& own(std::int32_t index, const char* call, detail::BufferState least) {
    if (index < first_ || index >= first_ + count_ || pipe_ == nullptr)
      vatlas::kernels::faultQueue(port(), call, "the tensor is not one of this queue's", count_);
    detail::Buffer& buffer = pipe_->buffer(index);
    const bool fits = buffer.state == detail::BufferState::Taken || buffer.state == least;
    if (!fits) vatlas::kernels::faultQueue(port(), call, "the tensor is not in the caller's hands", count_);
    return buffer;
  }

  TPipe* pipe_ = nullptr;
  std::int32_t first_ = 0;
  std::uint8_t count_ = 0;
  std::uint8_t next_ = 0;
  std::uint8_t head_ = 0;
  std::uint8_t queued_ = 0;
  std::array<std::int8_t, kRing> ring_{};
};

namespace detail {
constexpr TPosition queueSource(TPosition position) {
  return position == TPosition::VECIN ? TPosition::GM : position;
}
constexpr TPosition queueTarget(TPosition position) {
  return position == TPosition::VECOUT ? TPosition::GM : position;
}
}  // namespace detail

template <TPosition position, std::int32_t depth, auto mask = 0>
class TQue : public TQueBind<detail::queueSource(position), detail::queueTarget(position), depth, mask> {};

// Room without a queue. `position` only names the use.
template <TPosition position>
class TBuf {
 public:
  template <typename T>
  LocalTensor<T> Get() {
    return Get<T>(bytes_ / static_cast<std::uint32_t>(sizeof(T)));
  }
  template <typename T>
  LocalTensor<T> Get(std::uint32_t count) {
    return {reinterpret_cast<T*>(data_), count, position, -1};
  }
  template <typename T>
  LocalTensor<T> GetWithOffset(std::uint32_t count, std::uint32_t offsetBytes) {
    return {reinterpret_cast<T*>(data_ + offsetBytes), count, position, -1};
  }
  std::uint32_t GetBufLen() const { return bytes_; }
  void attach(std::byte* data, std::uint32_t bytes) {
    data_ = data;
    bytes_ = bytes;
  }

 private:
  std::byte* data_ = nullptr;
  std::uint32_t bytes_ = 0;
};

// Static style: hands out UB in order, without queues.
template <Hardware hardware>
class LocalMemAllocator {
  static_assert(hardware == Hardware::UB, "only UB is modelled");

 public:
  template <TPosition position, typename T, std::uint32_t count>
  LocalTensor<T> Alloc() {
    return Alloc<position, T>(count);
  }
  template <typename T, std::uint32_t count>
  LocalTensor<T> Alloc() {
    return Alloc<TPosition::VECCALC, T>(count);
  }
  template <typename T>
  LocalTensor<T> Alloc(std::uint32_t count) {
    return Alloc<TPosition::VECCALC, T>(count);
  }
  template <TPosition position, typename T>
  LocalTensor<T> Alloc(std::uint32_t count) {
    auto& core = vatlas::kernels::core();
    const std::uint64_t bytes = (static_cast<std::uint64_t>(count) * sizeof(T) + 31) / 32 * 32;
    if (bytes > core.ubBytes() - used_) vatlas::kernels::faultUbBudget(core, bytes, used_);
    LocalTensor<T> result(reinterpret_cast<T*>(core.ub() + used_), count, position, -1);
    used_ += static_cast<std::uint32_t>(bytes);
    return result;
  }
  std::uint32_t GetCurAddr() const { return used_; }

 private:
  std::uint32_t used_ = 0;
};

}  // namespace AscendC
