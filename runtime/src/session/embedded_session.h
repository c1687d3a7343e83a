// The session that runs the simulator inside the program's process.
//
// One mutex guards all of it. The simulation thread takes it for bookkeeping and inside completion callbacks,
// never while it runs the model. A host thread that waits sleeps on its own condition variable.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <variant>

#include "session/sim_thread.h"
#include "session/thread_watch.h"
#include "session/trace_writer.h"
#include "vatlas/runtime/handle_ids.h"
#include "vatlas/runtime/session.h"

namespace vatlas::runtime {

enum class ThreadState : std::uint8_t {
  Idle,     // has no device: cannot submit work
  Active,   // may submit work at its clock
  Blocked,  // inside one of our calls
  Aside,    // sleeps outside our calls
  Gone,
};

class HostThread {
 public:
  int tid = 0;
  SimTime clock = 0;
  int device = -1;
  ThreadState state = ThreadState::Idle;
  std::condition_variable wake;
  bool released = false;
  WaitResult result = WaitResult::Done;
  std::uint64_t switches = 0;                           // at the last look
  std::chrono::steady_clock::time_point asleepSince{};  // seen in one and the same sleep since then
};

struct EventState;

// What a stream does, in order.
struct KernelCommand {
  KernelRequest request;
};
struct CopyCommand {
  CopyRequest request;
};
struct CallbackCommand {
  std::function<void(SimTime)> action;
};
struct RecordCommand {
  std::shared_ptr<EventState> event;
  std::uint64_t record = 0;
};
struct WaitCommand {
  std::shared_ptr<EventState> event;
  std::uint64_t record = 0;
};
struct Command {
  SimTime submitted = 0;
  std::uint64_t sequence = 0;
  std::variant<KernelCommand, CopyCommand, CallbackCommand, RecordCommand, WaitCommand> what;
};

struct StreamState {
  StreamId id = 0;
  std::uint64_t number = 0;  // of its device: the same in every run, for the order of ties and for traces
  int device = 0;
  std::deque<Command> queue;  // arrived at the device
  bool running = false;
  SimTime free = 0;
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  std::optional<StreamError> error;
};

struct EventState {
  int device = 0;
  std::uint64_t submitted = 0;  // records
  std::uint64_t completed = 0;
  SimTime time = 0;                                   // of the last completed record
  std::vector<std::shared_ptr<StreamState>> waiting;  // streams at a WaitCommand for it
};

// A thread that waits for something and may have a deadline.
struct Waiter {
  HostThread* thread = nullptr;
  std::function<bool(SimTime& done)> finished;  // gives the time at which it was
  SimTime deadline = sim::kNever;
  SimTime cost = 0;  // of waking up
};

struct GangCall {
  std::shared_ptr<const GangGroup> group;
  struct Arrival {
    std::shared_ptr<StreamState> stream;
    KernelRequest request;
    SimTime time = 0;
  };
  std::vector<std::optional<Arrival>> arrivals;  // by rank
  std::size_t count = 0;
};

class EmbeddedSession final : public Session, public std::enable_shared_from_this<EmbeddedSession> {
 public:
  explicit EmbeddedSession(sim::ClusterConfig cluster);
  ~EmbeddedSession() override;

  // Waits for submitted work and ends all waits. The model itself goes with the last reference: calls of
  // other threads may be under way.
  void shutDown();
  // True once the model is gone and another can be made.
  std::shared_ptr<const std::atomic<bool>> gone() const { return gone_; }

  const sim::ClusterConfig& cluster() const override { return cluster_; }
  sim::DeviceMemory& memory() override { return *memory_; }

  HostThread& thread() override;
  void bindDevice(HostThread& thread, int device) override;
  SimTime clock(const HostThread& thread) const override;
  void spend(HostThread& thread, SimTime cost) override;
  void beginBlock(HostThread& thread) override;
  void endBlock(HostThread& thread, SimTime clock) override;
  void leave(HostThread& thread);  // the thread has ended

  StreamId createStream(int device) override;
  bool destroyStream(HostThread& thread, StreamId stream, bool wait) override;
  int streamDevice(StreamId stream) const override;
  bool submitKernel(HostThread& thread, StreamId stream, KernelRequest request) override;
  bool submitCopy(HostThread& thread, StreamId stream, const CopyRequest& request) override;
  bool submitCallback(HostThread& thread, StreamId stream, std::function<void(SimTime)> action) override;
  bool recordEvent(HostThread& thread, EventId event, StreamId stream) override;
  bool waitEvent(HostThread& thread, StreamId stream, EventId event) override;
  WaitResult synchronizeStream(HostThread& thread, StreamId stream, SimTime timeout) override;
  WaitResult synchronizeDevice(HostThread& thread, int device, SimTime timeout) override;
  bool queryStream(HostThread& thread, StreamId stream, bool& done) override;
  std::optional<StreamError> takeStreamError(StreamId stream) override;

  EventId createEvent(int device) override;
  bool destroyEvent(EventId event) override;
  WaitResult synchronizeEvent(HostThread& thread, EventId event, SimTime timeout) override;
  bool queryEvent(HostThread& thread, EventId event, bool& recorded, bool& done) override;
  std::optional<SimTime> eventTime(EventId event) override;

  WaitResult copyNow(HostThread& thread, int device, const CopyRequest& request) override;

  std::vector<KernelRecord> takeKernelRecords() override;
  std::vector<sim::ResourceReport> resources() override;
  void resetResources() override;
  bool orderUncertain() const override;
  bool startTrace(const std::string& path, int cores) override;
  bool stopTrace() override;
  void interrupt() noexcept override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  // host side (session_threads.cpp)
  void returnFromAside(HostThread& thread);
  WaitResult await(Lock& lock, HostThread& thread, Waiter waiter);
  void awaitReached(Lock& lock, HostThread& thread);
  void release(HostThread& thread, WaitResult result, SimTime clock);
  bool submit(HostThread& thread, StreamId stream, decltype(Command::what) what, SimTime cost);
  void postPump();

  // simulation thread (session_pump.cpp)
  void pump();
  bool pumpOnce(Lock& lock);
  void takeInbox();
  SimTime safeTime() const;
  bool incomplete() const;
  bool fireDeadline(SimTime at);
  void settleWaiters();
  void settleReached(SimTime next);
  void watchThreads();
  void armWatch();
  void stopEverything();

  // simulation thread (session_streams.cpp)
  void advance(const std::shared_ptr<StreamState>& stream);
  void complete(const std::shared_ptr<StreamState>& stream, SimTime at);
  void fail(StreamState& stream, StreamError error);
  void begin(const std::shared_ptr<StreamState>& stream, KernelCommand& command, SimTime at);
  void begin(const std::shared_ptr<StreamState>& stream, const CopyCommand& command, SimTime at);
  void begin(const std::shared_ptr<StreamState>& stream, const CallbackCommand& command, SimTime at);
  void begin(const std::shared_ptr<StreamState>& stream, const RecordCommand& command, SimTime at);
  void begin(const std::shared_ptr<StreamState>& stream, const WaitCommand& command, SimTime at);
  void joinGang(const std::shared_ptr<StreamState>& stream, KernelRequest request, SimTime at);
  void launchGang(GangCall& call);
  void failGang(GangCall& call, const std::string& why, SimTime at);
  bool expireGang(SimTime at);
  sim::KernelLaunch makeLaunch(const StreamState& stream, const KernelRequest& request, SimTime at) const;
  void kernelDone(const std::shared_ptr<StreamState>& stream, const KernelRequest& request,
                  const sim::LaunchResult& r);
  sim::Simulation::Copy makeCopy(const CopyRequest& request, int device, SimTime at) const;

  const sim::ClusterConfig cluster_;
  std::unique_ptr<sim::Simulation> simulation_;  // touched by the simulation thread
  sim::DeviceMemory* memory_ = nullptr;
  SimThread& simThread_;
  std::chrono::milliseconds peerGrace_{3000};
  std::uint64_t chaos_ = 0;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<HostThread>> threads_;
  std::vector<SimTime> leftClock_;  // by device: of threads that have ended
  std::deque<std::pair<std::shared_ptr<StreamState>, Command>> inbox_;
  HandleTable<StreamState> streams_{HandleKind::Stream};
  HandleTable<EventState> events_{HandleKind::Event};
  std::vector<std::uint64_t> streamCount_;  // by device
  std::vector<std::uint64_t> sequences_;    // by device
  std::vector<Waiter> waiters_;
  std::vector<HostThread*> reachWaiters_;
  std::map<const GangGroup*, std::deque<GangCall>> gangs_;
  std::vector<KernelRecord> records_;
  bool uncertain_ = false;
  bool pumpPosted_ = false;
  bool closing_ = false;
  bool stopped_ = false;
  const std::shared_ptr<std::atomic<bool>> gone_ = std::make_shared<std::atomic<bool>>(false);
  SimTime reached_ = 0;  // all events before it have been handled
  std::chrono::steady_clock::time_point lastCall_;

  std::atomic<bool> stopRun_{false};
  std::atomic<bool> interrupted_{false};
  std::unique_ptr<SimThread::Timer> watchTimer_;
  bool watchArmed_ = false;
  std::unique_ptr<TraceWriter> trace_;
};

}  // namespace vatlas::runtime
