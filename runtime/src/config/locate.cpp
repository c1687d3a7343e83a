// Where the shipped configuration files are.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "json_document.h"
#include "text.h"
#include "vatlas/runtime/config.h"

namespace vatlas::runtime {
namespace {

namespace fs = std::filesystem;

bool isRoot(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path / "schema", ignored);
}

// The file that this code was loaded from: the library, or a program that it is linked into.
fs::path ownFile() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&ownFile), &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  return info.dli_fname;
}

std::vector<fs::path> candidates() {
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path own = ownFile();
  for (const fs::path& file : {fs::absolute(own, error), fs::canonical(own, error)}) {
    if (!file.empty()) {
      folders.push_back((file.parent_path() / "../share/vatlas/configs").lexically_normal());
      folders.push_back((file.parent_path() / "../../../configs").lexically_normal());
    }
  }
  return folders;
}

std::vector<std::string> listNames(const char* folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(configRoot() / folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".json") {
      names.push_back(entry->path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void unknownName(std::string_view name, const char* what,
                              const std::vector<std::string>& names) {
  throw ConfigError(
      ConfigErrorCode::NotFound, std::string(name.substr(0, 200)), 0, 0, "",
      fmt::format("found no {} {}; allowed a path to one, or {}{}", what, config::inQuotes(name),
                  config::listOf(names, "or"), config::suggestion(name, names)));
}

fs::path findShipped(std::string_view nameOrPath, const char* folder, const char* what) {
  if (nameOrPath.find('/') != std::string_view::npos || nameOrPath.ends_with(".json")) {
    return nameOrPath;
  }
  const std::vector<std::string> names = listNames(folder);
  if (std::find(names.begin(), names.end(), nameOrPath) != names.end()) {
    return configRoot() / folder / (std::string(nameOrPath) + ".json");
  }
  std::error_code ignored;
  if (!nameOrPath.empty() && fs::is_regular_file(fs::path(nameOrPath), ignored)) {
    return nameOrPath;
  }
  unknownName(nameOrPath, what, names);
}

}  // namespace

fs::path configRoot() {
  if (const char* chosen = std::getenv("VATLAS_CONFIG_DIR"); chosen != nullptr && *chosen != '\0') {
    if (!isRoot(chosen)) {
      throw ConfigError(
          ConfigErrorCode::Installation, chosen, 0, 0, "",
          "found no configuration files where VATLAS_CONFIG_DIR points; allowed a folder with products, "
          "clusters and schema in it");
    }
    return chosen;
  }
  const std::vector<fs::path> folders = candidates();
  const auto root = std::find_if(folders.begin(), folders.end(), isRoot);
  if (root == folders.end()) {
    throw ConfigError(ConfigErrorCode::Installation, folders.empty() ? "(library)" : folders.front().string(),
                      0, 0, "",
                      "found no configuration files beside the library; allowed a complete installation, or "
                      "VATLAS_CONFIG_DIR set to their folder");
  }
  return *root;
}

fs::path findCluster(std::string_view nameOrPath) {
  return findShipped(nameOrPath, "clusters", "cluster");
}
fs::path findProduct(std::string_view name) {
  return findShipped(name, "products", "product");
}
fs::path defaultCluster() {
  return findCluster("ascend950dt_8p");
}
std::vector<std::string> listShippedClusters() {
  return listNames("clusters");
}
std::vector<std::string> listShippedProducts() {
  return listNames("products");
}

}  // namespace vatlas::runtime
