#include "acl/acl_state.h"

#include <fmt/format.h>

#include <cstdlib>
#include <new>

#include "acl/acl.h"
#include "vatlas/runtime/config.h"

namespace vatlas::runtime {
namespace {

struct ThreadContext {
  std::uint64_t epoch = 0;
  std::uint64_t context = 0;
};
ThreadContext& mine() {
  thread_local ThreadContext context;
  return context;
}

}  // namespace

HostBlock::HostBlock(std::size_t size)
    : data(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096)), bytes(size) {
  if (data == nullptr) throw std::bad_alloc();
}
HostBlock::~HostBlock() {
  std::free(data);
}

AclState& aclState() {
  static auto* state = new AclState;  // leaked: used while the process exits
  return *state;
}

std::shared_ptr<HostBlock> AclState::pinnedBlock(const void* address, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto found = pinned.upper_bound(at);
  if (found == pinned.begin()) return nullptr;
  --found;
  const bool inside =
      at - found->first < found->second->bytes && bytes <= found->second->bytes - (at - found->first);
  return inside ? found->second : nullptr;
}

void AclState::forgetMachine() {
  ++epoch;
  contexts = HandleTable<AclContext>(HandleKind::Context);
  defaultContexts.clear();
  deviceCount.clear();
  streams.clear();
  events.clear();
  allocations.clear();
  parameters.clear();
}

std::uint64_t currentContext() noexcept {
  AclState& state = aclState();
  const std::lock_guard lock(state.mutex);
  return mine().epoch == state.epoch ? mine().context : 0;
}

void setCurrentContext(std::uint64_t context) noexcept {
  AclState& state = aclState();
  const std::lock_guard lock(state.mutex);
  mine() = {state.epoch, context};
}

std::shared_ptr<AclContext> liveContext(AclState& state, std::uint64_t id) {
  const std::shared_ptr<AclContext> context = state.contexts.find(id);
  return context && !context->dead ? context : nullptr;
}

int nullArgument(std::string_view function, std::string_view parameter) {
  return fail(ACL_ERROR_INVALID_PARAM, {"EH0002",
                                        "Null pointer",
                                        fmt::format("{}: {} is null", function, parameter),
                                        {},
                                        fmt::format("pass the address of a variable as {}", parameter)});
}

int badArgument(int code, std::string_view function, std::string message, std::string solution) {
  return fail(
      code,
      {"EE1003", "Value not allowed", fmt::format("{}: {}", function, message), {}, std::move(solution)});
}

int badHandle(std::string_view function, std::string_view what) {
  return fail(ACL_ERROR_RT_INVALID_HANDLE,
              {"EE1017",
               "Handle not valid",
               fmt::format("{}: the {} was destroyed, or is the handle of something else", function, what),
               {},
               {}});
}

int noContext(std::string_view function) {
  return fail(ACL_ERROR_RT_CONTEXT_NULL,
              {"EE1018", "No context", fmt::format("{}: the calling thread has no device", function),
               "contexts belong to threads: one that another thread has set does not count",
               "call aclrtSetDevice or aclrtSetCurrentContext on this thread first"});
}

Call enterCall(SimTime cost) {
  Call call;
  {
    AclState& state = aclState();
    const std::lock_guard lock(state.mutex);
    if (state.finalized) {
      call.code = fail(ACL_ERROR_UNINITIALIZE, {"EH0001",
                                                "Not initialised",
                                                "the machine was closed by aclFinalize",
                                                {},
                                                "call aclInit to open one again"});
      return call;
    }
  }
  try {
    call.session = Session::open();
    call.thread = &call.session->thread();
    call.session->spend(*call.thread, cost >= 0 ? cost : call.session->cluster().product.host.apiCall);
  } catch (const std::exception& error) {
    call.code = fail(ACL_ERROR_RT_DEV_SETUP_ERROR,
                     {"EE1001",
                      "The machine cannot be opened",
                      error.what(),
                      {},
                      "choose a cluster with VATLAS_CLUSTER, and look at it with `vatlas validate`"});
  }
  return call;
}

int deviceOf(Call& call, std::string_view function) {
  if (call.code != 0) return -1;
  AclState& state = aclState();
  const std::uint64_t id = currentContext();
  const std::lock_guard lock(state.mutex);
  const std::shared_ptr<AclContext> context = liveContext(state, id);
  if (context) return context->device;
  call.code = noContext(function);
  return -1;
}

int currentDevice() noexcept {
  const std::uint64_t id = currentContext();
  AclState& state = aclState();
  const std::lock_guard lock(state.mutex);
  const std::shared_ptr<AclContext> context = liveContext(state, id);
  return context ? context->device : -1;
}

StreamRef resolveStream(const Call& call, void* stream) {
  StreamRef ref;
  AclState& state = aclState();
  const std::uint64_t mineId = currentContext();
  const std::lock_guard lock(state.mutex);
  const std::shared_ptr<AclContext> context = liveContext(state, mineId);
  if (!context) {
    ref.code = noContext("a call with a stream");
    return ref;
  }
  ref.device = context->device;
  if (stream == nullptr) {
    if (context->defaultStream == 0) {
      context->defaultStream = call.session->createStream(context->device);
      state.streams[context->defaultStream] = mineId;
    }
    ref.id = context->defaultStream;
    return ref;
  }
  const auto found = state.streams.find(idOf(stream));
  if (found == state.streams.end()) {
    ref.code = badHandle("a call with a stream", "stream");
  } else if (found->second != mineId) {
    ref.code = badArgument(ACL_ERROR_RT_STREAM_CONTEXT, "a call with a stream",
                           "the stream belongs to another context than the calling thread's current one",
                           "make the stream's context current with aclrtSetCurrentContext");
  } else {
    ref.id = found->first;
  }
  return ref;
}

StreamRef resolveStream(void* stream) {
  Call call;
  call.session = Session::currentOrNull();
  if (call.session) return resolveStream(call, stream);
  StreamRef ref;
  ref.code = noContext("a call with a stream");
  return ref;
}

bool systemParameter(int option, std::int64_t& value) {
  const std::uint64_t id = currentContext();
  AclState& state = aclState();
  const std::lock_guard lock(state.mutex);
  if (const std::shared_ptr<AclContext> context = liveContext(state, id)) {
    if (const auto found = context->parameters.find(option); found != context->parameters.end()) {
      value = found->second;
      return true;
    }
  }
  const auto found = state.parameters.find(option);
  if (found == state.parameters.end()) return false;
  value = found->second;
  return true;
}

int waitCode(const Call& call, WaitResult result, StreamId stream, std::string_view what) {
  switch (result) {
    case WaitResult::Done:
      return ACL_SUCCESS;
    case WaitResult::TimedOut:
      return fail(
          ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
          {"EE4003",
           "Time is up",
           fmt::format("{}: the work was not done when the timeout (in simulated time) expired", what),
           "a rank of the communicator has not called the operator, or the work takes longer",
           {}});
    case WaitResult::Failed: {
      const std::optional<StreamError> error = call.session->takeStreamError(stream);
      if (!error) return ACL_SUCCESS;
      return fail(error->code, {error->errorCode, "Device work failed", error->message, {}, {}});
    }
    case WaitResult::NoSuchObject:
      return badHandle(what, "object");
    case WaitResult::Aborted:
      break;
  }
  return fail(ACL_ERROR_RT_DEVICE_TASK_ABORT,
              {"EE4004", "Aborted", fmt::format("{}: the machine is stopping", what), {}, {}});
}

int reportException(std::string_view function, const std::exception* error) noexcept {
  try {
    if (dynamic_cast<const std::bad_alloc*>(error) != nullptr) {
      return fail(
          ACL_ERROR_BAD_ALLOC,
          {"EE1002", "No host memory", fmt::format("{}: the host has no memory left", function), {}, {}});
    }
    const bool config = dynamic_cast<const ConfigError*>(error) != nullptr;
    return fail(config ? ACL_ERROR_RT_DEV_SETUP_ERROR : ACL_ERROR_INTERNAL_ERROR,
                {config ? "EE1001" : "EE9999",
                 "Error",
                 fmt::format("{}: {}", function, error == nullptr ? "unknown exception" : error->what()),
                 {},
                 {}});
  } catch (...) {
    return ACL_ERROR_INTERNAL_ERROR;
  }
}

SimTime timeoutOf(std::int32_t milliseconds) {
  return milliseconds < 0 ? sim::kNever : static_cast<SimTime>(milliseconds) * sim::kMillisecond;
}

}  // namespace vatlas::runtime
