// The kernel programming API of the Ascend 950's vector cores, as kernel source includes it.
#pragma once

#include "vatlas/kernel/qualifiers.h"

#include "vatlas/kernel/data_copy.h"
#include "vatlas/kernel/enums.h"
#include "vatlas/kernel/pipe.h"
#include "vatlas/kernel/print.h"
#include "vatlas/kernel/reg.h"
#include "vatlas/kernel/sync.h"
#include "vatlas/kernel/tensor.h"
#include "vatlas/kernel/types.h"
#include "vatlas/kernel/vector.h"
