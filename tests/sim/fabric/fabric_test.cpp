// Sharing of links and memories, against a simulation in small steps that is written here.
#include "fabric.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <stdexcept>

using namespace vatlas::sim;

namespace {

ClusterConfig cluster(int ranks, std::vector<LinkConfig> links) {
  ClusterConfig c;
  c.ranks = ranks;
  c.links = std::move(links);
  c.product.core.clockMhz = 1000;
  c.product.core.mteLoadBytesPerCycle = 60;
  c.product.core.mteStoreBytesPerCycle = 40;
  c.product.memory.bandwidthBytesPerSecond = 200e9;
  c.product.memory.latency = 500 * kNanosecond;
  c.product.pcie.bandwidthBytesPerSecond = 30e9;
  c.product.pcie.latency = 1000 * kNanosecond;
  return c;
}

LinkConfig link(int a, int b, double bandwidth) {
  return {a, b, LinkKind::UnifiedBus, 1, bandwidth, 1500 * kNanosecond, 700 * kNanosecond};
}

ClusterConfig mesh(int ranks, double bandwidth) {
  std::vector<LinkConfig> links;
  for (int a = 0; a < ranks; ++a) {
    for (int b = a + 1; b < ranks; ++b) links.push_back(link(a, b, bandwidth));
  }
  return cluster(ranks, links);
}

std::map<std::uint64_t, SimTime> drain(Fabric& fabric) {
  std::map<std::uint64_t, SimTime> ends;
  while (fabric.nextCompletion() != kNever) {
    const Fabric::Completion done = fabric.popCompletion();
    ends[done.key] = done.time;
  }
  return ends;
}

}  // namespace

TEST_CASE("alone, a transfer has its ceiling") {
  Fabric fabric(mesh(2, 50e9));
  const PathId remote = fabric.path(Traffic::CoreLoad, 0, 1);
  const PathId local = fabric.path(Traffic::CoreLoad, 0, 0);
  CHECK(fabric.info(remote).latency == 1500 * kNanosecond);
  CHECK(fabric.info(fabric.path(Traffic::CoreStore, 0, 1)).latency == 700 * kNanosecond);
  CHECK(fabric.info(local).latency == 500 * kNanosecond);
  CHECK(fabric.info(remote).hops == 1);
  fabric.start(1000, remote, 50'000, 1);
  CHECK(drain(fabric)[1] == 1000 + 1 * kMicrosecond);
  fabric.start(5000, local, 60'000, 2);
  CHECK(drain(fabric)[2] == 5000 + 1 * kMicrosecond);
  fabric.start(7000, fabric.path(Traffic::HostToDevice, 1, 1), 30'000, 3);
  CHECK(drain(fabric)[3] == 7000 + 1 * kMicrosecond);
  fabric.start(9000, fabric.path(Traffic::CardCopy, 0, 0), 100'000, 4);  // read and written in one memory
  CHECK(drain(fabric)[4] == 9000 + 1 * kMicrosecond);
  fabric.start(11'000, remote, 0, 5);
  CHECK(drain(fabric)[5] == 11'000);
}

TEST_CASE("two on one link take twice as long, two on the two directions do not meet") {
  Fabric fabric(mesh(2, 50e9));
  const PathId there = fabric.path(Traffic::CoreLoad, 0, 1);
  const PathId back = fabric.path(Traffic::CoreLoad, 1, 0);
  fabric.start(0, there, 50'000, 1);
  fabric.start(0, there, 50'000, 2);
  fabric.start(0, back, 50'000, 3);
  const auto ends = drain(fabric);
  CHECK(ends.at(1) == 2 * kMicrosecond);
  CHECK(ends.at(2) == 2 * kMicrosecond);
  CHECK(ends.at(3) == 1 * kMicrosecond);
}

TEST_CASE("one that comes later shares from then on") {
  Fabric fabric(mesh(2, 50e9));
  const PathId path = fabric.path(Traffic::CoreLoad, 0, 1);
  fabric.start(0, path, 100'000, 1);                // alone for 1 us: 50'000 are left
  fabric.start(1 * kMicrosecond, path, 25'000, 2);  // both at half: 25'000 each in 1 us
  const auto ends = drain(fabric);
  CHECK(ends.at(2) == 2 * kMicrosecond);
  CHECK(ends.at(1) == Approx(2.5 * kMicrosecond).margin(2));
}

TEST_CASE("ways: fewest hops, then the widest; none where nothing connects") {
  // 0-1-3 is narrow, 0-2-3 is wide; card 4 is alone.
  const ClusterConfig c =
      cluster(5, {link(0, 1, 10e9), link(1, 3, 10e9), link(0, 2, 40e9), link(2, 3, 30e9)});
  Fabric fabric(c);
  const PathInfo& info = fabric.info(fabric.path(Traffic::CoreLoad, 3, 0));
  CHECK(info.hops == 2);
  CHECK(info.ceilingBytesPerSecond == Approx(30e9));
  CHECK(info.latency == 3000 * kNanosecond);
  CHECK(fabric.path(Traffic::CoreLoad, 0, 4) == Fabric::kNoPath);
  CHECK_THROWS_AS(fabric.path(Traffic::CoreLoad, 0, 5), std::out_of_range);
  CHECK_THROWS_AS(fabric.path(Traffic::CoreLoad, -1, 0), std::out_of_range);
}

TEST_CASE("eight ranks that read all peers fill every link") {
  Fabric fabric(mesh(8, 20e9));
  std::uint64_t key = 0;
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < 8; ++b) {
      if (a != b) fabric.start(0, fabric.path(Traffic::CoreLoad, a, b), 200'000, key++);
    }
  }
  for (const auto& [k, end] : drain(fabric)) CHECK(end == Approx(10.0 * kMicrosecond).epsilon(1e-6));
  int links = 0;
  for (int r = 0; r < fabric.resourceCount(); ++r) {
    const ResourceUse use = fabric.use(r);
    if (!use.isLink) continue;
    ++links;
    CHECK(use.bytes == 200'000);
    CHECK(use.busy == Approx(10.0 * kMicrosecond).epsilon(1e-6));
  }
  CHECK(links == 56);
}

namespace {

// Progressive filling from the textbook, in long double, advanced from event to event.
struct Reference {
  struct Flow {
    std::vector<int> uses;
    long double ceiling, left, start;
    std::uint64_t key;
    bool running = false, done = false;
    long double rate = 0;
  };
  std::vector<long double> capacity;
  std::vector<Flow> flows;

  void fill() {
    std::vector<long double> left = capacity;
    std::vector<Flow*> open;
    for (Flow& f : flows) {
      if (f.running && !f.done) open.push_back(&f);
    }
    while (!open.empty()) {
      long double level = 1e30L;
      std::vector<int> users(capacity.size(), 0);
      for (Flow* f : open) {
        level = std::min(level, f->ceiling);
        for (int r : f->uses) ++users[static_cast<std::size_t>(r)];
      }
      for (std::size_t r = 0; r < left.size(); ++r) {
        if (users[r] > 0) level = std::min(level, left[r] / users[r]);
      }
      std::vector<Flow*> next;
      std::vector<Flow*> fixed;
      for (Flow* f : open) {
        bool stops = f->ceiling <= level * (1 + 1e-15L);
        for (int r : f->uses)
          stops = stops || left[static_cast<std::size_t>(r)] / users[static_cast<std::size_t>(r)] <=
                               level * (1 + 1e-15L);
        (stops ? fixed : next).push_back(f);
      }
      for (Flow* f : fixed) {
        f->rate = level;
        for (int r : f->uses) left[static_cast<std::size_t>(r)] -= level;
      }
      open = next;
    }
  }

  std::map<std::uint64_t, long double> run() {
    std::map<std::uint64_t, long double> ends;
    long double now = 0;
    for (;;) {
      fill();
      long double next = 1e30L;
      for (Flow& f : flows) {
        if (f.done) continue;
        next = std::min(next, f.running ? now + f.left / f.rate : f.start);
      }
      if (next == 1e30L) return ends;
      for (Flow& f : flows) {
        if (f.running && !f.done) f.left -= f.rate * (next - now);
      }
      now = next;
      for (Flow& f : flows) {
        if (f.done) continue;
        if (!f.running && f.start <= now) {
          f.running = true;
        } else if (f.running && f.left <= 1e-6L) {
          f.done = true;
          ends[f.key] = now;
        }
      }
    }
  }
};

}  // namespace

TEST_CASE("random traffic on random graphs agrees with the textbook") {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const int ranks = 2 + static_cast<int>(random() % 4);
    std::vector<LinkConfig> links;
    for (int a = 0; a < ranks; ++a) {
      for (int b = a + 1; b < ranks; ++b) {
        if (b == a + 1 || random() % 2 == 0)
          links.push_back(link(a, b, 1e9 * static_cast<double>(10 + random() % 60)));
      }
    }
    const ClusterConfig c = cluster(ranks, links);
    Fabric fabric(c);
    Reference reference;
    for (int r = 0; r < fabric.resourceCount(); ++r)
      reference.capacity.push_back(static_cast<long double>(fabric.use(r).capacityBytesPerSecond) / 1e12L);
    const auto resource = [&](const std::string& name) {
      for (int r = 0; r < fabric.resourceCount(); ++r) {
        if (fabric.use(r).name == name) return r;
      }
      throw std::logic_error(name);
    };
    struct Start {
      SimTime at;
      PathId path;
      std::uint64_t bytes, key;
    };
    std::vector<Start> starts;
    for (std::uint64_t key = 0; key < 60; ++key) {
      const int card = static_cast<int>(random() % static_cast<unsigned>(ranks));
      const int memory = static_cast<int>(random() % static_cast<unsigned>(ranks));
      const PathId path = fabric.path(Traffic::CoreLoad, card, memory);
      if (fabric.info(path).hops > 1) continue;
      const Start start{static_cast<SimTime>(random() % 3'000'000), path, 1000 + random() % 100'000, key};
      starts.push_back(start);
      Reference::Flow flow;
      flow.uses = {resource("hbm " + std::to_string(memory))};
      if (card != memory)
        flow.uses.push_back(resource("link " + std::to_string(memory) + ">" + std::to_string(card)));
      flow.ceiling = static_cast<long double>(fabric.info(path).ceilingBytesPerSecond) / 1e12L;
      flow.left = static_cast<long double>(start.bytes);
      flow.start = static_cast<long double>(start.at);
      flow.key = key;
      reference.flows.push_back(flow);
    }
    std::sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) { return a.at < b.at; });
    std::map<std::uint64_t, SimTime> ends;
    for (std::size_t i = 0; i < starts.size() || fabric.nextCompletion() != kNever;) {
      if (i < starts.size() && starts[i].at < fabric.nextCompletion()) {
        fabric.start(starts[i].at, starts[i].path, starts[i].bytes, starts[i].key);
        ++i;
      } else {
        const Fabric::Completion done = fabric.popCompletion();
        ends[done.key] = done.time;
      }
    }
    const auto expected = reference.run();
    REQUIRE(ends.size() == expected.size());
    for (const auto& [key, end] : expected) {
      CAPTURE(round, key);
      CHECK(static_cast<double>(ends[key]) ==
            Approx(static_cast<double>(end)).margin(100));  // 0.1 ns over microseconds
    }
  }
}

TEST_CASE("completions of one time come by key; forgotten transfers leave nothing") {
  Fabric fabric(mesh(4, 50e9));
  for (const std::uint64_t key : {3u, 1u, 2u})
    fabric.start(0,
                 fabric.path(Traffic::CoreLoad, static_cast<int>(key % 4), static_cast<int>((key + 1) % 4)),
                 50'000, key);
  CHECK(fabric.popCompletion().key == 1);
  CHECK(fabric.popCompletion().key == 2);
  CHECK(fabric.popCompletion().key == 3);
  fabric.start(5'000'000, fabric.path(Traffic::CoreLoad, 0, 1), 50'000, 1);
  fabric.cancelAll();
  CHECK(fabric.nextCompletion() == kNever);
  fabric.start(6'000'000, fabric.path(Traffic::CoreLoad, 0, 1), 50'000, 2);
  CHECK(fabric.popCompletion().time == 7'000'000);
  fabric.resetUse();
  for (int r = 0; r < fabric.resourceCount(); ++r) CHECK(fabric.use(r).bytes == 0);
}

TEST_CASE("a card that is behind in time can start, where it shares nothing") {
  Fabric fabric(mesh(4, 50e9));
  fabric.start(10'000'000, fabric.path(Traffic::CoreLoad, 0, 1), 50'000, 1);
  fabric.start(1'000'000, fabric.path(Traffic::CoreLoad, 2, 3), 50'000, 2);
  CHECK(fabric.popCompletion().time == 2'000'000);
  CHECK(fabric.popCompletion().time == 11'000'000);
}
