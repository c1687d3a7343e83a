// Cluster files.
#include <algorithm>
#include <system_error>

#include "parse.h"
#include "schema.h"
#include "text.h"
#include "vatlas/runtime/version.h"

namespace vatlas::runtime {
namespace config {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultDriver = "25.5.0";
constexpr const char* kDefaultToolkit = "9.0.0";

// A path counts from the cluster file. A name is looked up in the tree that the cluster belongs to
// (TREE/clusters/FILE.json has TREE/products/), then among the shipped products. Empty: not found.
fs::path locateProduct(const fs::path& clusterFile, const std::string& product) {
  std::error_code error;
  const fs::path folder = fs::absolute(clusterFile, error).parent_path();
  if (product.find('/') != std::string::npos || product.ends_with(".json")) {
    const fs::path file = (folder / product).lexically_normal();
    return fs::exists(file, error) ? file : fs::path();
  }
  const fs::path inTree = folder.parent_path() / "products" / (product + ".json");
  if (folder.filename() == "clusters" && fs::exists(inTree, error)) {
    return inTree;
  }
  const std::vector<std::string> shipped = listShippedProducts();
  const bool known = std::find(shipped.begin(), shipped.end(), product) != shipped.end();
  return known ? configRoot() / "products" / (product + ".json") : fs::path();
}

std::string readVersion(const Node& root, const char* key, const char* fallback, Problems& problems) {
  const Node* node = root.find(key);
  if (node == nullptr) {
    return fallback;
  }
  if (!Version::parse(node->text)) {
    problems.add(ConfigErrorCode::BadVersion, node->offset, childPath("$", key),
                 fmt::format("found {}; allowed a version such as \"9.0.0\", \"8.0.RC2\" or \"9.1.0-beta.1\"",
                             inQuotes(node->text)));
  }
  return node->text;
}

sim::Switches readSwitches(const Node& root) {
  sim::Switches switches;
  if (const Node* node = root.find("switches"); node != nullptr) {
    const Node* zero = node->find("e8m0_zero");
    const Node* overflow = node->find("overflow");
    switches.e8m0ZeroIsOcp = zero != nullptr && zero->text == "ocp";
    switches.saturate = overflow != nullptr && overflow->text == "saturate";
  }
  return switches;
}

// False when there is no usable product.
bool readProduct(const Node& node, Problems& problems, std::vector<ConfigError>& productErrors,
                 sim::ProductConfig& product) {
  const fs::path file = locateProduct(problems.document().path, node.text);
  if (file.empty()) {
    const std::vector<std::string> shipped = listShippedProducts();
    problems.add(ConfigErrorCode::UnknownProduct, node.offset, "$.product",
                 fmt::format("found the unknown product {}; allowed {}, or a path to a product file{}",
                             inQuotes(node.text), listOf(shipped, "or"), suggestion(node.text, shipped)));
    return false;
  }
  try {
    const Document document = loadDocument(file);
    Problems found(document);
    product = parseProduct(found);
    productErrors = found.take();
  } catch (const ConfigError& error) {
    productErrors.push_back(error);
  }
  return productErrors.empty();
}

}  // namespace

sim::ClusterConfig parseCluster(Problems& problems, std::vector<ConfigError>& productErrors) {
  sim::ClusterConfig cluster;
  checkSchema("cluster", problems);
  if (!problems.none()) {
    return cluster;
  }
  const Document& document = problems.document();
  const Node& root = document.root;
  const Node* name = root.find("name");
  cluster.name = name == nullptr ? document.path.stem().string() : name->text;
  cluster.path = document.path.string();
  cluster.ranks = root.find("ranks")->asInt();
  cluster.driverVersion = readVersion(root, "driver", kDefaultDriver, problems);
  cluster.toolkitVersion = readVersion(root, "toolkit", kDefaultToolkit, problems);
  cluster.switches = readSwitches(root);
  if (const Node* communicator = root.find("communicator"); communicator != nullptr) {
    if (const Node* size = communicator->find("buffer_size_mb"); size != nullptr) {
      cluster.hcclBufferSizeMb = static_cast<std::uint32_t>(size->number);
    }
  }
  const Node& topology = *root.find("topology");
  cluster.topologyName = topology.find("type")->text;
  if (readProduct(*root.find("product"), problems, productErrors, cluster.product)) {
    // The topology has problems of its own; those found so far must not cut its checks short.
    Problems ofTopology(document);
    cluster.links = expandTopology(topology, cluster.ranks, cluster.product, ofTopology);
    problems.append(ofTopology.take());
  }
  return cluster;
}

}  // namespace config

sim::ClusterConfig loadCluster(const std::filesystem::path& path) {
  const config::Document document = config::loadDocument(path);
  config::Problems problems(document);
  std::vector<ConfigError> productErrors;
  sim::ClusterConfig cluster = config::parseCluster(problems, productErrors);
  problems.throwFirst();
  if (!productErrors.empty()) {
    throw productErrors.front();
  }
  return cluster;
}

}  // namespace vatlas::runtime
