// What the machine that hosts the simulation offers.
#pragma once

#include <cstdint>

namespace vatlas::sim {

// Most memory that live allocations of all cards may take: 85 % of the smaller of the container's limit and
// the machine's memory.
std::uint64_t hostMemoryCeiling();

}  // namespace vatlas::sim
