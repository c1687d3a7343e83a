#include <array>

#include "hccl/hccl_comm.h"

const char* HcclGetErrorString(HcclResult code) {
  static constexpr std::array<const char*, 25> kTexts = {"success",
                                                         "a parameter is not allowed",
                                                         "a pointer is null",
                                                         "memory cannot be used",
                                                         "fault of the library",
                                                         "not supported",
                                                         "no such resource",
                                                         "resource is not available now",
                                                         "a system call failed",
                                                         "timed out",
                                                         "a file cannot be opened",
                                                         "no TCP connection",
                                                         "no RoCE connection",
                                                         "TCP transfer failed",
                                                         "RoCE transfer failed",
                                                         "the runtime failed",
                                                         "the driver failed",
                                                         "profiling failed",
                                                         "the compute engine failed",
                                                         "the network failed",
                                                         "busy, try again",
                                                         "a peer failed",
                                                         "the communicator is being suspended",
                                                         "an operation cannot be repeated",
                                                         "out of memory"};
  const int value = static_cast<int>(code);
  if (value < 0 || value >= static_cast<int>(HCCL_E_RESERVED)) return "no such error code";
  const auto index = static_cast<std::size_t>(value);
  return index < kTexts.size() ? kTexts[index] : "no such error code";
}
