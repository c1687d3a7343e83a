// Reading a file with every way that can fail told apart.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "json_document.h"
#include "vatlas/runtime/config.h"

namespace vatlas::runtime::config {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReadable = "a readable JSON file";

[[noreturn]] void refuse(ConfigErrorCode code, const fs::path& path, const std::string& text) {
  throw ConfigError(code, path.string(), 0, 0, "", text);
}

void checkIsFile(const fs::path& path) {
  if (path.empty() || path.native().find('\0') != std::string::npos) {
    refuse(ConfigErrorCode::NotFound, path.empty() ? fs::path("(empty path)") : fs::path(path.c_str()),
           fmt::format("found no usable path; allowed {}", kReadable));
  }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found || error == std::errc::not_a_directory) {
    refuse(ConfigErrorCode::NotFound, path, fmt::format("found no such file; allowed {}", kReadable));
  }
  if (!fs::status_known(status)) {
    refuse(ConfigErrorCode::Unreadable, path,
           fmt::format("found a path that cannot be examined ({}); allowed {}", error.message(), kReadable));
  }
  if (status.type() == fs::file_type::directory) {
    refuse(ConfigErrorCode::NotAFile, path, fmt::format("found a directory; allowed {}", kReadable));
  }
  if (status.type() != fs::file_type::regular) {
    refuse(ConfigErrorCode::NotAFile, path, fmt::format("found no ordinary file; allowed {}", kReadable));
  }
}

}  // namespace

std::string readFile(const fs::path& path) {
  checkIsFile(path);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) {
    refuse(ConfigErrorCode::Unreadable, path,
           fmt::format("found a file that cannot be opened ({}); allowed {}",
                       std::generic_category().message(errno), kReadable));
  }
  // The size that the file system tells is not to be trusted (files of /proc say 0): read up to the limit.
  std::string text;
  char buffer[65536];
  while (true) {
    errno = 0;
    const std::size_t count = std::fread(buffer, 1, sizeof buffer, file.get());
    text.append(buffer, count);
    if (text.size() > kMaxFileBytes) {
      refuse(ConfigErrorCode::TooLarge, path,
             fmt::format("found more than {} MiB; allowed at most that much", kMaxFileBytes >> 20U));
    }
    if (count < sizeof buffer) {
      break;
    }
  }
  if (std::ferror(file.get()) != 0) {
    refuse(ConfigErrorCode::Unreadable, path,
           fmt::format("found a file that cannot be read ({}); allowed {}",
                       std::generic_category().message(errno), kReadable));
  }
  return text;
}

}  // namespace vatlas::runtime::config
