// The command's own parts: decoding, SHA-256, .npy, golden.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "decode.h"
#include "golden.h"
#include "inputs.h"
#include "npy.h"
#include "sha256.h"

using namespace vatlas::tools;

TEST_CASE("decoding agrees with the tables of the formats") {
  const std::pair<const char*, const char*> formats[] = {
      {"float8_e4m3fn", "e4m3fn"}, {"float8_e5m2", "e5m2"}, {"hifloat8", "hif8"}, {"float8_e8m0", "e8m0"}};
  for (const auto& [dtype, table] : formats) {
    const auto values = decodeTable(dtype, true);
    std::ifstream file(std::string(VATLAS_TEST_DATA) + "/" + table + "_decode.csv");
    std::string line;
    int rows = 0;
    while (std::getline(file, line)) {
      if (line[0] == '#' || line.rfind("code", 0) == 0) continue;
      const std::size_t code = std::stoul(line.substr(0, 2), nullptr, 16);
      const std::string text = line.substr(line.rfind(',') + 1);
      CAPTURE(dtype, code);
      if (text == "nan") {
        CHECK(std::isnan(values[code]));
      } else {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &values[code], 4);
        CHECK(bits == std::stoul(text, nullptr, 16));
      }
      ++rows;
    }
    CHECK(rows == 256);
  }
  CHECK(decodeTable("float8_e8m0")[0] == 0.0F);
  CHECK(decodeTable("int8")[0x80] == -128.0F);
  CHECK_THROWS(decodeTable("float16"));
}

TEST_CASE("SHA-256 gives the standard's examples") {
  const auto sum = [](const std::string& text, std::size_t step) {
    Sha256 digest;
    for (std::size_t at = 0; at < text.size(); at += step)
      digest.add(text.data() + at, std::min(step, text.size() - at));
    return digest.hex();
  };
  CHECK(sum("", 1) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sum("abc", 3) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1'000'000, 'a');
  CHECK(sum(million, 1'000'000) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(sum(million, 977) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("arrays are written as they are read") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("vatlas_array_" + std::to_string(getpid()) + ".npy"))
          .string();
  const std::vector<std::uint8_t> data = {1, 2, 3, 4, 5, 6};
  {
    ArrayWriter writer(path, {2, 3}, "|u1");
    writer.append(data.data(), 4);
    writer.append(data.data() + 4, 2);
    writer.finish();
  }
  const ArrayReader reader(path, {2, 3}, 1, {"|u1"});
  std::vector<std::uint8_t> got(3);
  reader.read(2, got.data(), 3);
  CHECK(got == std::vector<std::uint8_t>{3, 4, 5});
  CHECK_THROWS_AS(reader.read(5, got.data(), 3), FileError);
  unlink(path.c_str());
}

TEST_CASE("shapes are read strictly") {
  CHECK(parseShape("1024,5120") == std::vector<std::uint64_t>{1024, 5120});
  CHECK(parseShape("2,3,1024") == std::vector<std::uint64_t>{2, 3, 1024});
  for (const char* bad : {"", "1", "1,", ",1", "1,2,3,4", "0,5", "1x,2", "+1,2", "1 ,2", "1099511627777,1",
                          "999999999999,999999999999,1024"})
    CHECK_THROWS_AS(parseShape(bad), UsageError);
  CHECK(rankFile("a{rank}b", 3, 8) == "a3b");
  CHECK(rankFile("a", 0, 1) == "a");
  CHECK_THROWS_AS(rankFile("a", 0, 2), UsageError);
}

namespace {
RunOptions options(const char* x, const char* scales, const char* output, InputKind kind) {
  RunOptions o;
  o.op = "quant_all_reduce";
  o.x = findDType(x);
  o.scales = findDType(scales);
  o.output = findDType(output);
  o.shape = {8, 1024};
  o.input = kind;
  return o;
}
}  // namespace

TEST_CASE("generated inputs are the same whatever the pieces, and exact ones are exact") {
  const RunOptions o = options("float8_e5m2", "float8_e8m0", "float", InputKind::Exact);
  const auto inputs = makeInputs(o, 2);
  std::vector<std::uint8_t> whole(8192);
  std::vector<std::uint8_t> pieces(8192);
  inputs->x(1, 0, 8192, whole.data());
  for (std::uint64_t at = 0; at < 8192; at += 97)
    inputs->x(1, at, std::min<std::uint64_t>(97, 8192 - at), pieces.data() + at);
  CHECK(whole == pieces);
  std::vector<std::uint8_t> other(8192);
  inputs->x(0, 0, 8192, other.data());
  CHECK(other != whole);
  const auto values = decodeTable("float8_e5m2");
  for (const std::uint8_t code : whole) {
    CHECK(std::fabs(values[code]) <= 8);
    CHECK(values[code] == std::trunc(values[code]));
  }
}

TEST_CASE("the golden result finds a difference, and where it is") {
  const RunOptions o = options("int8", "float", "float", InputKind::Random);
  const auto inputs = makeInputs(o, 2);
  std::vector<float> output(8192);
  std::vector<std::uint8_t> x[2] = {std::vector<std::uint8_t>(8192), std::vector<std::uint8_t>(8192)};
  std::vector<float> scales[2] = {std::vector<float>(64), std::vector<float>(64)};
  for (int r = 0; r < 2; ++r) {
    inputs->x(r, 0, 8192, x[r].data());
    inputs->scales(r, 0, 64, reinterpret_cast<std::uint8_t*>(scales[r].data()));
  }
  for (std::size_t i = 0; i < 8192; ++i) {
    volatile float sum = 0;
    for (int r = 0; r < 2; ++r) {
      volatile float product = static_cast<float>(static_cast<std::int8_t>(x[r][i])) * scales[r][i / 128];
      sum = sum + product;
    }
    output[i] = sum;
  }
  Golden golden(o, *inputs, 2, {});
  Comparison equal;
  golden.compare(0, 0, 8192, reinterpret_cast<const std::uint8_t*>(output.data()), equal);
  CHECK(equal.different == 0);
  CHECK(equal.elements == 8192);
  output[4321] = std::nextafter(output[4321], 1e9F);
  Comparison different;
  golden.compare(0, 0, 8192, reinterpret_cast<const std::uint8_t*>(output.data()), different);
  CHECK(different.different == 1);
  CHECK(different.firstIndex == 4321);
  CHECK(different.largestError > 0);
}
