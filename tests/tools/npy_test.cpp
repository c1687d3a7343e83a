// .npy and raw files: what is read, what is refused, what is written.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "npy.h"

using namespace vatlas::tools;

namespace {

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("vatlas_npy_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

void put(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string contentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A .npy file around any header text.
std::string npy(const std::string& header, const std::string& data, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  const std::size_t lengthBytes = version == 1 ? 2 : 4;
  for (std::size_t i = 0; i < lengthBytes; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + data;
}

// Empty when the file is read as six elements of shape [2, 3], else the complaint.
std::string complaint(const std::string& path) {
  try {
    const ArrayReader reader(path, {2, 3}, 1, {"|u1", "|V1"});
    std::string got(6, '\0');
    reader.read(0, got.data(), 6);
    CHECK(got == "abcdef");
    return {};
  } catch (const FileError& error) {
    CHECK(std::string(error.what()).find(path) != std::string::npos);
    return error.what();
  }
}

}  // namespace

TEST_CASE("headers as NumPy writes them are read, versions 1 to 3") {
  const Folder folder;
  const std::string path = folder.file("a.npy");
  for (const char* header : {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }          \n",
                             "{'descr': '|V1', 'fortran_order': False, 'shape': (2, 3)}\n",
                             "{\"shape\": (2,3,), \"descr\": \"|u1\", \"fortran_order\": False}"}) {
    for (const int version : {1, 2, 3}) {
      CAPTURE(header, version);
      put(path, npy(header, "abcdef", version));
      CHECK(complaint(path).empty());
    }
  }
}

TEST_CASE("each thing that can be wrong with a .npy file has its complaint") {
  const std::string good = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}";
  const std::string d = "'descr': '|u1'", f = "'fortran_order': False", s = "'shape': (2, 3)";
  struct Case {
    std::string content;
    const char* text;
  };
  const Case cases[] = {
      {"", "cut off"},
      {"\x93NUMPY", "cut off"},
      {"RIFFxxxxWAVEfmt and more", "no .npy file"},
      {npy(good, "abcdef", 4), ".npy version 4"},
      {npy(good, "abcde"), "cut off"},
      {npy(good, "abcdefg"), "7 bytes of data"},
      {npy(good, "abcdef").substr(0, 40), "within its header"},
      {npy("{'descr': '>u2', " + f + ", " + s + "}", "abcdef"), "'>u2'"},
      {npy("{'descr': [('a', '|u1')], " + f + ", " + s + "}", "abcdef"), "not understood"},
      {npy("{" + d + ", 'fortran_order': True, " + s + "}", "abcdef"), "Fortran order"},
      {npy("{" + d + ", 'fortran_order': 0, " + s + "}", "abcdef"), "neither True nor False"},
      {npy("{" + d + ", " + f + ", 'shape': (3, 2)}", "abcdef"), "shape [3, 2]"},
      {npy("{" + d + ", " + f + ", 'shape': (6,)}", "abcdef"), "shape [6]"},
      {npy("{" + d + ", " + f + ", 'shape': ()}", "abcdef"), "shape []"},
      {npy("{" + d + ", " + f + ", 'shape': (-2, 3)}", "abcdef"), "whole numbers"},
      {npy("{" + d + ", " + f + ", 'shape': (2, 3}", "abcdef"), "whole numbers"},
      {npy("{" + d + ", " + f + ", 'shape': 6}", "abcdef"), "no dictionary"},
      {npy("{" + d + ", " + f + ", 'shape': (99999999999999999999, 3)}", "abcdef"), "shape"},
      {npy("{" + d + ", " + f + "}", "abcdef"), "without descr"},
      {npy("{" + d + ", " + d + ", " + f + ", " + s + "}", "abcdef"), "twice"},
      {npy("{" + d + ", " + f + ", " + s + ", 'colour': 'red'}", "abcdef"), "unknown header key \"colour\""},
      {npy(good + " {}", "abcdef"), "more than one"},
      {npy("[1, 2]", "abcdef"), "no dictionary"},
      {npy("{'descr': '|u1", "abcdef"), "too early"},
      {npy("", "abcdef"), "too early"},
  };
  const Folder folder;
  const std::string path = folder.file("a.npy");
  for (const Case& c : cases) {
    put(path, c.content);
    CAPTURE(c.content, c.text);
    const std::string got = complaint(path);
    CHECK(got.find(c.text) != std::string::npos);
  }
  CHECK(complaint(folder.file("none.npy")).find("no such file") != std::string::npos);
  CHECK(complaint(std::filesystem::path(folder.file("x")).parent_path().string()).find("is no file") !=
        std::string::npos);
}

TEST_CASE("a file that is cut or damaged anywhere is refused or read, never worse") {
  const Folder folder;
  const std::string path = folder.file("a.npy");
  const std::string good = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}", "abcdef");
  for (std::size_t length = 0; length < good.size(); ++length) {
    put(path, good.substr(0, length));
    CHECK_FALSE(complaint(path).empty());
  }
  const std::size_t header = good.size() - 6;
  int refused = 0;
  for (std::size_t at = 0; at < header; ++at) {
    for (const int flip : {0x01, 0x20, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      put(path, bad);
      refused += complaint(path).empty() ? 0 : 1;
    }
  }
  CHECK(refused > static_cast<int>(header) * 3);
}

TEST_CASE("raw files have exactly the bytes of the shape") {
  const Folder folder;
  const std::string path = folder.file("a.bin");
  for (const auto& [content, good] :
       {std::pair{"abcdef", true}, {"abcde", false}, {"abcdefg", false}, {"", false}}) {
    put(path, content);
    CHECK(complaint(path).empty() == good);
  }
}

TEST_CASE("an output takes its place when it is complete, and leaves nothing when it is not") {
  const Folder folder;
  const std::string path = folder.file("o.npy");
  put(path, "earlier");
  {
    ArrayWriter writer(path, {2}, "<f4");
    writer.append("12345678", 8);
  }
  CHECK(contentOf(path) == "earlier");
  CHECK(folder.files() == 1);
  {
    ArrayWriter writer(path, {2}, "<f4");
    writer.append("12345678", 8);
    writer.finish();
  }
  const std::string content = contentOf(path);
  CHECK(content.size() % 64 == 8);
  CHECK(content.substr(0, 6) == "\x93NUMPY");
  CHECK(content.find("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }") == 10);
  CHECK(content.substr(content.size() - 9) == "\n12345678");
  CHECK(folder.files() == 1);
}

TEST_CASE("an output that cannot be written is refused at once") {
  const Folder folder;
  CHECK_THROWS_AS(OutputFile(folder.file("none/o.json")), FileError);
  CHECK_THROWS_AS(OutputFile(std::filesystem::path(folder.file("x")).parent_path().string()), FileError);
  CHECK_THROWS_AS(OutputFile(""), FileError);
  if (std::filesystem::exists("/dev/full")) {
    OutputFile full("/dev/full");
    CHECK_THROWS_AS(full.append("x", 1), FileError);
  }
  CHECK(folder.files() == 0);
}

TEST_CASE("an output through a symbolic link changes the file, not the link") {
  const Folder folder;
  put(folder.file("real"), "earlier");
  std::filesystem::create_symlink(folder.file("real"), folder.file("link"));
  OutputFile file(folder.file("link"));
  file.append("new", 3);
  file.finish();
  CHECK(std::filesystem::is_symlink(folder.file("link")));
  CHECK(contentOf(folder.file("real")) == "new");
}
