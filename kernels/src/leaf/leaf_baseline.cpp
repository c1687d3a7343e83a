#include <cstddef>
#include <cstdint>

#include "leaf/leaf_tables.h"

#define VATLAS_LEAF_NAME "baseline"
#define VATLAS_LEAF_TABLE leafTableBaseline
#include "leaf/leaf_impl.inc"
