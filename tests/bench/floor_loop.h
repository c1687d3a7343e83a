// The loop that the emulator is measured against: no simulator, one thread, AVX-512, every rank reads all
// inputs and reduces everything. float8_e4m3fn with float8_e8m0 scales to bfloat16.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vatlas::bench {

bool floorLoopRuns();  // this processor has the instructions
// x, scales: of 8 ranks; one output of `count` elements.
void floorLoop(const std::uint8_t* const* x, const std::uint8_t* const* scales, std::uint16_t* output,
               std::size_t count);

}  // namespace vatlas::bench
