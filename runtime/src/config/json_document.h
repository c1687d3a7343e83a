// A JSON file as a plain tree that knows where each value stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vatlas::runtime::config {

inline constexpr std::size_t kMaxFileBytes = 16U << 20U;
inline constexpr std::size_t kMaxDepth = 64;
inline constexpr std::size_t kMaxValues = 200'000;

struct Node {
  enum class Kind : std::uint8_t { Null, Boolean, Integer, Real, String, Array, Object };
  struct Member;

  Kind kind = Kind::Null;
  bool boolean = false;
  double number = 0;  // of Integer and Real
  std::string text;   // of String
  std::vector<Node> items;
  std::vector<Member> members;  // in the order of the file
  std::size_t offset = 0;       // of the value's first byte

  bool isNumber() const { return kind == Kind::Integer || kind == Kind::Real; }
  const Node* find(std::string_view key) const;           // null: no such member, or not an object
  int asInt() const { return static_cast<int>(number); }  // for values that were checked
};

struct Node::Member {
  std::string key;
  std::size_t keyOffset = 0;
  Node value;
};

struct Place {
  int line = 0;
  int column = 0;
};

struct Document {
  std::filesystem::path path;
  std::string text;
  Node root;

  Place place(std::size_t offset) const;
};

// Both throw ConfigError.
std::string readFile(const std::filesystem::path& path);
Document parseDocument(const std::filesystem::path& path, std::string text);
inline Document loadDocument(const std::filesystem::path& path) {
  return parseDocument(path, readFile(path));
}

// Paths such as $.topology.links[0].
std::string childPath(const std::string& parent, std::string_view key);
std::string childPath(const std::string& parent, std::size_t index);

// For messages: in double quotes, control characters escaped, cut after 60 bytes.
std::string inQuotes(std::string_view text);
std::string describe(const Node& node);  // "the number 3", "an object", ...

}  // namespace vatlas::runtime::config
