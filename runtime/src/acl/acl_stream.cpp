// Streams and events.
#include <fmt/format.h>

#include <algorithm>

#include "acl/acl.h"
#include "acl/acl_state.h"

using namespace vatlas::runtime;

namespace {

constexpr std::size_t kMaxStreams = 1984;  // a device
constexpr std::size_t kMaxEvents = 65536;  // a device

int createStream(const char* function, aclrtStream* stream) {
  return guarded(function, [&] {
    if (stream == nullptr) return nullArgument(function, "stream");
    Call call = enterCall();
    const int device = deviceOf(call, function);
    if (call.code != 0) return call.code;
    const std::uint64_t context = currentContext();
    AclState& state = aclState();
    const std::lock_guard lock(state.mutex);
    const auto count = std::count_if(state.streams.begin(), state.streams.end(), [&](const auto& entry) {
      return call.session->streamDevice(entry.first) == device;
    });
    if (static_cast<std::size_t>(count) >= kMaxStreams) {
      return badArgument(ACL_ERROR_RT_NO_STREAM_RESOURCE, function,
                         fmt::format("device {} has {} streams, the most it can have", device, count));
    }
    const StreamId id = call.session->createStream(device);
    state.streams[id] = context;
    *stream = handleOf<aclrtStream>(id);
    return ACL_SUCCESS;
  });
}

int destroyStream(const char* function, aclrtStream stream, bool wait) {
  return guarded(function, [&] {
    if (stream == nullptr) return nullArgument(function, "stream");
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    AclState& state = aclState();
    {
      const std::lock_guard lock(state.mutex);
      const auto found = state.streams.find(idOf(stream));
      if (found == state.streams.end()) return badHandle(function, "stream");
      state.streams.erase(found);
    }
    call.session->destroyStream(*call.thread, idOf(stream), wait);
    return ACL_SUCCESS;
  });
}

int synchronize(const char* function, aclrtStream stream, SimTime timeout) {
  return guarded(function, [&] {
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    const StreamRef ref = resolveStream(call, stream);
    if (ref.code != 0) return ref.code;
    return waitCode(call, call.session->synchronizeStream(*call.thread, ref.id, timeout), ref.id, function);
  });
}

int createEvent(const char* function, aclrtEvent* event, uint32_t flag) {
  return guarded(function, [&] {
    if (event == nullptr) return nullArgument(function, "event");
    constexpr uint32_t kKnown = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE |
                                ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;
    if (flag == 0 || (flag & ~kKnown) != 0) {
      return badArgument(ACL_ERROR_INVALID_PARAM, function,
                         fmt::format("flag {:#x} is none of the event flags", flag));
    }
    Call call = enterCall();
    const int device = deviceOf(call, function);
    if (call.code != 0) return call.code;
    AclState& state = aclState();
    const std::lock_guard lock(state.mutex);
    if (state.events.size() >= kMaxEvents * static_cast<std::size_t>(call.session->cluster().ranks)) {
      return badArgument(ACL_ERROR_RT_NO_EVENT_RESOURCE, function, "no event is left");
    }
    const EventId id = call.session->createEvent(device);
    state.events[id] = {device, flag};
    *event = handleOf<aclrtEvent>(id);
    return ACL_SUCCESS;
  });
}

// 0, or the error that is to be answered.
int checkEvent(const char* function, aclrtEvent event, AclEvent& info) {
  if (event == nullptr) return nullArgument(function, "event");
  AclState& state = aclState();
  const std::lock_guard lock(state.mutex);
  const auto found = state.events.find(idOf(event));
  if (found == state.events.end()) return badHandle(function, "event");
  info = found->second;
  return ACL_SUCCESS;
}

// The call of a function on an event and a stream.
template <typename Body>
int withEvent(const char* function, aclrtEvent event, aclrtStream stream, Body&& body) {
  return guarded(function, [&] {
    AclEvent info;
    if (const int code = checkEvent(function, event, info); code != ACL_SUCCESS) return code;
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    const StreamRef ref = resolveStream(call, stream);
    if (ref.code != 0) return ref.code;
    if (!body(call, ref)) return badHandle(function, "event or stream");
    return ACL_SUCCESS;
  });
}

int queryEvent(const char* function, aclrtEvent event, bool& recorded, bool& done) {
  return guarded(function, [&] {
    AclEvent info;
    if (const int code = checkEvent(function, event, info); code != ACL_SUCCESS) return code;
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    return call.session->queryEvent(*call.thread, idOf(event), recorded, done) ? ACL_SUCCESS
                                                                               : badHandle(function, "event");
  });
}

// The time of an event for the functions that compute with it.
int timeOf(const char* function, aclrtEvent event, SimTime& time) {
  AclEvent info;
  if (const int code = checkEvent(function, event, info); code != ACL_SUCCESS) return code;
  bool recorded = false;
  bool done = false;
  if (const int code = queryEvent(function, event, recorded, done); code != ACL_SUCCESS) return code;
  if (!recorded || (info.flags & ACL_EVENT_TIME_LINE) == 0) {
    return badArgument(
        ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, function,
        recorded ? "the event was created without ACL_EVENT_TIME_LINE" : "the event has not been recorded");
  }
  const std::optional<SimTime> at = Session::currentOrNull()->eventTime(idOf(event));
  if (!done || !at)
    return badArgument(ACL_ERROR_RT_EVENT_NOT_COMPLETE, function, "the event is not complete",
                       "synchronize with it first");
  time = *at;
  return ACL_SUCCESS;
}

}  // namespace

aclError aclrtCreateStream(aclrtStream* stream) {
  return createStream("aclrtCreateStream", stream);
}
aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  if (priority > 7)
    return badArgument(ACL_ERROR_RT_PARAM_INVALID, "aclrtCreateStreamWithConfig",
                       fmt::format("priority is {}; allowed: 0 to 7", priority));
  constexpr uint32_t kKnown = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT |
                              ACL_STREAM_HUGE | ACL_STREAM_CPU_SCHEDULE;
  if ((flag & ~kKnown) != 0)
    return badArgument(ACL_ERROR_RT_PARAM_INVALID, "aclrtCreateStreamWithConfig",
                       fmt::format("flag {:#x} is none of the stream flags", flag));
  return createStream("aclrtCreateStreamWithConfig", stream);
}
aclError aclrtDestroyStream(aclrtStream stream) {
  return destroyStream("aclrtDestroyStream", stream, true);
}
aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return destroyStream("aclrtDestroyStreamForce", stream, false);
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return synchronize("aclrtSynchronizeStream", stream, vatlas::sim::kNever);
}
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  if (timeout < -1) {
    return badArgument(ACL_ERROR_RT_PARAM_INVALID, "aclrtSynchronizeStreamWithTimeout",
                       fmt::format("timeout is {} ms; allowed: -1 (none) and more", timeout));
  }
  return synchronize("aclrtSynchronizeStreamWithTimeout", stream, timeoutOf(timeout));
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  return guarded("aclrtStreamQuery", [&] {
    if (status == nullptr) return nullArgument("aclrtStreamQuery", "status");
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    const StreamRef ref = resolveStream(call, stream);
    if (ref.code != 0) return ref.code;
    bool done = false;
    if (!call.session->queryStream(*call.thread, ref.id, done))
      return badHandle("aclrtStreamQuery", "stream");
    *status = done ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return ACL_SUCCESS;
  });
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  return guarded("aclrtStreamGetId", [&] {
    if (streamId == nullptr) return nullArgument("aclrtStreamGetId", "streamId");
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    const StreamRef ref = resolveStream(call, stream);
    if (ref.code != 0) return ref.code;
    *streamId = static_cast<int32_t>(ref.id & 0xffffff);
    return ACL_SUCCESS;
  });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return withEvent("aclrtStreamWaitEvent", event, stream, [&](const Call& call, const StreamRef& ref) {
    return call.session->waitEvent(*call.thread, ref.id, idOf(event));
  });
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  return guarded("aclrtSetStreamFailureMode", [&] {
    if (stream == nullptr) return nullArgument("aclrtSetStreamFailureMode", "stream");
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    const StreamRef ref = resolveStream(call, stream);
    if (ref.code != 0) return ref.code;
    if (mode == ACL_CONTINUE_ON_FAILURE) return ACL_SUCCESS;
    return badArgument(
        mode == ACL_STOP_ON_FAILURE ? ACL_ERROR_RT_FEATURE_NOT_SUPPORT : ACL_ERROR_RT_PARAM_INVALID,
        "aclrtSetStreamFailureMode", "only ACL_CONTINUE_ON_FAILURE is modelled yet");
  });
}

aclError aclrtCreateEvent(aclrtEvent* event) {
  return createEvent("aclrtCreateEvent", event,
                     ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE | ACL_EVENT_CAPTURE_STREAM_PROGRESS);
}
aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return createEvent("aclrtCreateEventWithFlag", event, flag);
}
aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  return createEvent("aclrtCreateEventExWithFlag", event, flag);
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  return guarded("aclrtDestroyEvent", [&] {
    AclEvent info;
    if (const int code = checkEvent("aclrtDestroyEvent", event, info); code != ACL_SUCCESS) return code;
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    AclState& state = aclState();
    {
      const std::lock_guard lock(state.mutex);
      state.events.erase(idOf(event));
    }
    call.session->destroyEvent(idOf(event));
    return ACL_SUCCESS;
  });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return withEvent("aclrtRecordEvent", event, stream, [&](const Call& call, const StreamRef& ref) {
    return call.session->recordEvent(*call.thread, idOf(event), ref.id);
  });
}
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  return withEvent("aclrtResetEvent", event, stream, [](const Call&, const StreamRef&) { return true; });
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  if (status == nullptr) return nullArgument("aclrtQueryEvent", "status");
  bool recorded = false;
  bool done = false;
  if (const int code = queryEvent("aclrtQueryEvent", event, recorded, done); code != ACL_SUCCESS) return code;
  *status = done ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  if (status == nullptr) return nullArgument("aclrtQueryEventStatus", "status");
  bool recorded = false;
  bool done = false;
  if (const int code = queryEvent("aclrtQueryEventStatus", event, recorded, done); code != ACL_SUCCESS)
    return code;
  *status = done ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  return guarded("aclrtSynchronizeEvent", [&] {
    if (timeout < -1) {
      return badArgument(ACL_ERROR_RT_PARAM_INVALID, "aclrtSynchronizeEventWithTimeout",
                         fmt::format("timeout is {} ms; allowed: -1 (none) and more", timeout));
    }
    AclEvent info;
    if (const int code = checkEvent("aclrtSynchronizeEvent", event, info); code != ACL_SUCCESS) return code;
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    const WaitResult result = call.session->synchronizeEvent(*call.thread, idOf(event), timeoutOf(timeout));
    const int code = waitCode(call, result, 0, "aclrtSynchronizeEvent");
    return code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT ? ACL_ERROR_RT_EVENT_SYNC_TIMEOUT : code;
  });
}
aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return aclrtSynchronizeEventWithTimeout(event, -1);
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  return guarded("aclrtEventElapsedTime", [&] {
    if (ms == nullptr) return nullArgument("aclrtEventElapsedTime", "ms");
    SimTime start = 0;
    SimTime end = 0;
    if (const int code = timeOf("aclrtEventElapsedTime", startEvent, start); code != ACL_SUCCESS) return code;
    if (const int code = timeOf("aclrtEventElapsedTime", endEvent, end); code != ACL_SUCCESS) return code;
    if (end < start)
      return badArgument(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, "aclrtEventElapsedTime",
                         "the end event lies before the start event");
    *ms = static_cast<float>(static_cast<double>(end - start) * 1e-9);
    return ACL_SUCCESS;
  });
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  return guarded("aclrtEventGetTimestamp", [&] {
    if (timestamp == nullptr) return nullArgument("aclrtEventGetTimestamp", "timestamp");
    SimTime at = 0;
    if (const int code = timeOf("aclrtEventGetTimestamp", event, at); code != ACL_SUCCESS) return code;
    *timestamp = static_cast<uint64_t>(at / vatlas::sim::kMicrosecond);
    return ACL_SUCCESS;
  });
}
