// Ways through the graph of links: fewest hops, then the widest, then the lowest card numbers.
#pragma once

#include <vector>

#include "vatlas/sim/config.h"

namespace vatlas::sim {

// One direction of a link: its number among the links, and whether it runs from cardA to cardB.
struct Hop {
  int link = 0;
  bool forward = true;
};

class Routes {
 public:
  explicit Routes(const ClusterConfig& cluster);
  bool connected(int from, int to) const { return from == to || !hops(from, to).empty(); }
  // The hops in order; empty for a card to itself and where nothing connects.
  const std::vector<Hop>& hops(int from, int to) const {
    return ways_[static_cast<std::size_t>(from * cards_ + to)];
  }

 private:
  int cards_;
  std::vector<std::vector<Hop>> ways_;
};

}  // namespace vatlas::sim
