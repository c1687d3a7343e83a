// The inside of Fabric: resources, paths, what flows on them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fabric.h"

namespace vatlas::sim {

struct Resource {
  ResourceUse use;
  double bytesPerPs = 0;  // capacity
  double demand = 0;      // if every transfer had its ceiling
  int active = 0;         // transfers
  SimTime busySince = 0;
  std::vector<PathId> paths;  // that use it
};

struct PathUse {
  int resource = 0;
  double weight = 1;  // bytes of the resource per byte of the transfer
};

struct Flow {
  double finish = 0;  // service of the path at which this transfer is complete, in bytes
  std::uint64_t key = 0;
  std::uint64_t bytes = 0;
};

struct Path {
  PathInfo info;
  std::vector<PathUse> uses;
  double ceiling = 0;  // bytes per ps
  double rate = 0;     // of each transfer now
  double service = 0;  // bytes that a transfer has received since the path became busy, up to `updated`
  SimTime updated = 0;
  SimTime next = kNever;    // the first transfer is complete
  std::vector<Flow> flows;  // heap, first to finish on top
  int heapIndex = -1;       // place in State::order
  bool marked = false;      // in the component that is being computed
};

// A busy path's place in the order of completions; holds what is compared, so that the heap stays in the
// cache.
struct Due {
  SimTime next = 0;
  std::uint64_t key = 0;
  PathId path = 0;
  bool operator<(const Due& other) const { return next != other.next ? next < other.next : key < other.key; }
};

struct Fabric::State {
  explicit State(const ClusterConfig& cluster);

  // fabric.cpp
  void addPaths(const ClusterConfig& cluster);
  void advance(Path& path, SimTime now) const;
  void place(PathId id);  // after `next` has changed
  void set(std::size_t index, const Due& due);
  void siftUp(std::size_t index);
  void siftDown(std::size_t index);
  void removeFromOrder(PathId id);
  void predict(Path& path);
  void occupy(Resource& resource, SimTime now, int change);
  void observe(const Path& path, SimTime now) const;

  // fabric_rates.cpp
  bool saturated(const Path& path) const;
  void collect(PathId changed);  // before a transfer leaves, after one has come
  void settle(SimTime now);
  void fill();

  int cards = 0;
  std::vector<Resource> resources;
  std::vector<Path> paths;
  std::vector<PathId> table;        // by (traffic, card, memory)
  std::vector<Due> order;           // heap of busy paths, the first to complete on top
  std::vector<Completion> instant;  // heap of transfers without bytes
  FabricObserver* observer = nullptr;

  // Of the computation of one component; kept to avoid allocation.
  std::vector<PathId> component;
  std::vector<int> shared;
  std::vector<double> left;
  std::vector<double> weightLeft;
  std::vector<char> fixed;
  std::vector<int> sharedIndex;  // by resource: place in `shared`, or -1
};

inline constexpr double kPsPerSecond = 1e12;

}  // namespace vatlas::sim
