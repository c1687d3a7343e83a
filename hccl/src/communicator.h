// Communicators of this process: their windows, and the meeting of the ranks that make one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hccl/hccl_comm.h"
#include "vatlas/runtime/communicators.h"
#include "vatlas/runtime/handle_ids.h"
#include "vatlas/runtime/handles.h"

namespace vatlas::hccl {

// What all ranks of a communicator share; its device memory is freed when the last one is gone.
struct Group {
  Group() = default;
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  std::weak_ptr<runtime::Session> session;
  std::shared_ptr<runtime::GangGroup> gang;
  std::vector<void*> memory;
  std::vector<void*> contexts;  // by rank
  std::uint64_t windowBytes = 0;
};

struct Communicator {
  std::shared_ptr<Group> group;
  int rank = 0;
  int device = 0;
};

struct CommunicatorTable {
  std::mutex mutex;
  runtime::HandleTable<Communicator> communicators{runtime::HandleKind::Communicator};
  std::weak_ptr<runtime::Session> named;  // whose communicators the names count
  std::uint64_t nextName = 0;
};
CommunicatorTable& communicatorTable();

// Settings that all ranks of a communicator must have in common.
struct Settings {
  std::string name;  // empty: one is made up
  std::uint32_t bufferMb = 0;
  bool operator==(const Settings&) const = default;
};

// Reads a config (null: none) and the environment. HCCL_SUCCESS, or the code with the thread's message set.
HcclResult readSettings(const char* function, const runtime::Session& session, const HcclCommConfig* config,
                        Settings& settings);

std::string freshName();
// Windows and contexts on all devices; null with the thread's message set when there is no room.
std::shared_ptr<Group> makeGroup(const char* function, const std::shared_ptr<runtime::Session>& session,
                                 const std::vector<int>& devices, const Settings& settings);
// Registers a rank and gives its handle; null when the name is taken on the device.
HcclComm addRank(const std::shared_ptr<Group>& group, int rank);

HcclResult refuse(HcclResult code, const char* function, const std::string& message,
                  const char* number = "EI0003");

// HcclResult of a body that may throw.
template <typename Body>
HcclResult guardedHccl(const char* function, Body&& body) noexcept {
  HcclResult result = HCCL_E_INTERNAL;
  const int code = runtime::guarded(function, [&] {
    result = body();
    return 0;
  });
  return code == 0 ? result : HCCL_E_INTERNAL;
}

}  // namespace vatlas::hccl
