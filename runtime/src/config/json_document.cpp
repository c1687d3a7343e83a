#include "json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "vatlas/runtime/config.h"

namespace vatlas::runtime::config {
namespace {

namespace fs = std::filesystem;

struct ReadState {
  std::size_t offset = 0;
  bool sawEnd = false;  // the parser asked for more than there is
};

// Characters with a count that survives the parser's copies of the iterator, so that the handler knows how
// far the parser has read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(std::string_view text, ReadState& state) : text_(text), state_(&state) {}
  reference operator*() const { return text_[state_->offset]; }
  CountingIterator& operator++() {
    ++state_->offset;
    return *this;
  }
  // Only ever compared with the end.
  bool operator==(const CountingIterator& /*end*/) const {
    state_->sawEnd = state_->sawEnd || state_->offset >= text_.size();
    return state_->offset >= text_.size();
  }
  bool operator!=(const CountingIterator& other) const { return !(*this == other); }

 private:
  std::string_view text_;
  ReadState* state_;
};

// Builds the tree. Every event comes right after its token has been read (numbers: and one character more).
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(Document& document, const ReadState& state) : document_(document), state_(state) {}

  bool null() override { return addLeaf({}); }
  bool boolean(bool value) override {
    Node node;
    node.kind = Node::Kind::Boolean;
    node.boolean = value;
    return addLeaf(std::move(node));
  }
  bool number_integer(number_integer_t value) override {
    return addNumber(Node::Kind::Integer, static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return addNumber(Node::Kind::Integer, static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return addNumber(Node::Kind::Real, value);
  }
  bool string(string_t& value) override {
    Node node;
    node.kind = Node::Kind::String;
    node.text = std::move(value);
    return addLeaf(std::move(node));
  }
  bool binary(binary_t& /*value*/) override { return false; }  // not a part of JSON text
  bool start_object(std::size_t /*size*/) override { return open(Node::Kind::Object); }
  bool start_array(std::size_t /*size*/) override { return open(Node::Kind::Array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override;
  bool parse_error(std::size_t position, const std::string& lastToken,
                   const nlohmann::json::exception& error) override;

 private:
  struct Level {
    Node* node;
    std::string path;
    std::unordered_set<std::string> keys;
  };

  [[noreturn]] void refuse(ConfigErrorCode code, std::size_t offset, const std::string& text) const {
    const Place place = document_.place(offset);
    throw ConfigError(code, document_.path.string(), place.line, place.column, currentPath(), text);
  }
  std::string currentPath() const {
    if (levels_.empty()) {
      return "$";
    }
    const Level& top = levels_.back();
    if (top.node->kind == Node::Kind::Array) {
      return childPath(top.path, top.node->items.size());
    }
    return expectsValue_ ? childPath(top.path, top.node->members.back().key) : top.path;
  }
  // The token of this event starts after the white space and punctuation that follow the last event's.
  std::size_t tokenStart() const {
    return std::min(document_.text.find_first_not_of(" \t\r\n,:]}", lastEnd_), document_.text.size());
  }
  Node& add(Node node);
  bool addLeaf(Node node) {
    add(std::move(node));
    lastEnd_ = state_.offset;
    return true;
  }
  bool addNumber(Node::Kind kind, double value) {
    Node node;
    node.kind = kind;
    node.number = value;
    // The parser has read one character beyond the number.
    lastEnd_ = std::min(document_.text.find_first_not_of("0123456789+-.eE", add(std::move(node)).offset),
                        document_.text.size());
    return true;
  }
  bool open(Node::Kind kind);
  bool close() {
    levels_.pop_back();
    lastEnd_ = state_.offset;
    return true;
  }
  std::string expectation(std::string_view between) const;

  Document& document_;
  const ReadState& state_;
  std::size_t lastEnd_ = 0;
  std::size_t values_ = 0;
  bool expectsValue_ = false;  // a key has been read, its value not
  std::vector<Level> levels_;
};

Node& TreeBuilder::add(Node node) {
  node.offset = tokenStart();
  if (++values_ > kMaxValues) {
    refuse(ConfigErrorCode::TooLarge, node.offset,
           fmt::format("found more than {} values in one file; allowed at most that many", kMaxValues));
  }
  if (levels_.empty()) {
    document_.root = std::move(node);
    return document_.root;
  }
  Node& parent = *levels_.back().node;
  if (parent.kind == Node::Kind::Array) {
    return parent.items.emplace_back(std::move(node));
  }
  expectsValue_ = false;
  parent.members.back().value = std::move(node);
  return parent.members.back().value;
}

bool TreeBuilder::open(Node::Kind kind) {
  if (levels_.size() >= kMaxDepth) {
    refuse(ConfigErrorCode::TooDeep, tokenStart(),
           fmt::format("found more than {} levels of nesting; allowed at most that many", kMaxDepth));
  }
  std::string path = currentPath();
  Node node;
  node.kind = kind;
  // The pointer stays valid: a parent gains no further child before this level is closed.
  levels_.push_back({&add(std::move(node)), std::move(path), {}});
  lastEnd_ = state_.offset;
  return true;
}

bool TreeBuilder::key(string_t& value) {
  Level& level = levels_.back();
  const std::size_t offset = tokenStart();
  if (!level.keys.insert(value).second) {
    const auto first = std::find_if(level.node->members.begin(), level.node->members.end(),
                                    [&](const Node::Member& member) { return member.key == value; });
    level.node->members.push_back({value, offset, {}});
    expectsValue_ = true;
    refuse(ConfigErrorCode::DuplicateKey, offset,
           fmt::format("found key {} a second time (first in line {}); allowed once", inQuotes(value),
                       document_.place(first->keyOffset).line));
  }
  level.node->members.push_back({std::move(value), offset, {}});
  expectsValue_ = true;
  lastEnd_ = state_.offset;
  return true;
}

// What JSON allows after the last good token; `between` is the text from there to the bad one.
std::string TreeBuilder::expectation(std::string_view between) const {
  const bool comma = between.find(',') != std::string_view::npos;
  if (levels_.empty()) {
    return values_ == 0 ? "a JSON object" : "nothing after the outermost value";
  }
  const Node& node = *levels_.back().node;
  if (node.kind == Node::Kind::Array) {
    if (node.items.empty()) return "a value or \"]\"";
    return comma ? "a value" : "\",\" or \"]\"";
  }
  if (expectsValue_) return between.find(':') == std::string_view::npos ? "\":\" and a value" : "a value";
  if (node.members.empty()) return "a key in double quotes or \"}\"";
  return comma ? "a key in double quotes" : "\",\" or \"}\"";
}

bool TreeBuilder::parse_error(std::size_t /*position*/, const std::string& lastToken,
                              const nlohmann::json::exception& error) {
  constexpr int kNumberOverflow = 406;  // the parser's number for a number that no double holds
  const std::string_view text = document_.text;
  const std::size_t start = std::min(text.find_first_not_of(" \t\r\n,:", lastEnd_), text.size());
  if (error.id == kNumberOverflow) {
    refuse(ConfigErrorCode::OutOfRange, start,
           fmt::format("found the number {}; allowed numbers up to 1.8e308", lastToken.substr(0, 60)));
  }
  const std::string allowed = expectation(text.substr(lastEnd_, start - lastEnd_));
  if (start == text.size() || (state_.sawEnd && (!levels_.empty() || values_ == 0))) {
    refuse(ConfigErrorCode::Truncated, text.size(),
           fmt::format("found the end of the file; allowed {}", allowed));
  }
  const std::size_t end = std::max(start + 1, std::min(state_.offset, text.size()));
  // A string that is broken within (an unknown escape, a control character): the place is there, not at its
  // start.
  const bool withinString =
      text[start] == '"' && end > start + 1 && (end - start < 3 || text[end - 1] != '"');
  refuse(ConfigErrorCode::Syntax, withinString ? end - 1 : start,
         fmt::format("found {}; allowed {}", inQuotes(text.substr(start, end - start)),
                     withinString ? "printable characters and the escapes of JSON within a text" : allowed));
}

// Offset of the first byte that is no UTF-8, or npos.
std::size_t firstBadUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    std::size_t length = 1;
    std::uint32_t value = lead;
    if (lead >= 0x80) {
      length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
      if (lead < 0xc2 || lead > 0xf4 || i + length > text.size()) {
        return i;
      }
      value = lead & (0xffU >> (length + 1));
    }
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0U) != 0x80U) {
        return i;
      }
      value = (value << 6U) | (next & 0x3fU);
    }
    const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
    if (overlong || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
      return i;
    }
    i += length;
  }
  return std::string_view::npos;
}

[[noreturn]] void refuseAt(const Document& document, ConfigErrorCode code, std::size_t offset,
                           const std::string& text) {
  const Place place = document.place(offset);
  throw ConfigError(code, document.path.string(), place.line, place.column, "$", text);
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  const auto member = std::find_if(members.begin(), members.end(),
                                   [&](const Member& candidate) { return candidate.key == key; });
  return member == members.end() ? nullptr : &member->value;
}

Place Document::place(std::size_t offset) const {
  const std::string_view before = std::string_view(text).substr(0, std::min(offset, text.size()));
  const std::size_t newline = before.rfind('\n');
  const std::size_t lineStart = newline == std::string_view::npos ? 0 : newline + 1;
  return {1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
          1 + static_cast<int>(before.size() - lineStart)};
}

Document parseDocument(const fs::path& path, std::string text) {
  Document document{path, std::move(text), {}};
  if (document.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    refuseAt(document, ConfigErrorCode::Empty, 0, "found an empty file; allowed a JSON object");
  }
  if (const std::size_t bad = firstBadUtf8(document.text); bad != std::string_view::npos) {
    refuseAt(document, ConfigErrorCode::NotUtf8, bad,
             fmt::format("found the byte 0x{:02x}, which is not UTF-8; allowed UTF-8 text",
                         static_cast<unsigned char>(document.text[bad])));
  }
  // The parser would take a zero byte for the end of the text.
  if (const std::size_t zero = document.text.find('\0'); zero != std::string::npos) {
    refuseAt(document, ConfigErrorCode::Syntax, zero, "found a zero byte; allowed JSON text");
  }
  ReadState state;
  TreeBuilder builder(document, state);
  nlohmann::json::sax_parse(CountingIterator(document.text, state), CountingIterator(document.text, state),
                            &builder);
  return document;
}

}  // namespace vatlas::runtime::config
