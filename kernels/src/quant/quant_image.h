// The table of a quantized operator's image: one kernel for each legal combination of element types.
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "quant/quant_reduce.h"
#include "vatlas/sim/kernel_image.h"

namespace vatlas::kernels {

template <QuantX kind>
using QuantXType = std::tuple_element_t<static_cast<std::size_t>(kind),
                                        std::tuple<std::int8_t, hifloat8_t, fp8_e4m3fn_t, fp8_e5m2_t>>;
template <QuantScales kind>
using QuantScalesType = std::tuple_element_t<static_cast<std::size_t>(kind), std::tuple<float, fp8_e8m0_t>>;
template <QuantOutput kind>
using QuantOutputType =
    std::tuple_element_t<static_cast<std::size_t>(kind), std::tuple<float, half, bfloat16_t>>;

template <QuantOperator op, QuantX x, QuantScales scales, QuantOutput output>
void quantKernel(const void* raw) {
  const auto& args = *static_cast<const QuantKernelArgs*>(raw);
  GET_TILING_DATA_WITH_STRUCT(QuantTiling, tiling, args.tiling);
  AscendC::TPipe pipe;
  QuantReduce<QuantXType<x>, QuantScalesType<scales>, QuantOutputType<output>,
              op == QuantOperator::ReduceScatter>
      kernel;
  kernel.init(args, tiling, pipe);
  kernel.process();
}
static_assert(sizeof(QuantAllReduceTilingData) == sizeof(QuantReduceScatterTilingData));

inline constexpr std::size_t kQuantCombinations = 24;  // of which 18 are legal

template <QuantOperator op, std::size_t index>
struct QuantCombination {
  static constexpr auto kX = static_cast<QuantX>(index / 6);
  static constexpr auto kScales = static_cast<QuantScales>(index / 3 % 2);
  static constexpr auto kOutput = static_cast<QuantOutput>(index % 3);
  static constexpr bool kLegal = quantTypesAreLegal(kX, kScales);
  static constexpr QuantKernelName kName = quantKernelName(op, kX, kScales, kOutput);
};

// Null for a combination that does not exist.
template <QuantOperator op, std::size_t index>
constexpr VatlasKernelEntry quantEntry() {
  using C = QuantCombination<op, index>;
  if constexpr (C::kLegal) {
    return &quantKernel<op, C::kX, C::kScales, C::kOutput>;
  } else {
    return nullptr;
  }
}

template <QuantOperator op>
const VatlasImage* quantImage() {
  static const auto kTable = []<std::size_t... i>(std::index_sequence<i...>) {
    std::array<VatlasKernelDesc, kQuantCombinations> table{};
    std::size_t used = 0;
    const auto add = [&](const char* name, VatlasKernelEntry entry) {
      if (entry != nullptr) table[used++] = {name, 0, sizeof(QuantKernelArgs), entry};
    };
    (add(QuantCombination<op, i>::kName.c_str(), quantEntry<op, i>()), ...);
    return std::pair(table, used);
  }
  (std::make_index_sequence<kQuantCombinations>{});
  static const VatlasImage kImage = {kVatlasImageMagic,
                                     kVatlasImageVersion,
                                     quantOperatorName(op).data(),
                                     "3510",
                                     static_cast<std::uint32_t>(kTable.second),
                                     kTable.first.data()};
  return &kImage;
}

}  // namespace vatlas::kernels
