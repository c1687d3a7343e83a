// The public functions of hccl_comm.h.
#include <fmt/format.h>

#include <cstring>
#include <set>

#include "acl/acl.h"
#include "communicator.h"
#include "meeting.h"
#include "vatlas/hccl/rank_table.h"

using namespace vatlas::hccl;
namespace runtime = vatlas::runtime;

namespace {

constexpr char kRootMark[] = "vatlas root info 1:";

HcclResult needDevice(const char* function, runtime::Call& call, int& device) {
  call = runtime::enterCall();
  if (call.code != 0) return HCCL_E_RUNTIME;
  device = runtime::currentDevice();
  if (device < 0)
    return refuse(HCCL_E_RUNTIME, function, "the calling thread has no device: call aclrtSetDevice first",
                  "EI0007");
  return HCCL_SUCCESS;
}

HcclResult checkName(const char* function, const Settings& settings) {
  if (settings.name.empty() || !runtime::communicatorNameInUse(settings.name)) return HCCL_SUCCESS;
  return refuse(HCCL_E_PARA, function, fmt::format("there is a communicator {} already", settings.name));
}

HcclResult initRoot(const char* function, uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                    const HcclCommConfig* config, bool needsConfig, HcclComm* comm) {
  return guardedHccl(function, [&]() -> HcclResult {
    if (nRanks == 0) return refuse(HCCL_E_PARA, function, "nRanks is 0");
    if (rank >= nRanks)
      return refuse(HCCL_E_PARA, function, fmt::format("rank is {}; allowed: 0 to {}", rank, nRanks - 1));
    if (rootInfo == nullptr || comm == nullptr || (needsConfig && config == nullptr))
      return refuse(HCCL_E_PTR, function, "an argument is null");
    runtime::Call call;
    Arrival arrival;
    if (const HcclResult code = needDevice(function, call, arrival.device); code != HCCL_SUCCESS) return code;
    if (nRanks > static_cast<uint32_t>(call.session->cluster().ranks)) {
      return refuse(HCCL_E_PARA, function,
                    fmt::format("nRanks is {}; the cluster {} has {} devices", nRanks,
                                call.session->cluster().name, call.session->cluster().ranks));
    }
    const std::size_t length = strnlen(rootInfo->internal, HCCL_ROOT_INFO_BYTES);
    if (length == HCCL_ROOT_INFO_BYTES ||
        std::strncmp(rootInfo->internal, kRootMark, sizeof kRootMark - 1) != 0) {
      return refuse(HCCL_E_PARA, function, "rootInfo is none of HcclGetRootInfo");
    }
    if (const HcclResult code = readSettings(function, *call.session, config, arrival.settings);
        code != HCCL_SUCCESS)
      return code;
    if (const HcclResult code = checkName(function, arrival.settings); code != HCCL_SUCCESS) return code;
    arrival.key = rootInfo->internal;
    arrival.name = rootInfo->internal + sizeof kRootMark - 1;
    arrival.ranks = nRanks;
    arrival.rank = rank;
    return meet(function, call, arrival, *comm);
  });
}

HcclResult initTable(const char* function, const char* clusterInfo, uint32_t rank,
                     const HcclCommConfig* config, bool needsConfig, HcclComm* comm) {
  return guardedHccl(function, [&]() -> HcclResult {
    if (clusterInfo == nullptr || comm == nullptr || (needsConfig && config == nullptr))
      return refuse(HCCL_E_PTR, function, "an argument is null");
    runtime::Call call;
    Arrival arrival;
    if (const HcclResult code = needDevice(function, call, arrival.device); code != HCCL_SUCCESS) return code;
    RankTable table;
    try {
      table = readRankTable(clusterInfo);
    } catch (const runtime::ConfigError& error) {
      const bool missing = error.code == runtime::ConfigErrorCode::NotFound ||
                           error.code == runtime::ConfigErrorCode::NotAFile ||
                           error.code == runtime::ConfigErrorCode::Unreadable;
      return refuse(missing ? HCCL_E_OPEN_FILE_FAILURE : HCCL_E_PARA, function, error.what(), "EI0004");
    }
    if (rank >= table.ranks.size())
      return refuse(HCCL_E_PARA, function,
                    fmt::format("rank is {}; the table has ranks 0 to {}", rank, table.ranks.size() - 1));
    if (table.ranks[rank].deviceId != arrival.device) {
      return refuse(HCCL_E_PARA, function,
                    fmt::format("the table puts rank {} on device {}, the calling thread's device is {}",
                                rank, table.ranks[rank].deviceId, arrival.device),
                    "EI0014");
    }
    for (const RankTable::Rank& entry : table.ranks) {
      if (entry.deviceId >= call.session->cluster().ranks) {
        return refuse(
            HCCL_E_PARA, function,
            fmt::format("the table has device {}; the cluster {} has devices 0 to {}", entry.deviceId,
                        call.session->cluster().name, call.session->cluster().ranks - 1),
            "EI0014");
      }
    }
    if (const HcclResult code = readSettings(function, *call.session, config, arrival.settings);
        code != HCCL_SUCCESS)
      return code;
    if (const HcclResult code = checkName(function, arrival.settings); code != HCCL_SUCCESS) return code;
    arrival.key = "table:" + table.identity + ":" + arrival.settings.name;
    arrival.name = "hccl_world_group";
    if (arrival.settings.name.empty() && runtime::communicatorNameInUse(arrival.name)) {
      return refuse(HCCL_E_PARA, function,
                    "there is a communicator of a rank table already: give the next one a name");
    }
    arrival.ranks = static_cast<uint32_t>(table.ranks.size());
    arrival.rank = rank;
    return meet(function, call, arrival, *comm);
  });
}

// The live communicator, or a code with the message set.
HcclResult lookUp(const char* function, HcclComm comm, const void* out,
                  std::shared_ptr<Communicator>& found) {
  if (comm == nullptr || out == nullptr) return refuse(HCCL_E_PTR, function, "an argument is null");
  CommunicatorTable& table = communicatorTable();
  const std::lock_guard lock(table.mutex);
  found = table.communicators.find(reinterpret_cast<std::uint64_t>(comm));
  return found ? HCCL_SUCCESS : refuse(HCCL_E_PARA, function, "the communicator was destroyed, or is none");
}

}  // namespace

HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) {
  constexpr const char* kFunction = "HcclCommInitAll";
  return guardedHccl(kFunction, [&]() -> HcclResult {
    if (ndev == 0) return refuse(HCCL_E_PARA, kFunction, "ndev is 0");
    if (devices == nullptr || comms == nullptr) return refuse(HCCL_E_PTR, kFunction, "an argument is null");
    const runtime::Call call = runtime::enterCall();
    if (call.code != 0) return HCCL_E_RUNTIME;
    const int have = call.session->cluster().ranks;
    if (ndev > static_cast<uint32_t>(have))
      return refuse(
          HCCL_E_PARA, kFunction,
          fmt::format("ndev is {}; the cluster {} has {} devices", ndev, call.session->cluster().name, have));
    std::vector<int> list(devices, devices + ndev);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i] < 0 || list[i] >= have)
        return refuse(HCCL_E_PARA, kFunction,
                      fmt::format("there is no device {}; allowed: 0 to {}", list[i], have - 1));
      if (std::count(list.begin(), list.end(), list[i]) > 1)
        return refuse(HCCL_E_PARA, kFunction, fmt::format("device {} is listed twice", list[i]));
    }
    Settings settings;
    if (const HcclResult code = readSettings(kFunction, *call.session, nullptr, settings);
        code != HCCL_SUCCESS)
      return code;
    const std::shared_ptr<Group> group = makeGroup(kFunction, call.session, list, settings);
    if (!group) return HCCL_E_OOM;
    for (std::size_t i = 0; i < list.size(); ++i) comms[i] = addRank(group, static_cast<int>(i));
    return HCCL_SUCCESS;
  });
}

HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) {
  constexpr const char* kFunction = "HcclGetRootInfo";
  return guardedHccl(kFunction, [&]() -> HcclResult {
    if (rootInfo == nullptr) return refuse(HCCL_E_PTR, kFunction, "rootInfo is null");
    runtime::Call call;
    int device = -1;
    if (const HcclResult code = needDevice(kFunction, call, device); code != HCCL_SUCCESS) return code;
    const std::string text = kRootMark + freshName();
    std::memset(rootInfo, 0, sizeof *rootInfo);
    std::memcpy(rootInfo->internal, text.data(), text.size());
    return HCCL_SUCCESS;
  });
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                HcclComm* comm) {
  return initRoot("HcclCommInitRootInfo", nRanks, rootInfo, rank, nullptr, false, comm);
}
HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                      const HcclCommConfig* config, HcclComm* comm) {
  return initRoot("HcclCommInitRootInfoConfig", nRanks, rootInfo, rank, config, true, comm);
}
HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank, HcclComm* comm) {
  return initTable("HcclCommInitClusterInfo", clusterInfo, rank, nullptr, false, comm);
}
HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank, HcclCommConfig* config,
                                         HcclComm* comm) {
  return initTable("HcclCommInitClusterInfoConfig", clusterInfo, rank, config, true, comm);
}

HcclResult HcclGetCommName(HcclComm comm, char* commName) {
  return guardedHccl("HcclGetCommName", [&]() -> HcclResult {
    std::shared_ptr<Communicator> found;
    if (const HcclResult code = lookUp("HcclGetCommName", comm, commName, found); code != HCCL_SUCCESS)
      return code;
    const std::string& name = found->group->gang->name;
    std::memcpy(commName, name.c_str(), name.size() + 1);
    return HCCL_SUCCESS;
  });
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
  return guardedHccl("HcclGetRankId", [&]() -> HcclResult {
    std::shared_ptr<Communicator> found;
    if (const HcclResult code = lookUp("HcclGetRankId", comm, rank, found); code != HCCL_SUCCESS) return code;
    *rank = static_cast<uint32_t>(found->rank);
    return HCCL_SUCCESS;
  });
}

HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize) {
  return guardedHccl("HcclGetRankSize", [&]() -> HcclResult {
    std::shared_ptr<Communicator> found;
    if (const HcclResult code = lookUp("HcclGetRankSize", comm, rankSize, found); code != HCCL_SUCCESS)
      return code;
    *rankSize = static_cast<uint32_t>(found->group->gang->devices.size());
    return HCCL_SUCCESS;
  });
}

HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError) {
  return guardedHccl("HcclGetCommAsyncError", [&]() -> HcclResult {
    std::shared_ptr<Communicator> found;
    if (const HcclResult code = lookUp("HcclGetCommAsyncError", comm, asyncError, found);
        code != HCCL_SUCCESS)
      return code;
    *asyncError = HCCL_SUCCESS;
    return HCCL_SUCCESS;
  });
}

HcclResult HcclCommDestroy(HcclComm comm) {
  return guardedHccl("HcclCommDestroy", [&]() -> HcclResult {
    if (comm == nullptr) return HCCL_SUCCESS;
    std::shared_ptr<Communicator> found;
    if (const HcclResult code = lookUp("HcclCommDestroy", comm, comm, found); code != HCCL_SUCCESS)
      return code;
    const runtime::Call call = runtime::enterCall();
    if (call.code != 0) return HCCL_E_RUNTIME;
    (void)call.session->synchronizeDevice(*call.thread, found->device, vatlas::sim::kNever);
    CommunicatorTable& table = communicatorTable();
    {
      const std::lock_guard lock(table.mutex);
      if (!table.communicators.remove(reinterpret_cast<std::uint64_t>(comm))) {
        return refuse(HCCL_E_PARA, "HcclCommDestroy", "another thread has destroyed the communicator");
      }
    }
    runtime::removeCommunicator(found->group->gang->name, found->device);
    return HCCL_SUCCESS;
  });
}

uint32_t HcclGetCommConfigCapability(void) {
  return 3;
}  // buffer size, deterministic, name
