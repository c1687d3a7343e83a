// What the acl calls do when they are used as they should be.
#include <cmath>
#include <cstring>
#include <vector>

#include "machine.h"

using namespace vatlas::test;

TEST_CASE("the twelve calls of nearly every program") {
  const Machine machine;
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  aclrtStream stream = nullptr;
  REQUIRE(aclrtCreateStream(&stream) == ACL_SUCCESS);
  void* device = nullptr;
  void* host = nullptr;
  REQUIRE(aclrtMalloc(&device, 1000, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
  REQUIRE(aclrtMallocHost(&host, 1000) == ACL_SUCCESS);
  CHECK(reinterpret_cast<std::uintptr_t>(device) % 64 == 0);
  std::memset(host, 0x5c, 1000);
  REQUIRE(aclrtMemcpy(device, 1000, host, 1000, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
  std::vector<unsigned char> back(1000);
  REQUIRE(aclrtMemcpy(back.data(), 1000, device, 1000, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
  CHECK(back == std::vector<unsigned char>(1000, 0x5c));
  REQUIRE(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
  CHECK(aclrtFree(device) == ACL_SUCCESS);
  CHECK(aclrtFreeHost(host) == ACL_SUCCESS);
  CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
  CHECK(aclrtResetDevice(0) == ACL_SUCCESS);
}

TEST_CASE("identity of the machine") {
  const Machine machine("ascend950pr_4p");
  uint32_t count = 0;
  REQUIRE(aclrtGetDeviceCount(&count) == ACL_SUCCESS);
  CHECK(count == 4);
  CHECK(std::string(aclrtGetSocName()) == "Ascend950PR_9589");
  REQUIRE(aclrtSetDevice(3) == ACL_SUCCESS);
  int32_t device = -1;
  REQUIRE(aclrtGetDevice(&device) == ACL_SUCCESS);
  CHECK(device == 3);
  size_t free = 0;
  size_t total = 0;
  REQUIRE(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total) == ACL_SUCCESS);
#if !defined(__SANITIZE_THREAD__)  // which leaves less room
  CHECK(total == std::size_t{128} << 30);
#endif
  void* memory = nullptr;
  REQUIRE(aclrtMalloc(&memory, 1 << 20, ACL_MEM_MALLOC_NORMAL_ONLY) == ACL_SUCCESS);
  size_t less = 0;
  REQUIRE(aclrtGetMemInfo(ACL_HBM_MEM, &less, &total) == ACL_SUCCESS);
  CHECK(free - less == 1 << 20);
}

TEST_CASE("contexts belong to threads") {
  const Machine machine;
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  aclrtContext first = nullptr;
  REQUIRE(aclrtGetCurrentContext(&first) == ACL_SUCCESS);
  onThread([&] {
    int32_t device = -1;
    CHECK(aclrtGetDevice(&device) == ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(aclrtSetCurrentContext(first) == ACL_SUCCESS);
    CHECK(aclrtGetDevice(&device) == ACL_SUCCESS);
    CHECK(device == 0);
  });
  aclrtContext other = nullptr;
  REQUIRE(aclrtCreateContext(&other, 1) == ACL_SUCCESS);
  int32_t device = -1;
  REQUIRE(aclrtGetDevice(&device) == ACL_SUCCESS);
  CHECK(device == 1);
  aclrtStream stream = nullptr;
  REQUIRE(aclrtCreateStream(&stream) == ACL_SUCCESS);
  REQUIRE(aclrtSetCurrentContext(first) == ACL_SUCCESS);
  CHECK(aclrtSynchronizeStream(stream) == ACL_ERROR_RT_STREAM_CONTEXT);
  // As some programs do: the device is reset, then the context destroyed.
  REQUIRE(aclrtSetDevice(1) == ACL_SUCCESS);
  CHECK(aclrtResetDevice(1) == ACL_SUCCESS);
  CHECK(aclrtDestroyContext(other) == ACL_SUCCESS);
}

TEST_CASE("events measure simulated time, streams wait for events") {
  float measured[2] = {};
  for (float& ms : measured) {
    const Machine machine;
    REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
    aclrtStream copy = nullptr;
    aclrtStream follower = nullptr;
    REQUIRE(aclrtCreateStream(&copy) == ACL_SUCCESS);
    REQUIRE(aclrtCreateStream(&follower) == ACL_SUCCESS);
    aclrtEvent start = nullptr;
    aclrtEvent end = nullptr;
    REQUIRE(aclrtCreateEvent(&start) == ACL_SUCCESS);
    REQUIRE(aclrtCreateEvent(&end) == ACL_SUCCESS);
    constexpr std::size_t kBytes = 54 << 20;
    void* device = nullptr;
    void* host = nullptr;
    REQUIRE(aclrtMalloc(&device, kBytes, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    REQUIRE(aclrtMallocHost(&host, kBytes) == ACL_SUCCESS);
    REQUIRE(aclrtRecordEvent(start, copy) == ACL_SUCCESS);
    REQUIRE(aclrtMemcpyAsync(device, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, copy) == ACL_SUCCESS);
    aclrtEvent copied = nullptr;
    REQUIRE(aclrtCreateEvent(&copied) == ACL_SUCCESS);
    REQUIRE(aclrtRecordEvent(copied, copy) == ACL_SUCCESS);
    REQUIRE(aclrtStreamWaitEvent(follower, copied) == ACL_SUCCESS);
    REQUIRE(aclrtRecordEvent(end, follower) == ACL_SUCCESS);
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    REQUIRE(aclrtStreamQuery(follower, &status) == ACL_SUCCESS);
    CHECK(status == ACL_STREAM_STATUS_NOT_READY);
    CHECK(aclrtEventElapsedTime(&ms, start, end) == ACL_ERROR_RT_EVENT_NOT_COMPLETE);
    REQUIRE(aclrtSynchronizeStream(follower) == ACL_SUCCESS);
    REQUIRE(aclrtStreamQuery(follower, &status) == ACL_SUCCESS);
    CHECK(status == ACL_STREAM_STATUS_COMPLETE);
    REQUIRE(aclrtEventElapsedTime(&ms, start, end) == ACL_SUCCESS);
    CHECK(aclrtEventElapsedTime(&ms, end, start) == ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL);
    REQUIRE(aclrtEventElapsedTime(&ms, start, end) == ACL_SUCCESS);
    CHECK(ms == Approx(static_cast<double>(kBytes) / 54e9 * 1e3).epsilon(0.02));
    aclrtFreeHost(host);
  }
  CHECK(measured[0] == measured[1]);
}

TEST_CASE("memset, copies between cards, pageable and pinned asynchronous copies") {
  const Machine machine;
  REQUIRE(aclrtSetDevice(1) == ACL_SUCCESS);
  void* far = nullptr;
  REQUIRE(aclrtMalloc(&far, 4096, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  void* near = nullptr;
  REQUIRE(aclrtMalloc(&near, 4096, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
  REQUIRE(aclrtMemset(near, 4096, 0x7e, 4096) == ACL_SUCCESS);
  REQUIRE(aclrtMemcpy(far, 4096, near, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE) == ACL_SUCCESS);
  std::vector<unsigned char> pageable(4096);
  REQUIRE(aclrtMemcpyAsync(pageable.data(), 4096, far, 4096, ACL_MEMCPY_DEVICE_TO_HOST, nullptr) ==
          ACL_SUCCESS);
  CHECK(pageable == std::vector<unsigned char>(4096, 0x7e));  // pageable: done when the call returns
  void* pinned = nullptr;
  REQUIRE(aclrtMallocHost(&pinned, 4096) == ACL_SUCCESS);
  REQUIRE(aclrtMemsetAsync(near, 4096, 1, 100, nullptr) == ACL_SUCCESS);
  REQUIRE(aclrtMemcpyAsync(pinned, 4096, near, 4096, ACL_MEMCPY_DEVICE_TO_HOST, nullptr) == ACL_SUCCESS);
  REQUIRE(aclrtFreeHost(pinned) == ACL_SUCCESS);  // freed under way: nothing bad happens
  REQUIRE(aclrtSynchronizeDevice() == ACL_SUCCESS);
}

TEST_CASE("reference counts of aclInit, and machines one after another") {
  for (int round = 0; round < 3; ++round) {
    REQUIRE(aclInit(nullptr) == ACL_SUCCESS);
    CHECK(aclInit(nullptr) == ACL_ERROR_REPEAT_INITIALIZE);
    uint64_t left = 99;
    CHECK(aclFinalizeReference(&left) == ACL_SUCCESS);
    CHECK(left == 1);
    CHECK(aclFinalizeReference(&left) == ACL_SUCCESS);
    CHECK(left == 0);
    CHECK(aclFinalize() == ACL_ERROR_REPEAT_FINALIZE);
  }
}

TEST_CASE("binary16 conversions round to nearest even") {
  const std::pair<float, unsigned> cases[] = {
      {0.0F, 0},           {-0.0F, 0x8000},         {1.0F, 0x3c00},           {65504.0F, 0x7bff},
      {65519.9F, 0x7bff},  {65520.0F, 0x7c00},      {5.9604645e-8F, 1},       {2.9802322e-8F, 0},
      {2.98023259e-8F, 1}, {6.1035156e-5F, 0x0400}, {1.00048828125F, 0x3c00}, {1.00146484375F, 0x3c02}};
  for (const auto& [value, code] : cases) {
    CAPTURE(value);
    CHECK(aclFloatToFloat16(value) == code);
  }
  CHECK(std::isnan(aclFloat16ToFloat(aclFloatToFloat16(std::nanf("")))));
  for (unsigned code = 0; code < 0x7c00; ++code) {
    const auto half = static_cast<aclFloat16>(code);
    REQUIRE(aclFloatToFloat16(aclFloat16ToFloat(half)) == half);
  }
  CHECK(aclDataTypeSize(ACL_BF16) == 2);
  CHECK(aclDataTypeSize(ACL_FLOAT8_E8M0) == 1);
  CHECK(aclDataTypeSize(ACL_INT4) == 0);
}
