#include "fault_guard.h"

#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "fiber.h"

namespace vatlas::sim {
namespace {

constexpr std::array<int, 4> kTraps = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr std::size_t kAltStack = 64 * 1024;

int watchdogSignal() {
  return SIGRTMAX - 5;
}

// Signal handlers have no argument of ours: the block that runs on this thread. Set by the one simulation
// thread.
thread_local RunningBlock* runningBlock = nullptr;
std::array<struct sigaction, 4> previousActions{};  // written while arming, on the one simulation thread

// Runs on the fiber after the handler has returned into it.
extern "C" void vatlasAbandonBlock() {
  RunningBlock* block = runningBlock;
  block->fiber->abandon();
}

// Makes the interrupted context continue in vatlasAbandonBlock instead of the faulting instruction.
void redirect(RunningBlock& block, ucontext_t& context) {
  auto& registers = context.uc_mcontext.gregs;
  auto stack = static_cast<std::uintptr_t>(registers[REG_RSP]);
  const auto bottom = reinterpret_cast<std::uintptr_t>(block.fiber->stackBottom());
  constexpr std::uintptr_t kRoom = 32 * 1024;
  const std::uintptr_t top = bottom + block.fiber->stackBytes();
  if (stack < bottom + kRoom || stack > top) stack = bottom + kRoom;  // overflowed, or gone astray
  stack = ((stack - 256) & ~std::uintptr_t{15}) - 8;
  registers[REG_RSP] = static_cast<greg_t>(stack);
  registers[REG_RIP] = reinterpret_cast<greg_t>(&vatlasAbandonBlock);
}

void passOn(int signal, siginfo_t* info, void* context) {
  for (std::size_t i = 0; i < kTraps.size(); ++i) {
    if (kTraps[i] != signal) continue;
    const struct sigaction& old = previousActions[i];
    if ((old.sa_flags & SA_SIGINFO) != 0 && old.sa_sigaction != nullptr) {
      old.sa_sigaction(signal, info, context);
    } else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
      old.sa_handler(signal);
    } else {
      sigaction(signal, &old, nullptr);  // the default: happens when the instruction runs again
    }
  }
}

void onTrap(int signal, siginfo_t* info, void* context) {
  RunningBlock* block = runningBlock;
  if (block == nullptr || block->inApi.load(std::memory_order_relaxed)) {
    passOn(signal, info, context);
    return;
  }
  block->trapped = true;
  block->address = info->si_addr;
  switch (signal) {
    case SIGFPE:
      block->kind = KernelFault::DivisionByZero;
      break;
    case SIGILL:
      block->kind = KernelFault::IllegalInstruction;
      break;
    default:
      block->kind =
          block->fiber->inGuard(info->si_addr) ? KernelFault::StackOverflow : KernelFault::BadAccess;
  }
  redirect(*block, *static_cast<ucontext_t*>(context));
}

void onWatchdog(int, siginfo_t*, void* context) {
  // Two looks without an API call between them: the block computes for ever.
  static thread_local std::uint64_t lastProgress = UINT64_MAX;
  static thread_local const RunningBlock* lastBlock = nullptr;
  RunningBlock* block = runningBlock;
  if (block == nullptr) return;
  const std::uint64_t progress = block->progress.load(std::memory_order_relaxed);
  if (block != lastBlock || progress != lastProgress) {
    lastBlock = block;
    lastProgress = progress;
    return;
  }
  auto& user = *static_cast<ucontext_t*>(context);
  const auto pc = static_cast<std::uintptr_t>(user.uc_mcontext.gregs[REG_RIP]);
  if (block->inApi.load(std::memory_order_relaxed) || pc < block->imageBegin || pc >= block->imageEnd) {
    block->stopRequested.store(true, std::memory_order_relaxed);
    return;
  }
  block->trapped = true;
  block->address = reinterpret_cast<void*>(pc);
  block->kind = KernelFault::Endless;
  lastBlock = nullptr;
  redirect(*block, user);
}

// An exception that leaves a noexcept function of a kernel ends the block, not the program.
std::terminate_handler previousTerminate = nullptr;  // written while arming, on the one simulation thread

[[noreturn]] void onTerminate() {
  if (RunningBlock* block = runningBlock) {
    block->trapped = true;
    block->kind = KernelFault::Exception;
    block->address = nullptr;
    block->fiber->abandon();
  }
  if (previousTerminate != nullptr) previousTerminate();
  std::abort();
}

}  // namespace

struct FaultGuard::State {
  int watchdogMilliseconds = 0;
  std::vector<std::byte> altStack = std::vector<std::byte>(kAltStack);
  stack_t previousStack{};
  struct sigaction previousWatchdog {};
  timer_t timer{};
  bool hasTimer = false;
  pid_t timerThread = 0;
  bool armed = false;
};

FaultGuard::FaultGuard(int watchdogMilliseconds) : state_(new State) {
  state_->watchdogMilliseconds = watchdogMilliseconds;
}

FaultGuard::~FaultGuard() {
  if (state_->hasTimer) timer_delete(state_->timer);
  delete state_;
}

void FaultGuard::setRunning(RunningBlock* block) noexcept {
  runningBlock = block;
}

void FaultGuard::arm() {
  State& s = *state_;
  if (s.armed) return;
  s.armed = true;
  stack_t stack{};
  stack.ss_sp = s.altStack.data();
  stack.ss_size = s.altStack.size();
  sigaltstack(&stack, &s.previousStack);
  previousTerminate = std::set_terminate(onTerminate);
  struct sigaction action {};
  action.sa_sigaction = onTrap;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (std::size_t i = 0; i < kTraps.size(); ++i) sigaction(kTraps[i], &action, &previousActions[i]);
  if (s.watchdogMilliseconds <= 0) return;
  action.sa_sigaction = onWatchdog;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigaction(watchdogSignal(), &action, &s.previousWatchdog);
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  if (s.hasTimer && s.timerThread != self) {
    timer_delete(s.timer);
    s.hasTimer = false;
  }
  if (!s.hasTimer) {
    struct sigevent event {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = watchdogSignal();
    event._sigev_un._tid = self;
    s.hasTimer = timer_create(CLOCK_MONOTONIC, &event, &s.timer) == 0;
    s.timerThread = self;
  }
  if (s.hasTimer) {
    struct itimerspec period {};
    period.it_value.tv_sec = s.watchdogMilliseconds / 1000;
    period.it_value.tv_nsec = (s.watchdogMilliseconds % 1000) * 1'000'000L;
    period.it_interval = period.it_value;
    timer_settime(s.timer, 0, &period, nullptr);
  }
}

void FaultGuard::disarm() {
  State& s = *state_;
  if (!s.armed) return;
  s.armed = false;
  runningBlock = nullptr;
  std::set_terminate(previousTerminate);
  if (s.hasTimer) {
    const struct itimerspec off {};
    timer_settime(s.timer, 0, &off, nullptr);
  }
  for (std::size_t i = 0; i < kTraps.size(); ++i) sigaction(kTraps[i], &previousActions[i], nullptr);
  // A watchdog signal may still be pending: its handler stays, and finds no block.
  sigaltstack(&s.previousStack, nullptr);
}

}  // namespace vatlas::sim
