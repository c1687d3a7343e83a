// Misuse is answered with a code and an explanation, and nothing is lost.
#include <atomic>
#include <vector>

#include "machine.h"

using namespace vatlas::test;

TEST_CASE("null pointers") {
  const Machine machine;
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  CHECK(aclrtCreateStream(nullptr) == ACL_ERROR_INVALID_PARAM);
  CHECK_THAT(message(), Catch::Contains("stream"));
  CHECK(aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtFree(nullptr) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtGetDevice(nullptr) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtGetDeviceCount(nullptr) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtCreateEvent(nullptr) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtCreateContext(nullptr, 0) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtDestroyStream(nullptr) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtGetMemInfo(ACL_HBM_MEM, nullptr, nullptr) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtEventElapsedTime(nullptr, nullptr, nullptr) == ACL_ERROR_INVALID_PARAM);
  CHECK(message() != "");
  CHECK(message() == "");  // reading clears
}

TEST_CASE("devices and contexts that are none") {
  const Machine machine;
  CHECK(aclrtSetDevice(-1) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtSetDevice(2) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK_THAT(message(), Catch::Contains("0 to 1"));
  CHECK(aclrtResetDevice(0) == ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  aclrtStream stream = nullptr;
  onThread([&] { CHECK(aclrtCreateStream(&stream) == ACL_ERROR_RT_CONTEXT_NULL); });
  onThread([&] {
    void* memory = nullptr;
    CHECK(aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_RT_CONTEXT_NULL);
    CHECK(aclrtSynchronizeStream(nullptr) == ACL_ERROR_RT_CONTEXT_NULL);
  });
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  aclrtContext context = nullptr;
  REQUIRE(aclrtGetCurrentContext(&context) == ACL_SUCCESS);
  CHECK(aclrtDestroyContext(context) == ACL_ERROR_RT_PARAM_INVALID);  // the default one
  CHECK(aclrtSetCurrentContext(reinterpret_cast<aclrtContext>(0x1234)) == ACL_ERROR_RT_INVALID_HANDLE);
  int onStack = 0;
  CHECK(aclrtSetCurrentContext(&onStack) == ACL_ERROR_RT_INVALID_HANDLE);
  CHECK(aclrtResetDevice(0) == ACL_SUCCESS);
  CHECK(aclrtSetCurrentContext(context) == ACL_ERROR_RT_INVALID_HANDLE);
  CHECK(aclrtResetDevice(0) == ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
}

TEST_CASE("handles that were destroyed, or are of another type") {
  const Machine machine;
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  REQUIRE(aclrtCreateStream(&stream) == ACL_SUCCESS);
  REQUIRE(aclrtCreateEvent(&event) == ACL_SUCCESS);
  CHECK(aclrtSynchronizeStream(event) == ACL_ERROR_RT_INVALID_HANDLE);
  CHECK(aclrtSynchronizeEvent(stream) == ACL_ERROR_RT_INVALID_HANDLE);
  CHECK(aclrtRecordEvent(event, event) == ACL_ERROR_RT_INVALID_HANDLE);
  CHECK(aclrtDestroyStream(event) == ACL_ERROR_RT_INVALID_HANDLE);
  REQUIRE(aclrtDestroyStream(stream) == ACL_SUCCESS);
  CHECK(aclrtDestroyStream(stream) == ACL_ERROR_RT_INVALID_HANDLE);
  CHECK(aclrtSynchronizeStream(stream) == ACL_ERROR_RT_INVALID_HANDLE);
  aclrtStream next = nullptr;
  REQUIRE(aclrtCreateStream(&next) == ACL_SUCCESS);
  CHECK(next != stream);  // a new generation
  REQUIRE(aclrtDestroyEvent(event) == ACL_SUCCESS);
  CHECK(aclrtDestroyEvent(event) == ACL_ERROR_RT_INVALID_HANDLE);
  CHECK(aclrtQueryEvent(event, nullptr) == ACL_ERROR_INVALID_PARAM);
  float ms = 0;
  aclrtEvent fresh = nullptr;
  REQUIRE(aclrtCreateEvent(&fresh) == ACL_SUCCESS);
  CHECK(aclrtEventElapsedTime(&ms, fresh, fresh) == ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
}

TEST_CASE("memory: sizes, double frees, ranges") {
  const Machine machine;
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  void* memory = nullptr;
  CHECK(aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtMalloc(&memory, SIZE_MAX, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_RT_MEMORY_ALLOCATION);
  CHECK(aclrtMalloc(&memory, std::size_t{200} << 30, ACL_MEM_MALLOC_HUGE_FIRST) ==
        ACL_ERROR_RT_MEMORY_ALLOCATION);
  CHECK(aclrtMallocHost(&memory, SIZE_MAX) == ACL_ERROR_RT_MEMORY_ALLOCATION);
  REQUIRE(aclrtMalloc(&memory, 1000, static_cast<aclrtMemMallocPolicy>(12345)) == ACL_SUCCESS);
  std::vector<char> host(2000);
  CHECK(aclrtMemcpy(memory, 1000, host.data(), 1001, ACL_MEMCPY_HOST_TO_DEVICE) ==
        ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtMemcpy(memory, 2000, host.data(), 2000, ACL_MEMCPY_HOST_TO_DEVICE) ==
        ACL_ERROR_RT_PARAM_INVALID);
  CHECK_THAT(message(), Catch::Contains("allocation"));
  CHECK(aclrtMemcpy(memory, 1000, host.data(), 1000, static_cast<aclrtMemcpyKind>(6)) ==
        ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtMemcpy(memory, 1000, nullptr, 1000, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtMemcpy(memory, 1000, reinterpret_cast<void*>(8), 1000, ACL_MEMCPY_HOST_TO_DEVICE) ==
        ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtMemcpy(reinterpret_cast<void*>(8), 1000, memory, 1000, ACL_MEMCPY_DEVICE_TO_HOST) ==
        ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtMemcpy(nullptr, 0, nullptr, 0, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
  CHECK(aclrtMemcpyAsync(host.data(), 100, host.data() + 100, 100, ACL_MEMCPY_HOST_TO_HOST, nullptr) ==
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CHECK(aclrtMemset(memory, 10, 0, 11) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtMemset(host.data(), 10, 0, 10) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtFree(static_cast<char*>(memory) + 32) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtFree(host.data()) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtFree(memory) == ACL_SUCCESS);
  CHECK(aclrtFree(memory) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtMemcpy(memory, 1000, host.data(), 1000, ACL_MEMCPY_HOST_TO_DEVICE) ==
        ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtFreeHost(host.data()) == ACL_ERROR_RT_PARAM_INVALID);
}

TEST_CASE("streams are limited, and timeouts are checked") {
  const Machine machine;
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  CHECK(aclrtSynchronizeStreamWithTimeout(nullptr, -2) == ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtSynchronizeStreamWithTimeout(nullptr, -1) == ACL_SUCCESS);
  CHECK(aclrtSynchronizeDeviceWithTimeout(-7) == ACL_ERROR_RT_PARAM_INVALID);
  std::vector<aclrtStream> streams;
  aclrtStream stream = nullptr;
  int code = ACL_SUCCESS;
  while ((code = aclrtCreateStream(&stream)) == ACL_SUCCESS && streams.size() < 3000)
    streams.push_back(stream);
  CHECK(code == ACL_ERROR_RT_NO_STREAM_RESOURCE);
  CHECK(streams.size() == 1984 - 1);  // and the context's default stream
  for (aclrtStream s : streams) CHECK(aclrtDestroyStreamForce(s) == ACL_SUCCESS);
}

TEST_CASE("configurations that cannot be used") {
  CHECK(vatlasUseCluster("no_such_cluster") != ACL_SUCCESS);
  CHECK_THAT(message(), Catch::Contains("no_such_cluster"));
  CHECK(aclInit("/nonexistent.json") == ACL_ERROR_INVALID_PARAM);
  const Machine machine;
  CHECK(vatlasUseCluster("ascend950dt_4p") == ACL_ERROR_FAILURE);
  CHECK(vatlasStartTrace("/nonexistent/t.json", 1) == ACL_ERROR_FAILURE);
  CHECK(vatlasStartTrace(nullptr, 1) == ACL_ERROR_INVALID_PARAM);
}

TEST_CASE("calls after the end, and an end with threads in the middle") {
  { const Machine machine; }
  CHECK(vatlasReportJson() == nullptr);
  for (int round = 0; round < 5; ++round) {
    REQUIRE(aclInit(nullptr) == ACL_SUCCESS);
    std::atomic<bool> go{true};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        std::vector<char> host(100'000);
        while (go) {
          void* memory = nullptr;
          aclrtStream stream = nullptr;
          if (aclrtSetDevice(i % 2) != ACL_SUCCESS) continue;
          aclrtCreateStream(&stream);
          if (aclrtMalloc(&memory, host.size(), ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS) {
            aclrtMemcpyAsync(memory, host.size(), host.data(), host.size(), ACL_MEMCPY_HOST_TO_DEVICE,
                             stream);
          }
          aclrtSynchronizeStream(stream);
          aclrtFree(memory);
          if (stream != nullptr) aclrtDestroyStream(stream);
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    aclFinalize();
    go = false;
    for (std::thread& thread : threads) thread.join();
    aclFinalize();
  }
}
