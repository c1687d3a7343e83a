// Plain configuration of the hardware model. Filled once by the loader (runtime/config), immutable
// afterwards. Units are in the names. Sources of the numbers stand beside them in the product JSON files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "vatlas/sim/time.h"

namespace vatlas::sim {

// Classes of vector instruction that the product file prices: cycles = fixed + perRepeat * (256-byte
// repeats).
enum class VectorOp : std::uint8_t {
  Add,
  Mul,
  Sub,
  Div,
  MaxMin,
  Logic,
  Duplicate,
  Cast,        // between 16- and 32-bit types; repeats are counted on the wider side
  CastWiden8,  // from an 8-bit type; repeats are counted on the destination side
  Broadcast,
  ReduceSum,
  Copy,
  Transcendental,
  Count
};
inline constexpr std::size_t kVectorOpCount = static_cast<std::size_t>(VectorOp::Count);

struct VectorCost {
  double fixedCycles = 0;
  double cyclesPerRepeat = 0;
};

// One AI core's front end, vector unit and DMA engines.
struct CoreConfig {
  double clockMhz = 0;
  std::uint64_t ubBytes = 0;         // physical unified buffer
  std::uint64_t ubUsableBytes = 0;   // what kernels may allocate
  double scalarIssueCycles = 0;      // scalar cycles that one API call costs before it reaches its pipe
  double scalarLoadCycles = 0;       // a scalar load from global memory
  double mteIssueCycles = 0;         // least time between two copies on one DMA engine
  double mteLoadBytesPerCycle = 0;   // global memory to UB, per core
  double mteStoreBytesPerCycle = 0;  // UB to global memory, per core
  std::array<VectorCost, kVectorOpCount> vector{};
};

struct MemoryConfig {
  std::uint64_t bytes = 0;
  std::uint64_t l2Bytes = 0;
  double bandwidthBytesPerSecond = 0;  // shared by all cores, reads and writes together
  SimTime latency = 0;                 // first byte of a local read; a write becomes visible after it
};

// One UnifiedBus port, one direction. Bandwidth is the planning (achieved) figure; raw is for display.
struct PortConfig {
  double rawBytesPerSecond = 0;
  double bandwidthBytesPerSecond = 0;
  SimTime readLatency = 0;   // round trip: request out, data back
  SimTime writeLatency = 0;  // one way: posted write becomes visible at the peer
};

// PCIe: the host link of a card, and the way between card groups where UB does not reach.
struct PcieConfig {
  double bandwidthBytesPerSecond = 0;
  SimTime latency = 0;
  // Between two cards that UB does not join; the loader writes these into the LinkConfig of each PCIe link.
  double peerBandwidthBytesPerSecond = 0;
  SimTime peerReadLatency = 0;   // round trip
  SimTime peerWriteLatency = 0;  // one way
};

struct LaunchConfig {
  SimTime dispatch = 0;      // scheduler picks the task up (host side of the task)
  SimTime hardwareInit = 0;  // inside the task
  SimTime softwareInit = 0;
  SimTime report = 0;    // last core done to completion visible
  SimTime perBlock = 0;  // blocks are handed to the cores one after another
};

struct HostConfig {
  SimTime apiCall = 0;            // any call without a figure of its own
  SimTime launch = 0;             // enqueueing a kernel
  SimTime streamSynchronize = 0;  // waking up a synchronizing thread
  SimTime event = 0;              // event record or wait on the device
};

struct ProductConfig {
  std::string name;         // "ascend950dt"
  std::string displayName;  // "Ascend 950DT"
  std::string family;       // key into the support matrix
  std::string socVersion;   // what aclrtGetSocName answers
  std::string shortSocVersion;
  int npuArch = 0;  // 3510
  int aicCount = 0;
  int aivCount = 0;
  CoreConfig core;
  MemoryConfig memory;
  PortConfig port;
  int portCount = 0;
  PcieConfig pcie;
  LaunchConfig launch;
  HostConfig host;
  double systemCounterMhz = 0;  // GetSystemCycle
  SimTime kernelTimeout = 0;    // a kernel that has not ended by then is stopped (AIV default)
};

enum class LinkKind : std::uint8_t { UnifiedBus, Pcie };

// A bundle of equal ports between two cards (full duplex: the figures hold for each direction).
struct LinkConfig {
  int cardA = 0;
  int cardB = 0;
  LinkKind kind = LinkKind::UnifiedBus;
  int ports = 1;
  double bandwidthBytesPerSecond = 0;  // all ports of the bundle together, one direction
  SimTime readLatency = 0;
  SimTime writeLatency = 0;
};

struct Switches {
  bool e8m0ZeroIsOcp = false;  // false: code 0 widens to +0.0, as the card does; true: 2^-127
  bool saturate = false;       // false: INF/NAN mode, the default under acl on 950
};

struct ClusterConfig {
  std::string name;
  std::string path;          // the file it came from
  std::string topologyName;  // "full_mesh", "ring", "two_mesh_pcie", "switch", "links"
  int ranks = 0;
  ProductConfig product;
  std::vector<LinkConfig> links;  // expanded from the topology
  std::string driverVersion;
  std::string toolkitVersion;
  std::uint32_t hcclBufferSizeMb =
      200;  // default of a communicator, overridden by HCCL_BUFFSIZE and its own config
  Switches switches;
};

}  // namespace vatlas::sim
