// Turns a trap in kernel code (bad access, division by zero, illegal instruction, stack overflow, endless
// loop) into the end of its block. Active on one thread, between arm() and disarm(); other traps go where
// they went before.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>

#include "vatlas/sim/core_port.h"

namespace vatlas::sim {

class Fiber;

// What the block that runs now looks like to the signal handler.
struct RunningBlock {
  Fiber* fiber = nullptr;
  std::atomic<bool> inApi{false};  // the engine's own code is running: never abandon there
  std::uintptr_t imageBegin = 0;   // the kernel's image, for the watchdog
  std::uintptr_t imageEnd = 0;
  volatile bool trapped = false;
  KernelFault kind = KernelFault::BadAccess;
  const void* address = nullptr;
  std::atomic<std::uint64_t> progress{0};  // API calls so far, for the watchdog
  std::atomic<bool> stopRequested{false};  // the watchdog's word to the next API call
};

class FaultGuard {
 public:
  explicit FaultGuard(int watchdogMilliseconds);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  void arm();  // on the simulation thread, before blocks run
  void disarm();
  void setRunning(RunningBlock* block) noexcept;  // null: the simulator itself is running

 private:
  struct State;
  State* state_;
};

}  // namespace vatlas::sim
