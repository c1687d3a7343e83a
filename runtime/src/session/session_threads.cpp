// The host side of the session: threads, their clocks, waiting.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "session/embedded_session.h"

namespace vatlas::runtime {
namespace {

int currentTid() {
  return static_cast<int>(syscall(SYS_gettid));
}

// A thread's place in the session; leaves it when the thread ends.
struct ThreadPlace {
  std::weak_ptr<EmbeddedSession> session;
  HostThread* thread = nullptr;
  std::uint64_t chaos = 0;
  ~ThreadPlace() {
    if (const auto alive = session.lock()) alive->leave(*thread);
  }
};

ThreadPlace& place() {
  thread_local ThreadPlace mine;
  return mine;
}

// Sleeps up to 2 ms at random: results must not depend on it.
void disturb(std::uint64_t seed) {
  std::uint64_t& state = place().chaos;
  if (state == 0) state = seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(currentTid());
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  if (state % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(state / 8 % 2000));
}

}  // namespace

HostThread& EmbeddedSession::thread() {
  ThreadPlace& mine = place();
  if (chaos_ != 0) disturb(chaos_);
  if (mine.session.lock().get() == this) return *mine.thread;
  const Lock lock(mutex_);
  auto made = std::make_unique<HostThread>();
  made->tid = currentTid();
  mine.session = weak_from_this();
  mine.thread = made.get();
  threads_.push_back(std::move(made));
  return *mine.thread;
}

void EmbeddedSession::leave(HostThread& thread) {
  const Lock lock(mutex_);
  if (thread.device >= 0) {
    SimTime& left = leftClock_[static_cast<std::size_t>(thread.device)];
    left = std::max(left, thread.clock);
  }
  thread.state = ThreadState::Gone;
  postPump();
}

// A thread that begins to use a device goes on from where others have left it: those that have ended, and
// those that hold it now without being at work.
void EmbeddedSession::bindDevice(HostThread& thread, int device) {
  const Lock lock(mutex_);
  returnFromAside(thread);
  if (device >= 0 && thread.device != device) {
    SimTime from = leftClock_[static_cast<std::size_t>(device)];
    for (const auto& other : threads_) {
      if (other.get() != &thread && other->device == device && other->state != ThreadState::Gone &&
          other->state != ThreadState::Blocked) {
        from = std::max(from, other->clock);
      }
    }
    thread.clock = std::max(thread.clock, from);
  }
  thread.device = device;
  thread.state = device >= 0 ? ThreadState::Active : ThreadState::Idle;
  if (device < 0) postPump();
}

SimTime EmbeddedSession::clock(const HostThread& thread) const {
  const Lock lock(mutex_);
  return thread.clock;
}

void EmbeddedSession::spend(HostThread& thread, SimTime cost) {
  const Lock lock(mutex_);
  returnFromAside(thread);
  lastCall_ = std::chrono::steady_clock::now();
  if (thread.device >= 0) {
    thread.clock = std::max(thread.clock, leftClock_[static_cast<std::size_t>(thread.device)]);
  }
  thread.clock += std::max<SimTime>(cost, 1);
}

// The thread had been left aside while it slept elsewhere: what it does now counts from where the simulation
// has come.
void EmbeddedSession::returnFromAside(HostThread& thread) {
  if (thread.state != ThreadState::Aside) return;
  thread.state = ThreadState::Active;
  if (thread.clock >= reached_) return;
  thread.clock = reached_;
  const bool alone = std::none_of(threads_.begin(), threads_.end(), [&](const auto& other) {
    return other.get() != &thread &&
           (other->state == ThreadState::Active || other->state == ThreadState::Blocked);
  });
  if (!alone) uncertain_ = true;
}

void EmbeddedSession::beginBlock(HostThread& thread) {
  const Lock lock(mutex_);
  returnFromAside(thread);
  if (thread.state == ThreadState::Active) thread.state = ThreadState::Blocked;
  postPump();
}

void EmbeddedSession::endBlock(HostThread& thread, SimTime clock) {
  const Lock lock(mutex_);
  thread.clock = std::max(thread.clock, clock);
  thread.state = thread.device >= 0 ? ThreadState::Active : ThreadState::Idle;
  stopRun_ = true;  // the run under way may go no further than this thread's clock
}

void EmbeddedSession::release(HostThread& thread, WaitResult result, SimTime clock) {
  thread.clock = std::max(thread.clock, clock);
  thread.state = thread.device >= 0 ? ThreadState::Active : ThreadState::Idle;
  thread.result = result;
  thread.released = true;
  stopRun_ = true;
  thread.wake.notify_one();
}

WaitResult EmbeddedSession::await(Lock& lock, HostThread& thread, Waiter waiter) {
  if (interrupted_ || stopped_) return WaitResult::Aborted;
  SimTime done = 0;
  if (waiter.finished(done)) {
    thread.clock = std::max(thread.clock, done) + waiter.cost;
    return WaitResult::Done;
  }
  thread.state = ThreadState::Blocked;
  thread.released = false;
  waiters_.push_back(std::move(waiter));
  postPump();
  thread.wake.wait(lock, [&] { return thread.released; });
  return thread.result;
}

// Waits until everything before the thread's clock has happened.
void EmbeddedSession::awaitReached(Lock& lock, HostThread& thread) {
  if (interrupted_ || stopped_ || reached_ >= thread.clock) return;
  thread.released = false;
  reachWaiters_.push_back(&thread);
  postPump();
  thread.wake.wait(lock, [&] { return thread.released; });
}

bool EmbeddedSession::submit(HostThread& thread, StreamId id, decltype(Command::what) what, SimTime cost) {
  const Lock lock(mutex_);
  const std::shared_ptr<StreamState> stream = streams_.find(id);
  if (!stream || closing_) return false;
  Command command;
  command.submitted = thread.clock;
  command.sequence = ++sequences_[static_cast<std::size_t>(stream->device)];
  command.what = std::move(what);
  ++stream->submitted;
  inbox_.emplace_back(stream, std::move(command));
  thread.clock += cost;
  postPump();
  return true;
}

StreamId EmbeddedSession::createStream(int device) {
  const Lock lock(mutex_);
  auto stream = std::make_shared<StreamState>();
  stream->device = device;
  stream->number = ++streamCount_[static_cast<std::size_t>(device)];
  StreamState& made = *stream;
  made.id = streams_.add(std::move(stream));
  return made.id;
}

bool EmbeddedSession::destroyStream(HostThread& thread, StreamId id, bool wait) {
  if (wait) (void)synchronizeStream(thread, id, sim::kNever);
  const Lock lock(mutex_);
  return streams_.remove(id) != nullptr;
}

int EmbeddedSession::streamDevice(StreamId id) const {
  const Lock lock(mutex_);
  const auto stream = streams_.find(id);
  return stream ? stream->device : -1;
}

bool EmbeddedSession::submitKernel(HostThread& thread, StreamId stream, KernelRequest request) {
  return submit(thread, stream, KernelCommand{std::move(request)}, cluster_.product.host.launch);
}

bool EmbeddedSession::submitCopy(HostThread& thread, StreamId stream, const CopyRequest& request) {
  return submit(thread, stream, CopyCommand{request}, 0);
}

bool EmbeddedSession::submitCallback(HostThread& thread, StreamId stream,
                                     std::function<void(SimTime)> action) {
  return submit(thread, stream, CallbackCommand{std::move(action)}, 0);
}

bool EmbeddedSession::recordEvent(HostThread& thread, EventId id, StreamId stream) {
  RecordCommand command;
  {
    const Lock lock(mutex_);
    command.event = events_.find(id);
    if (!command.event) return false;
    command.record = ++command.event->submitted;
  }
  return submit(thread, stream, std::move(command), 0);
}

bool EmbeddedSession::waitEvent(HostThread& thread, StreamId stream, EventId id) {
  WaitCommand command;
  {
    const Lock lock(mutex_);
    command.event = events_.find(id);
    if (!command.event) return false;
    command.record = command.event->submitted;
  }
  return submit(thread, stream, std::move(command), 0);
}

WaitResult EmbeddedSession::synchronizeStream(HostThread& thread, StreamId id, SimTime timeout) {
  Lock lock(mutex_);
  const std::shared_ptr<StreamState> stream = streams_.find(id);
  if (!stream) return WaitResult::NoSuchObject;
  Waiter waiter;
  waiter.thread = &thread;
  waiter.cost = cluster_.product.host.streamSynchronize;
  waiter.deadline = timeout == sim::kNever ? timeout : thread.clock + timeout;
  waiter.finished = [stream, target = stream->submitted](SimTime& done) {
    done = stream->free;
    return stream->completed >= target;
  };
  const WaitResult result = await(lock, thread, std::move(waiter));
  return result == WaitResult::Done && stream->error ? WaitResult::Failed : result;
}

WaitResult EmbeddedSession::synchronizeDevice(HostThread& thread, int device, SimTime timeout) {
  Lock lock(mutex_);
  std::vector<std::pair<std::shared_ptr<StreamState>, std::uint64_t>> targets;
  streams_.forEach([&](std::uint64_t, const std::shared_ptr<StreamState>& stream) {
    if (stream->device == device) targets.emplace_back(stream, stream->submitted);
  });
  Waiter waiter;
  waiter.thread = &thread;
  waiter.cost = cluster_.product.host.streamSynchronize;
  waiter.deadline = timeout == sim::kNever ? timeout : thread.clock + timeout;
  waiter.finished = [targets](SimTime& done) {
    for (const auto& [stream, target] : targets) {
      if (stream->completed < target) return false;
      done = std::max(done, stream->free);
    }
    return true;
  };
  const WaitResult result = await(lock, thread, std::move(waiter));
  const bool failed =
      std::any_of(targets.begin(), targets.end(), [](const auto& t) { return t.first->error.has_value(); });
  return result == WaitResult::Done && failed ? WaitResult::Failed : result;
}

bool EmbeddedSession::queryStream(HostThread& thread, StreamId id, bool& done) {
  Lock lock(mutex_);
  const std::shared_ptr<StreamState> stream = streams_.find(id);
  if (!stream) return false;
  awaitReached(lock, thread);
  done = stream->completed >= stream->submitted && stream->free <= thread.clock;
  return true;
}

std::optional<StreamError> EmbeddedSession::takeStreamError(StreamId id) {
  const Lock lock(mutex_);
  const std::shared_ptr<StreamState> stream = streams_.find(id);
  return stream ? std::exchange(stream->error, std::nullopt) : std::nullopt;
}

EventId EmbeddedSession::createEvent(int device) {
  const Lock lock(mutex_);
  auto event = std::make_shared<EventState>();
  event->device = device;
  return events_.add(std::move(event));
}

bool EmbeddedSession::destroyEvent(EventId id) {
  const Lock lock(mutex_);
  return events_.remove(id) != nullptr;
}

WaitResult EmbeddedSession::synchronizeEvent(HostThread& thread, EventId id, SimTime timeout) {
  Lock lock(mutex_);
  const std::shared_ptr<EventState> event = events_.find(id);
  if (!event) return WaitResult::NoSuchObject;
  Waiter waiter;
  waiter.thread = &thread;
  waiter.cost = cluster_.product.host.streamSynchronize;
  waiter.deadline = timeout == sim::kNever ? timeout : thread.clock + timeout;
  waiter.finished = [event, target = event->submitted](SimTime& done) {
    done = event->time;
    return event->completed >= target;
  };
  return await(lock, thread, std::move(waiter));
}

bool EmbeddedSession::queryEvent(HostThread& thread, EventId id, bool& recorded, bool& done) {
  Lock lock(mutex_);
  const std::shared_ptr<EventState> event = events_.find(id);
  if (!event) return false;
  awaitReached(lock, thread);
  recorded = event->submitted != 0;
  done = event->completed >= event->submitted && event->time <= thread.clock;
  return true;
}

std::optional<SimTime> EmbeddedSession::eventTime(EventId id) {
  const Lock lock(mutex_);
  const std::shared_ptr<EventState> event = events_.find(id);
  if (!event || event->completed == 0 || event->completed < event->submitted) return std::nullopt;
  return event->time;
}

WaitResult EmbeddedSession::copyNow(HostThread& thread, int device, const CopyRequest& request) {
  struct Outcome {
    bool done = false;
    SimTime at = 0;
  };
  const auto outcome = std::make_shared<Outcome>();
  const auto stream = std::make_shared<StreamState>();  // of its own, used once
  stream->device = device;
  Lock lock(mutex_);
  if (closing_) return WaitResult::Aborted;
  Command command;
  command.submitted = thread.clock;
  command.sequence = ++sequences_[static_cast<std::size_t>(device)];
  command.what = CopyCommand{request};
  ++stream->submitted;
  inbox_.emplace_back(stream, std::move(command));
  Waiter waiter;
  waiter.thread = &thread;
  waiter.cost = 1;
  waiter.finished = [stream](SimTime& done) {
    done = stream->free;
    return stream->completed >= stream->submitted;
  };
  return await(lock, thread, std::move(waiter));
}

}  // namespace vatlas::runtime
