// A device image that takes the place of the operator's own and is wrong: int8 kernels do nothing, the others
// read where there is nothing.
#include <array>
#include <utility>

#include "vatlas/kernel/quant_tiling.h"
#include "vatlas/sim/kernel_image.h"

namespace {

using namespace vatlas::kernels;

void nothing(const void*) {}

// The sanitizers would end the process before the emulator sees the fault.
[[gnu::no_sanitize("address", "undefined", "thread")]] void fault(const void*) {
  volatile const int* nowhere = nullptr;
  (void)*nowhere;
}

constexpr std::size_t kCombinations = 24;

template <std::size_t index>
constexpr QuantKernelName kName = quantKernelName(QuantOperator::AllReduce, static_cast<QuantX>(index / 6),
                                                  static_cast<QuantScales>(index / 3 % 2),
                                                  static_cast<QuantOutput>(index % 3));

template <std::size_t... i>
constexpr std::array<VatlasKernelDesc, kCombinations> table(std::index_sequence<i...>) {
  return {{{kName<i>.text, 0, sizeof(QuantKernelArgs), i < 6 ? &nothing : &fault}...}};
}

constexpr auto kKernels = table(std::make_index_sequence<kCombinations>{});
constexpr VatlasImage kImage = {kVatlasImageMagic, kVatlasImageVersion, "quant_all_reduce", "3510",
                                kCombinations,     kKernels.data()};

}  // namespace

extern "C" __attribute__((visibility("default"))) const VatlasImage* vatlas_image() {
  return &kImage;
}
