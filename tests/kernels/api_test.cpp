// The kernel API on a simulated card: what it does, and what it refuses.
#include <catch2/catch.hpp>
#include <cstring>

#include "../sim/engine/small_machine.h"
#include "kernel_operator.h"

using namespace vatlas;
using sim::KernelFault;

namespace {

struct Args {
  std::byte* in;
  std::byte* out;
  int what;
};

using Body = void (*)(const Args&);

// Runs the body as a kernel of one block.
template <Body body>
sim::LaunchResult run(const std::vector<float>& input, std::vector<float>& output, int what = 0) {
  sim::Simulation s(test::smallCluster(1));
  Args args{test::allocate(s, 0, input.size() * 4 + 64), test::allocate(s, 0, output.size() * 4 + 64), what};
  std::memcpy(args.in, input.data(), input.size() * 4);
  const sim::LaunchResult result = test::runOne(
      s, 0, +[](const void* raw) { body(*static_cast<const Args*>(raw)); }, args);
  std::memcpy(output.data(), args.out, output.size() * 4);
  return result;
}

void pipeline(const Args& args) {
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 1> in;
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 2, 1024);
  pipe.InitBuffer(out, 2, 1024);
  AscendC::GlobalTensor<float> source, target;
  source.SetGlobalBuffer(reinterpret_cast<float*>(args.in));
  target.SetGlobalBuffer(reinterpret_cast<float*>(args.out));
  for (std::uint32_t at = 0; at < 1024; at += 256) {
    auto x = in.AllocTensor<float>();
    AscendC::DataCopy(x, source[at], 256);
    in.EnQue(x);
    x = in.DeQue<float>();
    auto y = out.AllocTensor<float>();
    AscendC::Muls(y, x, 2.0F, 256);
    AscendC::Adds(y, y, 1.0F, 256);
    in.FreeTensor(x);
    out.EnQue(y);
    y = out.DeQue<float>();
    AscendC::DataCopy(target[at], y, 256);
    out.FreeTensor(y);
  }
}

void strided(const Args& args) {
  AscendC::LocalTensor<float> ub(AscendC::TPosition::VECCALC, 0, 1024);
  AscendC::GlobalTensor<float> source, target;
  source.SetGlobalBuffer(reinterpret_cast<float*>(args.in));
  target.SetGlobalBuffer(reinterpret_cast<float*>(args.out));
  // Four rows of 12 bytes, 20 bytes apart, each padded to 32 bytes with 9 behind.
  AscendC::DataCopyPad(ub, source, AscendC::DataCopyExtParams{4, 12, 8, 0, 0},
                       AscendC::DataCopyPadExtParams<float>{true, 0, 5, 9.0F});
  AscendC::PipeBarrier<PIPE_ALL>();
  AscendC::DataCopy(target, ub, 32);
}

// What vector instructions leave in UB is there for everything that looks at it afterwards.
void looks(const Args& args) {
  constexpr std::uint32_t kCount = 2048;
  constexpr std::uint32_t kBytes = kCount * 4;
  const auto at = [](std::uint32_t place) {
    return AscendC::LocalTensor<float>(AscendC::TPosition::VECCALC, place * kBytes, kCount);
  };
  AscendC::GlobalTensor<float> source, target;
  source.SetGlobalBuffer(reinterpret_cast<float*>(args.in));
  target.SetGlobalBuffer(reinterpret_cast<float*>(args.out));
  auto x = at(0), y = at(1), z = at(2), w = at(3);
  AscendC::DataCopy(x, source, kCount);
  AscendC::PipeBarrier<PIPE_ALL>();
  AscendC::Adds(y, x, 1.0F, kCount);  // x + 1
  const float first = y.GetValue(100);
  y.SetValue(101, -5.0F);
  AscendC::Muls(z, y, 2.0F, kCount);
  float* raw = z.GetPhyAddr();
  AscendC::SetFlag<AscendC::HardEvent::V_S>(0);
  AscendC::WaitFlag<AscendC::HardEvent::V_S>(0);
  const float second = raw[102];
  raw[103] = -7.0F;
  AscendC::Add(w, z, y, kCount);
  AscendC::Reg::RegTensor<float> lanes;
  AscendC::Reg::DataCopy(lanes, static_cast<const float*>(w.GetPhyAddr(128)));
  AscendC::Reg::MaskReg mask{64};
  AscendC::Adds(x, w, 0.0F, kCount);
  AscendC::Reg::DataCopy(w.GetPhyAddr(128), lanes, mask);
  AscendC::Adds(w, w, 0.5F, kCount);
  AscendC::LocalTensor<float> sums(AscendC::TPosition::VECCALC, 4 * kBytes, 8);
  AscendC::Sum(sums, w, AscendC::SumParams{1, kCount, 64});
  AscendC::DataCopy(y, w, kCount);
  AscendC::Duplicate(w, 0.0F, kCount);
  const float third = sums.GetValue(0);
  AscendC::PipeBarrier<PIPE_ALL>();
  x.SetValue(0, first);
  x.SetValue(1, second);
  x.SetValue(2, third);
  AscendC::PipeBarrier<PIPE_ALL>();
  AscendC::DataCopy(target, x, kCount);
  AscendC::DataCopy(target[kCount], y, kCount);
  AscendC::DataCopy(target[2 * kCount], w, kCount);
}

void misuse(const Args& args) {
  AscendC::TPipe pipe;
  AscendC::GlobalTensor<float> source;
  source.SetGlobalBuffer(reinterpret_cast<float*>(args.in));
  AscendC::LocalTensor<float> a(AscendC::TPosition::VECCALC, 0, 64);
  AscendC::LocalTensor<float> odd(AscendC::TPosition::VECCALC, 4, 64);
  AscendC::LocalTensor<float> high(AscendC::TPosition::VECCALC, 248 * 1024 - 32, 8);
  AscendC::TQue<AscendC::TPosition::VECIN, 1> queue;
  switch (args.what) {
    case 0:
      AscendC::Add(odd, a, a, 8);
      break;
    case 1:
      AscendC::Add(a, a, high, 64);
      break;
    case 2:
      AscendC::Muls(a, a, 1.0F, -1);
      break;
    case 3:
      AscendC::DataCopy(high, source, 64);
      break;
    case 4:
      AscendC::SetFlag<AscendC::HardEvent::V_S>(8);
      break;
    case 5:
      pipe.InitBuffer(queue, 0, 32);
      break;
    case 6:
      pipe.InitBuffer(queue, 2, 200 * 1024);
      break;
    case 7:
      pipe.InitBuffer(queue, 1, 32);
      queue.AllocTensor<float>();
      queue.AllocTensor<float>();
      break;
    case 8:
      pipe.InitBuffer(queue, 1, 32);
      queue.DeQue<float>();
      break;
    case 9:
      AscendC::SetAtomicAdd<float>();
      break;
    case 10:
      (void)a.GetValue(100'000);
      break;
    case 11:
      (void)source.GetValue(1 << 20);
      break;
    case 12:
      AscendC::Sum(a, a, AscendC::SumParams{1, 8, 9});
      break;
    default:
      break;
  }
}

}  // namespace

TEST_CASE("queues, copies and arithmetic") {
  std::vector<float> input(1024);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i);
  std::vector<float> output(1024);
  const sim::LaunchResult r = run<pipeline>(input, output);
  if (r.fault) FAIL(r.fault->what);
  for (std::size_t i = 0; i < output.size(); ++i) REQUIRE(output[i] == 2 * static_cast<float>(i) + 1);
}

TEST_CASE("whatever looks at UB sees what vector instructions have left there") {
  constexpr std::size_t kCount = 2048;
  std::vector<float> input(kCount);
  for (std::size_t i = 0; i < kCount; ++i) input[i] = static_cast<float>(i % 97);
  std::vector<float> output(3 * kCount);
  const sim::LaunchResult r = run<looks>(input, output);
  if (r.fault) FAIL(r.fault->what);
  const auto y = [&](std::size_t i) { return i == 101 ? -5.0F : input[i] + 1; };
  const auto w = [&](std::size_t i) { return (i == 103 ? -7.0F : 2 * y(i)) + y(i); };
  float sum = 0;
  for (std::size_t i = 0; i < 64; ++i) sum += w(i) + 0.5F;  // exact in any order
  CHECK(output[0] == y(100));
  CHECK(output[1] == 2 * y(102));
  CHECK(output[2] == sum);
  for (std::size_t i = 3; i < kCount; ++i) REQUIRE(output[i] == w(i));
  for (std::size_t i = 0; i < kCount; ++i) REQUIRE(output[kCount + i] == w(i) + 0.5F);
  for (std::size_t i = 0; i < kCount; ++i) REQUIRE(output[2 * kCount + i] == 0.0F);
}

TEST_CASE("DataCopyPad: rows, gaps and padding") {
  std::vector<float> input(64);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i);
  std::vector<float> output(32);
  const sim::LaunchResult r = run<strided>(input, output);
  if (r.fault) FAIL(r.fault->what);
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t i = 0; i < 8; ++i) {
      CAPTURE(row, i);
      CHECK(output[row * 8 + i] == (i < 3 ? static_cast<float>(row * 5 + i) : 9.0F));
    }
  }
}

TEST_CASE("misuse faults, and says what is wrong") {
  const std::pair<KernelFault, const char*> expected[] = {
      {KernelFault::Misaligned, "multiple of 32"},
      {KernelFault::BadAccess, "Add"},
      {KernelFault::ApiMisuse, "count is -1"},
      {KernelFault::BadAccess, "DataCopy"},
      {KernelFault::ApiMisuse, "event id"},
      {KernelFault::ApiMisuse, "InitBuffer"},
      {KernelFault::ApiMisuse, "UB is full"},
      {KernelFault::ApiMisuse, "in use"},
      {KernelFault::ApiMisuse, "empty"},
      {KernelFault::ApiMisuse, "not modelled"},
      {KernelFault::BadAccess, "GetValue"},
      {KernelFault::BadAccess, "scalar load"},
      {KernelFault::ApiMisuse, "Sum"},
  };
  for (int what = 0; what < static_cast<int>(std::size(expected)); ++what) {
    std::vector<float> output(8);
    const sim::LaunchResult r = run<misuse>(std::vector<float>(64), output, what);
    CAPTURE(what);
    REQUIRE(r.fault);
    CHECK(r.fault->kind == expected[what].first);
    CHECK_THAT(r.fault->what, Catch::Contains(expected[what].second));
  }
}
