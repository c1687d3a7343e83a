#include "session/sim_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace vatlas::runtime {

namespace asio = boost::asio;

struct SimThread::State {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  asio::posix::stream_descriptor wakeup{context};
  std::uint64_t wakeupCount = 0;
  std::function<void()> receiver;  // touched on the thread only
  std::thread thread;
  std::atomic<std::thread::id> id{};
  std::atomic<int> tid{0};
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;

  void listen() {
    wakeup.async_read_some(asio::buffer(&wakeupCount, sizeof wakeupCount),
                           [this](const boost::system::error_code& error, std::size_t) {
                             if (error) return;
                             if (receiver) receiver();
                             listen();
                           });
  }
};

namespace {
// Process-wide because the SystemC kernel is; plain pointers so that nothing is destroyed at exit.
std::atomic<SimThread*> instancePointer{nullptr};
std::atomic<int> wakeupFd{-1};
std::mutex& creationMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
}  // namespace

SimThread& SimThread::instance() {
  if (SimThread* known = instancePointer.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(creationMutex());
  if (SimThread* known = instancePointer.load(std::memory_order_acquire)) return *known;
  auto* made = new SimThread;
  instancePointer.store(made, std::memory_order_release);
  return *made;
}

SimThread* SimThread::currentOrNull() noexcept {
  return instancePointer.load(std::memory_order_acquire);
}

void SimThread::forgetAfterFork() noexcept {
  instancePointer.store(nullptr, std::memory_order_release);
  wakeupFd.store(-1);
}

SimThread::SimThread() : state_(new State) {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd >= 0) {
    state_->wakeup.assign(fd);
    state_->listen();
    wakeupFd.store(fd);
  }
  // The program's signals are for the program's threads, so that its handlers never interrupt the model.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF}) sigdelset(&all, fault);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  state_->thread = std::thread([state = state_] {
    pthread_setname_np(pthread_self(), "vatlas-sim");
    state->tid.store(static_cast<int>(syscall(SYS_gettid)));
    state->id.store(std::this_thread::get_id());
    state->context.run();
    const std::lock_guard lock(state->mutex);
    state->ended = true;
    state->changed.notify_all();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void SimThread::post(std::function<void()> task) {
  asio::post(state_->context, std::move(task));
}

void SimThread::runAndWait(const std::function<void()>& task) {
  if (isCurrent()) {
    task();
    return;
  }
  bool done = false;
  asio::post(state_->context, [&] {
    task();
    const std::lock_guard lock(state_->mutex);
    done = true;
    state_->changed.notify_all();
  });
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return done || state_->ended; });
}

bool SimThread::isCurrent() const noexcept {
  return state_->id.load() == std::this_thread::get_id();
}

int SimThread::tid() const noexcept {
  return state_->tid.load();
}

void SimThread::setSignalReceiver(std::function<void()> receiver) {
  runAndWait([&] { state_->receiver = std::move(receiver); });
}

void SimThread::signalFromHandler() noexcept {
  const int fd = wakeupFd.load();
  const std::uint64_t one = 1;
  if (fd >= 0) [[maybe_unused]]
    const auto written = write(fd, &one, sizeof one);
}

void SimThread::stop(const std::function<void()>& last, std::chrono::milliseconds patience) {
  if (isCurrent()) return;  // a kernel called exit: nothing can be waited for
  asio::post(state_->context, [this, last] {
    last();
    state_->work.reset();
    state_->context.stop();
  });
  std::unique_lock lock(state_->mutex);
  const bool ended = state_->changed.wait_for(lock, patience, [&] { return state_->ended; });
  lock.unlock();
  if (ended) {
    state_->thread.join();
  } else {
    state_->thread.detach();
  }
}

struct SimThread::Timer::State {
  State() : timer(SimThread::instance().state_->context) {}
  asio::steady_timer timer;
};

SimThread::Timer::Timer() : state_(std::make_unique<State>()) {}
SimThread::Timer::~Timer() = default;

void SimThread::Timer::arm(std::chrono::nanoseconds delay, std::function<void()> action) {
  state_->timer.expires_after(delay);
  state_->timer.async_wait([action = std::move(action)](const boost::system::error_code& error) {
    if (!error) action();
  });
}

void SimThread::Timer::cancel() {
  state_->timer.cancel();
}

}  // namespace vatlas::runtime
