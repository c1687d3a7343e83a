#include <array>
#include <cstdlib>
#include <string_view>

#include "leaf/leaf_tables.h"

namespace vatlas::kernels {
namespace {

struct Available {
  std::array<const LeafTable*, 4> tables{};
  std::size_t count = 0;
  const LeafTable* chosen = nullptr;
};

Available detect() {
  Available available;
  const auto add = [&available](const LeafTable& table) { available.tables[available.count++] = &table; };
  add(leafTableBaseline());
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) add(leafTableAvx2());
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) add(leafTableAvx512());
  if (avx512 && __builtin_cpu_supports("avx512vbmi")) add(leafTableAvx512Vbmi());
#endif
  available.chosen = available.tables[available.count - 1];
  const char* wish = std::getenv("VATLAS_SIMD");
  for (std::size_t i = 0; wish != nullptr && i < available.count; ++i)
    if (std::string_view(wish) == available.tables[i]->name) available.chosen = available.tables[i];
  return available;
}

const Available& available() noexcept {
  static const Available kAvailable = detect();
  return kAvailable;
}

}  // namespace

const LeafTable& leaves() noexcept {
  return *available().chosen;
}

std::span<const LeafTable* const> availableLeaves() noexcept {
  return {available().tables.data(), available().count};
}

}  // namespace vatlas::kernels
