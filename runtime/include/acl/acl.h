/* The acl API of vatlas: initialisation; brings the runtime functions with it. C11 and C++. */
#ifndef VATLAS_ACL_ACL_H
#define VATLAS_ACL_ACL_H

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

ACL_EXTERN_C_BEGIN

/* Opens the simulated machine. configPath: null, or a JSON file (of which "err_msg_mode" is read). Optional:
   the first aclrt call does the same. 0; 100002 when already initialised (counted, may be ignored); 100000
   when the file cannot be read, is not JSON, or differs from the first one; 507033 when the cluster
   configuration is bad. */
ACL_FUNC_VISIBILITY aclError aclInit(const char* configPath);
/* Waits for submitted work and closes the machine: device addresses, streams, events and contexts become
   invalid. 0; 100037 without an aclInit before it. */
ACL_FUNC_VISIBILITY aclError aclFinalize(void);
/* Takes back one aclInit; closes the machine at the last one. refCount (may be null): what is left. */
ACL_FUNC_VISIBILITY aclError aclFinalizeReference(uint64_t* refCount);

ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion,
                                             int32_t* patchVersion);

ACL_EXTERN_C_END

#endif
