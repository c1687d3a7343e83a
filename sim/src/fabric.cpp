#include "fabric.h"

#include <cmath>
#include <functional>
#include <stdexcept>

#include "fabric_state.h"
#include "routes.h"

namespace vatlas::sim {
namespace {

constexpr int kTrafficKinds = 5;

bool laterFlow(const Flow& a, const Flow& b) {
  return a.finish != b.finish ? a.finish > b.finish : a.key > b.key;
}
bool laterCompletion(const Fabric::Completion& a, const Fabric::Completion& b) {
  return a.time != b.time ? a.time > b.time : a.key > b.key;
}

Resource makeResource(std::string name, double bytesPerSecond) {
  Resource r;
  r.use.name = std::move(name);
  r.use.capacityBytesPerSecond = bytesPerSecond;
  r.bytesPerPs = bytesPerSecond / kPsPerSecond;
  return r;
}

// Numbers of the resources of a cluster: memories, the two directions of each link, the host links up and
// down.
struct Layout {
  int cards, links;
  int memory(int card) const { return card; }
  int hop(const Hop& h) const { return cards + 2 * h.link + (h.forward ? 0 : 1); }
  int up(int card) const { return cards + 2 * links + 2 * card; }
  int down(int card) const { return up(card) + 1; }
};

std::vector<Resource> makeResources(const ClusterConfig& cluster) {
  std::vector<Resource> all;
  const ProductConfig& product = cluster.product;
  for (int c = 0; c < cluster.ranks; ++c) {
    all.push_back(makeResource("hbm " + std::to_string(c), product.memory.bandwidthBytesPerSecond));
  }
  for (const LinkConfig& link : cluster.links) {
    for (const auto& [from, to] : {std::pair{link.cardA, link.cardB}, std::pair{link.cardB, link.cardA}}) {
      Resource r = makeResource("link " + std::to_string(from) + ">" + std::to_string(to),
                                link.bandwidthBytesPerSecond);
      r.use.isLink = true;
      r.use.kind = link.kind;
      r.use.from = from;
      r.use.to = to;
      all.push_back(std::move(r));
    }
  }
  for (int c = 0; c < cluster.ranks; ++c) {
    all.push_back(makeResource("pcie " + std::to_string(c) + " up", product.pcie.bandwidthBytesPerSecond));
    all.push_back(makeResource("pcie " + std::to_string(c) + " down", product.pcie.bandwidthBytesPerSecond));
  }
  return all;
}

}  // namespace

Fabric::State::State(const ClusterConfig& cluster) : cards(cluster.ranks), resources(makeResources(cluster)) {
  sharedIndex.assign(resources.size(), -1);
  addPaths(cluster);
  for (std::size_t p = 0; p < paths.size(); ++p) {
    for (const PathUse& use : paths[p].uses) {
      resources[static_cast<std::size_t>(use.resource)].paths.push_back(static_cast<PathId>(p));
    }
  }
}

void Fabric::State::addPaths(const ClusterConfig& cluster) {
  const Routes routes(cluster);
  const Layout layout{cards, static_cast<int>(cluster.links.size())};
  const ProductConfig& product = cluster.product;
  const double hertz = product.core.clockMhz * 1e6;
  table.assign(static_cast<std::size_t>(kTrafficKinds * cards * cards), kNoPath);
  const auto add = [&](Traffic traffic, int card, int memory, Path path) {
    for (const PathUse& use : path.uses) {
      const double most =
          resources[static_cast<std::size_t>(use.resource)].use.capacityBytesPerSecond / use.weight;
      path.info.ceilingBytesPerSecond = std::min(path.info.ceilingBytesPerSecond, most);
    }
    path.ceiling = path.info.ceilingBytesPerSecond / kPsPerSecond;
    table[static_cast<std::size_t>((static_cast<int>(traffic) * cards + card) * cards + memory)] =
        static_cast<PathId>(paths.size());
    paths.push_back(std::move(path));
  };
  // Data runs from `from` to `to`; the latency is that of a read (there and back) or of a write (one way).
  const auto between = [&](int from, int to, double ceiling, bool read) {
    Path path;
    path.info.ceilingBytesPerSecond = ceiling;
    path.info.latency = from == to ? product.memory.latency : 0;
    for (const Hop& hop : routes.hops(from, to)) {
      const LinkConfig& link = cluster.links[static_cast<std::size_t>(hop.link)];
      path.uses.push_back({layout.hop(hop), 1});
      path.info.latency += read ? link.readLatency : link.writeLatency;
      ++path.info.hops;
    }
    return path;
  };
  for (int card = 0; card < cards; ++card) {
    for (int memory = 0; memory < cards; ++memory) {
      if (!routes.connected(card, memory)) continue;
      Path load = between(memory, card, product.core.mteLoadBytesPerCycle * hertz, true);
      load.uses.push_back({layout.memory(memory), 1});
      add(Traffic::CoreLoad, card, memory, std::move(load));
      Path store = between(card, memory, product.core.mteStoreBytesPerCycle * hertz, false);
      store.uses.push_back({layout.memory(memory), 1});
      add(Traffic::CoreStore, card, memory, std::move(store));
      Path copy = between(card, memory, 1e300, true);
      if (card == memory) {
        copy.uses.push_back({layout.memory(card), 2});  // read and written
      } else {
        copy.uses.push_back({layout.memory(card), 1});
        copy.uses.push_back({layout.memory(memory), 1});
      }
      add(Traffic::CardCopy, card, memory, std::move(copy));
    }
    for (const Traffic traffic : {Traffic::HostToDevice, Traffic::DeviceToHost}) {
      Path path;
      path.info = {1e300, product.pcie.latency, 0};
      path.uses = {{traffic == Traffic::HostToDevice ? layout.down(card) : layout.up(card), 1},
                   {layout.memory(card), 1}};
      add(traffic, card, card, std::move(path));
    }
  }
}

void Fabric::State::advance(Path& path, SimTime now) const {
  if (now <= path.updated) return;
  path.service += static_cast<double>(now - path.updated) * path.rate;
  path.updated = now;
}

void Fabric::State::predict(Path& path) {
  const double wait = (path.flows.front().finish - path.service) / path.rate;
  // Times are whole picoseconds, rounded up; the slack keeps sums that should be whole from the next one.
  path.next = path.updated + (wait <= 0 ? 0 : static_cast<SimTime>(std::ceil(wait - 1e-6)));
}

void Fabric::State::set(std::size_t index, const Due& due) {
  order[index] = due;
  paths[due.path].heapIndex = static_cast<int>(index);
}

void Fabric::State::siftUp(std::size_t index) {
  const Due due = order[index];
  while (index > 0 && due < order[(index - 1) / 2]) {
    set(index, order[(index - 1) / 2]);
    index = (index - 1) / 2;
  }
  set(index, due);
}

void Fabric::State::siftDown(std::size_t index) {
  const Due due = order[index];
  for (;;) {
    std::size_t child = 2 * index + 1;
    if (child >= order.size()) break;
    if (child + 1 < order.size() && order[child + 1] < order[child]) ++child;
    if (!(order[child] < due)) break;
    set(index, order[child]);
    index = child;
  }
  set(index, due);
}

void Fabric::State::place(PathId id) {
  Path& path = paths[id];
  const Due due{path.next, path.flows.front().key, id};
  if (path.heapIndex < 0) {
    path.heapIndex = static_cast<int>(order.size());
    order.push_back(due);
    siftUp(order.size() - 1);
    return;
  }
  const auto index = static_cast<std::size_t>(path.heapIndex);
  const bool sooner = due < order[index];
  order[index] = due;
  sooner ? siftUp(index) : siftDown(index);
}

void Fabric::State::removeFromOrder(PathId id) {
  const auto index = static_cast<std::size_t>(paths[id].heapIndex);
  paths[id].heapIndex = -1;
  const Due last = order.back();
  order.pop_back();
  if (last.path == id) return;
  const bool sooner = last < order[index];
  set(index, last);
  sooner ? siftUp(index) : siftDown(index);
}

void Fabric::State::occupy(Resource& resource, SimTime now, int change) {
  if (resource.active == 0) resource.busySince = std::max(resource.busySince, now);
  resource.active += change;
  if (resource.active == 0) {
    resource.use.busy += std::max<SimTime>(0, now - resource.busySince);
    resource.busySince = std::max(resource.busySince, now);
    resource.demand = 0;  // no remainder of sums of doubles
  }
}

void Fabric::State::observe(const Path& path, SimTime now) const {
  for (const PathUse& use : path.uses) {
    const Resource& r = resources[static_cast<std::size_t>(use.resource)];
    double rate = 0;
    for (const PathId id : r.paths) {
      if (paths[id].flows.empty()) continue;
      for (const PathUse& other : paths[id].uses) {
        if (other.resource == use.resource) {
          rate += other.weight * paths[id].rate * static_cast<double>(paths[id].flows.size());
        }
      }
    }
    observer->resourceRate(use.resource, now, rate * kPsPerSecond);
  }
}

// Fabric
// -------------------------------------------------------------------------------------------------------------

Fabric::Fabric(const ClusterConfig& cluster) : state_(std::make_unique<State>(cluster)) {}
Fabric::~Fabric() = default;

PathId Fabric::path(Traffic traffic, int card, int memory) const {
  const State& s = *state_;
  if (card < 0 || memory < 0 || card >= s.cards || memory >= s.cards) throw std::out_of_range("no such card");
  return s.table[static_cast<std::size_t>((static_cast<int>(traffic) * s.cards + card) * s.cards + memory)];
}

const PathInfo& Fabric::info(PathId path) const {
  return state_->paths.at(path).info;
}

void Fabric::start(SimTime now, PathId id, std::uint64_t bytes, std::uint64_t key) {
  State& s = *state_;
  if (bytes == 0) {
    s.instant.push_back({now, key});
    std::push_heap(s.instant.begin(), s.instant.end(), laterCompletion);
    return;
  }
  Path& path = s.paths.at(id);
  if (path.flows.empty()) {
    path.service = 0;
    path.updated = now;
    path.rate = path.ceiling;
  } else {
    now = std::max(now, path.updated);
    s.advance(path, now);
  }
  path.flows.push_back({path.service + static_cast<double>(bytes), key, bytes});
  std::push_heap(path.flows.begin(), path.flows.end(), laterFlow);
  for (const PathUse& use : path.uses) {
    Resource& r = s.resources[static_cast<std::size_t>(use.resource)];
    s.occupy(r, now, 1);
    r.demand += use.weight * path.ceiling;
  }
  if (s.saturated(path)) {
    s.collect(id);
    s.settle(now);
    return;
  }
  s.predict(path);
  s.place(id);
  if (s.observer != nullptr) s.observe(path, now);
}

SimTime Fabric::nextCompletion() const {
  const State& s = *state_;
  SimTime next = s.order.empty() ? kNever : s.order.front().next;
  if (!s.instant.empty()) next = std::min(next, s.instant.front().time);
  return next;
}

std::uint64_t Fabric::keyNear(std::size_t place) const {
  const State& s = *state_;
  return place < s.order.size() ? s.order[place].key : 0;
}

Fabric::Completion Fabric::popCompletion() {
  State& s = *state_;
  if (!s.instant.empty()) {
    const Completion first = s.instant.front();
    const bool flowFirst =
        !s.order.empty() && laterCompletion(first, {s.order.front().next, s.order.front().key});
    if (!flowFirst) {
      std::pop_heap(s.instant.begin(), s.instant.end(), laterCompletion);
      s.instant.pop_back();
      return first;
    }
  }
  const PathId id = s.order.front().path;
  Path& path = s.paths[id];
  const SimTime now = path.next;
  const bool wasSaturated = s.saturated(path);
  if (wasSaturated) s.collect(id);  // a resource may cease to bind: its paths are found while it still does
  s.advance(path, now);
  std::pop_heap(path.flows.begin(), path.flows.end(), laterFlow);
  const Flow flow = path.flows.back();
  path.flows.pop_back();
  path.service = std::max(path.service, flow.finish);
  for (const PathUse& use : path.uses) {
    Resource& r = s.resources[static_cast<std::size_t>(use.resource)];
    r.demand -= use.weight * path.ceiling;
    r.use.bytes += static_cast<std::uint64_t>(use.weight) * flow.bytes;
    s.occupy(r, now, -1);
  }
  if (path.flows.empty()) s.removeFromOrder(id);
  if (wasSaturated) {
    s.settle(now);
  } else if (!path.flows.empty()) {
    s.predict(path);
    s.place(id);
  }
  if (s.observer != nullptr) s.observe(path, now);
  return {now, flow.key};
}

void Fabric::cancelAll() {
  State& s = *state_;
  for (Path& path : s.paths) {
    path.flows.clear();
    path.heapIndex = -1;
    path.next = kNever;
  }
  for (Resource& r : s.resources) {
    r.demand = 0;
    r.active = 0;
  }
  s.order.clear();
  s.instant.clear();
}

int Fabric::resourceCount() const {
  return static_cast<int>(state_->resources.size());
}
ResourceUse Fabric::use(int resource) const {
  return state_->resources.at(static_cast<std::size_t>(resource)).use;
}

void Fabric::resetUse() {
  for (Resource& r : state_->resources) {
    r.use.bytes = 0;
    r.use.busy = 0;
  }
}

void Fabric::setObserver(FabricObserver* observer) {
  state_->observer = observer;
}

}  // namespace vatlas::sim
