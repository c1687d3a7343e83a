// Every check of the quantized operators, with its code.
#include <cstring>
#include <string>
#include <vector>

#include "aclnnop/aclnn_quant_all_reduce.h"
#include "aclnnop/aclnn_quant_reduce_scatter.h"
#include "hccl/hccl.h"
#include "machine.h"
#include "vatlas/runtime/communicators.h"

using namespace vatlas::test;

namespace {

using Dims = std::vector<int64_t>;

struct Spec {
  Dims dims;
  aclDataType type;
  aclFormat format = ACL_FORMAT_ND;
  bool null = false;
  Dims strides = {};
};

struct Case {
  Spec x{{1024, 5120}, ACL_FLOAT8_E5M2};
  Spec scales{{1024, 80, 2}, ACL_FLOAT8_E8M0};
  Spec output{{1024, 5120}, ACL_FLOAT16};
  std::string group;
  bool nullGroup = false;
  const char* reduceOp = "sum";
};

class Tensors {
 public:
  aclTensor* make(const Spec& spec) {
    if (spec.null) return nullptr;
    aclTensor* tensor = aclCreateTensor(spec.dims.data(), spec.dims.size(), spec.type,
                                        spec.strides.empty() ? nullptr : spec.strides.data(), 0, spec.format,
                                        spec.dims.data(), spec.dims.size(), reinterpret_cast<void*>(64));
    same(tensor != nullptr, true);
    all_.push_back(tensor);
    return tensor;
  }
  ~Tensors() {
    for (aclTensor* tensor : all_) same(aclDestroyTensor(tensor), 0);
  }

 private:
  std::vector<aclTensor*> all_;
};

class Communicators {
 public:
  explicit Communicators(int ranks) : comms_(static_cast<std::size_t>(ranks)) {
    std::vector<int32_t> devices;
    for (int i = 0; i < ranks; ++i) devices.push_back(i);
    REQUIRE(HcclCommInitAll(static_cast<uint32_t>(ranks), devices.data(), comms_.data()) == HCCL_SUCCESS);
    char name[128] = {};
    REQUIRE(HcclGetCommName(comms_[0], name) == HCCL_SUCCESS);
    name_ = name;
    REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  }
  const std::string& name() const { return name_; }
  HcclComm operator[](std::size_t i) const { return comms_[i]; }

 private:
  std::vector<HcclComm> comms_;
  std::string name_;
};

// The code of phase 1; a refusal has a message.
int phase1(const Case& c, bool scatter, aclOpExecutor** executor = nullptr, std::string* said = nullptr) {
  Tensors tensors;
  aclOpExecutor* own = nullptr;
  uint64_t workspace = 0;
  const auto call = scatter ? &aclnnQuantReduceScatterGetWorkspaceSize : &aclnnQuantAllReduceGetWorkspaceSize;
  aclTensor* x = tensors.make(c.x);
  aclTensor* scales = tensors.make(c.scales);
  aclTensor* output = tensors.make(c.output);
  const int code = call(x, scales, c.nullGroup ? nullptr : c.group.c_str(), c.reduceOp, output, &workspace,
                        executor == nullptr ? &own : executor);
  if (code == 0) {
    CHECK(workspace == 16 << 20);
    if (own != nullptr) CHECK(aclDestroyAclOpExecutor(own) == 0);
  } else {
    const std::string text = message();
    CHECK(text != "");
    if (said != nullptr) *said = text;
  }
  return code;
}

// The message of a refusal by the tiling.
std::string tilingMessage(const Case& c) {
  std::string said;
  CHECK(phase1(c, false, nullptr, &said) == 561002);
  return said;
}

}  // namespace

TEST_CASE("all_reduce: every row of checks") {
  const Machine machine("ascend950dt_8p");
  const Communicators comms(8);
  Case good;
  good.group = comms.name();
  REQUIRE(phase1(good, false) == 0);
  const auto with = [&](auto&& change) {
    Case c = good;
    change(c);
    return phase1(c, false);
  };
  // null
  CHECK(with([](Case& c) { c.x.null = true; }) == 161001);
  CHECK(with([](Case& c) { c.scales.null = true; }) == 161001);
  CHECK(with([](Case& c) { c.output.null = true; }) == 161001);
  // types
  CHECK(with([](Case& c) { c.x.type = ACL_INT8; }) == 161002);
  CHECK(with([](Case& c) { c.x.type = ACL_HIFLOAT8; }) == 161002);
  CHECK(with([](Case& c) { c.x.type = ACL_FLOAT16; }) == 161002);
  CHECK(with([](Case& c) { c.x.type = ACL_FLOAT4_E2M1; }) == 161002);
  CHECK(with([](Case& c) { c.scales.type = ACL_FLOAT16; }) == 161002);
  CHECK(with([](Case& c) { c.output.type = ACL_INT8; }) == 161002);
  // formats: private ones here, public ones by the tiling
  for (const aclFormat format : {ACL_FORMAT_FRACTAL_NZ, ACL_FORMAT_FRACTAL_Z, ACL_FORMAT_NC1HWC0}) {
    CHECK(with([&](Case& c) { c.x.format = format; }) == 161002);
    CHECK(with([&](Case& c) { c.scales.format = format; }) == 161002);
    CHECK(with([&](Case& c) { c.output.format = format; }) == 161002);
  }
  CHECK(with([](Case& c) { c.x.format = ACL_FORMAT_NCHW; }) == 561002);
  CHECK(with([](Case& c) { c.scales.format = ACL_FORMAT_NCHW; }) == 561002);
  CHECK(with([](Case& c) { c.output.format = ACL_FORMAT_NCHW; }) == 561002);
  // group
  CHECK(with([](Case& c) { c.nullGroup = true; }) == 161002);
  CHECK(with([](Case& c) { c.group = std::string(128, 'g'); }) == 161002);
  CHECK(with([](Case& c) { c.group = std::string(127, 'g'); }) == 561002);  // long enough, but unknown
  CHECK(with([](Case& c) { c.group = ""; }) == 561002);
  // reduceOp
  CHECK(with([](Case& c) { c.reduceOp = nullptr; }) == 561002);
  CHECK(with([](Case& c) { c.reduceOp = "add"; }) == 561002);
  // shapes
  CHECK(with([](Case& c) { c.x.dims = {1024}; }) == 561002);
  CHECK(with([](Case& c) { c.x.dims = {2, 8, 64, 5120}; }) == 561002);
  CHECK(with([](Case& c) { c.x.dims = {0, 5120}; }) == 561002);
  CHECK(with([](Case& c) { c.x.dims = {1024, 0}; }) == 561002);
  CHECK(with([](Case& c) { c.x.dims = {0, 8, 5120}; }) == 561002);
  CHECK(with([](Case& c) { c.x.dims = {1023, 5120}; }) == 561002);  // not a multiple of 8 rows
  CHECK(with([](Case& c) { c.x.dims = {1024, 896}; }) == 561002);
  CHECK(with([](Case& c) { c.x.dims = {1024, 8320}; }) == 561002);
  CHECK(with([](Case& c) { c.x.dims = {1024, 5184}; }) == 561002);
  const std::pair<int64_t, const char*> hidden[] = {
      {5184, "is 5248"}, {100, "is 1024"}, {int64_t{1} << 40, "is 8192"}};
  for (const auto& [h, nearest] : hidden) {
    Case c = good;
    c.x.dims = {8, h};
    CHECK_THAT(tilingMessage(c), Catch::Contains("nearest legal H") && Catch::Contains(nearest));
  }
  CHECK(with([](Case& c) { c.x.dims = {int64_t{1} << 40, 8192}; }) == 561002);
  CHECK(with([](Case& c) { c.scales.dims = {1024, 80}; }) == 561002);
  CHECK(with([](Case& c) { c.scales.dims = {1024, 80, 1}; }) == 561002);
  CHECK(with([](Case& c) { c.scales.dims = {1024, 40, 2}; }) == 561002);
  CHECK(with([](Case& c) { c.output.dims = {1024, 4096}; }) == 561002);
  CHECK(with([](Case& c) { c.output.dims = {128, 5120}; }) == 561002);
  CHECK(with([](Case& c) { c.x.dims = {8, 128, 5120}; }) == 561002);  // 3-D x with 2-D scales and output
  CHECK(with([](Case& c) { c.x.strides = {1, 1024}; }) == 161002);
  CHECK(with([](Case& c) { c.scales.strides = {162, 2, 1}; }) == 161002);
  CHECK(with([](Case& c) { c.output.strides = {5248, 1}; }) == 161002);
  CHECK(with([](Case& c) { c.output.strides = {5248, 1}, c.group = ""; }) == 161002);  // before the group
  // out pointers
  Tensors tensors;
  aclTensor* x = tensors.make(good.x);
  aclTensor* scales = tensors.make(good.scales);
  aclTensor* output = tensors.make(good.output);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnQuantAllReduceGetWorkspaceSize(x, scales, good.group.c_str(), "sum", output, nullptr,
                                            &executor) == 161001);
  CHECK(aclnnQuantAllReduceGetWorkspaceSize(x, scales, good.group.c_str(), "sum", output, &size, nullptr) ==
        161001);
  CHECK(aclnnQuantAllReduceGetWorkspaceSize(reinterpret_cast<aclTensor*>(0x10), scales, good.group.c_str(),
                                            "sum", output, &size, &executor) == 161002);
}

TEST_CASE("all_reduce: the shapes and types that are legal") {
  const Machine machine("ascend950dt_8p");
  const Communicators comms(8);
  const struct {
    Dims x;
    aclDataType type;
    Dims scales;
    aclDataType scaleType, output;
  } cases[] = {
      {{1024, 5120}, ACL_FLOAT8_E4M3FN, {1024, 80, 2}, ACL_FLOAT8_E8M0, ACL_FLOAT16},
      {{2048, 5120}, ACL_HIFLOAT8, {2048, 40}, ACL_FLOAT, ACL_FLOAT},
      {{1024, 7168}, ACL_FLOAT8_E5M2, {1024, 56}, ACL_FLOAT, ACL_FLOAT16},
      {{8, 128, 4096}, ACL_FLOAT8_E4M3FN, {8, 128, 64, 2}, ACL_FLOAT8_E8M0, ACL_BF16},
      {{16, 128, 4096}, ACL_INT8, {16, 128, 32}, ACL_FLOAT, ACL_BF16},
      {{8, 128, 8192}, ACL_FLOAT8_E5M2, {8, 128, 64}, ACL_FLOAT, ACL_FLOAT},
  };
  for (const auto& c : cases) {
    Case legal;
    legal.x = {c.x, c.type};
    legal.scales = {c.scales, c.scaleType};
    legal.output = {c.x, c.output};
    legal.group = comms.name();
    CHECK(phase1(legal, false) == 0);
  }
}

TEST_CASE("reduce_scatter: its own rows") {
  const Machine machine("ascend950dt_4p");
  const Communicators comms(4);
  Case good;
  good.group = comms.name();
  good.output.dims = {256, 5120};
  CHECK(phase1(good, true) == 0);
  Case c = good;
  c.x.format = ACL_FORMAT_FRACTAL_NZ;  // not looked at by its first layer
  CHECK(phase1(c, true) == 561002);
  c = good;
  c.output.dims = {1024, 5120};
  CHECK(phase1(c, true) == 561002);
  c = good;
  c.x.dims = {4, 256, 5120};
  c.scales.dims = {4, 256, 80, 2};
  CHECK(phase1(c, true) == 0);  // the output stays 2-D
  c.output.dims = {1, 256, 5120};
  CHECK(phase1(c, true) == 561002);
  c = good;
  c.x.null = true;
  CHECK(phase1(c, true) == 161001);
}

TEST_CASE("window size, by the environment") {
  const Machine machine("ascend950dt_2p");
  const Communicators comms(2);
  Case c;
  c.group = comms.name();
  setenv("HCCL_BUFFSIZE", "12", 1);
  CHECK(phase1(c, false) == 561002);  // 2 * (5.0 + 0.16 + 1) MB
  CHECK(phase1(c, false) == 561002);
  setenv("HCCL_BUFFSIZE", "13", 1);
  CHECK(phase1(c, false) == 0);
  setenv("HCCL_BUFFSIZE", "nonsense", 1);
  CHECK(phase1(c, false) == 0);  // the default of 200 stays
  unsetenv("HCCL_BUFFSIZE");
}

TEST_CASE("a communicator of other operators") {
  using vatlas::runtime::CommunicatorUse;
  const Machine machine("ascend950dt_2p");
  for (const CommunicatorUse use : {CommunicatorUse::Collectives, CommunicatorUse::UserKernels}) {
    const Communicators comms(2);
    Case c;
    c.group = comms.name();
    CHECK(phase1(c, false) == 0);
    vatlas::runtime::noteCommunicatorUse(comms.name(), 0, use);
    CHECK_THAT(tilingMessage(c), Catch::Contains(comms.name()) && Catch::Contains("same window"));
    c.x.dims = {1024, 100};  // the communicator is looked at before the shapes
    CHECK_THAT(tilingMessage(c), Catch::Contains("same window"));
  }
}

TEST_CASE("ranks and wiring") {
  const Machine machine("atlas350_8p");
  const Communicators eight(8);
  Case c;
  c.group = eight.name();
  CHECK(phase1(c, false) == 561002);
  const Communicators four(4);  // within one mesh
  c.group = four.name();
  CHECK(phase1(c, false) == 0);
  int32_t devices[3] = {0, 1, 2};
  HcclComm comms[3] = {};
  REQUIRE(HcclCommInitAll(3, devices, comms) == HCCL_SUCCESS);
  char name[128] = {};
  REQUIRE(HcclGetCommName(comms[0], name) == HCCL_SUCCESS);
  c.group = name;
  CHECK(phase1(c, false) == 561002);
  REQUIRE(aclrtSetDevice(7) == ACL_SUCCESS);
  CHECK(phase1(c, false) == 561002);  // the communicator is not on this device
  onThread([&] { CHECK(phase1(c, false) == 561002); });
}

TEST_CASE("phase 2: executors, workspaces, streams") {
  const Machine machine("ascend950dt_2p");
  const Communicators comms(2);
  Case good;
  good.group = comms.name();
  void* workspace = nullptr;
  REQUIRE(aclrtMalloc(&workspace, 16 << 20, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
  const auto executor = [&] {
    aclOpExecutor* made = nullptr;
    REQUIRE(phase1(good, false, &made) == 0);
    return made;
  };
  CHECK(aclnnQuantAllReduce(workspace, 16 << 20, nullptr, nullptr) == 561000);
  CHECK(aclnnQuantAllReduce(workspace, 16 << 20, reinterpret_cast<aclOpExecutor*>(workspace), nullptr) ==
        561000);
  CHECK(aclnnQuantAllReduce(nullptr, 16 << 20, executor(), nullptr) == 561000);
  CHECK(aclnnQuantAllReduce(workspace, 1, executor(), nullptr) == 561000);
  CHECK(aclnnQuantAllReduce(workspace, 17 << 20, executor(), nullptr) == 561000);
  CHECK(aclnnQuantReduceScatter(workspace, 16 << 20, executor(), nullptr) == 561000);
  CHECK(aclnnQuantAllReduce(workspace, 16 << 20, executor(), workspace) == 561000);
  aclOpExecutor* once = executor();
  CHECK(aclnnQuantAllReduce(workspace, 1, once, nullptr) == 561000);
  CHECK(aclnnQuantAllReduce(workspace, 16 << 20, once, nullptr) == 561000);  // used up
  CHECK(aclSetAclOpExecutorRepeatable(nullptr) == 561103);
  aclOpExecutor* repeatable = executor();
  CHECK(aclSetAclOpExecutorRepeatable(repeatable) == 0);
  CHECK(aclDestroyAclOpExecutor(repeatable) == 0);
  CHECK(aclDestroyAclOpExecutor(repeatable) == 561103);
  aclOpExecutor* orphan = executor();
  REQUIRE(HcclCommDestroy(comms[0]) == HCCL_SUCCESS);
  CHECK(aclnnQuantAllReduce(workspace, 16 << 20, orphan, nullptr) == 561000);
  CHECK_THAT(message(), Catch::Contains("destroyed"));
}

TEST_CASE("bad addresses end the kernel, with an explanation at the next synchronize") {
  const Machine machine("ascend950dt_2p");
  const Communicators comms(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      same(aclrtSetDevice(rank), ACL_SUCCESS);
      Case c;
      c.group = comms.name();
      void* workspace = nullptr;
      same(aclrtMalloc(&workspace, 16 << 20, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
      Tensors tensors;
      aclOpExecutor* executor = nullptr;
      uint64_t size = 0;
      same(aclnnQuantAllReduceGetWorkspaceSize(tensors.make(c.x), tensors.make(c.scales), c.group.c_str(),
                                               "sum", tensors.make(c.output), &size, &executor),
           0);
      same(aclnnQuantAllReduce(workspace, size, executor, nullptr), 0);
      same(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
      contains(message(), "no live allocation");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("tensors: queries and misuse") {
  const int64_t dims[3] = {2, 3, 4};
  aclTensor* tensor = aclCreateTensor(dims, 3, ACL_FLOAT, nullptr, 5, ACL_FORMAT_ND, dims, 3, nullptr);
  REQUIRE(tensor != nullptr);
  int64_t* values = nullptr;
  uint64_t count = 0;
  REQUIRE(aclGetViewStrides(tensor, &values, &count) == 0);
  CHECK(std::vector<int64_t>(values, values + count) == std::vector<int64_t>{12, 4, 1});
  delete[] values;
  REQUIRE(aclGetViewShape(tensor, &values, &count) == 0);
  CHECK(std::vector<int64_t>(values, values + count) == std::vector<int64_t>{2, 3, 4});
  delete[] values;
  int64_t offset = 0;
  CHECK(aclGetViewOffset(tensor, &offset) == 0);
  CHECK(offset == 5);
  CHECK(aclGetViewOffset(tensor, nullptr) == 161001);
  CHECK(aclGetViewOffset(nullptr, &offset) == 161001);
  void* address = &offset;
  CHECK(aclSetRawTensorAddr(tensor, address) == 0);
  address = nullptr;
  CHECK(aclGetRawTensorAddr(tensor, &address) == 0);
  CHECK(address == &offset);
  CHECK(aclDestroyTensor(nullptr) == 0);
  CHECK(aclDestroyTensor(tensor) == 0);
  CHECK(aclDestroyTensor(tensor) == 161002);
  CHECK(aclGetViewOffset(tensor, &offset) == 161002);
  CHECK(aclCreateTensor(nullptr, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 3, nullptr) == nullptr);
  CHECK(aclCreateTensor(dims, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 3, nullptr) == nullptr);
  const int64_t huge[3] = {int64_t{1} << 40, int64_t{1} << 40, 8192};
  CHECK(aclCreateTensor(huge, 3, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 3, nullptr) == nullptr);
  const int64_t negative[1] = {-1};
  CHECK(aclCreateTensor(negative, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 3, nullptr) == nullptr);
}
