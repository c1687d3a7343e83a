// Stacks for kernel blocks, and the switch onto and off them. One thread uses them: the simulation thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace vatlas::sim {

// A guarded stack with a block's suspended execution on it.
class Fiber {
 public:
  using Entry = void (*)(void* argument);

  explicit Fiber(std::size_t stackBytes);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Prepares a fresh execution of entry(argument). Whatever was suspended on the stack is forgotten, not
  // unwound.
  void prepare(Entry entry, void* argument);
  // Runs until the block suspends or its entry returns; false when it has returned.
  bool resume();
  // Called on the fiber: back to resume().
  void suspend();
  // Called on the fiber, possibly on a damaged stack: leaves it for good. resume() returns false.
  [[noreturn]] void abandon() noexcept;

  const std::byte* stackBottom() const noexcept { return bottom_; }
  std::size_t stackBytes() const noexcept { return bytes_; }
  bool inGuard(const void* address) const noexcept;

 private:
  void enter(Entry entry, void* argument);
  struct Sanitizer;

  std::byte* mapping_ = nullptr;
  std::byte* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  void* context_ = nullptr;  // the suspended block
  void* caller_ = nullptr;   // the suspended simulator
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  bool running_ = false;
  std::unique_ptr<Sanitizer> sanitizer_;
  alignas(8) unsigned char exceptionGlobals_[32] =
      {};  // the C++ runtime's per-thread state, swapped at each switch
};

// Fibers that are not in use, kept for the next launch.
class FiberPool {
 public:
  explicit FiberPool(std::size_t stackBytes) : stackBytes_(stackBytes) {}
  std::unique_ptr<Fiber> take();
  void give(std::unique_ptr<Fiber> fiber) { idle_.push_back(std::move(fiber)); }

 private:
  std::size_t stackBytes_;
  std::vector<std::unique_ptr<Fiber>> idle_;
};

}  // namespace vatlas::sim
