// Kernels like those whose times were measured on real cards.
#include <algorithm>

#include "kernel_operator.h"
#include "model_check_args.h"
#include "vatlas/sim/kernel_image.h"

namespace {

using vatlas::tools::AllReduceKernelArgs;
using vatlas::tools::CopyKernelArgs;

void emptyKernel(const void*) {}

void copyKernel(const void* raw) {
  const auto& args = *static_cast<const CopyKernelArgs*>(raw);
  auto& core = vatlas::kernels::core();
  const std::uint8_t* from = args.memory + static_cast<std::uint64_t>(core.blockIdx()) * args.blockStride;
  const vatlas::sim::CopyShape shape{args.rows, args.rowBytes, args.rowStride, args.rowBytes};
  for (std::uint64_t i = 0; i < args.instructions; ++i) core.copyIn(core.ub(), from, shape);
}

// Two cards: each sends the half that the other reduces, both tell each other, each sends its reduced half
// back.
void allReduceKernel(const void* raw) {
  const auto& args = *static_cast<const AllReduceKernelArgs*>(raw);
  AscendC::TPipe pipe;
  AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, 1> queue;
  AscendC::TBuf<> flags;
  pipe.InitBuffer(queue, 2, static_cast<std::uint32_t>(args.tile));
  pipe.InitBuffer(flags, 64);
  const auto block = static_cast<std::uint64_t>(AscendC::GetBlockIdx());
  const auto blocks = static_cast<std::uint64_t>(AscendC::GetBlockNum());
  const std::uint64_t share = args.bytes / 2 / blocks / 32 * 32;
  AscendC::GlobalTensor<std::uint8_t> mine, peer, flag, peerFlag;
  mine.SetGlobalBuffer(args.mine + block * share);
  peer.SetGlobalBuffer(args.peer + block * share);
  flag.SetGlobalBuffer(args.flag + block * 32);
  peerFlag.SetGlobalBuffer(args.peerFlag + block * 32);
  AscendC::LocalTensor<std::uint8_t> word = flags.Get<std::uint8_t>(64);
  for (std::uint8_t phase = 1; phase <= 2; ++phase) {
    for (std::uint64_t at = 0; at < share; at += args.tile) {
      const auto count = static_cast<std::uint32_t>(std::min(args.tile, share - at));
      auto tile = queue.AllocTensor<std::uint8_t>();
      AscendC::DataCopy(tile, mine[at], count);
      queue.EnQue(tile);
      tile = queue.DeQue<std::uint8_t>();
      AscendC::DataCopy(peer[at], tile, count);
      queue.FreeTensor(tile);
    }
    AscendC::PipeBarrier<PIPE_ALL>();
    word.SetValue(0, phase);
    AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(0);
    AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(0);
    AscendC::DataCopy(peerFlag, word, 32);
    std::uint8_t seen = 0;
    do {
      AscendC::DataCopy(word[32], flag, 32);
      AscendC::SetFlag<AscendC::HardEvent::MTE2_S>(0);
      AscendC::WaitFlag<AscendC::HardEvent::MTE2_S>(0);
      seen = word.GetValue(32);
    } while (seen < phase);
  }
}

constexpr VatlasKernelDesc kKernels[] = {{"empty", 0, 0, &emptyKernel},
                                         {"copy", 0, sizeof(CopyKernelArgs), &copyKernel},
                                         {"all_reduce", 0, sizeof(AllReduceKernelArgs), &allReduceKernel}};
constexpr VatlasImage kImage = {kVatlasImageMagic, kVatlasImageVersion, "model_check", "3510", 3, kKernels};

}  // namespace

extern "C" __attribute__((visibility("default"))) const VatlasImage* vatlas_image() {
  return &kImage;
}
