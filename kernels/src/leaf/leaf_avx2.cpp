#include <cstddef>
#include <cstdint>

#include "leaf/leaf_tables.h"

#define VATLAS_LEAF_NAME "avx2"
#define VATLAS_LEAF_TABLE leafTableAvx2
#include "leaf/leaf_impl.inc"
