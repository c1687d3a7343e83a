// A machine with round numbers for the engine's tests: 1 GHz, so that a cycle is a nanosecond.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "vatlas/sim/core_port.h"
#include "vatlas/sim/simulation.h"

namespace vatlas::test {

using sim::kMicrosecond;
using sim::kNanosecond;
using sim::Pipe;
using sim::SimTime;

inline sim::ClusterConfig smallCluster(int ranks, int cores = 4) {
  sim::ClusterConfig cluster;
  cluster.name = "small";
  cluster.ranks = ranks;
  sim::ProductConfig& p = cluster.product;
  p.name = "small";
  p.aivCount = cores;
  p.core.clockMhz = 1000;
  p.core.ubBytes = 256 * 1024;
  p.core.ubUsableBytes = 248 * 1024;
  p.core.scalarIssueCycles = 2;
  p.core.scalarLoadCycles = 300;
  p.core.mteIssueCycles = 10;
  p.core.mteLoadBytesPerCycle = 100;  // 100 GB/s
  p.core.mteStoreBytesPerCycle = 50;
  for (sim::VectorCost& cost : p.core.vector) cost = {8, 1};
  p.memory.bytes = std::uint64_t{1} << 30;
  p.memory.bandwidthBytesPerSecond = 1000e9;
  p.memory.latency = 400 * kNanosecond;
  p.port.bandwidthBytesPerSecond = 40e9;
  p.port.readLatency = 1500 * kNanosecond;
  p.port.writeLatency = 800 * kNanosecond;
  p.pcie.bandwidthBytesPerSecond = 50e9;
  p.pcie.latency = 1000 * kNanosecond;
  p.launch = {100 * kNanosecond, 50 * kNanosecond, 1000 * kNanosecond, 500 * kNanosecond, 15 * kNanosecond};
  p.systemCounterMhz = 50;
  for (int a = 0; a < ranks; ++a) {
    for (int b = a + 1; b < ranks; ++b) {
      cluster.links.push_back(
          {a, b, sim::LinkKind::UnifiedBus, 1, 40e9, p.port.readLatency, p.port.writeLatency});
    }
  }
  return cluster;
}

// What a launch costs before its first instruction and after its last.
inline SimTime launchHead(const sim::ClusterConfig& c) {
  return c.product.launch.dispatch + c.product.launch.hardwareInit + c.product.launch.softwareInit;
}

inline std::byte* allocate(sim::Simulation& s, int card, std::uint64_t bytes) {
  void* address = nullptr;
  if (s.memory().allocate(card, bytes, 64, true, address) != sim::MemoryStatus::Ok)
    throw std::runtime_error("allocate");
  return static_cast<std::byte*>(address);
}

template <typename Args>
sim::KernelLaunch part(int device, void (*entry)(const void*), const Args& args, int blocks = 1) {
  sim::KernelLaunch launch;
  launch.device = device;
  launch.order = {device, 1, 0};
  launch.entry = entry;
  launch.name = "test_kernel";
  launch.args.resize(sizeof args);
  std::memcpy(launch.args.data(), &args, sizeof args);
  launch.blocks = blocks;
  return launch;
}

// Launches the parts side by side and runs to the end.
inline std::vector<sim::LaunchResult> runParts(sim::Simulation& s, std::vector<sim::KernelLaunch> parts) {
  std::vector<sim::LaunchResult> results(parts.size());
  for (sim::KernelLaunch& p : parts) p.start = std::max(p.start, s.now());
  s.launch(std::move(parts), [&](std::size_t i, const sim::LaunchResult& result) { results[i] = result; });
  s.run(sim::kNever);
  return results;
}

template <typename Args>
sim::LaunchResult runOne(sim::Simulation& s, int device, void (*entry)(const void*), const Args& args,
                         int blocks = 1) {
  return runParts(s, {part(device, entry, args, blocks)}).front();
}

inline sim::CorePort& core() {
  return sim::CorePort::current();
}

// The scalar unit waits for everything `src` has done.
inline void awaitPipe(Pipe src, int id = 0) {
  core().setFlag(src, Pipe::S, id);
  core().waitFlag(src, Pipe::S, id);
}

inline sim::CopyShape row(std::uint64_t bytes) {
  sim::CopyShape shape;
  shape.bytes = bytes;
  return shape;
}

// Reads a 32-byte word again and again until its first four bytes have come to the value.
inline void pollUntil(const std::byte* word, int value) {
  for (;;) {
    core().copyIn(core().ub(), word, row(32));
    awaitPipe(Pipe::Mte2);
    core().observeUb(core().ub(), 4);
    int seen = 0;
    std::memcpy(&seen, core().ub(), 4);
    if (seen >= value) return;
  }
}

// Writes a 32-byte word whose first four bytes are the value.
inline void signal(std::byte* word, int value, int ubOffset = 64) {
  std::byte* slot = core().ub() + ubOffset;
  std::memset(slot, 0, 32);
  std::memcpy(slot, &value, 4);
  core().copyOut(word, slot, row(32));
}

}  // namespace vatlas::test
