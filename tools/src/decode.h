// The 8-bit element types by their definitions, independent of the device's code. Source: OCP OFP8 and MX,
// and the public definition of HiFloat8.
#pragma once

#include <array>
#include <string_view>

namespace vatlas::tools {

// Value of every code. float8_e8m0: code 0 is 0.0, as the card widens it, unless `ocpZero`.
std::array<float, 256> decodeTable(std::string_view dtype, bool ocpZero = false);

}  // namespace vatlas::tools
