// Versions of drivers and toolkits: parsed leniently in the forms that releases use, and ordered.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vatlas::runtime {

// One to four numbers, then optional qualifiers: "25.5.0", "8.0.RC2", "8.2.RC1.alpha003", "9.1.0-beta.1",
// "24.1.rc2.b030".
//
// Order: by the numbers (missing ones count as 0); with equal numbers alpha, beta and RC come before the
// release, in this order, and builds ("b030") and service packs ("SPC100") after it. Qualifiers may follow
// each other
// ("RC1.alpha2" comes before "RC1"). Letter case does not matter.
class Version {
 public:
  // Nothing when the text has no such form (empty, longer than 64 characters, a number of more than 9 digits,
  // ...).
  static std::optional<Version> parse(std::string_view text);

  const std::string& text() const noexcept { return text_; }  // as it was written

  std::strong_ordering operator<=>(const Version& other) const noexcept;
  // Equal in order, not in spelling: "8.0" == "8.0.0".
  bool operator==(const Version& other) const noexcept { return (*this <=> other) == 0; }

 private:
  enum class Stage : std::uint8_t { Alpha, Beta, Candidate, Release, Build, ServicePack };
  struct Qualifier {
    Stage stage = Stage::Release;
    std::vector<std::uint32_t> numbers;
  };

  static std::optional<Stage> stageOf(std::string_view word);

  std::string text_;
  std::vector<std::uint32_t> numbers_;
  std::vector<Qualifier> qualifiers_;
};

}  // namespace vatlas::runtime
