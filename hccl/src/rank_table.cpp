#include "vatlas/hccl/rank_table.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace vatlas::hccl {
namespace {

using nlohmann::json;
using runtime::ConfigError;
using runtime::ConfigErrorCode;

constexpr std::int64_t kMostBytes = 16 << 20;

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  [[noreturn]] void refuse(ConfigErrorCode code, const std::string& path, const std::string& text) const {
    throw ConfigError(code, file_, path.empty() ? 0 : 1, 0, path, text);
  }
  const json& member(const json& object, const std::string& path, const char* key) const {
    if (!object.is_object()) refuse(ConfigErrorCode::WrongType, path, "found no object; allowed: an object");
    const auto found = object.find(key);
    if (found == object.end())
      refuse(ConfigErrorCode::MissingKey, path, fmt::format("found no \"{}\"; it is required", key));
    return *found;
  }
  // Version 2.0 has numbers; numbers in quotes, as older tables have them, are read too.
  std::int64_t number(const json& object, const std::string& path, const char* key, std::int64_t least,
                      std::int64_t most) const {
    const json& value = member(object, path, key);
    const std::string at = path + "." + key;
    std::int64_t result = 0;
    if (value.is_number_integer()) {
      result = value.get<std::int64_t>();
    } else if (value.is_string() && !value.get_ref<const std::string&>().empty() &&
               value.get_ref<const std::string&>().find_first_not_of("0123456789") == std::string::npos &&
               value.get_ref<const std::string&>().size() < 10) {
      result = std::stoll(value.get<std::string>());
    } else {
      refuse(ConfigErrorCode::WrongType, at,
             fmt::format("found {}; allowed: a whole number", value.dump().substr(0, 60)));
    }
    if (result < least || result > most) {
      refuse(ConfigErrorCode::OutOfRange, at,
             fmt::format("found {}; allowed: {} to {}", result, least, most));
    }
    return result;
  }

 private:
  std::string file_;
};

std::string readText(const std::filesystem::path& path, const Reader& reader) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) reader.refuse(ConfigErrorCode::NotFound, "", "there is no such file");
  if (!std::filesystem::is_regular_file(status))
    reader.refuse(ConfigErrorCode::NotAFile, "", "it is no file");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) reader.refuse(ConfigErrorCode::Unreadable, "", "it cannot be read");
  if (text.str().size() > kMostBytes) reader.refuse(ConfigErrorCode::TooLarge, "", "it has more than 16 MiB");
  return text.str();
}

json parse(const std::string& text, const Reader& reader, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    reader.refuse(ConfigErrorCode::Empty, "", "it is empty");
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    const auto line = 1 + std::count(text.begin(), end, '\n');
    throw ConfigError(ConfigErrorCode::Syntax, file, static_cast<int>(line), 1, "$",
                      "found text that is no JSON");
  }
}

}  // namespace

RankTable readRankTable(const std::filesystem::path& path) {
  const Reader reader(path.string());
  const std::string text = readText(path, reader);
  const json table = parse(text, reader, path.string());
  const json& version = reader.member(table, "$", "version");
  if (version != "2.0") {
    reader.refuse(ConfigErrorCode::BadVersion, "$.version",
                  fmt::format("found {}; allowed: \"2.0\" (the 950's)", version.dump().substr(0, 40)));
  }
  const std::int64_t count = reader.number(table, "$", "rank_count", 1, 65536);
  const json& list = reader.member(table, "$", "rank_list");
  if (!list.is_array())
    reader.refuse(ConfigErrorCode::WrongType, "$.rank_list", "found no list; allowed: a list of ranks");
  if (static_cast<std::int64_t>(list.size()) != count) {
    reader.refuse(ConfigErrorCode::BadValue, "$.rank_list",
                  fmt::format("found {} ranks; rank_count says {}", list.size(), count));
  }
  RankTable result;
  result.identity = text;
  result.ranks.resize(static_cast<std::size_t>(count));
  std::set<std::int64_t> ranks;
  std::set<std::int64_t> devices;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = fmt::format("$.rank_list[{}]", i);
    const std::int64_t rank = reader.number(list[i], at, "rank_id", 0, count - 1);
    const std::int64_t local = reader.number(list[i], at, "local_id", 0, 64);
    const std::int64_t device = reader.number(list[i], at, "device_id", 0, 64);
    if (!ranks.insert(rank).second)
      reader.refuse(ConfigErrorCode::Duplicate, at + ".rank_id", fmt::format("found rank {} twice", rank));
    if (!devices.insert(device).second)
      reader.refuse(ConfigErrorCode::Duplicate, at + ".device_id",
                    fmt::format("found device {} twice", device));
    result.ranks[static_cast<std::size_t>(rank)] = {static_cast<int>(local), static_cast<int>(device)};
  }
  return result;
}

std::vector<runtime::ConfigError> validateRankTable(const std::filesystem::path& path) {
  try {
    (void)readRankTable(path);
  } catch (const ConfigError& error) {
    return {error};
  }
  return {};
}

}  // namespace vatlas::hccl
