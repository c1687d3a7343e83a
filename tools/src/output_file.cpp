#include "output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace vatlas::tools {

OutputFile::OutputFile(const std::string& path) : path_(path) {
  if (std::filesystem::path(path).filename().empty()) fail(path.empty() ? ENOENT : EISDIR);
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, ignored);
  target_ = ignored ? path : real.string();
  struct stat info {};
  const bool exists = stat(target_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) fail(EISDIR);
  if (exists && access(target_.c_str(), W_OK) != 0) fail(errno);
  const bool direct = exists && !S_ISREG(info.st_mode);
  if (!direct) part_ = target_ + ".part";
  file_ = open(direct ? target_.c_str() : part_.c_str(),
               O_WRONLY | O_CLOEXEC | (direct ? 0 : O_CREAT | O_TRUNC), 0666);
  if (file_ < 0) {
    part_.clear();
    fail(errno);
  }
}

OutputFile::~OutputFile() {
  if (file_ >= 0) close(file_);
  if (!part_.empty()) unlink(part_.c_str());
}

void OutputFile::fail(int error) const {
  throw FileError(fmt::format("{}: cannot be written: {}", path_, std::strerror(error)));
}

void OutputFile::append(const void* data, std::uint64_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = write(file_, next, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail(put == 0 ? EIO : errno);
    next += put;
    bytes -= static_cast<std::uint64_t>(put);
  }
}

void OutputFile::finish() {
  if (close(std::exchange(file_, -1)) != 0) fail(errno);
  if (part_.empty()) return;
  if (std::rename(part_.c_str(), target_.c_str()) != 0) fail(errno);
  part_.clear();
}

}  // namespace vatlas::tools
