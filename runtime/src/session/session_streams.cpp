// What streams do, on the simulation thread. Called with the session's mutex held.
#include <fmt/format.h>

#include <algorithm>

#include "session/embedded_session.h"
#include "session/kernel_images.h"

namespace vatlas::runtime {
namespace {

constexpr int kAivTimeout = 507034;
constexpr int kAivException = 507035;

StreamError kernelError(const sim::FaultReport& fault) {
  StreamError error;
  error.code = fault.timedOut ? kAivTimeout : kAivException;
  error.errorCode = fault.timedOut ? "EE4002" : "EE4001";
  error.message = fault.what;
  return error;
}

}  // namespace

// Begins the stream's next command, if it may.
void EmbeddedSession::advance(const std::shared_ptr<StreamState>& stream) {
  while (!stream->running && !stream->queue.empty()) {
    const auto* wait = std::get_if<WaitCommand>(&stream->queue.front().what);
    if (wait != nullptr && wait->record > wait->event->completed) {
      wait->event->waiting.push_back(stream);
      return;
    }
    Command command = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->running = true;
    const SimTime at = std::max(stream->free, command.submitted);
    std::visit([&](auto& what) { begin(stream, what, at); }, command.what);
  }
}

void EmbeddedSession::complete(const std::shared_ptr<StreamState>& stream, SimTime at) {
  stream->running = false;
  stream->free = std::max(stream->free, at);
  ++stream->completed;
  settleWaiters();
}

void EmbeddedSession::fail(StreamState& stream, StreamError error) {
  if (!stream.error) stream.error = std::move(error);
}

sim::Simulation::Copy EmbeddedSession::makeCopy(const CopyRequest& request, int device, SimTime at) const {
  using From = CopyRequest::Kind;
  using To = sim::Simulation::Copy::Kind;
  sim::Simulation::Copy copy{};
  copy.device = copy.peer = device;
  copy.destination = request.destination;
  copy.source = request.source;
  copy.value = request.value;
  copy.bytes = request.bytes;
  copy.start = at;
  switch (request.kind) {
    case From::HostToHost:
    case From::HostToDevice:
      copy.kind = To::HostToDevice;
      copy.device = copy.peer = std::max(0, memory_->cardOf(request.destination));
      break;
    case From::DeviceToHost:
      copy.kind = To::DeviceToHost;
      copy.device = copy.peer = std::max(0, memory_->cardOf(request.source));
      break;
    case From::DeviceToDevice:
      copy.kind = To::DeviceToDevice;
      copy.device = std::max(0, memory_->cardOf(request.source));
      copy.peer = std::max(0, memory_->cardOf(request.destination));
      break;
    case From::Set:
      copy.kind = To::Set;
      copy.device = copy.peer = std::max(0, memory_->cardOf(request.destination));
      break;
  }
  return copy;
}

void EmbeddedSession::begin(const std::shared_ptr<StreamState>& stream, const CopyCommand& command,
                            SimTime at) {
  sim::Simulation::Copy copy = makeCopy(command.request, stream->device, at);
  copy.order = {stream->device, stream->number, stream->completed};
  simulation_->copy(copy, [this, stream](SimTime end) {
    simulation_->schedule(end, {stream->device, stream->number, stream->completed}, [this, stream, end] {
      const Lock lock(mutex_);
      complete(stream, end);
      advance(stream);
    });
  });
}

void EmbeddedSession::begin(const std::shared_ptr<StreamState>& stream, const CallbackCommand& command,
                            SimTime at) {
  if (command.action) command.action(at);
  complete(stream, at);
}

void EmbeddedSession::begin(const std::shared_ptr<StreamState>& stream, const RecordCommand& command,
                            SimTime at) {
  EventState& event = *command.event;
  if (command.record > event.completed) {
    event.completed = command.record;
    event.time = at + cluster_.product.host.event;
  }
  complete(stream, at + cluster_.product.host.event);
  for (const std::shared_ptr<StreamState>& waiting : std::exchange(event.waiting, {})) advance(waiting);
}

void EmbeddedSession::begin(const std::shared_ptr<StreamState>& stream, const WaitCommand& command,
                            SimTime at) {
  const SimTime recorded = command.record == 0 ? at : command.event->time;
  complete(stream, std::max(at, recorded) + cluster_.product.host.event);
}

sim::KernelLaunch EmbeddedSession::makeLaunch(const StreamState& stream, const KernelRequest& request,
                                              SimTime at) const {
  sim::KernelLaunch launch;
  launch.device = stream.device;
  launch.order = {stream.device, stream.number, stream.completed};
  launch.entry = findKernel(request.image, request.kernel).entry;
  launch.name = request.kernel;
  launch.args = request.args;
  launch.blocks = request.blocks;
  launch.hcclContext = request.hcclContext;
  launch.start = at;
  launch.timeout = request.timeout != 0 ? request.timeout : cluster_.product.kernelTimeout;
  return launch;
}

void EmbeddedSession::begin(const std::shared_ptr<StreamState>& stream, KernelCommand& command, SimTime at) {
  if (command.request.gang) {
    joinGang(stream, std::move(command.request), at);
    return;
  }
  std::vector<sim::KernelLaunch> parts;
  parts.push_back(makeLaunch(*stream, command.request, at));
  const auto request = std::make_shared<KernelRequest>(std::move(command.request));
  simulation_->launch(std::move(parts),
                      [this, stream, request](std::size_t, const sim::LaunchResult& result) {
                        const Lock lock(mutex_);
                        kernelDone(stream, *request, result);
                      });
}

// The n-th kernel of a communicator on one rank belongs to the n-th on the others.
void EmbeddedSession::joinGang(const std::shared_ptr<StreamState>& stream, KernelRequest request,
                               SimTime at) {
  std::deque<GangCall>& calls = gangs_[request.gang.get()];
  const auto rank = static_cast<std::size_t>(request.gangRank);
  auto call = std::find_if(calls.begin(), calls.end(), [&](const GangCall& c) { return !c.arrivals[rank]; });
  if (call == calls.end()) {
    calls.emplace_back();
    call = std::prev(calls.end());
    call->group = request.gang;
    call->arrivals.resize(request.gang->devices.size());
  }
  call->arrivals[rank] = GangCall::Arrival{stream, std::move(request), at};
  if (++call->count < call->arrivals.size()) return;
  GangCall whole = std::move(*call);
  calls.erase(call);
  if (calls.empty()) gangs_.erase(whole.group.get());
  launchGang(whole);
}

void EmbeddedSession::launchGang(GangCall& call) {
  const std::string& first = call.arrivals.front()->request.signature;
  SimTime latest = 0;
  for (const auto& arrival : call.arrivals) latest = std::max(latest, arrival->time);
  for (std::size_t rank = 1; rank < call.arrivals.size(); ++rank) {
    const std::string& other = call.arrivals[rank]->request.signature;
    if (other == first) continue;
    failGang(call,
             fmt::format("the ranks of communicator {} disagree: rank 0 called {}, rank {} called {}",
                         call.group->name, first, rank, other),
             latest);
    return;
  }
  std::vector<sim::KernelLaunch> parts;
  auto arrivals = std::make_shared<std::vector<GangCall::Arrival>>();
  for (auto& arrival : call.arrivals) {
    parts.push_back(makeLaunch(*arrival->stream, arrival->request, arrival->time));
    arrivals->push_back(std::move(*arrival));
  }
  simulation_->launch(std::move(parts), [this, arrivals](std::size_t part, const sim::LaunchResult& result) {
    const Lock lock(mutex_);
    const GangCall::Arrival& arrival = (*arrivals)[part];
    kernelDone(arrival.stream, arrival.request, result);
  });
}

void EmbeddedSession::failGang(GangCall& call, const std::string& why, SimTime at) {
  for (auto& arrival : call.arrivals) {
    if (!arrival) continue;
    fail(*arrival->stream, {kAivException, "EI0005", why});
    complete(arrival->stream, std::max(at, arrival->time));
  }
  for (auto& arrival : call.arrivals) {
    if (arrival) advance(arrival->stream);
  }
}

// Ranks that never came: the kernels that wait for them end at their timeout.
bool EmbeddedSession::expireGang(SimTime) {
  const auto first = gangs_.begin();
  GangCall call = std::move(first->second.front());
  first->second.pop_front();
  if (first->second.empty()) gangs_.erase(first);
  std::string missing;
  SimTime latest = 0;
  for (std::size_t rank = 0; rank < call.arrivals.size(); ++rank) {
    if (call.arrivals[rank]) {
      latest = std::max(latest, call.arrivals[rank]->time);
    } else {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
    }
  }
  const SimTime at = latest + cluster_.product.kernelTimeout;
  for (auto& arrival : call.arrivals) {
    if (!arrival) continue;
    fail(*arrival->stream, {kAivTimeout, "EE4002",
                            fmt::format("{} waited for rank {} of communicator {}, which never came",
                                        arrival->request.signature, missing, call.group->name)});
    complete(arrival->stream, at);
  }
  for (auto& arrival : call.arrivals) {
    if (arrival) advance(arrival->stream);
  }
  return true;
}

void EmbeddedSession::kernelDone(const std::shared_ptr<StreamState>& stream, const KernelRequest& request,
                                 const sim::LaunchResult& result) {
  if (result.fault) fail(*stream, kernelError(*result.fault));
  KernelRecord record;
  record.device = stream->device;
  record.kernel = request.kernel;
  record.signature = request.signature;
  record.gang = request.gang ? request.gang->name : std::string{};
  record.start = result.start;
  record.end = result.end;
  record.stats = result.stats;
  records_.push_back(std::move(record));
  complete(stream, result.end);
  advance(stream);
}

}  // namespace vatlas::runtime
