/* HCCL. Collectives other than the quantized operators of aclnnop/ are not there yet. C11 and C++. */
#ifndef VATLAS_HCCL_HCCL_H
#define VATLAS_HCCL_HCCL_H

#include "hccl/hccl_comm.h"
#include "hccl/hccl_types.h"

#endif
