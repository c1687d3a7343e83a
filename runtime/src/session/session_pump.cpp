// The simulation thread's side: how far the model may run, and who is woken.
#include <algorithm>

#include "session/embedded_session.h"

namespace vatlas::runtime {
namespace {
constexpr std::chrono::milliseconds kLook{4};  // between two looks at a thread that keeps the others waiting
constexpr std::chrono::milliseconds kLongSleep{30};  // in one and the same sleep: it is left aside
}  // namespace

void EmbeddedSession::postPump() {
  if (pumpPosted_) return;
  pumpPosted_ = true;
  simThread_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->pump();
  });
}

void EmbeddedSession::pump() {
  Lock lock(mutex_);
  pumpPosted_ = false;
  if (stopped_) return;  // posted before the end
  while (pumpOnce(lock)) {
  }
  watchThreads();
}

// The smallest clock of a thread that may still submit work.
SimTime EmbeddedSession::safeTime() const {
  SimTime safe = sim::kNever;
  for (const auto& thread : threads_) {
    if (thread->state == ThreadState::Active) safe = std::min(safe, thread->clock);
  }
  return safe;
}

void EmbeddedSession::takeInbox() {
  for (auto& [stream, command] : inbox_) {
    const sim::EventOrder order{stream->device, stream->number, command.sequence};
    const auto shared = std::make_shared<Command>(std::move(command));
    simulation_->schedule(shared->submitted, order, [this, stream = stream, shared] {
      const Lock lock(mutex_);
      stream->queue.push_back(std::move(*shared));
      advance(stream);
    });
  }
  inbox_.clear();
}

// Something waits for a rank, or for memory, that may still come.
bool EmbeddedSession::incomplete() const {
  return !gangs_.empty() || simulation_->stalled();
}

// One step; false when there is nothing to do until somebody calls.
bool EmbeddedSession::pumpOnce(Lock& lock) {
  if (interrupted_) {
    stopEverything();
    return false;
  }
  takeInbox();
  settleWaiters();
  SimTime limit = safeTime();
  const SimTime next = simulation_->nextEvent();
  SimTime deadline = sim::kNever;
  for (const Waiter& waiter : waiters_) deadline = std::min(deadline, waiter.deadline);
  settleReached(std::min({next, deadline, limit}));
  limit = std::min(limit, safeTime());
  if (deadline < limit && deadline <= next) {
    if (incomplete() && std::chrono::steady_clock::now() - lastCall_ < peerGrace_) return false;
    return fireDeadline(deadline);
  }
  if (limit == sim::kNever && incomplete() && (next == sim::kNever || simulation_->stalled())) {
    if (waiters_.empty() && !closing_) return false;
    if (!closing_ && std::chrono::steady_clock::now() - lastCall_ < peerGrace_) return false;
    if (!gangs_.empty()) return expireGang(simulation_->now());
  }
  if (next >= limit) return false;
  stopRun_ = false;
  const SimTime until = std::min(limit, deadline == sim::kNever ? deadline : deadline + 1);
  lock.unlock();
  try {
    sim::SystemCShell::instance().run(*simulation_, until);
  } catch (...) {
    lock.lock();
    interrupted_ = true;  // a fault of ours: nobody may wait for what will not come
    return true;
  }
  lock.lock();
  return true;
}

bool EmbeddedSession::fireDeadline(SimTime at) {
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    if (waiter->deadline > at) {
      ++waiter;
      continue;
    }
    release(*waiter->thread, WaitResult::TimedOut, at);
    waiter = waiters_.erase(waiter);
  }
  return true;
}

void EmbeddedSession::settleWaiters() {
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    SimTime done = 0;
    if (!waiter->finished(done)) {
      ++waiter;
      continue;
    }
    const SimTime at = std::max(done, waiter->thread->clock);
    if (at > waiter->deadline) {
      release(*waiter->thread, WaitResult::TimedOut, waiter->deadline);
    } else {
      release(*waiter->thread, WaitResult::Done, at + waiter->cost);
    }
    waiter = waiters_.erase(waiter);
  }
}

// `next` is the time of the next event that can happen: all before it has happened.
void EmbeddedSession::settleReached(SimTime next) {
  if (next != sim::kNever) {
    reached_ = std::max(reached_, next);
  } else {
    reached_ = std::max(reached_, simulation_->now());
  }
  for (auto waiter = reachWaiters_.begin(); waiter != reachWaiters_.end();) {
    if ((*waiter)->clock > next) {
      ++waiter;
      continue;
    }
    (*waiter)->released = true;
    (*waiter)->wake.notify_one();
    waiter = reachWaiters_.erase(waiter);
  }
}

// Looks at the threads that keep others waiting. One that sleeps outside our calls is left aside; one that is
// gone without our having been told is forgotten.
void EmbeddedSession::watchThreads() {
  if (waiters_.empty() && reachWaiters_.empty()) return;
  bool changed = false;
  const SimTime safe = safeTime();
  for (const auto& thread : threads_) {
    if (thread->state != ThreadState::Active || thread->clock != safe) continue;
    if (std::find(reachWaiters_.begin(), reachWaiters_.end(), thread.get()) != reachWaiters_.end()) continue;
    const ThreadLook look = lookAtThread(thread->tid);
    const auto now = std::chrono::steady_clock::now();
    if (look.exists && !(look.asleep && look.switches == thread->switches)) {
      thread->switches = look.switches;
      thread->asleepSince = now;
      continue;
    }
    if (look.exists && now - thread->asleepSince < kLongSleep) continue;
    thread->state = look.exists ? ThreadState::Aside : ThreadState::Gone;
    changed = true;
  }
  if (changed) {
    postPump();
  } else {
    armWatch();
  }
}

void EmbeddedSession::armWatch() {
  if (watchArmed_) return;
  watchArmed_ = true;
  const auto pause = safeTime() == sim::kNever ? std::chrono::milliseconds(50) : kLook;
  watchTimer_->arm(pause, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      {
        const Lock lock(self->mutex_);
        self->watchArmed_ = false;
      }
      self->pump();
    }
  });
}

void EmbeddedSession::stopEverything() {
  for (const Waiter& waiter : waiters_) release(*waiter.thread, WaitResult::Aborted, waiter.thread->clock);
  waiters_.clear();
  for (HostThread* thread : reachWaiters_) {
    thread->released = true;
    thread->wake.notify_one();
  }
  reachWaiters_.clear();
  simulation_->cancelAll();
  simulation_->setTrace(nullptr);
  trace_.reset();
}

void EmbeddedSession::interrupt() noexcept {
  interrupted_ = true;
  stopRun_ = true;
  SimThread::signalFromHandler();
}

void EmbeddedSession::shutDown() {
  {
    const Lock lock(mutex_);
    closing_ = true;
    for (const auto& thread : threads_) {
      if (thread->state == ThreadState::Active) thread->state = ThreadState::Aside;
    }
  }
  simThread_.runAndWait([this] {
    pump();
    Lock lock(mutex_);
    stopEverything();
    stopped_ = true;
    watchTimer_.reset();
    simulation_->setStopFlag(nullptr);
  });
  simThread_.setSignalReceiver({});
}

}  // namespace vatlas::runtime
