// What the acl API remembers beside the session: contexts, who owns which stream and event, pinned host
// memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "vatlas/runtime/handle_ids.h"
#include "vatlas/runtime/handles.h"

namespace vatlas::runtime {

struct AclContext {
  int device = 0;
  bool isDefault = false;
  bool dead = false;  // its device has been reset
  StreamId defaultStream = 0;
  std::map<int, std::int64_t> parameters;
};

struct AclEvent {
  int device = 0;
  std::uint32_t flags = 0;
};

// A block of aclrtMallocHost; copies under way keep it alive.
struct HostBlock {
  explicit HostBlock(std::size_t size);
  ~HostBlock();
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;
  void* data;
  std::size_t bytes;
};

struct AclState {
  std::mutex mutex;
  std::uint64_t initCount = 0;
  bool finalized = false;  // by aclFinalize: only aclInit opens a machine again
  std::string configText;
  std::uint64_t epoch = 1;  // grows when the machine is closed: what threads remember is then stale
  HandleTable<AclContext> contexts{HandleKind::Context};
  std::map<int, std::uint64_t> defaultContexts;         // by device
  std::map<int, int> deviceCount;                       // SetDevice without ResetDevice
  std::unordered_map<StreamId, std::uint64_t> streams;  // to its context
  std::unordered_map<EventId, AclEvent> events;
  std::map<int, std::set<void*>> allocations;  // by device
  std::map<std::uintptr_t, std::shared_ptr<HostBlock>> pinned;
  std::map<int, std::int64_t> parameters;

  std::shared_ptr<HostBlock> pinnedBlock(const void* address, std::size_t bytes);
  void forgetMachine();
};

AclState& aclState();

// The calling thread's context id; 0: none.
std::uint64_t currentContext() noexcept;
void setCurrentContext(std::uint64_t context) noexcept;
// The live context, with the state's mutex held; null when there is none.
std::shared_ptr<AclContext> liveContext(AclState& state, std::uint64_t id);

// 107002 with a message.
int noContext(std::string_view function);
int nullArgument(std::string_view function, std::string_view parameter);  // 100000
int badArgument(int code, std::string_view function, std::string message, std::string solution = {});
int badHandle(std::string_view function, std::string_view what);  // 107017
// For calls that need a device: the context's; -1 with `code` set when there is none.
int deviceOf(Call& call, std::string_view function);

template <typename Handle>
std::uint64_t idOf(Handle handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}
template <typename Handle>
Handle handleOf(std::uint64_t id) {
  return reinterpret_cast<Handle>(id);
}

// Milliseconds of an API timeout to simulated time; -1: none.
SimTime timeoutOf(std::int32_t milliseconds);

}  // namespace vatlas::runtime
