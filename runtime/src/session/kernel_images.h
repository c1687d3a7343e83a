// Device images: shared objects with a table of kernels, found by name and kept loaded.
#pragma once

#include <cstdint>
#include <string>

#include "vatlas/sim/kernel_image.h"

namespace vatlas::runtime {

struct KernelEntry {
  VatlasKernelEntry entry = nullptr;
  std::uint32_t type = 0;       // 0 AIV, 1 AIC, 2 mix
  std::uint32_t argsBytes = 0;  // 0: any
  std::string error;            // why there is no entry
};

// Thread-safe. Images are looked for in VATLAS_KERNEL_PATH, then in vatlas/kernels beside the library.
KernelEntry findKernel(const std::string& image, const std::string& kernel);

// The folder that holds this library.
std::string libraryFolder();

}  // namespace vatlas::runtime
