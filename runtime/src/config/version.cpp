#include "vatlas/runtime/version.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>

namespace vatlas::runtime {
namespace {

constexpr std::size_t kMaxLength = 64;
constexpr std::size_t kMaxNumbers = 4;
constexpr std::size_t kMaxDigits = 9;

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Takes the longest prefix whose characters satisfy `is` off `rest`.
template <typename Predicate>
std::string_view take(std::string_view& rest, Predicate is) {
  const auto end = std::find_if_not(rest.begin(), rest.end(), is);
  const auto length = static_cast<std::size_t>(end - rest.begin());
  const std::string_view taken = rest.substr(0, length);
  rest.remove_prefix(length);
  return taken;
}

std::optional<std::uint32_t> takeNumber(std::string_view& rest) {
  const std::string_view digits = take(rest, isDigit);
  if (digits.empty() || digits.size() > kMaxDigits) {
    return std::nullopt;
  }
  std::uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

std::strong_ordering compareNumbers(const std::vector<std::uint32_t>& a,
                                    const std::vector<std::uint32_t>& b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::uint32_t left = i < a.size() ? a[i] : 0;
    const std::uint32_t right = i < b.size() ? b[i] : 0;
    if (left != right) {
      return left <=> right;
    }
  }
  return std::strong_ordering::equal;
}

}  // namespace

std::optional<Version::Stage> Version::stageOf(std::string_view word) {
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "alpha" || lower == "a") return Stage::Alpha;
  if (lower == "beta") return Stage::Beta;
  if (lower == "rc") return Stage::Candidate;
  if (lower == "b" || lower == "build") return Stage::Build;
  if (lower == "spc") return Stage::ServicePack;
  return std::nullopt;
}

std::optional<Version> Version::parse(std::string_view text) {
  if (text.empty() || text.size() > kMaxLength || !isDigit(text.front())) {
    return std::nullopt;
  }
  Version version;
  version.text_ = std::string(text);
  std::string_view rest = text;
  while (true) {
    if (isDigit(rest.empty() ? '\0' : rest.front())) {
      const auto number = takeNumber(rest);
      if (!number) {
        return std::nullopt;
      }
      auto& numbers = version.qualifiers_.empty() ? version.numbers_ : version.qualifiers_.back().numbers;
      if (numbers.size() == kMaxNumbers) {
        return std::nullopt;
      }
      numbers.push_back(*number);
    } else {
      const auto stage = stageOf(take(rest, isLetter));
      if (!stage) {
        return std::nullopt;
      }
      version.qualifiers_.push_back({*stage, {}});
      if (!rest.empty() && isDigit(rest.front())) {
        continue;  // the number of "RC2" follows without a separator
      }
    }
    if (rest.empty()) {
      return version;
    }
    if (rest.front() != '.' && rest.front() != '-') {
      return std::nullopt;
    }
    rest.remove_prefix(1);
  }
}

std::strong_ordering Version::operator<=>(const Version& other) const noexcept {
  if (const auto order = compareNumbers(numbers_, other.numbers_); order != 0) {
    return order;
  }
  // Where one has no qualifier left it stands at its release, which Alpha to Candidate precede and Build
  // follows.
  static const Qualifier release;
  for (std::size_t i = 0; i < std::max(qualifiers_.size(), other.qualifiers_.size()); ++i) {
    const Qualifier& left = i < qualifiers_.size() ? qualifiers_[i] : release;
    const Qualifier& right = i < other.qualifiers_.size() ? other.qualifiers_[i] : release;
    if (left.stage != right.stage) {
      return left.stage <=> right.stage;
    }
    if (const auto order = compareNumbers(left.numbers, right.numbers); order != 0) {
      return order;
    }
  }
  return std::strong_ordering::equal;
}

}  // namespace vatlas::runtime
