// The one-shot algorithm that QuantAllReduce and QuantReduceScatter share: every rank puts its x and scales
// into its window, tells the same core of every rank, waits for those, and then reads, dequantizes and sums
// the windows of all ranks, beginning with its own or, for deterministic computation, with rank 0. Protocol,
// layout and order of operations: public sources of the vendor's operators; the order by rank is an
// assumption.
#pragma once

#include "kernel_operator.h"
#include "vatlas/kernel/hccl_context.h"
#include "vatlas/kernel/quant_tiling.h"

namespace vatlas::kernels {

using AscendC::GlobalTensor;
using AscendC::HardEvent;
using AscendC::LocalTensor;
using AscendC::RoundMode;
using AscendC::TPosition;

// x elements that one scale is for.
template <typename Scale>
inline constexpr std::uint32_t kGroup = std::is_same_v<Scale, fp8_e8m0_t> ? 32 : 128;
inline constexpr std::uint32_t kStatusFloats = 8;  // a status word: 32 bytes
inline constexpr std::uint32_t kScalesPerCast = 32;

template <HardEvent event>
inline void syncPipes() {
  const auto id = static_cast<std::int32_t>(AscendC::GetTPipePtr()->FetchEventID(event));
  AscendC::SetFlag<event>(id);
  AscendC::WaitFlag<event>(id);
}

inline constexpr AscendC::Reg::CastTrait kScaleCast{};

// e8m0 scales to bfloat16, at most a register of them.
inline void castScales(__local_mem__ bfloat16_t* dst, const __local_mem__ fp8_e8m0_t* src,
                       std::uint32_t count) {
  AscendC::Reg::RegTensor<fp8_e8m0_t> codes;
  AscendC::Reg::RegTensor<fp8_e8m0_t> spread;
  AscendC::Reg::RegTensor<fp8_e8m0_t> rest;
  AscendC::Reg::RegTensor<bfloat16_t> wide;
  const AscendC::Reg::MaskReg mask = AscendC::Reg::UpdateMask<bfloat16_t>(count);
  AscendC::Reg::DataCopy(codes, src);
  AscendC::Reg::Interleave(spread, rest, codes, codes);
  AscendC::Reg::Cast<bfloat16_t, fp8_e8m0_t, kScaleCast>(wide, spread, mask);
  AscendC::Reg::DataCopy(dst, wide, mask);
}

// Blocks of x that this core works on, in elements of one slice.
struct BlockRange {
  std::uint64_t total = 0;  // elements of a slice
  std::uint32_t perBlock = 0;
  std::uint64_t first = 0;  // block numbers
  std::uint64_t count = 0;

  std::uint64_t offset(std::uint64_t i) const { return (first + i) * perBlock; }
  std::uint32_t elements(std::uint64_t i) const {
    const std::uint64_t left = total - offset(i);
    return left < perBlock ? static_cast<std::uint32_t>(left) : perBlock;
  }
};

inline BlockRange splitBlocks(std::uint64_t total, std::uint32_t perBlock, std::uint64_t core,
                              std::uint64_t cores) {
  const std::uint64_t blocks = (total + perBlock - 1) / perBlock;
  const std::uint64_t round = blocks / cores;
  const std::uint64_t extra = blocks % cores;
  return {total, perBlock, core * round + (core < extra ? core : extra), round + (core < extra ? 1 : 0)};
}

// Elements per block that UB has room for beside the queues and the words of the protocol.
template <typename Scale, typename Out>
constexpr std::uint32_t blockLimit(std::uint32_t ranks) {
  constexpr std::uint64_t kPerElement = 2 * sizeof(Out) + 2 + 4 + 4 + 2 + 2 + 4 + 2;
  constexpr std::uint64_t kNumerator = std::is_same_v<Scale, fp8_e8m0_t> ? 4 : 32;
  constexpr std::uint64_t kScalePart = std::is_same_v<Scale, fp8_e8m0_t> ? 1 : 3;
  const std::uint64_t fixed = 2 * 1024 + 32 + 32 + 64 * ranks;
  return static_cast<std::uint32_t>((AscendC::TOTAL_UB_SIZE - fixed) * kNumerator /
                                    (kPerElement * kNumerator + kScalePart));
}

template <typename X, typename Scale, typename Out, bool kScatter>
class QuantReduce {
 public:
  void init(const QuantKernelArgs& args, const QuantTiling& all, AscendC::TPipe& pipe) {
    const QuantAllReduceTilingInfo& tiling = all.data.quantAllReduceTilingInfo;
    const auto* context =
        reinterpret_cast<const HcclCombinOpParam*>(AscendC::GetHcclContext<AscendC::HCCL_GROUP_ID_0>());
    if (context == nullptr) faultArgument(core(), "GetHcclContext", "communicators of this launch", 0, "1");
    context_ = context;
    pipe_ = &pipe;
    rank_ = context->rankId;
    ranks_ = context->rankDim;
    firstRank_ = all.options.order == QuantOrder::Rank ? 0 : rank_;
    elements_ = tiling.bs * tiling.hiddenSize;
    slice_ = kScatter ? elements_ / ranks_ : elements_;
    const std::uint64_t windowNeeds =
        kWindowHeaderBytes + elements_ + elements_ / kGroup<Scale> * sizeof(Scale);
    if (windowNeeds > context->winSize / 2) faultWindow(core(), windowNeeds, context->winSize / 2);
    std::uint64_t perBlock = blockLimit<Scale, Out>(ranks_);
    perBlock = perBlock < tiling.xPerBlock ? perBlock : tiling.xPerBlock;
    perBlock = (perBlock < slice_ ? perBlock : slice_) / tiling.alignBlock * tiling.alignBlock;
    if (perBlock == 0) perBlock = tiling.alignBlock;
    core_ = static_cast<std::uint64_t>(AscendC::GetBlockIdx());
    blocks_ = splitBlocks(slice_, static_cast<std::uint32_t>(perBlock), core_, tiling.aivNum);
    x_.SetGlobalBuffer(reinterpret_cast<X*>(args.x));
    scales_.SetGlobalBuffer(reinterpret_cast<Scale*>(args.scales));
    output_.SetGlobalBuffer(reinterpret_cast<Out*>(args.output));
    initBuffers();
  }

  void process() {
    flipPartition();
    for (std::uint32_t slice = 0; slice < (kScatter ? ranks_ : 1); ++slice) copyToWindow(slice * slice_);
    AscendC::PipeBarrier<PIPE_ALL>();
    tellRanks();
    awaitRanks();
    for (std::uint64_t i = 0; i < blocks_.count; ++i) reduceBlock(i);
  }

 private:
  static constexpr bool kMx = std::is_same_v<Scale, fp8_e8m0_t>;
  static constexpr bool kInt8 = std::is_same_v<X, std::int8_t>;

  void initBuffers() {
    const std::uint32_t n = blocks_.perBlock;
    const std::uint32_t scales = n / kGroup<Scale>;
    const auto scaleBytes = static_cast<std::uint32_t>(scales * sizeof(Scale));
    pipe_->InitBuffer(xCopy_, 2, n);
    pipe_->InitBuffer(scaleCopy_, 2, scaleBytes);
    pipe_->InitBuffer(xIn_, 2, n);
    pipe_->InitBuffer(scaleIn_, 2, scaleBytes);
    pipe_->InitBuffer(out_, 2, n * static_cast<std::uint32_t>(sizeof(Out)));
    pipe_->InitBuffer(sum_, n * 4);
    pipe_->InitBuffer(wideScale_, n * 4);
    pipe_->InitBuffer(wideX_, n * 4);
    if (kInt8) pipe_->InitBuffer(halfX_, n * 2);
    if (kMx) pipe_->InitBuffer(scaleBf16_, scales * 2);
    if (kMx) pipe_->InitBuffer(scaleFloat_, scales * 4);
    pipe_->InitBuffer(flag_, 32);
    pipe_->InitBuffer(myStatus_, 32);
    pipe_->InitBuffer(statuses_, ranks_ * 32);
    pipe_->InitBuffer(zeros_, ranks_ * 32);
  }

  std::uint64_t dataOf(std::uint32_t rank) const {
    return partition_ == 0 ? context_->windowsIn[rank] + kWindowHeaderBytes : context_->windowsOut[rank];
  }
  GlobalTensor<X> windowX(std::uint32_t rank) const {
    GlobalTensor<X> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<X*>(dataOf(rank)));
    return tensor;
  }
  GlobalTensor<Scale> windowScales(std::uint32_t rank) const {
    GlobalTensor<Scale> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<Scale*>(dataOf(rank) + elements_));
    return tensor;
  }
  GlobalTensor<float> statusOf(std::uint32_t rank) const {
    GlobalTensor<float> tensor;
    tensor.SetGlobalBuffer(
        reinterpret_cast<float*>(context_->windowsIn[rank] + partition_ * kStatusAreaBytes));
    return tensor;
  }

  // Each core keeps a word in its window that says which half the last call used.
  void flipPartition() {
    GlobalTensor<std::uint32_t> word;
    word.SetGlobalBuffer(
        reinterpret_cast<std::uint32_t*>(context_->windowsIn[rank_] + kFlagAreaOffset + core_ * kFlagStride));
    LocalTensor<std::uint32_t> local = flag_.template Get<std::uint32_t>();
    AscendC::DataCopy(local, word, kStatusFloats);
    syncPipes<HardEvent::MTE2_S>();
    partition_ = local.GetValue(0);
    local.SetValue(0, 1 - partition_);
    syncPipes<HardEvent::S_MTE3>();
    AscendC::DataCopy(word, local, kStatusFloats);
  }

  AscendC::DataCopyParams scaleShape(std::uint32_t elements) const {
    return {1, static_cast<std::uint16_t>(elements / kGroup<Scale> * sizeof(Scale))};
  }

  // The tail's scales are clipped: the vendor's kernel copies a whole block of them, past the end of the
  // tensor.
  void copyToWindow(std::uint64_t base) {
    for (std::uint64_t i = 0; i < blocks_.count; ++i) {
      const std::uint64_t offset = base + blocks_.offset(i);
      const std::uint32_t count = blocks_.elements(i);
      LocalTensor<X> x = xCopy_.template AllocTensor<X>();
      AscendC::DataCopy(x, x_[offset], count);
      xCopy_.EnQue(x);
      x = xCopy_.template DeQue<X>();
      AscendC::DataCopy(windowX(rank_)[offset], x, count);
      xCopy_.FreeTensor(x);
      LocalTensor<Scale> scales = scaleCopy_.template AllocTensor<Scale>();
      AscendC::DataCopyPad(scales, scales_[offset / kGroup<Scale>], scaleShape(count),
                           AscendC::DataCopyPadParams{});
      scaleCopy_.EnQue(scales);
      scales = scaleCopy_.template DeQue<Scale>();
      AscendC::DataCopyPad(windowScales(rank_)[offset / kGroup<Scale>], scales, scaleShape(count));
      scaleCopy_.FreeTensor(scales);
    }
  }

  void tellRanks() {
    LocalTensor<float> status = myStatus_.template Get<float>();
    AscendC::Duplicate(status, 0.0F, kStatusFloats);
    syncPipes<HardEvent::V_S>();
    status.SetValue(0, 1.0F);
    syncPipes<HardEvent::S_MTE3>();
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      AscendC::DataCopy(statusOf(rank)[(core_ * ranks_ + rank_) * kStatusFloats], status, kStatusFloats);
    }
  }

  void awaitRanks() {
    const GlobalTensor<float> mine = statusOf(rank_)[core_ * ranks_ * kStatusFloats];
    LocalTensor<float> seen = statuses_.template Get<float>();
    LocalTensor<float> total = myStatus_.template Get<float>();
    const std::uint32_t floats = ranks_ * kStatusFloats;
    syncPipes<HardEvent::MTE3_S>();
    syncPipes<HardEvent::S_MTE2>();
    float sum = 0;
    do {
      AscendC::DataCopy(seen, mine, floats);
      syncPipes<HardEvent::MTE2_V>();
      AscendC::Sum(total, seen, AscendC::SumParams{1, floats, floats});
      syncPipes<HardEvent::V_S>();
      sum = total.GetValue(0);
    } while (sum < static_cast<float>(ranks_) - 0.5F || sum > static_cast<float>(ranks_) + 0.5F);
    LocalTensor<float> zeros = zeros_.template Get<float>();
    AscendC::Duplicate(zeros, 0.0F, static_cast<std::int32_t>(floats));
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::DataCopy(mine, zeros, floats);
  }

  // One block of the output: the vector unit works on whole blocks, the tail of the last is not stored.
  void reduceBlock(std::uint64_t i) {
    const std::uint32_t n = blocks_.perBlock;
    const std::uint32_t count = blocks_.elements(i);
    const std::uint64_t offset = blocks_.offset(i);
    const std::uint64_t source = kScatter ? rank_ * slice_ + offset : offset;
    LocalTensor<float> sum = sum_.template Get<float>();
    AscendC::Duplicate(sum, 0.0F, static_cast<std::int32_t>(n));
    for (std::uint32_t k = 0; k < ranks_; ++k) addRank((firstRank_ + k) % ranks_, source, count);
    LocalTensor<Out> out = out_.template AllocTensor<Out>();
    if constexpr (std::is_same_v<Out, float>) {
      AscendC::DataCopy(out, sum, n);
    } else {
      AscendC::Cast(out, sum, RoundMode::CAST_RINT, n);
    }
    out_.EnQue(out);
    out = out_.template DeQue<Out>();
    AscendC::DataCopy(output_[offset], out, count);
    out_.FreeTensor(out);
  }

  void addRank(std::uint32_t rank, std::uint64_t offset, std::uint32_t count) {
    const auto n = static_cast<std::int32_t>(blocks_.perBlock);
    LocalTensor<X> x = xIn_.template AllocTensor<X>();
    AscendC::DataCopy(x, windowX(rank)[offset], count);
    xIn_.EnQue(x);
    LocalTensor<Scale> scales = scaleIn_.template AllocTensor<Scale>();
    AscendC::DataCopyPad(scales, windowScales(rank)[offset / kGroup<Scale>], scaleShape(count),
                         AscendC::DataCopyPadParams{});
    scaleIn_.EnQue(scales);
    x = xIn_.template DeQue<X>();
    LocalTensor<float> value = wideX_.template Get<float>();
    widenX(value, x);
    xIn_.FreeTensor(x);
    scales = scaleIn_.template DeQue<Scale>();
    LocalTensor<float> factor = wideScale_.template Get<float>();
    widenScales(factor, scales);
    scaleIn_.FreeTensor(scales);
    LocalTensor<float> sum = sum_.template Get<float>();
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Mul(value, value, factor, n);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Add(sum, sum, value, n);
    AscendC::PipeBarrier<PIPE_V>();
  }

  void widenX(LocalTensor<float>& value, const LocalTensor<X>& x) {
    if constexpr (kInt8) {
      LocalTensor<half> middle = halfX_.template Get<half>();
      AscendC::Cast(middle, x, RoundMode::CAST_NONE, blocks_.perBlock);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::Cast(value, middle, RoundMode::CAST_NONE, blocks_.perBlock);
    } else {
      AscendC::Cast(value, x, RoundMode::CAST_NONE, blocks_.perBlock);
    }
  }

  void widenScales(LocalTensor<float>& factor, const LocalTensor<Scale>& scales) {
    const std::uint32_t groups = blocks_.perBlock / kGroup<Scale>;
    const std::uint32_t dstShape[2] = {groups, kGroup<Scale>};
    const std::uint32_t srcShape[2] = {groups, 1};
    if constexpr (kMx) {
      LocalTensor<bfloat16_t> middle = scaleBf16_.template Get<bfloat16_t>();
      for (std::uint32_t at = 0; at < groups; at += kScalesPerCast) {
        const std::uint32_t part = groups - at < kScalesPerCast ? groups - at : kScalesPerCast;
        AscendC::VF_CALL<castScales>(middle.GetPhyAddr(at),
                                     static_cast<const fp8_e8m0_t*>(scales.GetPhyAddr(at)), part);
      }
      AscendC::PipeBarrier<PIPE_V>();
      LocalTensor<float> narrow = scaleFloat_.template Get<float>();
      AscendC::Cast(narrow, middle, RoundMode::CAST_NONE, groups);
      AscendC::PipeBarrier<PIPE_V>();
      AscendC::BroadCast<float, 2, 1>(factor, narrow, dstShape, srcShape);
    } else {
      AscendC::BroadCast<float, 2, 1>(factor, scales, dstShape, srcShape);
    }
  }

  const HcclCombinOpParam* context_ = nullptr;
  AscendC::TPipe* pipe_ = nullptr;
  std::uint32_t rank_ = 0;
  std::uint32_t ranks_ = 0;
  std::uint32_t firstRank_ = 0;  // whose contribution a sum begins with
  std::uint32_t partition_ = 0;
  std::uint64_t core_ = 0;
  std::uint64_t elements_ = 0;
  std::uint64_t slice_ = 0;
  BlockRange blocks_;
  GlobalTensor<X> x_;
  GlobalTensor<Scale> scales_;
  GlobalTensor<Out> output_;
  AscendC::TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> xCopy_;
  AscendC::TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> scaleCopy_;
  AscendC::TQue<TPosition::VECIN, 1> xIn_;
  AscendC::TQue<TPosition::VECIN, 1> scaleIn_;
  AscendC::TQue<TPosition::VECOUT, 1> out_;
  AscendC::TBuf<> sum_, wideScale_, wideX_, halfX_, scaleBf16_, scaleFloat_, flag_, myStatus_, statuses_,
      zeros_;
};

}  // namespace vatlas::kernels
