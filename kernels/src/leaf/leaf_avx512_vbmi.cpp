#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "leaf/leaf_tables.h"

#define VATLAS_LEAF_NAME "avx512_vbmi"
#define VATLAS_LEAF_TABLE leafTableAvx512Vbmi
#include "leaf/leaf_impl.inc"
