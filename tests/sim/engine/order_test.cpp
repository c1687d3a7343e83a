// Simulated times and bytes depend on nothing but the program: not on the order in which blocks are resumed,
// on how far they may run ahead, on SystemC being there, or on the thread.
#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>

#include "small_machine.h"

using namespace vatlas;
using namespace vatlas::test;

namespace {

constexpr int kRanks = 4;
constexpr int kCores = 6;
constexpr int kRounds = 12;
constexpr std::uint64_t kBlock = 16 * 1024;

struct Args {
  std::byte* data[kRanks];   // kCores * kBlock bytes on each card
  std::byte* words[kRanks];  // a 32-byte word for each (writer card, core)
  std::uint64_t seed;
};

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Each round: load a piece of a peer's memory chosen at random, compute, store into the own block, tell all
// peers, and wait until all have told us.
void randomKernel(const void* raw) {
  const auto& args = *static_cast<const Args*>(raw);
  const int me = core().deviceId();
  const int block = core().blockIdx();
  std::uint64_t random = mix(args.seed ^ static_cast<std::uint64_t>(me * 1000 + block));
  std::byte* tile = core().ub() + 1024;
  for (int round = 1; round <= kRounds; ++round) {
    const int pieces = static_cast<int>(random % 5) + 1;
    for (int i = 0; i < pieces; ++i) {
      random = mix(random);
      const std::uint64_t bytes = 32 * (1 + random % 400);
      const std::uint64_t from = (random >> 20) % (kBlock - bytes) / 32 * 32;
      core().copyIn(tile,
                    args.data[(random >> 40) % kRanks] + static_cast<std::uint64_t>(block) * kBlock + from,
                    row(bytes));
      core().setFlag(Pipe::Mte2, Pipe::V, i & 3);
      core().waitFlag(Pipe::Mte2, Pipe::V, i & 3);
      core().vector(sim::VectorOp::Mul, static_cast<std::uint32_t>(1 + random % 50));
      if ((random & 0x100) != 0) core().pipeBarrierAll();
    }
    core().setFlag(Pipe::V, Pipe::Mte3, 0);
    core().waitFlag(Pipe::V, Pipe::Mte3, 0);
    for (int peer = 0; peer < kRanks; ++peer) {
      signal(args.words[peer] + 32 * (me * kCores + block), round, 64 + 32 * (round % 8));
    }
    for (int peer = 0; peer < kRanks; ++peer) pollUntil(args.words[me] + 32 * (peer * kCores + block), round);
    if (round % 4 == 0) (void)core().systemCycle();
  }
}

struct Outcome {
  std::vector<SimTime> times;
  std::uint64_t digest = 0;
  bool operator==(const Outcome& o) const { return times == o.times && digest == o.digest; }
};

Outcome runOnce(const sim::SimulationOptions& options, bool systemc, std::uint64_t seed) {
  sim::Simulation s(smallCluster(kRanks, kCores), options);
  Args args{};
  args.seed = seed;
  for (int i = 0; i < kRanks; ++i) {
    args.data[i] = allocate(s, i, kCores * kBlock);
    args.words[i] = allocate(s, i, 32 * kRanks * kCores);
  }
  Outcome outcome;
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (std::byte* words : args.words) std::memset(words, 0, 32 * kRanks * kCores);
    std::vector<sim::KernelLaunch> parts;
    for (int i = 0; i < kRanks; ++i) {
      parts.push_back(part(i, randomKernel, args, kCores));
      parts.back().start = s.now() + (i * 7919) * kNanosecond;
    }
    s.launch(std::move(parts), [&](std::size_t i, const sim::LaunchResult& r) {
      REQUIRE_FALSE(r.fault);
      outcome.times.push_back(static_cast<SimTime>(i));
      outcome.times.push_back(r.start);
      outcome.times.push_back(r.end);
      outcome.times.push_back(r.stats.peerWait);
      for (const SimTime busy : r.stats.busy) outcome.times.push_back(busy);
    });
    if (systemc) {
      sim::SystemCShell::instance().run(s, sim::kNever);
    } else {
      s.run(sim::kNever);
    }
  }
  for (const sim::ResourceReport& r : s.resources()) {
    outcome.times.push_back(r.busy);
    outcome.digest = mix(outcome.digest ^ r.bytes);
  }
  return outcome;
}

}  // namespace

TEST_CASE("times do not depend on resume order, record limit, SystemC or thread") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const Outcome reference = runOnce({}, false, seed);
    REQUIRE(reference.times.size() == 2 * kRanks * (4 + sim::kPipeCount) + 4 + 12 + 8);
    for (std::uint64_t order = 1; order <= 20; ++order) {
      sim::SimulationOptions options;
      options.resumeSeed = order;
      CHECK(runOnce(options, false, seed) == reference);
    }
    for (const std::size_t limit : {8u, 32u, 128u, 1024u, 1u << 20}) {
      sim::SimulationOptions options;
      options.recordLimit = limit;
      options.resumeSeed = limit;
      CHECK(runOnce(options, false, seed) == reference);
    }
    CHECK(runOnce({}, true, seed) == reference);
    Outcome elsewhere;
    std::thread([&] { elsewhere = runOnce({}, true, seed); }).join();
    CHECK(elsewhere == reference);
  }
  CHECK_FALSE(runOnce({}, false, 1) == runOnce({}, false, 2));
}

TEST_CASE("a block reads back the words it has just written") {
  sim::Simulation s(smallCluster(2));
  std::byte* const words[2] = {allocate(s, 0, 1024), allocate(s, 1, 1024)};
  std::byte* const result = allocate(s, 0, 4096);
  struct Args {
    std::byte* word;
    std::byte* result;
    std::uint64_t bytes;  // of the read
  };
  const auto kernel = +[](const void* raw) {
    const auto& args = *static_cast<const Args*>(raw);
    for (int round = 1; round <= 5; ++round) {
      signal(args.word, round);
      core().pipeBarrierAll();
      core().copyIn(core().ub() + 1024, args.word, row(args.bytes));
      core().setFlag(Pipe::Mte2, Pipe::Mte3, 0);
      core().waitFlag(Pipe::Mte2, Pipe::Mte3, 0);
      core().copyOut(args.result + 32 * round, core().ub() + 1024, row(32));
      core().pipeBarrierAll();
    }
  };
  for (const std::byte* word : words) {
    for (const std::uint64_t bytes : {32u, 512u, 1024u}) {
      std::memset(result, 0, 4096);
      REQUIRE_FALSE(runOne(s, 0, kernel, Args{const_cast<std::byte*>(word), result, bytes}).fault);
      for (int round = 1; round <= 5; ++round) {
        int seen = 0;
        std::memcpy(&seen, result + 32 * round, 4);
        CHECK(seen == round);
      }
    }
  }
}

TEST_CASE("a loop over two flags sees each when it arrives") {
  sim::Simulation s(smallCluster(2));
  std::byte* const words = allocate(s, 0, 64);
  struct Args {
    std::byte* words;
    int delay;
  };
  const auto kernel = +[](const void* raw) {
    const auto& args = *static_cast<const Args*>(raw);
    if (core().deviceId() == 1) {
      core().vector(sim::VectorOp::Add, static_cast<std::uint32_t>(args.delay));
      core().setFlag(Pipe::V, Pipe::Mte3, 0);
      core().waitFlag(Pipe::V, Pipe::Mte3, 0);
      signal(args.words, 1, 64);
      signal(args.words + 32, 1, 96);
      return;
    }
    for (int seen[2] = {0, 0}; seen[0] + seen[1] < 2;) {
      for (int i = 0; i < 2; ++i) {
        core().copyIn(core().ub() + 32 * i, args.words + 32 * i, row(32));
        awaitPipe(Pipe::Mte2);
        core().observeUb(core().ub() + 32 * i, 4);
        std::memcpy(&seen[i], core().ub() + 32 * i, 4);
      }
    }
  };
  std::vector<SimTime> took;
  for (const int delay : {1000, 20000, 90000}) {
    std::memset(words, 0, 64);
    const auto results =
        runParts(s, {part(0, kernel, Args{words, delay}), part(1, kernel, Args{words, delay})});
    REQUIRE_FALSE(results[0].fault);
    took.push_back(results[0].end - results[0].start);
  }
  // A round of both reads takes less than 2 us: the end follows the arrival that closely.
  CHECK(took[1] - took[0] > 17 * kMicrosecond);
  CHECK(took[1] - took[0] < 21 * kMicrosecond);
  CHECK(took[2] - took[1] > 68 * kMicrosecond);
  CHECK(took[2] - took[1] < 72 * kMicrosecond);
}

TEST_CASE("running in small slices of time changes nothing") {
  struct Times {
    SimTime end = 0;
  };
  const auto run = [](SimTime slice) {
    sim::Simulation s(smallCluster(kRanks, kCores));
    Args args{};
    args.seed = 9;
    for (int i = 0; i < kRanks; ++i) {
      args.data[i] = allocate(s, i, kCores * kBlock);
      args.words[i] = allocate(s, i, 32 * kRanks * kCores);
    }
    std::vector<sim::KernelLaunch> parts;
    for (int i = 0; i < kRanks; ++i) parts.push_back(part(i, randomKernel, args, kCores));
    std::vector<SimTime> ends(kRanks, 0);
    s.launch(std::move(parts), [&](std::size_t i, const sim::LaunchResult& r) { ends[i] = r.end; });
    SimTime next = 0;
    while (next != sim::kNever) next = s.run(slice == sim::kNever ? slice : next + slice);
    return ends;
  };
  REQUIRE(run(sim::kNever) == run(1));
  REQUIRE(run(sim::kNever) == run(777 * kNanosecond));
}
