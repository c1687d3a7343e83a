#include "routes.h"

#include <algorithm>
#include <climits>

namespace vatlas::sim {
namespace {

struct Reach {
  int hops = INT_MAX;
  double width = 0;  // of the narrowest link on the way
  int via = -1;      // link to the card before
  int before = -1;
};

// Cards in rings of equal distance from `from`; within a ring the widest way wins, then the lowest card
// before it.
std::vector<Reach> reachFrom(const ClusterConfig& cluster, int from) {
  std::vector<Reach> reach(static_cast<std::size_t>(cluster.ranks));
  reach[static_cast<std::size_t>(from)] = {0, 1e300, -1, -1};
  for (int ring = 1; ring < cluster.ranks; ++ring) {
    for (std::size_t l = 0; l < cluster.links.size(); ++l) {
      const LinkConfig& link = cluster.links[l];
      for (const auto& [a, b] : {std::pair{link.cardA, link.cardB}, std::pair{link.cardB, link.cardA}}) {
        const Reach& source = reach[static_cast<std::size_t>(a)];
        Reach& target = reach[static_cast<std::size_t>(b)];
        if (source.hops != ring - 1 || target.hops < ring) continue;
        const double width = std::min(source.width, link.bandwidthBytesPerSecond);
        if (target.hops == ring && (width < target.width || (width == target.width && a >= target.before)))
          continue;
        target = {ring, width, static_cast<int>(l), a};
      }
    }
  }
  return reach;
}

}  // namespace

Routes::Routes(const ClusterConfig& cluster) : cards_(cluster.ranks) {
  ways_.resize(static_cast<std::size_t>(cards_) * static_cast<std::size_t>(cards_));
  for (int from = 0; from < cards_; ++from) {
    const std::vector<Reach> reach = reachFrom(cluster, from);
    for (int to = 0; to < cards_; ++to) {
      if (to == from || reach[static_cast<std::size_t>(to)].hops == INT_MAX) continue;
      std::vector<Hop>& way = ways_[static_cast<std::size_t>(from * cards_ + to)];
      for (int card = to; card != from; card = reach[static_cast<std::size_t>(card)].before) {
        const int link = reach[static_cast<std::size_t>(card)].via;
        way.push_back({link, cluster.links[static_cast<std::size_t>(link)].cardB == card});
      }
      std::reverse(way.begin(), way.end());
    }
  }
}

}  // namespace vatlas::sim
