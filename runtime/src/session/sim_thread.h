// The one thread that runs simulations: it owns an io_context and, because the SystemC kernel belongs to the
// thread that started it, it outlives the sessions. It ends when the process exits.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace vatlas::runtime {

class SimThread {
 public:
  // Started on first use; a forked child gets one of its own.
  static SimThread& instance();
  static SimThread* currentOrNull() noexcept;
  static void forgetAfterFork() noexcept;

  void post(std::function<void()> task);
  void runAndWait(const std::function<void()>& task);  // inline when called on the thread itself
  bool isCurrent() const noexcept;
  int tid() const noexcept;  // Linux thread id
  // Called on the thread after signalFromHandler(); one receiver at a time.
  void setSignalReceiver(std::function<void()> receiver);
  static void signalFromHandler() noexcept;  // async-signal-safe

  // For process exit: runs `last` on the thread and ends it. Gives up after the time.
  void stop(const std::function<void()>& last, std::chrono::milliseconds patience);

  // A wall-clock timer of the thread; arm and cancel only on the thread.
  class Timer {
   public:
    Timer();
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    void arm(std::chrono::nanoseconds delay, std::function<void()> action);
    void cancel();

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  SimThread();
  ~SimThread() = delete;  // leaked on purpose: host threads may still use it while the process exits
  struct State;
  State* state_;
};

}  // namespace vatlas::runtime
