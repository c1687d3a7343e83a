/* Tensors and executors of the aclnn API. Names and values are those of the vendor's public API. C11 and C++.
 */
#ifndef VATLAS_ACLNN_ACL_META_H
#define VATLAS_ACLNN_ACL_META_H

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

ACL_EXTERN_C_BEGIN

typedef struct aclOpExecutor aclOpExecutor;
typedef struct aclTensor aclTensor; /* an id: never dereference it */
typedef int32_t aclnnStatus;

/* A view of device memory. stride null: contiguous. offset in elements. tensorData is not owned and may be
   null until the operator runs. null when a dimension list is null with its count above 0, a dimension is
   negative, or memory is short. */
ACL_FUNC_VISIBILITY aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum,
                                               aclDataType dataType, const int64_t* stride, int64_t offset,
                                               aclFormat format, const int64_t* storageDims,
                                               uint64_t storageDimsNum, void* tensorData);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyTensor(const aclTensor* tensor); /* null: 0; unknown: 161002 */

/* The arrays belong to the caller, who frees them with delete[]. 161001: null; 161002: no such tensor. */
ACL_FUNC_VISIBILITY aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims,
                                                uint64_t* viewDimsNum);
ACL_FUNC_VISIBILITY aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                                                   uint64_t* storageDimsNum);
ACL_FUNC_VISIBILITY aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                                                  uint64_t* stridesNum);
ACL_FUNC_VISIBILITY aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset);
ACL_FUNC_VISIBILITY aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format);
ACL_FUNC_VISIBILITY aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType);
ACL_FUNC_VISIBILITY aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr);
ACL_FUNC_VISIBILITY aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr);

/* Lets phase 2 run more than once; the caller then destroys the executor. 561103: null or unknown. */
ACL_FUNC_VISIBILITY aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor);

ACL_EXTERN_C_END

#endif
