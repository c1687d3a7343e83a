// Memory of devices and of the host, copies.
#include <fmt/format.h>

#include <cstring>

#include "acl/acl.h"
#include "acl/acl_state.h"
#include "session/host_memory.h"

using namespace vatlas::runtime;
using vatlas::sim::DeviceMemory;
using vatlas::sim::MemoryStatus;

namespace {

int allocate(const char* function, void** devPtr, size_t size) {
  return guarded(function, [&] {
    if (devPtr == nullptr) return nullArgument(function, "devPtr");
    if (size == 0)
      return badArgument(ACL_ERROR_INVALID_PARAM, function, "size is 0; allowed: 1 byte and more");
    Call call = enterCall();
    const int device = deviceOf(call, function);
    if (call.code != 0) return call.code;
    DeviceMemory& memory = call.session->memory();
    void* address = nullptr;
    switch (memory.allocate(device, size, 64, false, address)) {
      case MemoryStatus::Ok:
        break;
      case MemoryStatus::OutOfHostMemory:
        return badArgument(
            ACL_ERROR_RT_MEMORY_ALLOCATION, function,
            fmt::format("{} bytes would pass the ceiling of {} bytes of host memory for all devices", size,
                        memory.ceilingBytes()),
            "free device memory, or raise VATLAS_HOST_MEMORY_MB");
      default:
        return badArgument(ACL_ERROR_RT_MEMORY_ALLOCATION, function,
                           fmt::format("device {} has {} of {} bytes left, {} were asked for", device,
                                       memory.freeBytes(device), memory.totalBytes(device), size));
    }
    AclState& state = aclState();
    const std::lock_guard lock(state.mutex);
    state.allocations[device].insert(address);
    *devPtr = address;
    return ACL_SUCCESS;
  });
}

// One side of a copy: device memory of some card, or host memory.
struct Side {
  bool device = false;
  int code = 0;
};

Side look(const Call& call, const char* function, const char* name, const void* address, size_t count,
          bool written) {
  Side side;
  DeviceMemory& memory = call.session->memory();
  side.device = memory.cardOf(address) >= 0;
  if (side.device) {
    if (!memory.find(address, count)) {
      side.code =
          badArgument(ACL_ERROR_RT_PARAM_INVALID, function,
                      fmt::format("{}: {} bytes at {} are not all inside one live device allocation ({})",
                                  name, count, fmt::ptr(address), memory.describe(address)));
    }
  } else if (written ? !hostWritable(const_cast<void*>(address), count) : !hostReadable(address, count)) {
    side.code = badArgument(ACL_ERROR_RT_PARAM_INVALID, function,
                            fmt::format("{}: {} bytes at {} are not host memory that can be {}", name, count,
                                        fmt::ptr(address), written ? "written" : "read"));
  }
  return side;
}

CopyRequest::Kind kindOf(const Side& dst, const Side& src) {
  using Kind = CopyRequest::Kind;
  if (dst.device) return src.device ? Kind::DeviceToDevice : Kind::HostToDevice;
  return src.device ? Kind::DeviceToHost : Kind::HostToHost;
}

// The checks that both forms of a copy share; `request` is complete when 0 is answered.
int prepareCopy(Call& call, const char* function, void* dst, size_t destMax, const void* src, size_t count,
                aclrtMemcpyKind kind, CopyRequest& request) {
  if (dst == nullptr) return nullArgument(function, "dst");
  if (src == nullptr) return nullArgument(function, "src");
  if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
    return badArgument(ACL_ERROR_INVALID_PARAM, function,
                       fmt::format("kind is {}; allowed: 0 to 5", static_cast<int>(kind)));
  }
  if (count > destMax) {
    return badArgument(ACL_ERROR_RT_PARAM_INVALID, function,
                       fmt::format("count is {}, more than destMax, which is {}", count, destMax));
  }
  (void)deviceOf(call, function);
  if (call.code != 0) return call.code;
  const Side to = look(call, function, "dst", dst, count, true);
  if (to.code != 0) return to.code;
  const Side from = look(call, function, "src", src, count, false);
  if (from.code != 0) return from.code;
  request.kind = kindOf(to, from);
  request.destination = dst;
  request.source = src;
  request.bytes = count;
  return ACL_SUCCESS;
}

int prepareSet(Call& call, const char* function, void* devPtr, size_t maxCount, int32_t value, size_t count,
               CopyRequest& request) {
  if (devPtr == nullptr) return nullArgument(function, "devPtr");
  if (count > maxCount) {
    return badArgument(ACL_ERROR_RT_PARAM_INVALID, function,
                       fmt::format("count is {}, more than maxCount, which is {}", count, maxCount));
  }
  (void)deviceOf(call, function);
  if (call.code != 0) return call.code;
  const Side to = look(call, function, "devPtr", devPtr, count, true);
  if (to.code != 0) return to.code;
  if (!to.device) return badArgument(ACL_ERROR_RT_PARAM_INVALID, function, "devPtr is not device memory");
  request.kind = CopyRequest::Kind::Set;
  request.destination = devPtr;
  request.value = value;
  request.bytes = count;
  return ACL_SUCCESS;
}

int runNow(const Call& call, const char* function, const CopyRequest& request) {
  if (request.kind == CopyRequest::Kind::HostToHost) {
    std::memmove(request.destination, request.source, request.bytes);
    return ACL_SUCCESS;
  }
  return waitCode(call, call.session->copyNow(*call.thread, currentDevice(), request), 0, function);
}

// On a stream. Host memory that is not pinned is the caller's again when the call returns.
int submit(const Call& call, const char* function, aclrtStream stream, const CopyRequest& request) {
  const StreamRef ref = resolveStream(call, stream);
  if (ref.code != 0) return ref.code;
  const void* host = request.kind == CopyRequest::Kind::HostToDevice   ? request.source
                     : request.kind == CopyRequest::Kind::DeviceToHost ? request.destination
                                                                       : nullptr;
  std::shared_ptr<HostBlock> block;
  if (host != nullptr) {
    AclState& state = aclState();
    const std::lock_guard lock(state.mutex);
    block = state.pinnedBlock(host, request.bytes);
  }
  if (!call.session->submitCopy(*call.thread, ref.id, request)) return badHandle(function, "stream");
  if (host == nullptr) return ACL_SUCCESS;
  if (block) {
    call.session->submitCallback(*call.thread, ref.id, [block](SimTime) {});  // keeps the block until then
    return ACL_SUCCESS;
  }
  const WaitResult result = call.session->synchronizeStream(*call.thread, ref.id, vatlas::sim::kNever);
  return result == WaitResult::Failed
             ? ACL_SUCCESS
             : waitCode(call, result, ref.id, function);  // the error stays for a synchronize
}

}  // namespace

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return allocate("aclrtMalloc", devPtr, size);
}
aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return allocate("aclrtMallocAlign32", devPtr, size);
}
aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return allocate("aclrtMallocCached", devPtr, size);
}

aclError aclrtFree(void* devPtr) {
  return guarded("aclrtFree", [&] {
    if (devPtr == nullptr) return nullArgument("aclrtFree", "devPtr");
    const Call call = enterCall();
    if (call.code != 0) return call.code;
    DeviceMemory& memory = call.session->memory();
    const int device = memory.cardOf(devPtr);
    AclState& state = aclState();
    const std::lock_guard lock(state.mutex);
    const auto known = state.allocations.find(device);
    if (known == state.allocations.end() || known->second.erase(devPtr) == 0) {
      return badArgument(ACL_ERROR_RT_PARAM_INVALID, "aclrtFree",
                         fmt::format("{} is not the start of a live device allocation ({})", fmt::ptr(devPtr),
                                     device >= 0 ? memory.describe(devPtr) : "no device address"));
    }
    memory.release(devPtr);
    return ACL_SUCCESS;
  });
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return guarded("aclrtMallocHost", [&] {
    if (hostPtr == nullptr) return nullArgument("aclrtMallocHost", "hostPtr");
    if (size == 0)
      return badArgument(ACL_ERROR_INVALID_PARAM, "aclrtMallocHost", "size is 0; allowed: 1 byte and more");
    if (size > (std::size_t{1} << 46)) {
      return badArgument(ACL_ERROR_RT_MEMORY_ALLOCATION, "aclrtMallocHost",
                         fmt::format("the host does not have {} bytes", size));
    }
    Call call = enterCall();
    if (call.code != 0) return call.code;
    auto block = std::make_shared<HostBlock>(size);
    AclState& state = aclState();
    const std::lock_guard lock(state.mutex);
    *hostPtr = block->data;
    state.pinned[reinterpret_cast<std::uintptr_t>(block->data)] = std::move(block);
    return ACL_SUCCESS;
  });
}

aclError aclrtFreeHost(void* hostPtr) {
  return guarded("aclrtFreeHost", [&] {
    if (hostPtr == nullptr) return nullArgument("aclrtFreeHost", "hostPtr");
    AclState& state = aclState();
    const std::lock_guard lock(state.mutex);
    if (state.pinned.erase(reinterpret_cast<std::uintptr_t>(hostPtr)) == 0) {
      return badArgument(ACL_ERROR_RT_PARAM_INVALID, "aclrtFreeHost",
                         "hostPtr is not memory of aclrtMallocHost, or has been freed");
    }
    return ACL_SUCCESS;
  });
}

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  return guarded("aclrtMemcpy", [&] {
    if (count == 0) return ACL_SUCCESS;
    Call call = enterCall();
    if (call.code != 0) return call.code;
    CopyRequest request;
    if (const int code = prepareCopy(call, "aclrtMemcpy", dst, destMax, src, count, kind, request); code != 0)
      return code;
    return runNow(call, "aclrtMemcpy", request);
  });
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
  return guarded("aclrtMemcpyAsync", [&] {
    if (count == 0) return ACL_SUCCESS;
    Call call = enterCall();
    if (call.code != 0) return call.code;
    CopyRequest request;
    if (const int code = prepareCopy(call, "aclrtMemcpyAsync", dst, destMax, src, count, kind, request);
        code != 0)
      return code;
    if (request.kind == CopyRequest::Kind::HostToHost) {
      return badArgument(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclrtMemcpyAsync",
                         "copies from host to host are not asynchronous", "use aclrtMemcpy");
    }
    return submit(call, "aclrtMemcpyAsync", stream, request);
  });
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  return guarded("aclrtMemset", [&] {
    if (count == 0) return ACL_SUCCESS;
    Call call = enterCall();
    if (call.code != 0) return call.code;
    CopyRequest request;
    if (const int code = prepareSet(call, "aclrtMemset", devPtr, maxCount, value, count, request); code != 0)
      return code;
    return runNow(call, "aclrtMemset", request);
  });
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
  return guarded("aclrtMemsetAsync", [&] {
    if (count == 0) return ACL_SUCCESS;
    Call call = enterCall();
    if (call.code != 0) return call.code;
    CopyRequest request;
    if (const int code = prepareSet(call, "aclrtMemsetAsync", devPtr, maxCount, value, count, request);
        code != 0)
      return code;
    return submit(call, "aclrtMemsetAsync", stream, request);
  });
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  return guarded("aclrtGetMemInfo", [&] {
    if (free == nullptr) return nullArgument("aclrtGetMemInfo", "free");
    if (total == nullptr) return nullArgument("aclrtGetMemInfo", "total");
    Call call = enterCall();
    const int device = deviceOf(call, "aclrtGetMemInfo");
    if (call.code != 0) return call.code;
    const bool has = attr >= ACL_DDR_MEM && attr <= ACL_HBM_MEM_NORMAL;  // one memory, whatever it is called
    *free = has ? call.session->memory().freeBytes(device) : 0;
    *total = has ? call.session->memory().totalBytes(device) : 0;
    return ACL_SUCCESS;
  });
}
