// vatlas.h: cluster, trace, report.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "acl/acl.h"
#include "acl/acl_state.h"
#include "vatlas/runtime/config.h"
#include "vatlas/runtime/version.h"
#include "vatlas/vatlas.h"

using namespace vatlas::runtime;

namespace {

nlohmann::ordered_json kernelJson(const KernelRecord& record) {
  static constexpr std::array<const char*, vatlas::sim::kPipeCount> kPipes = {"S",    "V",    "M",  "MTE1",
                                                                              "MTE2", "MTE3", "FIX"};
  nlohmann::ordered_json pipes;
  for (std::size_t i = 0; i < kPipes.size(); ++i) pipes[kPipes[i]] = record.stats.busy[i];
  return {{"device", record.device},
          {"kernel", record.kernel},
          {"signature", record.signature},
          {"communicator", record.gang},
          {"start_ps", record.start},
          {"end_ps", record.end},
          {"cores", record.stats.coresUsed},
          {"pipe_busy_ps", pipes},
          {"peer_wait_ps", record.stats.peerWait},
          {"longest_peer_wait_ps", record.stats.longestPeerWait},
          {"local_load_bytes", record.stats.localLoadBytes},
          {"local_store_bytes", record.stats.localStoreBytes},
          {"remote_load_bytes", record.stats.remoteLoadBytes},
          {"remote_store_bytes", record.stats.remoteStoreBytes}};
}

nlohmann::ordered_json resourceJson(const vatlas::sim::ResourceReport& r) {
  nlohmann::ordered_json json = {{"name", r.name}, {"link", r.isLink}};
  if (r.isLink) {
    json["from"] = r.from;
    json["to"] = r.to;
    json["kind"] = r.kind == vatlas::sim::LinkKind::Pcie ? "pcie" : "ub";
  }
  json["capacity_bytes_per_s"] = r.capacityBytesPerSecond;
  json["bytes"] = r.bytes;
  json["busy_ps"] = r.busy;
  return json;
}

}  // namespace

int vatlasUseCluster(const char* nameOrPath) {
  return guarded("vatlasUseCluster", [&] {
    if (Session::currentOrNull()) {
      return badArgument(ACL_ERROR_FAILURE, "vatlasUseCluster", "a machine is open",
                         "call aclFinalize first");
    }
    if (nameOrPath != nullptr && *nameOrPath != '\0') (void)findCluster(nameOrPath);
    Session::useCluster(nameOrPath == nullptr ? "" : nameOrPath);
    return ACL_SUCCESS;
  });
}

int vatlasStartTrace(const char* path, int cores) {
  return guarded("vatlasStartTrace", [&] {
    if (path == nullptr || *path == '\0') return nullArgument("vatlasStartTrace", "path");
    const Call call = enterCall(0);
    if (call.code != 0) return call.code;
    if (call.session->startTrace(path, cores)) return ACL_SUCCESS;
    return badArgument(ACL_ERROR_FAILURE, "vatlasStartTrace", fmt::format("{} cannot be written", path));
  });
}

int vatlasStopTrace(void) {
  return guarded("vatlasStopTrace", [&] {
    const auto session = Session::currentOrNull();
    if (!session || session->stopTrace()) return ACL_SUCCESS;
    return badArgument(ACL_ERROR_FAILURE, "vatlasStopTrace", "the trace cannot be written");
  });
}

void vatlasInterrupt(void) {
  Session::interruptCurrent();
}

const char* vatlasReportJson(void) {
  static thread_local std::string text;
  const int code = guarded("vatlasReportJson", [&] {
    const auto session = Session::currentOrNull();
    if (!session) return badArgument(ACL_ERROR_UNINITIALIZE, "vatlasReportJson", "no machine is open");
    nlohmann::ordered_json json;
    json["cluster"] = session->cluster().name;
    json["order_uncertain"] = session->orderUncertain();
    json["kernels"] = nlohmann::ordered_json::array();
    for (const KernelRecord& record : session->takeKernelRecords())
      json["kernels"].push_back(kernelJson(record));
    json["resources"] = nlohmann::ordered_json::array();
    for (const auto& resource : session->resources()) json["resources"].push_back(resourceJson(resource));
    text = json.dump();
    return ACL_SUCCESS;
  });
  return code == ACL_SUCCESS ? text.c_str() : nullptr;
}

int vatlasResetReport(void) {
  return guarded("vatlasResetReport", [&] {
    const auto session = Session::currentOrNull();
    if (!session) return badArgument(ACL_ERROR_UNINITIALIZE, "vatlasResetReport", "no machine is open");
    (void)session->takeKernelRecords();
    session->resetResources();
    return ACL_SUCCESS;
  });
}

const char* vatlasVersion(void) {
  return VATLAS_VERSION;
}
