/* Communicators. C11 and C++.

   Ranks are threads of one process. Functions that make a communicator wait for all its ranks; a rank that
   never comes makes the others fail with HCCL_E_TIMEOUT after a wall-clock grace (VATLAS_PEER_GRACE_MS).
   aclGetRecentErrMsg() explains every failure. */
#ifndef VATLAS_HCCL_HCCL_COMM_H
#define VATLAS_HCCL_HCCL_COMM_H

#include <string.h>

#include "acl/acl.h"
#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HCCL_API __attribute__((visibility("default")))

/* One communicator over `ndev` devices of this process; comms[i] is rank i on devices[i]. The calling
   thread's device stays as it was. HCCL_E_PARA: ndev is 0 or more than the cluster has, or a device is listed
   twice or does not exist; HCCL_E_PTR: null; HCCL_E_OOM: no room for the windows. */
HCCL_API HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms);

/* Rank 0 calls it and hands the result to all ranks. Needs a current device. */
HCCL_API HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo);
/* Called by every rank on its own device; returns when all have called. HCCL_E_PARA: nRanks is 0, rank >=
   nRanks, the rank or device is taken, or the root info is not one of HcclGetRootInfo. */
HCCL_API HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                         HcclComm* comm);
HCCL_API HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                               const HcclCommConfig* config, HcclComm* comm);

/* The ranks come from a rank table (JSON, version "2.0" for the 950). HCCL_E_PARA: the file is wrong (with
   its place); HCCL_E_OPEN_FILE_FAILURE: it cannot be read. */
HCCL_API HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank, HcclComm* comm);
HCCL_API HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank,
                                                  HcclCommConfig* config, HcclComm* comm);

HCCL_API HcclResult HcclGetCommName(HcclComm comm, char* commName); /* commName: room for 128 bytes */
HCCL_API HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank);
HCCL_API HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize);
HCCL_API HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError);
/* null: HCCL_SUCCESS; an unknown or destroyed communicator: HCCL_E_PARA. Waits for the rank's device. */
HCCL_API HcclResult HcclCommDestroy(HcclComm comm);
HCCL_API const char* HcclGetErrorString(HcclResult code);
HCCL_API uint32_t HcclGetCommConfigCapability(void);

/* Sets every field to "not set". */
static inline void HcclCommConfigInit(HcclCommConfig* config) {
  if (config == NULL) return;
  const size_t size = sizeof(HcclCommConfig);
  const uint32_t words[2] = {HCCL_COMM_CONFIG_MAGIC_WORD, HCCL_COMM_CONFIG_VERSION};
  memset(config, 0, size);
  memcpy(config->reserved, &size, sizeof size);
  memcpy(config->reserved + sizeof size, words, sizeof words);
  config->hcclBufferSize = HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET;
  config->hcclDeterministic = HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
  config->hcclRdmaTrafficClass = HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET;
  config->hcclRdmaServiceLevel = HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET;
  config->hcclExecTimeOut = HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET;
  config->hcclQos = HCCL_COMM_QOS_CONFIG_NOT_SET;
  config->hcclSymWinMaxMemSizePerRank = 16;
  config->hcclChannelSqDepth = 0xffffffffU;
}

#ifdef __cplusplus
}
#endif

#endif
