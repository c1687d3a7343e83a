// NumPy's .npy files (format versions 1 to 3, C order) and raw files, read and written in pieces.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace vatlas::tools {

// What is wrong with a file; the text names it.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ArrayReader {
 public:
  // A path that ends in .npy is one; anything else is raw bytes. shape and the allowed descr texts are
  // checked, and that the file holds all of it. Throws FileError.
  ArrayReader(const std::string& path, const std::vector<std::uint64_t>& shape, std::uint32_t elementBytes,
              const std::vector<std::string>& descrs);
  ~ArrayReader();
  ArrayReader(const ArrayReader&) = delete;
  ArrayReader& operator=(const ArrayReader&) = delete;
  void read(std::uint64_t firstByte, void* to, std::uint64_t bytes) const;  // of the data

 private:
  void openNpy(const std::vector<std::uint64_t>& shape, std::uint32_t elementBytes,
               const std::vector<std::string>& descrs);
  std::string path_;
  int file_ = -1;
  std::uint64_t fileBytes_ = 0;
  std::uint64_t dataStart_ = 0;
};

class ArrayWriter {
 public:
  // Makes the file (and writes the header of a .npy) at once, so that a path that cannot be written is found
  // out early.
  ArrayWriter(const std::string& path, const std::vector<std::uint64_t>& shape, const std::string& descr);
  ~ArrayWriter();
  ArrayWriter(const ArrayWriter&) = delete;
  ArrayWriter& operator=(const ArrayWriter&) = delete;
  void append(const void* data, std::uint64_t bytes);

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace vatlas::tools
