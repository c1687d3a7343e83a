// The tables built, one an instruction set.
#pragma once

#include "vatlas/kernel/leaves.h"

namespace vatlas::kernels {

const LeafTable& leafTableBaseline() noexcept;
#if defined(__x86_64__)
const LeafTable& leafTableAvx2() noexcept;
const LeafTable& leafTableAvx512() noexcept;
const LeafTable& leafTableAvx512Vbmi() noexcept;
#endif

}  // namespace vatlas::kernels
