// Max-min fair rates. Only resources whose demand exceeds their capacity bind, so that a change is worked out
// for the paths that such resources join, and no others.
#include "fabric_state.h"

namespace vatlas::sim {
namespace {
constexpr double kSlack = 1 + 1e-12;  // sums of ceilings that fill a resource exactly
bool binds(const Resource& r) {
  return r.demand > r.bytesPerPs * kSlack;
}
}  // namespace

bool Fabric::State::saturated(const Path& path) const {
  return std::any_of(path.uses.begin(), path.uses.end(), [&](const PathUse& use) {
    return binds(resources[static_cast<std::size_t>(use.resource)]);
  });
}

// All busy paths that binding resources connect with the changed one, and those resources.
void Fabric::State::collect(PathId changed) {
  component.clear();
  shared.clear();
  component.push_back(changed);
  paths[changed].marked = true;
  for (std::size_t i = 0; i < component.size(); ++i) {
    for (const PathUse& use : paths[component[i]].uses) {
      const auto r = static_cast<std::size_t>(use.resource);
      if (sharedIndex[r] >= 0 || !binds(resources[r])) continue;
      sharedIndex[r] = static_cast<int>(shared.size());
      shared.push_back(use.resource);
      for (const PathId other : resources[r].paths) {
        if (paths[other].marked || paths[other].flows.empty()) continue;
        paths[other].marked = true;
        component.push_back(other);
      }
    }
  }
  std::sort(component.begin(), component.end());  // sums in one order, whatever the change was
}

// Progressive filling: all rates grow together; a path stops at its ceiling or where a resource is full.
void Fabric::State::fill() {
  left.resize(shared.size());
  weightLeft.assign(shared.size(), 0);
  fixed.assign(component.size(), 0);
  for (std::size_t s = 0; s < shared.size(); ++s)
    left[s] = resources[static_cast<std::size_t>(shared[s])].bytesPerPs;
  const auto forShared = [&](const Path& path, auto&& body) {
    for (const PathUse& use : path.uses) {
      const int s = sharedIndex[static_cast<std::size_t>(use.resource)];
      if (s >= 0) body(static_cast<std::size_t>(s), use.weight * static_cast<double>(path.flows.size()));
    }
  };
  for (const PathId id : component) {
    forShared(paths[id], [&](std::size_t s, double weight) { weightLeft[s] += weight; });
  }
  std::size_t open = component.size();
  while (open > 0) {
    double level = 1e300;
    for (std::size_t i = 0; i < component.size(); ++i) {
      if (fixed[i] == 0) level = std::min(level, paths[component[i]].ceiling);
    }
    for (std::size_t s = 0; s < shared.size(); ++s) {
      if (weightLeft[s] > 0.5) level = std::min(level, std::max(left[s], 0.0) / weightLeft[s]);
    }
    const double reach = level * kSlack;
    bool any = false;
    for (std::size_t i = 0; i < component.size(); ++i) {
      if (fixed[i] != 0) continue;
      Path& path = paths[component[i]];
      bool stops = path.ceiling <= reach;
      forShared(path, [&](std::size_t s, double) { stops = stops || left[s] <= reach * weightLeft[s]; });
      if (!stops) continue;
      fixed[i] = 2;  // takes its share after the round, so that all see the same state
      any = true;
    }
    for (std::size_t i = 0; i < component.size(); ++i) {
      if (fixed[i] != 2 && any) continue;
      if (fixed[i] == 1) continue;
      fixed[i] = 1;
      --open;
      Path& path = paths[component[i]];
      path.rate = std::min(level, path.ceiling);
      forShared(path, [&](std::size_t s, double weight) {
        left[s] -= weight * path.rate;
        weightLeft[s] -= weight;
      });
    }
  }
}

// New rates for the collected component.
void Fabric::State::settle(SimTime now) {
  for (const PathId id : component) advance(paths[id], now);
  fill();
  for (const PathId id : component) {
    Path& path = paths[id];
    path.marked = false;
    if (path.flows.empty()) continue;
    predict(path);
    place(id);
    if (observer != nullptr) observe(path, now);
  }
  for (const int r : shared) sharedIndex[static_cast<std::size_t>(r)] = -1;
}

}  // namespace vatlas::sim
