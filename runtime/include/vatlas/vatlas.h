/* vatlas beside the vendor's API: choosing the cluster, tracing, reports. C11 and C++. All functions may be
   called from any thread; those that return int give 0 or an aclError (aclGetRecentErrMsg explains).

   Environment: VATLAS_CLUSTER (name of a shipped cluster, or a path), VATLAS_TRACE (file to write a trace
   to), VATLAS_TRACE_CORES (AIV cores a card in it, -1 for all, default 1), VATLAS_PEER_GRACE_MS (how long a
   missing rank is waited for before simulated timeouts fire, default 3000), VATLAS_KERNEL_PATH (folders with
   device images, separated by colons), VATLAS_LOG (info, debug), VATLAS_CHAOS (seed: delays calls at random;
   results do not change). */
#ifndef VATLAS_VATLAS_H
#define VATLAS_VATLAS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Name or path of the cluster of the next machine that is opened; overrides VATLAS_CLUSTER. null: back to it.
   500001 while a machine is open. */
int vatlasUseCluster(const char* nameOrPath);

/* Writes a Chrome/Perfetto trace until vatlasStopTrace or the end. cores: how many AIV cores a card with all
   their pipes; -1 all. 100000: no path; 500001: the file cannot be written (vatlasStopTrace: its place was
   lost, or the disk is full). Until the end events are in PATH.part; an earlier file stays until then. */
int vatlasStartTrace(const char* path, int cores);
int vatlasStopTrace(void);

/* Asks the machine to stop; may be called from a signal handler. Waiting calls return 107022. */
void vatlasInterrupt(void);

/* The kernels that have ended since the last call, and the load of memories and links since the machine was
   opened or the report was reset, as JSON; the text is valid until the thread's next call of this function.
   Times are integers in picoseconds of simulated time. null: no machine. */
const char* vatlasReportJson(void);
int vatlasResetReport(void);

const char* vatlasVersion(void);

#ifdef __cplusplus
}
#endif

#endif
