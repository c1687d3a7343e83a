// Which product supports what.
#include <algorithm>
#include <numeric>
#include <set>

#include "parse.h"
#include "schema.h"
#include "text.h"

namespace vatlas::runtime {
namespace config {
namespace {

// Adds an error for each entry of a list that was there before. `seen` may span several lists.
template <typename Value, typename Get>
std::vector<Value> readList(const Node& list, const std::string& path, std::set<Value>& seen,
                            Problems& problems, Get get) {
  std::vector<Value> values;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const Node& item = list.items[i];
    if (!seen.insert(get(item)).second) {
      problems.add(ConfigErrorCode::Duplicate, item.offset, childPath(path, i),
                   fmt::format("found {} a second time; allowed once", describe(item)));
    }
    values.push_back(get(item));
  }
  return values;
}

std::string textOf(const Node& node) {
  return node.text;
}

SupportMatrix::Rule readRule(const Node& node, const std::string& path, Problems& problems) {
  SupportMatrix::Rule rule;
  const std::string& support = node.find("support")->text;
  rule.support = support == "yes" ? Support::Yes : support == "no" ? Support::No : Support::Conditions;
  const Node* subproducts = node.find("subproducts");
  if ((rule.support == Support::Conditions) != (subproducts != nullptr)) {
    problems.add(
        subproducts == nullptr ? ConfigErrorCode::MissingKey : ConfigErrorCode::UnknownKey, node.offset, path,
        fmt::format(
            "found support \"{}\" {} the key \"subproducts\"; allowed \"conditions\" with it, \"yes\" "
            "and \"no\" without",
            support, subproducts == nullptr ? "without" : "with"));
  } else if (subproducts != nullptr) {
    std::set<std::string> seen;
    rule.subproducts = readList<std::string>(*subproducts, path + ".subproducts", seen, problems, textOf);
  }
  return rule;
}

}  // namespace

SupportMatrix parseSupportMatrix(Problems& problems) {
  SupportMatrix matrix;
  checkSchema("support_matrix", problems);
  if (!problems.none()) {
    return matrix;
  }
  const Node& root = problems.document().root;
  std::set<std::string> products;
  for (const Node::Member& member : root.find("families")->members) {
    SupportMatrix::Family& family = matrix.families[member.key];
    family.displayName = member.value.find("display_name")->text;
    family.products =
        readList<std::string>(*member.value.find("products"),
                              childPath("$.families", member.key) + ".products", products, problems, textOf);
  }
  for (const Node::Member& member : root.find("features")->members) {
    const std::string path = childPath("$.features", member.key);
    SupportMatrix::Feature& feature = matrix.features[member.key];
    feature.displayName = member.value.find("display_name")->text;
    feature.source = member.value.find("source")->text;
    feature.needsUnifiedBus = member.value.find("required_link")->text == "unified_bus";
    std::set<int> ranks;
    feature.ranks = readList<int>(*member.value.find("ranks"), path + ".ranks", ranks, problems,
                                  [](const Node& node) { return node.asInt(); });
    for (const Node::Member& rule : member.value.find("families")->members) {
      feature.rules[rule.key] = readRule(rule.value, childPath(path + ".families", rule.key), problems);
    }
  }
  return matrix;
}

}  // namespace config

std::optional<std::string> SupportMatrix::checkProduct(std::string_view feature, const std::string& family,
                                                       std::string_view subproduct) const {
  const Feature& wanted = features.at(std::string(feature));
  const auto entry = families.find(family);
  const std::string& familyName = entry == families.end() ? family : entry->second.displayName;
  const auto rule = wanted.rules.find(family);
  if (rule == wanted.rules.end() || rule->second.support == Support::No) {
    return fmt::format("{} does not exist on products of the family \"{}\"", wanted.displayName, familyName);
  }
  const std::vector<std::string>& only = rule->second.subproducts;
  if (rule->second.support == Support::Conditions &&
      std::find(only.begin(), only.end(), subproduct) == only.end()) {
    return fmt::format("of the family \"{}\" only {} {} {}, not {}", familyName, config::listOf(only, "and"),
                       only.size() == 1 ? "has" : "have", wanted.displayName,
                       subproduct.empty() ? "every product" : config::inQuotes(subproduct));
  }
  return std::nullopt;
}

std::optional<std::string> SupportMatrix::check(std::string_view feature, const sim::ClusterConfig& cluster,
                                                std::span<const int> cards) const {
  const Feature& wanted = features.at(std::string(feature));
  if (const auto reason = checkProduct(feature, cluster.product.family)) {
    return fmt::format("{}: {}", cluster.product.displayName, *reason);
  }
  if (std::find(wanted.ranks.begin(), wanted.ranks.end(), static_cast<int>(cards.size())) ==
      wanted.ranks.end()) {
    std::vector<std::string> allowed;
    std::transform(wanted.ranks.begin(), wanted.ranks.end(), std::back_inserter(allowed),
                   [](int ranks) { return std::to_string(ranks); });
    return fmt::format("{} works with {} ranks, not with {}", wanted.displayName,
                       config::listOf(allowed, "or"), cards.size());
  }
  if (wanted.needsUnifiedBus) {
    if (const config::CardPair pair = config::unjoinedPair(cluster.links, true, cards); pair.first >= 0) {
      return fmt::format(
          "{} needs UnifiedBus between all ranks, and cards {} and {} of cluster \"{}\" have none",
          wanted.displayName, pair.first, pair.second, cluster.name);
    }
  }
  return std::nullopt;
}

std::optional<std::string> SupportMatrix::check(std::string_view feature,
                                                const sim::ClusterConfig& cluster) const {
  std::vector<int> cards(static_cast<std::size_t>(std::max(cluster.ranks, 0)));
  std::iota(cards.begin(), cards.end(), 0);
  return check(feature, cluster, cards);
}

SupportMatrix loadSupportMatrix(const std::filesystem::path& path) {
  const config::Document document = config::loadDocument(path);
  config::Problems problems(document);
  SupportMatrix matrix = config::parseSupportMatrix(problems);
  problems.throwFirst();
  return matrix;
}

SupportMatrix loadSupportMatrix() {
  return loadSupportMatrix(configRoot() / "support_matrix.json");
}

}  // namespace vatlas::runtime
