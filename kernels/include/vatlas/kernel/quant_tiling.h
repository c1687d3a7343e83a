// What the host tiling of QuantAllReduce and QuantReduceScatter shares with their kernels: tiling structs,
// window layout, block size, launch arguments and kernel names. Plain data, no kernel API. Source of layout
// and formulas: public sources of the vendor's operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vatlas::kernels {

// Tiling
// -------------------------------------------------------------------------------------------------------

struct Mc2InitTiling {  // opaque to kernels
  std::uint8_t reserved[64];
};
struct Mc2CcTiling {  // opaque to kernels
  std::uint8_t reserved[512];
};
static_assert(sizeof(Mc2InitTiling) == 64 && sizeof(Mc2CcTiling) == 512);

struct QuantAllReduceTilingInfo {
  std::uint64_t bs;          // rows: bs, or b * s
  std::uint64_t hiddenSize;  // H
  std::uint64_t
      scaleHiddenSize;   // H / 128 (float scales) or H / 64 (e8m0; the last dimension 2 is not included)
  std::uint64_t aivNum;  // blocks of the launch
  std::uint64_t totalWinSize;  // bytes
  std::uint32_t xPerBlock;     // elements; the kernel lowers it to what UB holds
  std::uint32_t alignBlock;    // elements, kBlockAlign
};
static_assert(sizeof(QuantAllReduceTilingInfo) == 48);

struct QuantAllReduceTilingData {
  Mc2InitTiling mc2InitTiling;
  Mc2CcTiling mc2CcTiling;
  QuantAllReduceTilingInfo quantAllReduceTilingInfo;
};
static_assert(sizeof(QuantAllReduceTilingData) == 624);

struct QuantReduceScatterTilingData {
  Mc2InitTiling mc2InitTiling;
  Mc2CcTiling mc2CcTiling;
  QuantAllReduceTilingInfo quantReduceScatterTilingInfo;
};
static_assert(sizeof(QuantReduceScatterTilingData) == 624);

// In which order a rank adds up the contributions.
enum class QuantOrder : std::uint32_t {
  OwnFirst,  // its own, then the others' in a circle: ranks may differ in the last bit
  Rank,      // 0, 1, ...: all ranks agree
};

// What the vendor's tiling data has no field for.
struct QuantOptions {
  QuantOrder order;
  std::uint32_t reserved;
};

// What the host writes for the kernel: the vendor's tiling data comes first.
struct QuantTiling {
  QuantAllReduceTilingData data;
  QuantOptions options;
};
static_assert(offsetof(QuantTiling, options) == sizeof(QuantAllReduceTilingData));

inline constexpr std::uint32_t kBlockAlign = 1024;
inline constexpr std::uint64_t kQuantWorkspaceBytes = 16ULL << 20;

// The host's choice of elements per block for `count` elements that one rank reduces (bs * H, or a slice of
// it).
constexpr std::uint32_t hostElementsPerBlock(std::uint64_t count, std::uint64_t cores) {
  const std::uint64_t perCore = (count + cores - 1) / cores;
  const std::uint64_t perRound = (perCore + 2) / 3;
  const std::uint64_t least = 2048;
  return static_cast<std::uint32_t>((perRound < least ? least : perRound) / kBlockAlign * kBlockAlign);
}

// Window
// -------------------------------------------------------------------------------------------------------
// windowsIn:  status words of partition 0, of partition 1, one ping-pong flag a core, then the data of
// partition 0. windowsOut: the data of partition 1. Data: all x bytes, immediately followed by the scales.

inline constexpr std::uint64_t kStatusAreaBytes = 462ULL << 10;
inline constexpr std::uint64_t kFlagAreaOffset = 2 * kStatusAreaBytes;
inline constexpr std::uint64_t kFlagAreaBytes = 100ULL << 10;
inline constexpr std::uint64_t kFlagStride = 512;
inline constexpr std::uint64_t kWindowHeaderBytes = 1ULL << 20;

// Launch arguments
// ---------------------------------------------------------------------------------------------

struct QuantKernelArgs {
  std::uint8_t* x;
  std::uint8_t* scales;
  std::uint8_t* output;
  std::uint8_t* workspace;
  std::uint8_t* tiling;
};
static_assert(sizeof(QuantKernelArgs) == 40);

// Names
// --------------------------------------------------------------------------------------------------------
// One kernel a combination of element types: OPERATOR_X_SCALES_OUTPUT, for example
// "quant_all_reduce_e4m3fn_e8m0_bf16". The image's file is OPERATOR.so.

enum class QuantOperator : std::uint8_t { AllReduce, ReduceScatter };
enum class QuantX : std::uint8_t { Int8, HiFloat8, E4m3fn, E5m2 };
enum class QuantScales : std::uint8_t { Float, E8m0 };
enum class QuantOutput : std::uint8_t { Float, Half, Bfloat16 };

constexpr std::string_view quantOperatorName(QuantOperator op) {
  return op == QuantOperator::AllReduce ? "quant_all_reduce" : "quant_reduce_scatter";
}
constexpr std::string_view quantTypeName(QuantX x) {
  constexpr std::string_view kNames[] = {"int8", "hif8", "e4m3fn", "e5m2"};
  return kNames[static_cast<std::size_t>(x)];
}
constexpr std::string_view quantTypeName(QuantScales scales) {
  return scales == QuantScales::Float ? "f32" : "e8m0";
}
constexpr std::string_view quantTypeName(QuantOutput output) {
  constexpr std::string_view kNames[] = {"f32", "f16", "bf16"};
  return kNames[static_cast<std::size_t>(output)];
}

// e8m0 scales go with the two OCP types only.
constexpr bool quantTypesAreLegal(QuantX x, QuantScales scales) {
  return scales == QuantScales::Float || x == QuantX::E4m3fn || x == QuantX::E5m2;
}

struct QuantKernelName {
  char text[48] = {};
  std::size_t length = 0;

  constexpr void append(std::string_view part) {
    for (char c : part) text[length++] = c;
  }
  constexpr std::string_view view() const { return {text, length}; }
  constexpr const char* c_str() const { return text; }
};

constexpr QuantKernelName quantKernelName(QuantOperator op, QuantX x, QuantScales scales,
                                          QuantOutput output) {
  QuantKernelName name;
  name.append(quantOperatorName(op));
  for (std::string_view part : {quantTypeName(x), quantTypeName(scales), quantTypeName(output)}) {
    name.append("_");
    name.append(part);
  }
  return name;
}
static_assert(quantKernelName(QuantOperator::AllReduce, QuantX::E4m3fn, QuantScales::E8m0,
                              QuantOutput::Bfloat16)
                  .view() == "quant_all_reduce_e4m3fn_e8m0_bf16");

}  // namespace vatlas::kernels
