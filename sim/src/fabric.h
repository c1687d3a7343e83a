// Memories, links and the transfers that share them.
//
// Every transfer takes one path: the global memory it touches and the links between there and here. Transfers
// that share a memory or a link share its bandwidth by max-min fairness; each also has a ceiling of its own
// (the port of the DMA engine). All transfers on one path with one ceiling have one rate, so the unit of
// computation is the path and a transfer is an entry in the path's queue, ordered by the service it has still
// to receive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vatlas/sim/config.h"

namespace vatlas::sim {

using PathId = std::uint16_t;

enum class Traffic : std::uint8_t {
  CoreLoad,      // global memory of `memory` to a core's UB on `card` (MTE2)
  CoreStore,     // a core's UB on `card` to global memory of `memory` (MTE3)
  HostToDevice,  // host memory to global memory of `card`
  DeviceToHost,
  CardCopy,  // global memory of `card` to global memory of `memory` (or within one card)
};

struct PathInfo {
  double ceilingBytesPerSecond = 0;  // one transfer alone gets at most this, and at most its slowest resource
  SimTime latency = 0;               // start to first byte (loads: there and back; stores: one way)
  int hops = 0;                      // links on the way; 0 within a card
};

struct ResourceUse {
  std::string name;        // "hbm 3", "link 0>1", "pcie 2 up"
  int from = -1, to = -1;  // cards of a link direction, else -1
  LinkKind kind = LinkKind::UnifiedBus;
  bool isLink = false;
  double capacityBytesPerSecond = 0;
  std::uint64_t bytes = 0;  // carried so far
  SimTime busy = 0;         // time with at least one transfer
};

// Told of every change of a resource's load, for traces. Not called when null.
class FabricObserver {
 public:
  virtual ~FabricObserver() = default;
  virtual void resourceRate(int resource, SimTime at, double bytesPerSecond) = 0;
};

class Fabric {
 public:
  explicit Fabric(const ClusterConfig& cluster);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Paths exist for every (card, memory) pair that the links connect, by the fewest hops and then the widest
  // way; throws std::out_of_range for cards that do not exist, returns kNoPath where nothing connects.
  static constexpr PathId kNoPath = 0xffff;
  PathId path(Traffic traffic, int card, int memory) const;
  const PathInfo& info(PathId path) const;

  // A transfer starts to flow at `now` (issue cost and latency are the caller's). `key` orders completions of
  // the same picosecond and identifies the transfer. Zero bytes complete at once. `now` may lie before an
  // earlier call's as long as the paths involved share nothing; where they do, it counts from the later time.
  void start(SimTime now, PathId path, std::uint64_t bytes, std::uint64_t key);

  struct Completion {
    SimTime time;
    std::uint64_t key;
  };
  SimTime nextCompletion() const;                  // kNever when nothing flows
  std::uint64_t keyNear(std::size_t place) const;  // of a transfer that completes soon; a hint
  Completion popCompletion();  // the earliest by (time, key); precondition: nextCompletion() != kNever
  void cancelAll();            // forgets what flows; use figures stay

  int resourceCount() const;
  ResourceUse use(int resource) const;
  void resetUse();
  void setObserver(FabricObserver* observer);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vatlas::sim
