// Every bad configuration is refused with its code and place; none crashes.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "vatlas/runtime/config.h"

using namespace vatlas::runtime;

namespace {

const char kGood[] = R"({
  "name": "mine",
  "product": "ascend950dt",
  "ranks": 4,
  "topology": {"type": "full_mesh", "ports_per_pair": 1},
  "driver": "25.5.0",
  "toolkit": "9.0.0",
  "communicator": {"buffer_size_mb": 200},
  "switches": {"e8m0_zero": "zero", "overflow": "inf_nan"}
}
)";

class File {
 public:
  explicit File(const std::string& text) : path_("/tmp/vatlas_bad_" + std::to_string(getpid()) + ".json") {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~File() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string replaced(const std::string& what, const std::string& with) {
  std::string text = kGood;
  const std::size_t at = text.find(what);
  if (at == std::string::npos) throw std::logic_error(what);
  return text.replace(at, what.size(), with);
}

void refused(const std::string& text, ConfigErrorCode code, const std::string& contains, int line = 0) {
  const File file(text);
  CAPTURE(text);
  try {
    (void)loadCluster(file.path());
    FAIL("was accepted");
  } catch (const ConfigError& error) {
    CHECK(static_cast<int>(error.code) == static_cast<int>(code));
    CHECK_THAT(error.what(), Catch::Contains(contains));
    CHECK_THAT(error.what(), Catch::Contains(file.path()));
    if (line != 0) CHECK(error.line == line);
  }
  CHECK_FALSE(validateFile(file.path()).empty());
}

const char kLinks[] =
    R"({"type": "links", "links": [{"cards": [0, 1], "kind": "ub", "ports": 1}, {"cards": [1, 2], "kind": "ub", "ports": 1}, {"cards": [2, 3], "kind": "ub", "ports": 1}]})";
const char kMesh[] = R"({"type": "full_mesh", "ports_per_pair": 1})";

}  // namespace

TEST_CASE("the base of these tests is good") {
  const File file(kGood);
  CHECK(loadCluster(file.path()).ranks == 4);
  CHECK(validateFile(file.path()).empty());
  const File links(replaced(kMesh, kLinks));
  CHECK(loadCluster(links.path()).links.size() == 3);
}

TEST_CASE("syntax, types, keys and values") {
  refused("", ConfigErrorCode::Empty, "");
  refused("{", ConfigErrorCode::Truncated, "");
  refused(replaced("\"ranks\": 4,", "\"ranks\": 4"), ConfigErrorCode::Syntax, "");
  refused(replaced("\"ranks\": 4", "\"ranks\": \"4\""), ConfigErrorCode::WrongType, "ranks", 4);
  refused(replaced("\"ranks\"", "\"colour\": 1, \"ranks\""), ConfigErrorCode::UnknownKey, "colour", 4);
  refused(replaced("\"ranks\": 4", "\"ranks\": 4, \"ranks\": 4"), ConfigErrorCode::DuplicateKey, "ranks");
  refused(replaced("  \"product\": \"ascend950dt\",\n", ""), ConfigErrorCode::MissingKey, "product");
  refused(replaced("ascend950dt", "ascend950td"), ConfigErrorCode::UnknownProduct, "did you mean", 3);
  refused(replaced("25.5.0", "new"), ConfigErrorCode::BadVersion, "driver");
  refused(replaced("\"buffer_size_mb\": 200", "\"buffer_size_mb\": 0"), ConfigErrorCode::OutOfRange,
          "buffer_size_mb");
  refused(replaced("full_mesh", "full_mash"), ConfigErrorCode::BadValue, "full_mesh");
  refused("[]", ConfigErrorCode::WrongType, "");
  refused("{\"name\": \"\xff\"}", ConfigErrorCode::NotUtf8, "");
}

TEST_CASE("numbers of ranks, and links") {
  for (const char* ranks : {"3", "9", "0", "-2", "16"}) {
    const File file(replaced("\"ranks\": 4", std::string("\"ranks\": ") + ranks));
    CAPTURE(ranks);
    CHECK_THROWS_AS(loadCluster(file.path()), ConfigError);
  }
  const auto links = [](const std::string& list) {
    return replaced(kMesh, "{\"type\": \"links\", \"links\": [" + list + "]}");
  };
  refused(
      links(
          R"({"cards": [0, 7], "kind": "ub", "ports": 1}, {"cards": [0, 1], "kind": "ub", "ports": 1}, {"cards": [1, 2], "kind": "ub", "ports": 1}, {"cards": [2, 3], "kind": "ub", "ports": 1})"),
      ConfigErrorCode::BadLink, "7");
  refused(
      links(
          R"({"cards": [0, 0], "kind": "ub", "ports": 1}, {"cards": [0, 1], "kind": "ub", "ports": 1}, {"cards": [1, 2], "kind": "ub", "ports": 1}, {"cards": [2, 3], "kind": "ub", "ports": 1})"),
      ConfigErrorCode::BadLink, "");
  refused(
      links(
          R"({"cards": [0, 1], "kind": "ub", "ports": 1}, {"cards": [1, 0], "kind": "ub", "ports": 1}, {"cards": [1, 2], "kind": "ub", "ports": 1}, {"cards": [2, 3], "kind": "ub", "ports": 1})"),
      ConfigErrorCode::Duplicate, "");
  refused(
      links(R"({"cards": [0, 1], "kind": "ub", "ports": 1}, {"cards": [2, 3], "kind": "ub", "ports": 1})"),
      ConfigErrorCode::Disconnected, "");
}

TEST_CASE("files that are none") {
  CHECK_THROWS_AS(loadCluster("/nonexistent/cluster.json"), ConfigError);
  CHECK_THROWS_AS(loadCluster("/tmp"), ConfigError);
  CHECK_THROWS_AS(loadCluster("/dev/null"), ConfigError);
  CHECK_THROWS_AS(findCluster("no_such_cluster"), ConfigError);
  refused(std::string(1000, '['), ConfigErrorCode::TooDeep, "");
  refused("{\"name\": \"" + std::string(17 << 20, 'x') + "\"}", ConfigErrorCode::TooLarge, "");
  const std::string fifo = "/tmp/vatlas_fifo_" + std::to_string(getpid());
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_THROWS_AS(loadCluster(fifo), ConfigError);
  unlink(fifo.c_str());
}

TEST_CASE("thousands of damaged files: each loads, or is refused with a ConfigError") {
  std::mt19937 random(7);
  const char* const words[] = {
      "null",        "-1", "1e999", "\"\"", "{}", "[]", "true", "99999999999999999999",
      "\"\\u0000\"", ",",  ":",     "}",    "{"};
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = kGood;
    for (unsigned change = 0; change <= random() % 3; ++change) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, words[random() % (sizeof words / sizeof *words)]);
          break;
        default:
          text.resize(at);
      }
      if (text.empty()) text = " ";
    }
    const File file(text);
    try {
      (void)loadCluster(file.path());
      ++accepted;
    } catch (const ConfigError& error) {
      REQUIRE(std::string(error.what()).size() > 10);
    }
    (void)validateFile(file.path());
  }
  CHECK(accepted < 1500);
}

TEST_CASE("damaged products are refused as well") {
  std::ifstream in(std::string(VATLAS_SOURCE) + "/configs/products/ascend950dt.json");
  std::stringstream original;
  original << in.rdbuf();
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::string text = original.str();
    const std::size_t at = random() % text.size();
    if (random() % 2 == 0) {
      text.erase(at, 1 + random() % 20);
    } else {
      text[at] = static_cast<char>('0' + random() % 75);
    }
    const File file(text);
    try {
      (void)loadProduct(file.path());
    } catch (const ConfigError&) {
    }
  }
  std::string negative = original.str();
  const std::size_t clock = negative.find("1650");
  REQUIRE(clock != std::string::npos);
  const File file(negative.replace(clock, 4, "-165"));
  CHECK_THROWS_AS(loadProduct(file.path()), ConfigError);
}
