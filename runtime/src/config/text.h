// Words for messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vatlas::runtime::config {

// The candidate nearest to `found` by edit distance (letter case aside), or an empty text when none is near.
std::string nearest(std::string_view found, std::span<const std::string> candidates);

std::string listOf(std::span<const std::string> words, std::string_view conjunction);  // `a, b or c`

// "; did you mean "X"?", or nothing.
std::string suggestion(std::string_view found, std::span<const std::string> candidates);

}  // namespace vatlas::runtime::config
