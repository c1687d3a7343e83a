#include "fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace vatlas::sim {

namespace context = boost::context::detail;

namespace {
constexpr std::size_t kGuard = 64 * 1024;  // large frames must not step over it

// __cxa_get_globals(): caught-exceptions list and uncaught count. A switch inside a catch block would
// otherwise leave one block's exceptions on another's list.
struct CxaGlobals {
  void* caught;
  unsigned int uncaught;
};

void swapExceptionState(unsigned char* store) {
  auto* live = reinterpret_cast<CxaGlobals*>(abi::__cxa_get_globals());
  CxaGlobals saved;
  std::memcpy(&saved, store, sizeof saved);
  std::memcpy(store, live, sizeof saved);
  *live = saved;
}
}  // namespace

struct Fiber::Sanitizer {
#if defined(__SANITIZE_ADDRESS__)
  void* fakeStack = nullptr;        // of the suspended block
  void* callerFakeStack = nullptr;  // of the suspended simulator
  const void* callerBottom = nullptr;
  std::size_t callerSize = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* fiber = nullptr;
  void* caller = nullptr;
#endif
};

Fiber::Fiber(std::size_t stackBytes) : bytes_(stackBytes), sanitizer_(std::make_unique<Sanitizer>()) {
  void* mapping = mmap(nullptr, bytes_ + kGuard, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(mapping);
  if (mprotect(mapping_, kGuard, PROT_NONE) != 0) {
    munmap(mapping_, bytes_ + kGuard);
    throw std::bad_alloc();
  }
  bottom_ = mapping_ + kGuard;
#if defined(__SANITIZE_THREAD__)
  sanitizer_->fiber = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(sanitizer_->fiber);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(bottom_, bytes_);
#endif
  munmap(mapping_, bytes_ + kGuard);
}

bool Fiber::inGuard(const void* address) const noexcept {
  const auto* byte = static_cast<const std::byte*>(address);
  return byte >= mapping_ && byte < bottom_;
}

void Fiber::enter(Entry entry, void* argument) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &sanitizer_->callerBottom, &sanitizer_->callerSize);
#endif
  entry(argument);
  running_ = false;
  abandon();
}

void Fiber::prepare(Entry entry, void* argument) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(bottom_, bytes_);
  sanitizer_->fakeStack = nullptr;
#endif
  std::memset(exceptionGlobals_, 0, sizeof exceptionGlobals_);
  entry_ = entry;
  argument_ = argument;
  running_ = true;
  context_ = context::make_fcontext(bottom_ + bytes_, bytes_, [](context::transfer_t from) {
    auto* fiber = static_cast<Fiber*>(from.data);
    fiber->caller_ = from.fctx;
    fiber->enter(fiber->entry_, fiber->argument_);
  });
}

bool Fiber::resume() {
  swapExceptionState(exceptionGlobals_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&sanitizer_->callerFakeStack, bottom_, bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
  sanitizer_->caller = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer_->fiber, 0);
#endif
  const context::transfer_t back = context::jump_fcontext(context_, this);
  context_ = back.fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(sanitizer_->callerFakeStack, nullptr, nullptr);
#endif
  swapExceptionState(exceptionGlobals_);
  return running_;
}

void Fiber::suspend() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&sanitizer_->fakeStack, sanitizer_->callerBottom, sanitizer_->callerSize);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(sanitizer_->caller, 0);
#endif
  const context::transfer_t back = context::jump_fcontext(caller_, nullptr);
  caller_ = back.fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(sanitizer_->fakeStack, &sanitizer_->callerBottom, &sanitizer_->callerSize);
#endif
}

void Fiber::abandon() noexcept {
  running_ = false;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, sanitizer_->callerBottom, sanitizer_->callerSize);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(sanitizer_->caller, 0);
#endif
  context::jump_fcontext(caller_, nullptr);
  __builtin_unreachable();  // nobody resumes a fiber that is not running
}

std::unique_ptr<Fiber> FiberPool::take() {
  if (idle_.empty()) return std::make_unique<Fiber>(stackBytes_);
  std::unique_ptr<Fiber> fiber = std::move(idle_.back());
  idle_.pop_back();
  return fiber;
}

}  // namespace vatlas::sim
