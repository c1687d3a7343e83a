// Arguments of the kernels of the image model_check.
#pragma once

#include <cstdint>

namespace vatlas::tools {

struct CopyKernelArgs {
  std::uint8_t* memory;  // of each block: memory + block * blockStride
  std::uint64_t blockStride;
  std::uint64_t instructions;  // copies a block makes
  std::uint32_t rows;          // of each copy
  std::uint32_t rowBytes;
  std::uint32_t rowStride;
};

struct AllReduceKernelArgs {
  std::uint8_t* mine;  // data on this card
  std::uint8_t* peer;  // data on the other
  std::uint8_t* flag;  // 32 bytes a block on this card
  std::uint8_t* peerFlag;
  std::uint64_t bytes;  // whole tensor
  std::uint64_t tile;
};

}  // namespace vatlas::tools
