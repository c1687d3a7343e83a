#include "floor_loop.h"

#include <immintrin.h>

namespace vatlas::bench {
namespace {
constexpr int kRanks = 8;
constexpr std::size_t kGroup = 32;
constexpr int kLanes = 16;

// Sixteen codes to floats: exponent and mantissa moved into place and scaled by 2^120. Subnormal inputs count
// as zero (as in the mode the loop runs in), so that none of them is slow.
__m512 widen(const std::uint8_t* codes) {
  const __m512i wide = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
  const __m512i sign = _mm512_slli_epi32(_mm512_and_si512(wide, _mm512_set1_epi32(0x80)), 24);
  const __m512i rest = _mm512_slli_epi32(_mm512_and_si512(wide, _mm512_set1_epi32(0x7f)), 20);
  const __m512 scale = _mm512_castsi512_ps(_mm512_set1_epi32((127 + 120) << 23));
  return _mm512_mul_ps(_mm512_castsi512_ps(_mm512_or_si512(sign, rest)), scale);
}

__m512 scaleOf(std::uint8_t code) {
  return _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(code) << 23));
}
}  // namespace

bool floorLoopRuns() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512bf16");
}

void floorLoop(const std::uint8_t* const* x, const std::uint8_t* const* scales, std::uint16_t* output,
               std::size_t count) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // subnormals are zero
  for (std::size_t at = 0; at < count; at += kGroup) {
    __m512 low = _mm512_setzero_ps();
    __m512 high = _mm512_setzero_ps();
    for (int rank = 0; rank < kRanks; ++rank) {
      const __m512 scale = scaleOf(scales[rank][at / kGroup]);
      low = _mm512_fmadd_ps(widen(x[rank] + at), scale, low);
      high = _mm512_fmadd_ps(widen(x[rank] + at + kLanes), scale, high);
    }
    const __m512bh packed = _mm512_cvtne2ps_pbh(high, low);
    __builtin_memcpy(output + at, &packed, sizeof packed);
  }
  _mm_setcsr(before);
}

}  // namespace vatlas::bench
