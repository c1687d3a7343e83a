// What an AI core offers to the kernel code that runs on it: the one header of sim/ that kernels/ may
// include.
//
// A call has its effect on the bytes at once, in program order (vector instructions: as soon as anything
// could tell the difference), and leaves a compact record from which the engine works out the time
// (docs/design.md). All functions must be called from a kernel block; elsewhere they throw std::logic_error.
// They may throw KernelUnwind (cancel or fault); kernel API functions are therefore not noexcept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "vatlas/sim/config.h"
#include "vatlas/sim/vector_work.h"

namespace vatlas::sim {

// Numeric values are private to the model; kernels/ maps the vendor's names to them.
enum class Pipe : std::uint8_t { S, V, M, Mte1, Mte2, Mte3, Fix, Count };
inline constexpr std::size_t kPipeCount = static_cast<std::size_t>(Pipe::Count);

enum class KernelFault : std::uint8_t {
  BadAccess,  // address outside every allocation, or outside UB
  Misaligned,
  StackOverflow,
  DivisionByZero,
  IllegalInstruction,
  Exception,      // the kernel threw
  Endless,        // stopped by the watchdog
  ApiMisuse,      // an API call with arguments the hardware does not accept
  WindowOverrun,  // a kernel would write past a communicator's window
};

// Shape of a DMA copy: `count` rows of `bytes` bytes; strides are distances between row starts, in bytes.
struct CopyShape {
  std::uint32_t count = 1;
  std::uint64_t bytes = 0;
  std::int64_t gmStride = 0;
  std::int64_t ubStride = 0;
  constexpr std::uint64_t total() const { return count * bytes; }
};

class CorePort;
// The core whose block runs on this thread; set around every switch onto a block.
extern constinit thread_local CorePort* currentCorePort __attribute__((tls_model("initial-exec")));

class CorePort {
 public:
  CorePort(const CorePort&) = delete;
  CorePort& operator=(const CorePort&) = delete;

  // The core whose block runs on this thread.
  static CorePort& current() {
    if (currentCorePort == nullptr) [[unlikely]]
      outsideKernel();
    return *currentCorePort;
  }
  static CorePort* currentOrNull() noexcept { return currentCorePort; }

  // Identity
  // -----------------------------------------------------------------------------------------------------
  int blockIdx() const noexcept { return blockIdx_; }
  int blockNum() const noexcept { return blockNum_; }
  int deviceId() const noexcept { return deviceId_; }
  int subBlockIdx() const noexcept { return 0; }
  std::byte* ub() const noexcept { return ub_; }  // 64-byte aligned
  std::uint32_t ubBytes() const noexcept { return ubUsable_; }
  const Switches& switches() const noexcept { return *switches_; }
  // The communicator context the launch was given (GetHcclContext); null without one.
  void* hcclContext(int index) const noexcept { return index == 0 ? hcclContext_ : nullptr; }
  // Room for the kernel API's own per-block state (its current TPipe); zero when the block starts.
  void*& apiState() noexcept { return apiState_; }

  // Instructions
  // ------------------------------------------------------------------------------------------------- A
  // vector instruction whose effect the caller has applied; repeats = 256-byte repeats, at least 1.
  void vector(VectorOp op, std::uint32_t repeats);
  // ... whose effect may be put off until something looks at the operands: a copy, a scalar access, a wait
  // of the scalar unit for the vector unit, or whoever calls settle(). The ranges have been checked.
  void vector(VectorOp op, std::uint32_t repeats, const VectorWork& work);
  // Before the caller itself reads or writes UB: does what has been put off, as far as it concerns the range.
  void settle(const void* ub, std::uint64_t bytes, bool writes) {
    if (putOff_ != 0) settlePutOff(ub, bytes, writes);
  }
  // DMA: global memory (any card) to UB on MTE2, UB to global memory on MTE3. Both ranges are checked; a bad
  // one faults the block. Rows whose shape is empty do nothing.
  void copyIn(void* ub, const void* gm, const CopyShape& shape);
  void copyOut(void* gm, const void* ub, const CopyShape& shape);
  void setFlag(Pipe src, Pipe dst, int id);   // after all earlier work of src; id 0..7
  void waitFlag(Pipe src, Pipe dst, int id);  // dst goes on only after the matching setFlag
  void pipeBarrier(Pipe pipe);                // later instructions of the pipe wait for its earlier ones
  void pipeBarrierAll();
  // A scalar read of UB is about to happen: a loop may decide on it (a poll ends here).
  void observeUb(const void* ub, std::uint32_t bytes);
  // Scalar accesses to global memory.
  void scalarLoad(const void* gm, std::uint32_t bytes);  // checks, polls and time; the caller then reads
  void scalarStore(void* gm, const void* value, std::uint32_t bytes);
  std::int64_t systemCycle();  // waits until simulated time has come this far
  // Output of printf in a kernel, one line a call, prefixed and passed to the session's sink.
  void print(std::string_view text);

  // Ends the block with a fault; never returns.
  [[noreturn]] void fault(KernelFault kind, std::string_view what, const void* address = nullptr);

 private:
  [[noreturn]] static void outsideKernel();
  void settlePutOff(const void* ub, std::uint64_t bytes, bool writes);

 protected:
  CorePort() = default;
  ~CorePort() = default;

  int blockIdx_ = 0;
  int blockNum_ = 0;
  int deviceId_ = 0;
  std::uint32_t ubUsable_ = 0;
  std::uint32_t putOff_ = 0;  // vector instructions whose effect is still to come
  std::byte* ub_ = nullptr;
  void* hcclContext_ = nullptr;
  void* apiState_ = nullptr;
  const Switches* switches_ = nullptr;
};

// Thrown through kernel code to unwind a block that is cancelled or has faulted. Kernels must let it pass;
// one that swallows it meets it again at its next API call.
struct KernelUnwind {};

}  // namespace vatlas::sim
