#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "leaf/leaf_tables.h"

#define VATLAS_LEAF_NAME "avx512"
#define VATLAS_LEAF_TABLE leafTableAvx512
#include "leaf/leaf_impl.inc"
