#include "text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

#include "json_document.h"

namespace vatlas::runtime::config {
namespace {

constexpr std::size_t kLongestCompared = 64;

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool plainKey(std::string_view key) {
  return !key.empty() && key.size() <= kLongestCompared && std::all_of(key.begin(), key.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '-';
  });
}

// Levenshtein distance, with a swap of two neighbours counted as one change.
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (same ? 0U : 1U)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1])) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string nearest(std::string_view found, std::span<const std::string> candidates) {
  if (found.empty() || found.size() > kLongestCompared) {
    return {};
  }
  const std::string* best = nullptr;
  std::size_t bestDistance = std::max<std::size_t>(2, found.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestCompared) {
      continue;
    }
    const std::size_t distance = editDistance(found, candidate);
    // More changes than half of the longer word make no likeness.
    if (distance < bestDistance && distance * 2 <= std::max(found.size(), candidate.size())) {
      best = &candidate;
      bestDistance = distance;
    }
  }
  return best == nullptr ? std::string() : *best;
}

std::string listOf(std::span<const std::string> words, std::string_view conjunction) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) {
      text += i + 1 == words.size() ? fmt::format(" {} ", conjunction) : ", ";
    }
    text += words[i];
  }
  return text;
}

std::string suggestion(std::string_view found, std::span<const std::string> candidates) {
  const std::string best = nearest(found, candidates);
  return best.empty() ? std::string() : fmt::format("; did you mean \"{}\"?", best);
}

std::string childPath(const std::string& parent, std::string_view key) {
  return plainKey(key) ? fmt::format("{}.{}", parent, key) : fmt::format("{}[{}]", parent, inQuotes(key));
}

std::string childPath(const std::string& parent, std::size_t index) {
  return fmt::format("{}[{}]", parent, index);
}

std::string inQuotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::size_t length = std::min(text.size(), kLongest);
  // Not within a character.
  while (length < text.size() && length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0U) == 0x80U) {
    --length;
  }
  std::string result = "\"";
  for (const char c : text.substr(0, length)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\u{:04x}", byte);
    } else {
      result += c;
    }
  }
  return result + (length < text.size() ? "...\"" : "\"");
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::Null:
      return "null";
    case Node::Kind::Boolean:
      return node.boolean ? "true" : "false";
    case Node::Kind::Integer:
      return fmt::format("the number {:.17g}", node.number);
    case Node::Kind::Real: {
      const std::string text = fmt::format("{}", node.number);
      // So that 8.0 does not read as the 8 that would have been right.
      return fmt::format("the number {}{}", text, text.find_first_of(".e") == std::string::npos ? ".0" : "");
    }
    case Node::Kind::String:
      return fmt::format("the text {}", inQuotes(node.text));
    case Node::Kind::Array:
      return fmt::format("a list of {}", node.items.size());
    case Node::Kind::Object:
      return "an object";
  }
  return {};
}

}  // namespace vatlas::runtime::config
