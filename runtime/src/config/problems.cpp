#include "problems.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace vatlas::runtime {
namespace {

std::string compose(const std::string& file, int line, const std::string& path, const std::string& text) {
  return line == 0 ? fmt::format("{}: {}", file, text) : fmt::format("{}:{}: {}: {}", file, line, path, text);
}

}  // namespace

ConfigError::ConfigError(ConfigErrorCode errorCode, std::string filePath, int lineNumber, int columnNumber,
                         std::string path, const std::string& text)
    : std::runtime_error(compose(filePath, lineNumber, path, text)),
      code(errorCode),
      file(std::move(filePath)),
      line(lineNumber),
      column(columnNumber),
      jsonPath(std::move(path)) {}

namespace config {

std::vector<ConfigError> Problems::take() {
  std::stable_sort(errors_.begin(), errors_.end(), [](const ConfigError& a, const ConfigError& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  return std::exchange(errors_, {});
}

void Problems::throwFirst() {
  if (!none()) {
    throw take().front();
  }
}

}  // namespace config
}  // namespace vatlas::runtime
