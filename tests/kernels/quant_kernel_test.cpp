// The built-in kernels on the simulated cards, against a reference written from the operators' definition.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "quant_reference.h"
#include "vatlas/kernel/hccl_context.h"
#include "vatlas/kernel/quant_tiling.h"
#include "vatlas/runtime/config.h"
#include "vatlas/sim/simulation.h"

using namespace vatlas;
using test::QuantCase;

namespace vatlas::runtime {
// The loader of device images, as the session uses it.
struct KernelEntry {
  VatlasKernelEntry entry = nullptr;
  std::uint32_t type = 0;
  std::uint32_t argsBytes = 0;
  std::string error;
};
KernelEntry findKernel(const std::string& image, const std::string& kernel);
}  // namespace vatlas::runtime

namespace {

constexpr std::uint64_t kWindowMb = 8;

class Cluster {
 public:
  explicit Cluster(int ranks, std::uint64_t windowMb = kWindowMb)
      : config_(runtime::loadCluster(runtime::findCluster("ascend950dt_" + std::to_string(ranks) + "p"))),
        simulation_(config_),
        windowBytes_(2 * windowMb * 1024 * 1024 + 1024 * 1024) {
    for (int r = 0; r < ranks; ++r) windows_.push_back(allocate(r, windowBytes_));
    for (int r = 0; r < ranks; ++r) {
      auto* context =
          reinterpret_cast<kernels::HcclCombinOpParam*>(allocate(r, sizeof(kernels::HcclCombinOpParam)));
      context->rankId = static_cast<std::uint32_t>(r);
      context->rankDim = static_cast<std::uint32_t>(ranks);
      context->winSize = windowBytes_;
      for (std::size_t p = 0; p < windows_.size(); ++p) {
        context->windowsIn[p] = reinterpret_cast<std::uint64_t>(windows_[p]);
        context->windowsOut[p] = context->windowsIn[p] + windowBytes_ / 2;
      }
      contexts_.push_back(context);
    }
  }

  sim::Simulation& simulation() { return simulation_; }
  std::uint8_t* window(int rank) { return windows_[static_cast<std::size_t>(rank)]; }
  std::uint64_t windowBytes() const { return windowBytes_; }

  struct Outcome {
    std::vector<std::vector<std::uint8_t>> outputs;
    std::vector<sim::LaunchResult> results;
  };

  Outcome run(const QuantCase& c, bool scatter, const std::vector<std::vector<std::uint8_t>>& x,
              const std::vector<std::vector<std::uint8_t>>& scales) {
    const std::string op = scatter ? "quant_reduce_scatter" : "quant_all_reduce";
    const runtime::KernelEntry kernel =
        runtime::findKernel(op, op + "_" + c.x + "_" + c.scales + "_" + c.output);
    INFO(kernel.error);
    REQUIRE(kernel.entry != nullptr);
    const std::uint64_t slices = scatter ? static_cast<std::uint64_t>(c.ranks) : 1;
    const std::uint64_t outBytes = c.elements() / slices * c.outputSize();
    std::vector<sim::KernelLaunch> parts;
    std::vector<std::uint8_t*> outs;
    std::vector<std::uint8_t*> all;
    for (int r = 0; r < c.ranks; ++r) {
      const auto i = static_cast<std::size_t>(r);
      kernels::QuantKernelArgs args{};
      args.x = allocate(r, x[i].size());
      args.scales = allocate(r, scales[i].size());
      args.output = allocate(r, outBytes);
      args.tiling = allocate(r, sizeof(kernels::QuantTiling));
      std::memcpy(args.x, x[i].data(), x[i].size());
      std::memcpy(args.scales, scales[i].data(), scales[i].size());
      auto* tiling = reinterpret_cast<kernels::QuantTiling*>(args.tiling);
      tiling->options.order = c.rankOrder ? kernels::QuantOrder::Rank : kernels::QuantOrder::OwnFirst;
      kernels::QuantAllReduceTilingInfo& info = tiling->data.quantAllReduceTilingInfo;
      const auto cores = static_cast<std::uint64_t>(config_.product.aivCount);
      info = {c.rows,
              c.hidden,
              c.hidden / (c.group() == 32 ? 64 : 128),
              cores,
              kWindowMb << 20,
              kernels::hostElementsPerBlock(c.elements() / slices, cores),
              kernels::kBlockAlign};
      sim::KernelLaunch launch;
      launch.device = r;
      launch.order = {r, 1, 0};
      launch.entry = kernel.entry;
      launch.name = op;
      launch.args.resize(sizeof args);
      std::memcpy(launch.args.data(), &args, sizeof args);
      launch.blocks = config_.product.aivCount;
      launch.hcclContext = contexts_[i];
      launch.start = simulation_.now();
      launch.timeout = 100 * sim::kMillisecond;
      parts.push_back(std::move(launch));
      outs.push_back(args.output);
      for (std::uint8_t* p : {args.x, args.scales, args.output, args.tiling}) all.push_back(p);
    }
    Outcome outcome;
    outcome.results.resize(parts.size());
    simulation_.launch(std::move(parts),
                       [&](std::size_t i, const sim::LaunchResult& r) { outcome.results[i] = r; });
    simulation_.run(sim::kNever);
    for (std::uint8_t* out : outs) outcome.outputs.emplace_back(out, out + outBytes);
    for (std::uint8_t* p : all) simulation_.memory().release(p);
    return outcome;
  }

 private:
  std::uint8_t* allocate(int card, std::uint64_t bytes) {
    void* address = nullptr;
    REQUIRE(simulation_.memory().allocate(card, bytes, 64, true, address) == sim::MemoryStatus::Ok);
    return static_cast<std::uint8_t*>(address);
  }

  sim::ClusterConfig config_;
  sim::Simulation simulation_;
  std::uint64_t windowBytes_;
  std::vector<std::uint8_t*> windows_;
  std::vector<kernels::HcclCombinOpParam*> contexts_;
};

using Bytes = std::vector<std::vector<std::uint8_t>>;

// Every code of x occurs; scales are moderate, and now and then anything at all.
void generate(const QuantCase& c, std::uint64_t seed, Bytes& x, Bytes& scales) {
  std::mt19937_64 random(seed);
  x.clear();
  scales.clear();
  for (int r = 0; r < c.ranks; ++r) {
    std::vector<std::uint8_t> values(c.elements());
    for (std::uint8_t& v : values) v = static_cast<std::uint8_t>(random());
    std::vector<std::uint8_t> factors(c.scaleBytes());
    for (std::uint64_t i = 0; i < c.scaleCount(); ++i) {
      if (c.scales == "e8m0") {
        factors[i] = static_cast<std::uint8_t>(random() % 50 == 0 ? random() : 120 + random() % 16);
      } else {
        const float f = static_cast<float>(static_cast<double>(random() % 1000003) / 1e5 - 5);
        std::memcpy(factors.data() + 4 * i, &f, 4);
      }
    }
    x.push_back(std::move(values));
    scales.push_back(std::move(factors));
  }
}

void check(Cluster& cluster, const QuantCase& c, bool scatter, std::uint64_t seed) {
  CAPTURE(c.x, c.scales, c.output, c.ranks, c.rows, c.hidden, scatter, seed);
  Bytes x;
  Bytes scales;
  generate(c, seed, x, scales);
  const Cluster::Outcome got = cluster.run(c, scatter, x, scales);
  for (int r = 0; r < c.ranks; ++r) {
    const auto i = static_cast<std::size_t>(r);
    if (got.results[i].fault) FAIL(got.results[i].fault->what);
    CHECK(got.outputs[i] == test::quantReference(c, x, scales, r, scatter));
  }
}

}  // namespace

TEST_CASE("every combination of types gives the reference's bits") {
  for (const int ranks : {2, 4, 8}) {
    Cluster cluster(ranks);
    std::uint64_t seed = 1;
    for (const char* x : {"int8", "hif8", "e4m3fn", "e5m2"}) {
      for (const char* scales : {"f32", "e8m0"}) {
        if (std::string(scales) == "e8m0" && std::string(x)[0] != 'e') continue;
        for (const char* output : {"f32", "f16", "bf16"}) {
          for (const bool scatter : {false, true})
            check(cluster, {x, scales, output, ranks, 8, 1024}, scatter, seed++);
        }
      }
    }
  }
}

TEST_CASE("in rank order all ranks agree, where with their own data first they do not") {
  for (const int ranks : {4, 8}) {
    Cluster cluster(ranks);
    for (const bool rankOrder : {false, true}) {
      const QuantCase c{"int8", "f32", "f32", ranks, 8, 1024, rankOrder};
      for (const bool scatter : {false, true}) check(cluster, c, scatter, 300);
      Bytes x;
      Bytes scales;
      generate(c, 300, x, scales);
      const Cluster::Outcome got = cluster.run(c, false, x, scales);
      for (std::size_t r = 1; r < got.outputs.size(); ++r)
        CHECK((got.outputs[r] == got.outputs[0]) == rankOrder);
    }
  }
}

TEST_CASE("odd shapes, tails and repeated calls on one window") {
  Cluster cluster(2);
  const std::uint64_t shapes[][2] = {{2, 1152},  {2, 1280},   {6, 1024}, {10, 7168},
                                     {96, 5120}, {134, 8192}, {2, 8064}};
  std::uint64_t seed = 100;
  for (const auto& shape : shapes) {
    for (const bool scatter : {false, true}) {
      check(cluster, {"e4m3fn", "e8m0", "bf16", 2, shape[0], shape[1]}, scatter, seed++);
      check(cluster, {"int8", "f32", "f32", 2, shape[0], shape[1]}, scatter, seed++);
    }
  }
}

TEST_CASE("times are the same in every process and grow with the work") {
  const QuantCase small{"e4m3fn", "e8m0", "bf16", 4, 8, 1024};
  const QuantCase large{"e4m3fn", "e8m0", "bf16", 4, 256, 5120};
  std::vector<sim::SimTime> first;
  for (int round = 0; round < 2; ++round) {
    Cluster cluster(4);
    std::vector<sim::SimTime> times;
    for (const QuantCase& c : {small, large}) {
      Bytes x;
      Bytes scales;
      generate(c, 5, x, scales);
      for (const sim::LaunchResult& r : cluster.run(c, false, x, scales).results)
        times.push_back(r.end - r.start);
    }
    if (round == 0) first = times;
    CHECK(times == first);
    CHECK(times[4] > times[0]);
  }
}

TEST_CASE("a window that is too small is a fault that names the sizes") {
  Cluster cluster(2, 1);
  const QuantCase c{"int8", "f32", "f32", 2, 256, 8192};
  Bytes x;
  Bytes scales;
  generate(c, 1, x, scales);
  const Cluster::Outcome got = cluster.run(c, false, x, scales);
  REQUIRE(got.results[0].fault);
  CHECK(got.results[0].fault->kind == sim::KernelFault::WindowOverrun);
  CHECK_THAT(got.results[0].fault->what, Catch::Contains("HCCL_BUFFSIZE"));
}

TEST_CASE("nothing is written beyond what the layout allows") {
  Cluster cluster(2);
  const QuantCase c{"e4m3fn", "e8m0", "f16", 2, 10, 1280};  // a tail: 12800 elements in blocks of 2048
  std::uint8_t* data = cluster.window(0) + (1 << 20);
  std::memset(data, 0xAB, 1 << 20);
  check(cluster, c, false, 7);
  const std::uint64_t used = c.elements() + c.scaleBytes();
  for (std::uint64_t i = used; i < (1 << 20); ++i) REQUIRE(data[i] == 0xAB);
}
