// From a topology to the links between cards.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "parse.h"
#include "text.h"

namespace vatlas::runtime::config {
namespace {

using sim::LinkConfig;
using sim::LinkKind;

const std::string kPath = "$.topology";

struct Keys {
  std::vector<std::string> required;
  std::vector<std::string> optional;
};

const std::map<std::string, Keys>& keysOfTypes() {
  static const std::map<std::string, Keys> keys = {
      {"full_mesh", {{}, {"ports_per_pair"}}},
      {"ring", {{}, {"ports_per_pair"}}},
      {"two_mesh_pcie", {{}, {"ports_per_pair", "groups"}}},
      {"switch", {{"ports_per_card", "switch_latency_ns"}, {}}},
      {"links", {{"links"}, {}}},
  };
  return keys;
}

class Expander {
 public:
  Expander(const Node& topology, int ranks, const sim::ProductConfig& product, Problems& problems)
      : topology_(topology),
        ranks_(ranks),
        product_(product),
        problems_(problems),
        type_(topology.find("type")->text) {}

  std::vector<LinkConfig> run();

 private:
  void checkKeys();
  void fullMesh(std::span<const int> cards);
  void ring();
  void twoMeshes();
  std::vector<std::vector<int>> groups();
  void viaSwitch();
  void listed();
  void listedLink(const Node& entry, const std::string& path, std::set<std::pair<int, int>>& seen);
  bool cardExists(const Node& card, const std::string& path);
  void checkPorts(const Node& culprit, const std::string& path);
  void checkConnected();

  int number(const char* key, int fallback) const {
    const Node* node = topology_.find(key);
    return node == nullptr ? fallback : node->asInt();
  }
  void addUnifiedBus(int a, int b, int ports) {
    links_.push_back({std::min(a, b), std::max(a, b), LinkKind::UnifiedBus, ports,
                      ports * product_.port.bandwidthBytesPerSecond, product_.port.readLatency,
                      product_.port.writeLatency});
  }
  void addPcie(int a, int b) {
    links_.push_back({std::min(a, b), std::max(a, b), LinkKind::Pcie, 1,
                      product_.pcie.peerBandwidthBytesPerSecond, product_.pcie.peerReadLatency,
                      product_.pcie.peerWriteLatency});
  }
  std::vector<int> allCards() const {
    std::vector<int> cards(static_cast<std::size_t>(ranks_));
    std::iota(cards.begin(), cards.end(), 0);
    return cards;
  }
  void fail(ConfigErrorCode code, const Node& node, const std::string& path, const std::string& text) {
    problems_.add(code, node.offset, path, text);
  }

  const Node& topology_;
  const int ranks_;
  const sim::ProductConfig& product_;
  Problems& problems_;
  const std::string type_;
  std::vector<LinkConfig> links_;
};

std::vector<LinkConfig> Expander::run() {
  checkKeys();
  if (!problems_.none()) {
    return {};
  }
  if (type_ == "full_mesh") fullMesh(allCards());
  if (type_ == "ring") ring();
  if (type_ == "two_mesh_pcie") twoMeshes();
  if (type_ == "switch") viaSwitch();
  if (type_ == "links") listed();
  const Node* ports = topology_.find("ports_per_pair");
  if (type_ != "links" && type_ != "switch") {
    checkPorts(ports == nullptr ? topology_ : *ports, ports == nullptr ? kPath : kPath + ".ports_per_pair");
  }
  if (problems_.none()) {
    checkConnected();
  }
  std::sort(links_.begin(), links_.end(), [](const LinkConfig& a, const LinkConfig& b) {
    return std::tie(a.cardA, a.cardB) < std::tie(b.cardA, b.cardB);
  });
  return std::move(links_);
}

void Expander::checkKeys() {
  const Keys& keys = keysOfTypes().at(type_);
  std::vector<std::string> known = {"type"};
  known.insert(known.end(), keys.required.begin(), keys.required.end());
  known.insert(known.end(), keys.optional.begin(), keys.optional.end());
  for (const Node::Member& member : topology_.members) {
    if (std::find(known.begin(), known.end(), member.key) == known.end()) {
      problems_.add(
          ConfigErrorCode::UnknownKey, member.keyOffset, childPath(kPath, member.key),
          fmt::format("found the key {}, for which a topology of type \"{}\" has no use; allowed {}",
                      inQuotes(member.key), type_, listOf(known, "and")));
    }
  }
  for (const std::string& key : keys.required) {
    if (topology_.find(key) == nullptr) {
      fail(ConfigErrorCode::MissingKey, topology_, kPath,
           fmt::format("found no key \"{}\"; allowed only with it for type \"{}\"", key, type_));
    }
  }
}

void Expander::fullMesh(std::span<const int> cards) {
  for (std::size_t i = 0; i < cards.size(); ++i) {
    for (std::size_t k = i + 1; k < cards.size(); ++k) {
      addUnifiedBus(cards[i], cards[k], number("ports_per_pair", 1));
    }
  }
}

void Expander::ring() {
  for (int card = 0; card + 1 < ranks_; ++card) {
    addUnifiedBus(card, card + 1, number("ports_per_pair", 1));
  }
  if (ranks_ > 2) {
    addUnifiedBus(ranks_ - 1, 0, number("ports_per_pair", 1));
  }
}

std::vector<std::vector<int>> Expander::groups() {
  std::vector<std::vector<int>> result(2);
  const Node* listed = topology_.find("groups");
  if (listed == nullptr) {
    for (const int card : allCards()) {
      result[card < ranks_ / 2 ? 0 : 1].push_back(card);
    }
    return result;
  }
  std::set<int> seen;
  for (std::size_t g = 0; g < 2; ++g) {
    for (std::size_t i = 0; i < listed->items[g].items.size(); ++i) {
      const Node& card = listed->items[g].items[i];
      const std::string path = childPath(childPath(kPath + ".groups", g), i);
      if (!cardExists(card, path)) {
        continue;
      }
      if (!seen.insert(card.asInt()).second) {
        fail(ConfigErrorCode::Duplicate, card, path,
             fmt::format("found card {} a second time; allowed once in all groups", card.asInt()));
      }
      result[g].push_back(card.asInt());
    }
  }
  for (const int card : allCards()) {
    if (problems_.none() && !seen.contains(card)) {
      fail(ConfigErrorCode::Disconnected, *listed, kPath + ".groups",
           fmt::format("found card {} in neither group; allowed every card in one of them", card));
    }
  }
  return result;
}

void Expander::twoMeshes() {
  if (ranks_ < 2) {
    fail(ConfigErrorCode::BadValue, *topology_.find("type"), kPath + ".type",
         "found two meshes for one card; allowed with 2, 4 or 8 ranks");
    return;
  }
  const std::vector<std::vector<int>> halves = groups();
  if (!problems_.none()) {
    return;
  }
  fullMesh(halves[0]);
  fullMesh(halves[1]);
  for (const int a : halves[0]) {
    for (const int b : halves[1]) {
      addPcie(a, b);
    }
  }
}

// LinkConfig joins two cards, so a switch becomes one link for each pair with an equal share of the cards'
// ports: right for traffic among all cards, too slow for a single pair.
void Expander::viaSwitch() {
  const int ports = number("ports_per_card", 1);
  if (ports > product_.portCount) {
    fail(ConfigErrorCode::TooManyPorts, *topology_.find("ports_per_card"), kPath + ".ports_per_card",
         fmt::format("found {} ports; allowed at most {}, all that one {} has", ports, product_.portCount,
                     product_.displayName));
    return;
  }
  const auto delay = static_cast<sim::SimTime>(
      std::llround(topology_.find("switch_latency_ns")->number * static_cast<double>(sim::kNanosecond)));
  for (int a = 0; a < ranks_; ++a) {
    for (int b = a + 1; b < ranks_; ++b) {
      links_.push_back({a, b, LinkKind::UnifiedBus, 1,
                        ports * product_.port.bandwidthBytesPerSecond / (ranks_ - 1),
                        product_.port.readLatency + 2 * delay, product_.port.writeLatency + delay});
    }
  }
}

bool Expander::cardExists(const Node& card, const std::string& path) {
  if (card.number >= 0 && card.number < ranks_) {
    return true;
  }
  fail(ConfigErrorCode::BadLink, card, path,
       fmt::format("found card {:.17g}, which does not exist; allowed 0 to {}", card.number, ranks_ - 1));
  return false;
}

void Expander::listed() {
  const Node& list = *topology_.find("links");
  std::set<std::pair<int, int>> seen;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    listedLink(list.items[i], childPath(kPath + ".links", i), seen);
  }
}

void Expander::listedLink(const Node& entry, const std::string& path, std::set<std::pair<int, int>>& seen) {
  const Node& cards = *entry.find("cards");
  const bool first = cardExists(cards.items[0], childPath(path + ".cards", std::size_t{0}));
  const bool second = cardExists(cards.items[1], childPath(path + ".cards", std::size_t{1}));
  if (!first || !second) {
    return;
  }
  const int a = cards.items[0].asInt();
  const int b = cards.items[1].asInt();
  if (a == b) {
    fail(ConfigErrorCode::BadLink, cards, path + ".cards",
         fmt::format("found a link from card {} to itself; allowed two different cards", a));
    return;
  }
  if (!seen.insert(std::minmax(a, b)).second) {
    fail(ConfigErrorCode::Duplicate, cards, path + ".cards",
         fmt::format("found a second link between cards {} and {}; allowed one (with more ports)", a, b));
    return;
  }
  const Node* ports = entry.find("ports");
  if (entry.find("kind")->text == "ub") {
    addUnifiedBus(a, b, ports == nullptr ? 1 : ports->asInt());
    checkPorts(ports == nullptr ? cards : *ports, path + (ports == nullptr ? ".cards" : ".ports"));
    return;
  }
  if (ports != nullptr && ports->asInt() != 1) {
    fail(ConfigErrorCode::TooManyPorts, *ports, path + ".ports",
         fmt::format("found {} ports for a PCIe link; allowed 1", ports->asInt()));
  }
  addPcie(a, b);
}

// Blames `culprit` when some card has more ports in use than the product has; once is enough.
void Expander::checkPorts(const Node& culprit, const std::string& path) {
  if (!problems_.none()) {
    return;
  }
  for (const int card : allCards()) {
    int used = 0;
    for (const LinkConfig& link : links_) {
      used +=
          link.kind == LinkKind::UnifiedBus && (link.cardA == card || link.cardB == card) ? link.ports : 0;
    }
    if (used > product_.portCount) {
      fail(ConfigErrorCode::TooManyPorts, culprit, path,
           fmt::format("found {} UnifiedBus ports in use on card {}; allowed at most {}, all that one {} has",
                       used, card, product_.portCount, product_.displayName));
      return;
    }
  }
}

void Expander::checkConnected() {
  const CardPair pair = unjoinedPair(links_, false, allCards());
  if (pair.first < 0) {
    return;
  }
  const Node* list = topology_.find("links");
  fail(ConfigErrorCode::Disconnected, list == nullptr ? topology_ : *list,
       list == nullptr ? kPath : kPath + ".links",
       fmt::format("found no way from card {} to card {}; allowed links that join all cards", pair.first,
                   pair.second));
}

}  // namespace

std::vector<LinkConfig> expandTopology(const Node& topology, int ranks, const sim::ProductConfig& product,
                                       Problems& problems) {
  return Expander(topology, ranks, product, problems).run();
}

CardPair unjoinedPair(const std::vector<LinkConfig>& links, bool unifiedBusOnly, std::span<const int> cards) {
  // Island of each card: the smallest number among the cards that it is joined with.
  std::map<int, int> island;
  for (const int card : cards) {
    island[card] = card;
  }
  for (const LinkConfig& link : links) {
    island.try_emplace(link.cardA, link.cardA);
    island.try_emplace(link.cardB, link.cardB);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const LinkConfig& link : links) {
      int& a = island[link.cardA];
      int& b = island[link.cardB];
      if ((link.kind == LinkKind::UnifiedBus || !unifiedBusOnly) && a != b) {
        a = b = std::min(a, b);
        changed = true;
      }
    }
  }
  for (std::size_t i = 0; i < cards.size(); ++i) {
    for (std::size_t k = i + 1; k < cards.size(); ++k) {
      if (island[cards[i]] != island[cards[k]]) {
        return {cards[i], cards[k]};
      }
    }
  }
  return {};
}

}  // namespace vatlas::runtime::config
