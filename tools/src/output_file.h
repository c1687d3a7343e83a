// A file that the command writes. It is opened, and so checked, before the run, and takes its place when it
// is complete: a run that fails or is interrupted leaves an earlier file of the name as it was.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace vatlas::tools {

// What is wrong with a file; the text names it.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class OutputFile {
 public:
  // Throws FileError when the path cannot be written. What is no regular file (a pipe, a device) is written
  // directly.
  explicit OutputFile(const std::string& path);
  ~OutputFile();  // without finish(): nothing is left behind
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void append(const void* data, std::uint64_t bytes);
  void finish();

 private:
  [[noreturn]] void fail(int error) const;
  std::string path_;    // as the user gave it, for messages
  std::string target_;  // where links lead
  std::string part_;    // what is written until the end; empty when that is the target itself
  int file_ = -1;
};

}  // namespace vatlas::tools
