// Devices and contexts.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_state.h"

using namespace vatlas::runtime;

namespace {

bool deviceExists(const Call& call, int64_t device) {
  return device >= 0 && device < call.session->cluster().ranks;
}

int noDevice(const Call& call, std::string_view function, int64_t device) {
  return badArgument(ACL_ERROR_RT_INVALID_DEVICEID, function,
                     fmt::format("there is no device {}; the cluster {} has devices 0 to {}", device,
                                 call.session->cluster().name, call.session->cluster().ranks - 1));
}

void makeCurrent(const Call& call, std::uint64_t context, int device) {
  setCurrentContext(context);
  call.session->bindDevice(*call.thread, device);
}

// Streams, events, contexts and memory of a device.
void releaseDevice(const Call& call, int device) {
  AclState& state = aclState();
  const std::lock_guard lock(state.mutex);
  for (auto stream = state.streams.begin(); stream != state.streams.end();) {
    if (call.session->streamDevice(stream->first) == device) {
      call.session->destroyStream(*call.thread, stream->first, false);
      stream = state.streams.erase(stream);
    } else {
      ++stream;
    }
  }
  for (auto event = state.events.begin(); event != state.events.end();) {
    if (event->second.device == device) {
      call.session->destroyEvent(event->first);
      event = state.events.erase(event);
    } else {
      ++event;
    }
  }
  state.contexts.forEach([&](std::uint64_t, const std::shared_ptr<AclContext>& context) {
    if (context->device == device) context->dead = true;
  });
  if (const auto found = state.defaultContexts.find(device); found != state.defaultContexts.end()) {
    state.contexts.remove(found->second);
    state.defaultContexts.erase(found);
  }
  for (void* address : state.allocations[device]) call.session->memory().release(address);
  state.allocations.erase(device);
  state.deviceCount.erase(device);
}

int resetDevice(const char* function, int32_t device, bool force) {
  return guarded(function, [&] {
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    if (!deviceExists(call, device)) return noDevice(call, function, device);
    AclState& state = aclState();
    bool last = force;
    {
      const std::lock_guard lock(state.mutex);
      const auto count = state.deviceCount.find(device);
      if (count == state.deviceCount.end()) {
        return fail(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR,
                    {"EE1018",
                     "Device not set",
                     fmt::format("{}: device {} is not set, or has been reset already", function, device),
                     {},
                     {}});
      }
      if (!force) last = --count->second == 0;
    }
    int code = ACL_SUCCESS;
    if (last) {
      if (!force) (void)call.session->synchronizeDevice(*call.thread, device, vatlas::sim::kNever);
      releaseDevice(call, device);
    }
    if (currentDevice() < 0) makeCurrent(call, 0, -1);
    return code;
  });
}

}  // namespace

aclError aclrtSetDevice(int32_t deviceId) {
  return guarded("aclrtSetDevice", [&] {
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    if (!deviceExists(call, deviceId)) return noDevice(call, "aclrtSetDevice", deviceId);
    AclState& state = aclState();
    std::uint64_t id = 0;
    {
      const std::lock_guard lock(state.mutex);
      ++state.deviceCount[deviceId];
      std::uint64_t& known = state.defaultContexts[deviceId];
      if (!liveContext(state, known)) {
        auto context = std::make_shared<AclContext>();
        context->device = deviceId;
        context->isDefault = true;
        known = state.contexts.add(std::move(context));
      }
      id = known;
    }
    makeCurrent(call, id, deviceId);
    return ACL_SUCCESS;
  });
}

aclError aclrtResetDevice(int32_t deviceId) {
  return resetDevice("aclrtResetDevice", deviceId, false);
}
aclError aclrtResetDeviceForce(int32_t deviceId) {
  return resetDevice("aclrtResetDeviceForce", deviceId, true);
}

aclError aclrtGetDevice(int32_t* deviceId) {
  return guarded("aclrtGetDevice", [&] {
    if (deviceId == nullptr) return nullArgument("aclrtGetDevice", "deviceId");
    Call call = enterCall();
    const int device = deviceOf(call, "aclrtGetDevice");
    if (call.code != 0) return call.code;
    *deviceId = device;
    return ACL_SUCCESS;
  });
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  return guarded("aclrtGetDeviceCount", [&] {
    if (count == nullptr) return nullArgument("aclrtGetDeviceCount", "count");
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    *count = static_cast<uint32_t>(call.session->cluster().ranks);
    return ACL_SUCCESS;
  });
}

const char* aclrtGetSocName(void) {
  const char* name = nullptr;
  guarded("aclrtGetSocName", [&] {
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    static thread_local std::string text;
    text = call.session->cluster().product.socVersion;
    name = text.c_str();
    return ACL_SUCCESS;
  });
  return name;
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  if (runMode == nullptr) return nullArgument("aclrtGetRunMode", "runMode");
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  return guarded("aclrtSynchronizeDevice", [&] {
    if (timeout < -1) {
      return badArgument(ACL_ERROR_RT_PARAM_INVALID, "aclrtSynchronizeDeviceWithTimeout",
                         fmt::format("timeout is {} ms; allowed: -1 (none) and more", timeout));
    }
    Call call = enterCall();
    const int device = deviceOf(call, "aclrtSynchronizeDevice");
    if (call.code != 0) return call.code;
    const WaitResult result = call.session->synchronizeDevice(*call.thread, device, timeoutOf(timeout));
    if (result != WaitResult::Failed) return waitCode(call, result, 0, "aclrtSynchronizeDevice");
    std::vector<StreamId> streams;
    AclState& state = aclState();
    {
      const std::lock_guard lock(state.mutex);
      for (const auto& [stream, context] : state.streams) streams.push_back(stream);
    }
    std::sort(streams.begin(), streams.end());
    int code = ACL_SUCCESS;
    for (const StreamId stream : streams) {
      if (code == ACL_SUCCESS && call.session->streamDevice(stream) == device) {
        code = waitCode(call, WaitResult::Failed, stream, "aclrtSynchronizeDevice");
      }
    }
    return code;
  });
}

aclError aclrtSynchronizeDevice(void) {
  return aclrtSynchronizeDeviceWithTimeout(-1);
}

aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  return guarded("aclrtDeviceCanAccessPeer", [&] {
    if (canAccessPeer == nullptr) return nullArgument("aclrtDeviceCanAccessPeer", "canAccessPeer");
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    for (const int32_t device : {deviceId, peerDeviceId}) {
      if (!deviceExists(call, device)) return noDevice(call, "aclrtDeviceCanAccessPeer", device);
    }
    *canAccessPeer = deviceId != peerDeviceId ? 1 : 0;
    return ACL_SUCCESS;
  });
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  return guarded("aclrtDeviceEnablePeerAccess", [&] {
    if (flags != 0)
      return badArgument(ACL_ERROR_RT_PARAM_INVALID, "aclrtDeviceEnablePeerAccess", "flags must be 0");
    Call call = enterCall();
    const int device = deviceOf(call, "aclrtDeviceEnablePeerAccess");
    if (call.code != 0) return call.code;
    if (!deviceExists(call, peerDeviceId) || peerDeviceId == device) {
      return noDevice(call, "aclrtDeviceEnablePeerAccess", peerDeviceId);
    }
    return ACL_SUCCESS;  // all cards can always reach each other
  });
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  return aclrtDeviceEnablePeerAccess(peerDeviceId, 0);
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  if (mode == ACL_RT_OVERFLOW_MODE_INFNAN) return ACL_SUCCESS;
  return badArgument(
      ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclrtSetDeviceSatMode",
      "only INF/NAN mode is modelled here; the saturating mode is a switch of the cluster file");
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  return guarded("aclrtGetDeviceSatMode", [&] {
    if (mode == nullptr) return nullArgument("aclrtGetDeviceSatMode", "mode");
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    *mode = call.session->cluster().switches.saturate ? ACL_RT_OVERFLOW_MODE_SATURATION
                                                      : ACL_RT_OVERFLOW_MODE_INFNAN;
    return ACL_SUCCESS;
  });
}

// Contexts
// -----------------------------------------------------------------------------------------------------------

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  return guarded("aclrtCreateContext", [&] {
    if (context == nullptr) return nullArgument("aclrtCreateContext", "context");
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    if (!deviceExists(call, deviceId)) return noDevice(call, "aclrtCreateContext", deviceId);
    AclState& state = aclState();
    std::uint64_t id = 0;
    {
      const std::lock_guard lock(state.mutex);
      auto made = std::make_shared<AclContext>();
      made->device = deviceId;
      id = state.contexts.add(std::move(made));
    }
    makeCurrent(call, id, deviceId);
    *context = handleOf<aclrtContext>(id);
    return ACL_SUCCESS;
  });
}

aclError aclrtDestroyContext(aclrtContext context) {
  return guarded("aclrtDestroyContext", [&] {
    if (context == nullptr) return nullArgument("aclrtDestroyContext", "context");
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    AclState& state = aclState();
    {
      const std::lock_guard lock(state.mutex);
      const std::shared_ptr<AclContext> found = state.contexts.find(idOf(context));
      if (!found) return badHandle("aclrtDestroyContext", "context");
      if (found->isDefault) {
        return badArgument(ACL_ERROR_RT_PARAM_INVALID, "aclrtDestroyContext",
                           "a device's default context ends with aclrtResetDevice");
      }
      for (auto stream = state.streams.begin(); stream != state.streams.end();) {
        if (stream->second == idOf(context)) {
          call.session->destroyStream(*call.thread, stream->first, false);
          stream = state.streams.erase(stream);
        } else {
          ++stream;
        }
      }
      state.contexts.remove(idOf(context));
    }
    if (currentContext() == idOf(context)) makeCurrent(call, 0, -1);
    return ACL_SUCCESS;
  });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  return guarded("aclrtSetCurrentContext", [&] {
    if (context == nullptr) return nullArgument("aclrtSetCurrentContext", "context");
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    AclState& state = aclState();
    int device = -1;
    {
      const std::lock_guard lock(state.mutex);
      const std::shared_ptr<AclContext> found = liveContext(state, idOf(context));
      if (!found) return badHandle("aclrtSetCurrentContext", "context");
      device = found->device;
    }
    makeCurrent(call, idOf(context), device);
    return ACL_SUCCESS;
  });
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  return guarded("aclrtGetCurrentContext", [&] {
    if (context == nullptr) return nullArgument("aclrtGetCurrentContext", "context");
    Call call = enterCall();
    (void)deviceOf(call, "aclrtGetCurrentContext");
    if (call.code != 0) return call.code;
    *context = handleOf<aclrtContext>(currentContext());
    return ACL_SUCCESS;
  });
}

namespace {

bool knownOption(aclSysParamOpt opt) {
  return opt >= ACL_OPT_DETERMINISTIC && opt <= ACL_OPT_ENABLE_KERNEL_EARLY_START;
}

int parameter(const char* function, aclSysParamOpt opt, const int64_t* in, int64_t* out, bool ofContext) {
  return guarded(function, [&] {
    if (in == nullptr && out == nullptr) return nullArgument(function, "value");
    if (!knownOption(opt))
      return badArgument(ACL_ERROR_RT_PARAM_INVALID, function,
                         fmt::format("there is no option {}", static_cast<int>(opt)));
    Call call = enterCall();
    if (ofContext) (void)deviceOf(call, function);
    if (call.code != 0) return call.code;
    const std::uint64_t id = currentContext();
    AclState& state = aclState();
    const std::lock_guard lock(state.mutex);
    const std::shared_ptr<AclContext> context = ofContext ? liveContext(state, id) : nullptr;
    std::map<int, std::int64_t>& all = context ? context->parameters : state.parameters;
    if (in != nullptr) {
      all[opt] = *in;
      return ACL_SUCCESS;
    }
    const auto found = all.find(opt);
    if (found == all.end())
      return badArgument(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, function, "the option has not been set");
    *out = found->second;
    return ACL_SUCCESS;
  });
}

}  // namespace

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  return parameter("aclrtCtxSetSysParamOpt", opt, &value, nullptr, true);
}
aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  return parameter("aclrtCtxGetSysParamOpt", opt, nullptr, value, true);
}
aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  return parameter("aclrtSetSysParamOpt", opt, &value, nullptr, false);
}
aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  return parameter("aclrtGetSysParamOpt", opt, nullptr, value, false);
}
