// A cluster written back as a cluster file.
#include <fmt/format.h>

#include <cmath>

#include "vatlas/runtime/config.h"

namespace vatlas::runtime {
namespace {

std::string jsonText(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string linksJson(const sim::ClusterConfig& cluster) {
  std::string list;
  for (const sim::LinkConfig& link : cluster.links) {
    list += fmt::format("{}\n    {{\"cards\": [{}, {}], \"kind\": \"{}\", \"ports\": {}}}",
                        list.empty() ? "" : ",", link.cardA, link.cardB,
                        link.kind == sim::LinkKind::UnifiedBus ? "ub" : "pcie", link.ports);
  }
  return fmt::format("{{\"type\": \"links\", \"links\": [{}]}}", list);
}

// The two figures of a switch follow from any of the links it became.
std::string switchJson(const sim::ClusterConfig& cluster) {
  const sim::PortConfig& port = cluster.product.port;
  long ports = 1;
  double latency = 0;
  if (!cluster.links.empty()) {
    const sim::LinkConfig& link = cluster.links.front();
    ports = std::lround(link.bandwidthBytesPerSecond * (cluster.ranks - 1) / port.bandwidthBytesPerSecond);
    latency =
        static_cast<double>(link.writeLatency - port.writeLatency) / static_cast<double>(sim::kNanosecond);
  }
  return fmt::format("{{\"type\": \"switch\", \"ports_per_card\": {}, \"switch_latency_ns\": {}}}", ports,
                     latency);
}

}  // namespace

std::string canonicalJson(const sim::ClusterConfig& cluster) {
  return fmt::format(
      "{{\n  \"name\": {},\n  \"product\": {},\n  \"ranks\": {},\n  \"topology\": {},\n  \"driver\": {},\n"
      "  \"toolkit\": {},\n  \"communicator\": {{\"buffer_size_mb\": {}}},\n"
      "  \"switches\": {{\"e8m0_zero\": \"{}\", \"overflow\": \"{}\"}}\n}}\n",
      jsonText(cluster.name), jsonText(cluster.product.name), cluster.ranks,
      cluster.topologyName == "switch" ? switchJson(cluster) : linksJson(cluster),
      jsonText(cluster.driverVersion), jsonText(cluster.toolkitVersion), cluster.hcclBufferSizeMb,
      cluster.switches.e8m0ZeroIsOcp ? "ocp" : "zero", cluster.switches.saturate ? "saturate" : "inf_nan");
}

}  // namespace vatlas::runtime
