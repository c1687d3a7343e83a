/* QuantAllReduce: output[i] = sum over ranks of x[i] * scale of i, on every rank. C11 and C++.

   x: int8, hifloat8, float8_e4m3fn or float8_e5m2; (bs, H) or (b, s, H); ND, contiguous. rows = bs or b * s,
   a multiple of the number of ranks; H from 1024 to 8192, a multiple of 128. scales: float, one for 128
   elements of a row: (.., H / 128); or float8_e8m0 for the two OCP types, one for 32 elements: (.., H / 64,
   2). output: float, float16 or bfloat16; as x. Sums are taken in float, x * scale rounded first, beginning
   with the rank's own contribution; ranks may differ in the last bit. reduceOp: "sum". group: of
   HcclGetCommName, with 2, 4 or 8 ranks; such a communicator runs the two quantized operators only.
   HCCL_BUFFSIZE (MB, default 200) must hold 2 * (x + scales + 1 MB). Source: public documentation and sources
   of the vendor's operator.

   Phase 1: 161001 null; 161002 types, formats, group; 561002 shapes, ranks, reduceOp, window, product. Phase
   2: 561000, explained by aclGetRecentErrMsg(). An executor is used once unless it is made repeatable. */
#ifndef VATLAS_ACLNNOP_ACLNN_QUANT_ALL_REDUCE
#define VATLAS_ACLNNOP_ACLNN_QUANT_ALL_REDUCE

#include "aclnn/aclnn_base.h"

ACL_EXTERN_C_BEGIN

ACLNN_API aclnnStatus aclnnQuantAllReduceGetWorkspaceSize(const aclTensor* x, const aclTensor* scales,
                                                          const char* group, const char* reduceOp,
                                                          aclTensor* output, uint64_t* workspaceSize,
                                                          aclOpExecutor** executor);
ACLNN_API aclnnStatus aclnnQuantAllReduce(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                          const aclrtStream stream);

ACL_EXTERN_C_END

#endif
