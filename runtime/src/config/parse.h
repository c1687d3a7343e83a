// From a document to the plain structs; each function adds what is wrong and then returns something unusable.
#pragma once

#include <filesystem>
#include <vector>

#include "problems.h"
#include "vatlas/runtime/config.h"
#include "vatlas/sim/config.h"

namespace vatlas::runtime::config {

sim::ProductConfig parseProduct(Problems& problems);

// Errors of the product file that the cluster names go to `productErrors`.
sim::ClusterConfig parseCluster(Problems& problems, std::vector<ConfigError>& productErrors);

// The links of $.topology, sorted by cards, the smaller number first.
std::vector<sim::LinkConfig> expandTopology(const Node& topology, int ranks,
                                            const sim::ProductConfig& product, Problems& problems);

SupportMatrix parseSupportMatrix(Problems& problems);

// The first pair of `cards` that no chain of the links joins; {-1, -1} when all are joined.
struct CardPair {
  int first = -1;
  int second = -1;
};
CardPair unjoinedPair(const std::vector<sim::LinkConfig>& links, bool unifiedBusOnly,
                      std::span<const int> cards);

}  // namespace vatlas::runtime::config
