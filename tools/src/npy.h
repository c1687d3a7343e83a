// NumPy's .npy files (format versions 1 to 3, C order) and raw files, read and written in pieces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output_file.h"

namespace vatlas::tools {

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
  // Opens the file at once (and writes the header of a .npy), so that a path that cannot be written is found
  // out early. Throws FileError, as all of its functions do.
  ArrayWriter(const std::string& path, const std::vector<std::uint64_t>& shape, const std::string& descr);
  void append(const void* data, std::uint64_t bytes) { file_.append(data, bytes); }
  void finish() { file_.finish(); }

 private:
  OutputFile file_;
};

}  // namespace vatlas::tools
