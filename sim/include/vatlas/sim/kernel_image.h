// The table that a device image (a shared object with kernels) exports. Plain C data: an image built by any
// compiler of the platform loads; a version that does not match is refused.
#pragma once

#include <cstdint>

extern "C" {

typedef void (*VatlasKernelEntry)(const void* args);  // args: the packed arguments of the launch

struct VatlasKernelDesc {
  const char* name;         // as aclrtBinaryGetFunction looks it up
  std::uint32_t type;       // 0: AIV only, 1: AIC only, 2: mix
  std::uint32_t argsBytes;  // 0: any
  VatlasKernelEntry entry;  // runs one block
};

struct VatlasImage {
  std::uint32_t magic;    // kVatlasImageMagic
  std::uint32_t version;  // kVatlasImageVersion
  const char* name;
  const char* npuArch;  // "3510"
  std::uint32_t kernelCount;
  const VatlasKernelDesc* kernels;
};

// Every image exports: extern "C" const VatlasImage* vatlas_image();
typedef const VatlasImage* (*VatlasImageFn)();

}  // extern "C"

inline constexpr std::uint32_t kVatlasImageMagic = 0x56415449;  // "VATI"
inline constexpr std::uint32_t kVatlasImageVersion = 1;
