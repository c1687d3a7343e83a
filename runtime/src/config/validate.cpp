// What kind of file is this, and what is wrong with it?
#include <array>
#include <utility>

#include "parse.h"

namespace vatlas::runtime {
namespace {

using config::Node;

FileKind kindOf(const Node& root) {
  // Keys that only one kind has, most telling first.
  static constexpr std::array<std::pair<const char*, FileKind>, 12> kSigns = {{
      {"rank_list", FileKind::RankTable},
      {"server_list", FileKind::RankTable},
      {"group_list", FileKind::RankTable},
      {"edge_list", FileKind::TopologyFile},
      {"peer_list", FileKind::TopologyFile},
      {"features", FileKind::SupportMatrix},
      {"families", FileKind::SupportMatrix},
      {"soc_version", FileKind::Product},
      {"aiv_count", FileKind::Product},
      {"topology", FileKind::Cluster},
      {"product", FileKind::Cluster},
      {"ranks", FileKind::Cluster},
  }};
  for (const auto& [key, kind] : kSigns) {
    if (root.find(key) != nullptr) {
      return kind;
    }
  }
  return FileKind::Unknown;
}

std::vector<ConfigError> validateDocument(const config::Document& document, const ForeignValidator& foreign) {
  config::Problems problems(document);
  std::vector<ConfigError> productErrors;
  const FileKind kind = kindOf(document.root);
  switch (kind) {
    case FileKind::Cluster:
      config::parseCluster(problems, productErrors);
      break;
    case FileKind::Product:
      config::parseProduct(problems);
      break;
    case FileKind::SupportMatrix:
      config::parseSupportMatrix(problems);
      break;
    case FileKind::RankTable:
    case FileKind::TopologyFile:
      if (foreign) {
        return foreign(document.path, kind);
      }
      [[fallthrough]];
    case FileKind::Unknown:
      problems.add(ConfigErrorCode::UnknownKind, document.root.offset, "$",
                   "found a file of another kind; allowed a cluster (product, ranks, topology), a product "
                   "(soc_version, ...) or a support matrix (families, features)");
      break;
  }
  std::vector<ConfigError> errors = problems.take();
  errors.insert(errors.end(), productErrors.begin(), productErrors.end());
  return errors;
}

}  // namespace

FileKind detectKind(const std::filesystem::path& path) {
  return kindOf(config::loadDocument(path).root);
}

std::vector<ConfigError> validateFile(const std::filesystem::path& path, const ForeignValidator& foreign) {
  try {
    return validateDocument(config::loadDocument(path), foreign);
  } catch (const ConfigError& error) {
    return {error};
  }
}

}  // namespace vatlas::runtime
