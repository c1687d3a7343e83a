// The model's times against arithmetic done here by hand.
#include <catch2/catch.hpp>

#include "small_machine.h"

using namespace vatlas;
using namespace vatlas::test;

namespace {

struct CopyArgs {
  std::byte* memory;
  std::uint64_t bytes;
  std::uint64_t tile;
};

void readKernel(const void* raw) {
  const auto& args = *static_cast<const CopyArgs*>(raw);
  for (std::uint64_t at = 0; at < args.bytes; at += args.tile) {
    core().copyIn(core().ub(), args.memory + at, row(args.tile));
  }
  core().pipeBarrierAll();
}

void writeKernel(const void* raw) {
  const auto& args = *static_cast<const CopyArgs*>(raw);
  for (std::uint64_t at = 0; at < args.bytes; at += args.tile)
    core().copyOut(args.memory + at, core().ub(), row(args.tile));
  core().pipeBarrierAll();
}

void vectorKernel(const void* raw) {
  const int count = *static_cast<const int*>(raw);
  for (int i = 0; i < count; ++i) core().vector(sim::VectorOp::Add, 32);
}

double seconds(SimTime t) {
  return static_cast<double>(t) * 1e-12;
}

double kernelSeconds(const sim::ClusterConfig& cluster, const sim::LaunchResult& r) {
  return seconds(r.end - r.start - cluster.product.launch.report - cluster.product.launch.hardwareInit -
                 cluster.product.launch.softwareInit);
}

}  // namespace

TEST_CASE("a vector instruction takes its fixed and its per-repeat cycles") {
  sim::Simulation s(smallCluster(1));
  const int count = 100;
  const sim::LaunchResult r = runOne(s, 0, vectorKernel, count);
  REQUIRE_FALSE(r.fault);
  REQUIRE(r.start == 100 * kNanosecond);
  const SimTime work =
      (2 + 100 * (8 + 32)) * kNanosecond;  // the first is issued after 2 cycles, the others meanwhile
  REQUIRE(r.end - r.start == (50 + 1000 + 500) * kNanosecond + work);
  REQUIRE(r.stats.busy[static_cast<std::size_t>(Pipe::V)] == 100 * 40 * kNanosecond);
}

TEST_CASE("short vector instructions are limited by their issue") {
  sim::ClusterConfig cluster = smallCluster(1);
  cluster.product.core.scalarIssueCycles = 20;
  for (sim::VectorCost& cost : cluster.product.core.vector) cost = {0, 1};
  sim::Simulation s(cluster);
  const int count = 10;
  const sim::LaunchResult r = runOne(
      s, 0,
      +[](const void*) {
        for (int i = 0; i < 10; ++i) core().vector(sim::VectorOp::Mul, 3);
      },
      count);
  REQUIRE(r.end - r.start == (1550 + 10 * 20 + 3) * kNanosecond);
}

TEST_CASE("one rank that reads a peer's block takes latency + bytes / bandwidth") {
  const sim::ClusterConfig cluster = smallCluster(2);
  sim::Simulation s(cluster);
  const std::uint64_t bytes = 4 << 20;
  std::byte* memory = allocate(s, 1, bytes);
  const sim::LaunchResult r = runOne(s, 0, readKernel, CopyArgs{memory, bytes, 64 << 10});
  const double expected = 1500e-9 + static_cast<double>(bytes) / 40e9;
  REQUIRE(kernelSeconds(cluster, r) == Approx(expected).epsilon(0.01));
  REQUIRE(r.stats.remoteLoadBytes == bytes);
  REQUIRE(r.stats.localLoadBytes == 0);
}

TEST_CASE("a write to a peer is seen after the one-way latency") {
  const sim::ClusterConfig cluster = smallCluster(2);
  sim::Simulation s(cluster);
  const std::uint64_t bytes = 4 << 20;
  std::byte* memory = allocate(s, 1, bytes);
  const sim::LaunchResult r = runOne(s, 0, writeKernel, CopyArgs{memory, bytes, 64 << 10});
  REQUIRE(kernelSeconds(cluster, r) == Approx(800e-9 + static_cast<double>(bytes) / 40e9).epsilon(0.01));
}

TEST_CASE("local reads run at the core's rate, and share the memory when there are many") {
  sim::ClusterConfig cluster = smallCluster(1, 32);
  sim::Simulation s(cluster);
  const std::uint64_t bytes = 8 << 20;
  std::byte* memory = allocate(s, 0, bytes);
  const double alone = kernelSeconds(cluster, runOne(s, 0, readKernel, CopyArgs{memory, bytes, 64 << 10}));
  REQUIRE(alone == Approx(400e-9 + static_cast<double>(bytes) / 100e9).epsilon(0.01));
  const double shared =
      kernelSeconds(cluster, runOne(s, 0, readKernel, CopyArgs{memory, bytes, 64 << 10}, 32));
  REQUIRE(shared == Approx(400e-9 + 32.0 * static_cast<double>(bytes) / 1000e9).epsilon(0.01));
}

TEST_CASE("two transfers that share a link take twice as long each") {
  const sim::ClusterConfig cluster = smallCluster(2);
  sim::Simulation s(cluster);
  const std::uint64_t bytes = 8 << 20;
  std::byte* memory = allocate(s, 1, bytes);
  const sim::LaunchResult one = runOne(s, 0, readKernel, CopyArgs{memory, bytes, 64 << 10}, 1);
  const sim::LaunchResult two = runOne(s, 0, readKernel, CopyArgs{memory, bytes, 64 << 10}, 2);
  const double wire = kernelSeconds(cluster, one) - 1500e-9;
  REQUIRE(kernelSeconds(cluster, two) - 1500e-9 == Approx(2 * wire).epsilon(0.02));
}

TEST_CASE(
    "eight ranks that read all peers on a full mesh keep to latency + bytes / bandwidth on every link") {
  const sim::ClusterConfig cluster = smallCluster(8, 8);
  sim::Simulation s(cluster);
  const std::uint64_t bytes = 2 << 20;
  struct Args {
    std::byte* blocks[8];
    std::uint64_t bytes;
  } args{{}, bytes};
  for (int i = 0; i < 8; ++i) args.blocks[i] = allocate(s, i, bytes);
  std::vector<sim::KernelLaunch> parts;
  for (int i = 0; i < 8; ++i) {
    parts.push_back(part(
        i,
        +[](const void* raw) {
          const auto& a = *static_cast<const Args*>(raw);
          if (core().blockIdx() == core().deviceId()) return;
          readKernel(std::vector<CopyArgs>{{a.blocks[core().blockIdx()], a.bytes, 64 << 10}}.data());
        },
        args, 8));
  }
  const std::vector<sim::LaunchResult> results = runParts(s, std::move(parts));
  const double expected = 1500e-9 + static_cast<double>(bytes) / 40e9;
  for (const sim::LaunchResult& r : results)
    REQUIRE(kernelSeconds(cluster, r) == Approx(expected).epsilon(0.02));
  int links = 0;
  for (const sim::ResourceReport& report : s.resources()) {
    if (!report.isLink) continue;
    ++links;
    REQUIRE(report.bytes == bytes);
    REQUIRE(seconds(report.busy) == Approx(static_cast<double>(bytes) / 40e9).epsilon(0.02));
  }
  REQUIRE(links == 56);
}

TEST_CASE("DMA and vector work overlap when flags let them") {
  const sim::ClusterConfig cluster = smallCluster(1);
  sim::Simulation s(cluster);
  std::byte* memory = allocate(s, 0, 1 << 20);
  // Tiles of 64000 bytes: 640 ns of DMA each; 500 repeats of vector work: 508 ns each; two buffers.
  const auto kernel = +[](const void* raw) {
    const auto& args = *static_cast<const CopyArgs*>(raw);
    for (int i = 0; i < 16; ++i) {
      const int buffer = i & 1;
      if (i >= 2) core().waitFlag(Pipe::V, Pipe::Mte2, buffer);
      core().copyIn(core().ub() + buffer * 64000, args.memory, row(64000));
      core().setFlag(Pipe::Mte2, Pipe::V, buffer);
      core().waitFlag(Pipe::Mte2, Pipe::V, buffer);
      core().vector(sim::VectorOp::Add, 500);
      core().setFlag(Pipe::V, Pipe::Mte2, buffer);
    }
  };
  const sim::LaunchResult r = runOne(s, 0, kernel, CopyArgs{memory, 0, 0});
  // A tile's cycle through its buffer: copy, latency, vector, so two buffers make one tile every half of
  // that, but no faster than the DMA engine.
  const double period = std::max(640.0, (640.0 + 400.0 + 508.0) / 2);
  const double expected = (period * 15 + 640 + 400 + 508) * 1e-9;
  REQUIRE(kernelSeconds(cluster, r) == Approx(expected).epsilon(0.02));
}

TEST_CASE("a poll ends at the first round that starts after the write has arrived") {
  const sim::ClusterConfig cluster = smallCluster(2);
  sim::Simulation s(cluster);
  struct Args {
    std::byte* word;
    int delay;
  };
  std::byte* word = allocate(s, 0, 64);
  for (const int delay : {0, 100, 5000, 12345}) {
    std::memset(word, 0, 32);
    const auto kernel = +[](const void* raw) {
      const auto& args = *static_cast<const Args*>(raw);
      if (core().deviceId() == 0) {
        pollUntil(args.word, 7);
        return;
      }
      core().vector(sim::VectorOp::Add, static_cast<std::uint32_t>(args.delay));
      core().setFlag(Pipe::V, Pipe::Mte3, 0);
      core().waitFlag(Pipe::V, Pipe::Mte3, 0);
      signal(args.word, 7);
    };
    const auto results =
        runParts(s, {part(0, kernel, Args{word, delay}), part(1, kernel, Args{word, delay})});
    const SimTime head = (50 + 1000) * kNanosecond;
    // Writer: issue of the vector instruction 2 ns, its time, 32 bytes over a 40 GB/s link, 800 ns.
    const SimTime arrival = (2 + 8 + delay) * kNanosecond + 800 + 800 * kNanosecond;
    // Poller: a round is the read's issue (2), 32 bytes at 100 GB/s, 400 ns latency, then the two flags and
    // the look at the result (each call 2 ns, of which one has passed meanwhile).
    const SimTime first = 2 * kNanosecond;
    const SimTime decided = first + 320 + 400 * kNanosecond + 2 * kNanosecond;
    const SimTime period = decided - first;
    SimTime expected = decided;
    if (arrival > first) expected = first + ((arrival - first + period - 1) / period + 1) * period;
    const SimTime took = results[0].end - results[0].start - head - 500 * kNanosecond;
    CHECK(took == expected);
    CHECK(results[0].stats.peerWait == expected - decided);
    s.run(sim::kNever);
  }
}

TEST_CASE("GetSystemCycle reads simulated time") {
  sim::Simulation s(smallCluster(1));
  auto* out = reinterpret_cast<std::int64_t*>(allocate(s, 0, 64));
  runOne(
      s, 0,
      +[](const void* raw) {
        std::int64_t* values = *static_cast<std::int64_t* const*>(raw);
        values[0] = core().systemCycle();
        core().vector(sim::VectorOp::Add, 1'000'000 - 8);  // 1 ms
        awaitPipe(Pipe::V);
        values[1] = core().systemCycle();
      },
      out);
  REQUIRE(out[1] - out[0] == 50'000);  // at 50 MHz
}

TEST_CASE("blocks beyond the cores run in further rounds, launches of one card one after another") {
  const sim::ClusterConfig cluster = smallCluster(1, 4);
  sim::Simulation s(cluster);
  const int count = 1;
  const sim::LaunchResult four = runOne(s, 0, vectorKernel, count, 4);
  const sim::LaunchResult eight = runOne(s, 0, vectorKernel, count, 8);
  // Blocks are handed out every 15 ns; a block takes 42 ns, so that the fifth waits for its turn only.
  REQUIRE(four.end - four.start == (1550 + 3 * 15 + 42) * kNanosecond);
  REQUIRE(eight.end - eight.start == (1550 + 7 * 15 + 42) * kNanosecond);
  std::vector<sim::LaunchResult> results(2);
  for (std::size_t i = 0; i < 2; ++i) {
    sim::KernelLaunch launch = part(0, vectorKernel, 100);
    launch.start = s.now();
    launch.order.stream = i + 1;
    std::vector<sim::KernelLaunch> parts;
    parts.push_back(std::move(launch));
    s.launch(std::move(parts), [&, i](std::size_t, const sim::LaunchResult& r) { results[i] = r; });
  }
  s.run(sim::kNever);
  REQUIRE(results[1].start >= results[0].end - cluster.product.launch.report);
}

TEST_CASE("host copies move bytes at the host link's rate") {
  sim::Simulation s(smallCluster(2));
  std::vector<std::byte> host(1 << 20, std::byte{42});
  std::byte* a = allocate(s, 0, host.size());
  std::byte* b = allocate(s, 1, host.size());
  std::vector<SimTime> ends;
  const auto note = [&](SimTime end) { ends.push_back(end); };
  sim::Simulation::Copy copy{
      sim::Simulation::Copy::Kind::HostToDevice, 0, 0, a, host.data(), 0, host.size(), 0, {}};
  s.copy(copy, note);
  s.run(sim::kNever);
  REQUIRE(ends.size() == 1);
  REQUIRE(seconds(ends[0]) == Approx(1000e-9 + 1048576 / 50e9).epsilon(0.01));
  REQUIRE(std::memcmp(a, host.data(), host.size()) == 0);
  copy = {sim::Simulation::Copy::Kind::DeviceToDevice, 0, 1, b, a, 0, host.size(), s.now(), {}};
  s.copy(copy, note);
  s.run(sim::kNever);
  REQUIRE(std::memcmp(b, host.data(), host.size()) == 0);
  copy = {sim::Simulation::Copy::Kind::Set, 1, 1, b, nullptr, 0x5a, 100, s.now(), {}};
  s.copy(copy, note);
  s.run(sim::kNever);
  REQUIRE(b[99] == std::byte{0x5a});
  REQUIRE(b[100] == std::byte{42});
  REQUIRE(ends.size() == 3);
}

TEST_CASE("events of one time are handled by rank, stream and sequence") {
  sim::Simulation s(smallCluster(1));
  std::vector<int> order;
  s.schedule(5, {1, 1, 1}, [&] { order.push_back(4); });
  s.schedule(5, {0, 2, 1}, [&] { order.push_back(3); });
  s.schedule(5, {0, 1, 2}, [&] { order.push_back(2); });
  s.schedule(5, {0, 1, 1}, [&] { order.push_back(1); });
  s.schedule(4, {7, 7, 7}, [&] { order.push_back(0); });
  REQUIRE(s.nextEvent() == 4);
  REQUIRE(s.run(5) == 5);
  REQUIRE(order == std::vector<int>{0});
  s.run(6);
  REQUIRE(order == std::vector<int>{0, 1, 2, 3, 4});
}
