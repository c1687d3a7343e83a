#include "npy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

namespace vatlas::tools {
namespace {

constexpr std::array<unsigned char, 6> kMagic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr std::uint64_t kLongestHeader = 1 << 20;

bool isNpy(const std::string& path) {
  return path.size() >= 4 && path.compare(path.size() - 4, 4, ".npy") == 0;
}

void readFully(int file, const std::string& path, std::uint64_t at, void* to, std::uint64_t bytes) {
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = pread(file, next, bytes, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FileError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    if (got == 0) throw FileError(fmt::format("{}: ends too early", path));
    next += got;
    at += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
}

// The header is a Python dict literal with three known keys.
class HeaderParser {
 public:
  HeaderParser(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  void parse() {
    expect('{');
    while (peek() != '}') {
      const std::string key = quoted();
      if (!keys_.insert(key).second) fail(fmt::format("has the header key \"{:.40}\" twice", key));
      expect(':');
      if (key == "descr") {
        descr = quoted();
      } else if (key == "fortran_order") {
        fortran = boolean();
      } else if (key == "shape") {
        shape = tuple();
      } else {
        fail(fmt::format("has the unknown header key \"{:.40}\"", key));
      }
      if (peek() == ',') ++at_;
    }
    if (keys_.size() != 3) fail("has a header without descr, fortran_order and shape");
    if (text_.find_first_not_of(" \n\t", at_ + 1) != std::string::npos)
      fail("has a header with more than one dictionary");
  }

  std::string descr;
  bool fortran = false;
  std::vector<std::uint64_t> shape;

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(fmt::format("{}: {}", path_, what));
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    if (at_ >= text_.size()) fail("has a header that ends too early");
    return text_[at_];
  }
  void expect(char c) {
    if (peek() != c)
      fail(fmt::format("has a header that is no dictionary of descr, fortran_order and shape (at byte {})",
                       at_));
    ++at_;
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"')
      fail(fmt::format("has a header with a value that is not understood (at byte {})", at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) fail("has a header that ends too early");
    std::string value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    peek();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.compare(at_, std::strlen(word), word) == 0) {
        at_ += std::strlen(word);
        return value;
      }
    }
    fail("has a header whose fortran_order is neither True nor False");
  }
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> values;
    expect('(');
    while (peek() != ')') {
      std::uint64_t value = 0;
      const std::size_t begin = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - begin < 18) {
        value = value * 10 + static_cast<std::uint64_t>(text_[at_++] - '0');
      }
      if (at_ == begin) fail("has a header whose shape is no list of whole numbers");
      values.push_back(value);
      if (peek() == ',') ++at_;
    }
    ++at_;
    return values;
  }

  std::string path_;
  std::string text_;
  std::size_t at_ = 0;
  std::set<std::string> keys_;
};

}  // namespace

ArrayReader::ArrayReader(const std::string& path, const std::vector<std::uint64_t>& shape,
                         std::uint32_t elementBytes, const std::vector<std::string>& descrs)
    : path_(path) {
  file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0)
    throw FileError(
        fmt::format("{}: {}", path, errno == ENOENT ? "there is no such file" : std::strerror(errno)));
  try {
    struct stat info {};
    if (fstat(file_, &info) != 0 || !S_ISREG(info.st_mode))
      throw FileError(fmt::format("{}: is no file", path));
    fileBytes_ = static_cast<std::uint64_t>(info.st_size);
    if (isNpy(path)) openNpy(shape, elementBytes, descrs);
    std::uint64_t bytes = elementBytes;
    for (const std::uint64_t dim : shape) bytes *= dim;
    const std::uint64_t have = fileBytes_ - dataStart_;
    if (have < bytes)
      throw FileError(fmt::format("{}: is cut off: {} bytes of data, shape [{}] needs {}", path, have,
                                  fmt::join(shape, ", "), bytes));
    if (have > bytes)
      throw FileError(fmt::format("{}: has {} bytes of data, shape [{}] needs {}", path, have,
                                  fmt::join(shape, ", "), bytes));
  } catch (...) {
    close(file_);
    throw;
  }
}

ArrayReader::~ArrayReader() {
  close(file_);
}

void ArrayReader::openNpy(const std::vector<std::uint64_t>& shape, std::uint32_t,
                          const std::vector<std::string>& descrs) {
  std::array<unsigned char, 12> head{};
  if (fileBytes_ < 10)
    throw FileError(fmt::format("{}: is cut off: {} bytes are no .npy file", path_, fileBytes_));
  readFully(file_, path_, 0, head.data(), std::min<std::uint64_t>(fileBytes_, head.size()));
  if (!std::equal(kMagic.begin(), kMagic.end(), head.begin()))
    throw FileError(fmt::format("{}: is no .npy file (it begins with other bytes)", path_));
  const int version = head[6];
  if (version < 1 || version > 3)
    throw FileError(fmt::format("{}: has .npy version {}; 1 to 3 are read", path_, version));
  const std::uint64_t lengthBytes = version == 1 ? 2 : 4;
  std::uint64_t length = 0;
  for (std::uint64_t i = 0; i < lengthBytes; ++i)
    length |= static_cast<std::uint64_t>(head[8 + i]) << (8 * i);
  dataStart_ = 8 + lengthBytes + length;
  if (length > kLongestHeader || dataStart_ > fileBytes_)
    throw FileError(fmt::format("{}: is cut off within its header", path_));
  std::string text(length, '\0');
  readFully(file_, path_, 8 + lengthBytes, text.data(), length);
  HeaderParser header(path_, std::move(text));
  header.parse();
  if (std::find(descrs.begin(), descrs.end(), header.descr) == descrs.end()) {
    throw FileError(fmt::format("{}: has elements of type '{:.20}'; allowed here: '{}'", path_, header.descr,
                                fmt::join(descrs, "', '")));
  }
  if (header.fortran && header.shape.size() > 1)
    throw FileError(fmt::format("{}: is in Fortran order; only C order is read", path_));
  if (header.shape != shape)
    throw FileError(fmt::format("{}: has shape [{}]; needed here: [{}]", path_, fmt::join(header.shape, ", "),
                                fmt::join(shape, ", ")));
}

void ArrayReader::read(std::uint64_t firstByte, void* to, std::uint64_t bytes) const {
  readFully(file_, path_, dataStart_ + firstByte, to, bytes);
}

ArrayWriter::ArrayWriter(const std::string& path, const std::vector<std::uint64_t>& shape,
                         const std::string& descr)
    : file_(path) {
  if (!isNpy(path)) return;
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                                 fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  dict.append((64 - (10 + dict.size() + 1) % 64) % 64, ' ');
  dict += '\n';
  std::string head(kMagic.begin(), kMagic.end());
  head += '\x01';
  head += '\0';
  head += static_cast<char>(dict.size() & 0xff);
  head += static_cast<char>(dict.size() >> 8);
  head += dict;
  append(head.data(), head.size());
}

}  // namespace vatlas::tools
