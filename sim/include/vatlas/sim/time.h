// Simulated time: integer picoseconds, so that every sum is exact and the same on every machine.
#pragma once

#include <cstdint>

namespace vatlas::sim {

using SimTime = std::int64_t;  // picoseconds since the session began

inline constexpr SimTime kPicosecond = 1;
inline constexpr SimTime kNanosecond = 1'000;
inline constexpr SimTime kMicrosecond = 1'000'000;
inline constexpr SimTime kMillisecond = 1'000'000'000;
inline constexpr SimTime kSecond = 1'000'000'000'000;
inline constexpr SimTime kNever = INT64_MAX;

}  // namespace vatlas::sim
