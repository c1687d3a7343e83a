// Threads and time: results depend on the program, not on the host.
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <vector>

#include "aclnnop/aclnn_quant_all_reduce.h"
#include "hccl/hccl.h"
#include "machine.h"

using namespace vatlas::test;

namespace {

constexpr int64_t kRows = 16;
constexpr int64_t kHidden = 1024;

// Submits one all-reduce of zeros for a rank; the stream is not waited for.
void submitAllReduce(int rank, HcclComm comm, aclrtStream stream) {
  same(aclrtSetDevice(rank), ACL_SUCCESS);
  char group[128] = {};
  same(HcclGetCommName(comm, group), HCCL_SUCCESS);
  void* data[4] = {};
  const std::size_t sizes[4] = {kRows * kHidden, kRows * kHidden / 128 * 4, kRows * kHidden * 4, 16 << 20};
  for (int i = 0; i < 4; ++i) {
    same(aclrtMalloc(&data[i], sizes[i], ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    same(aclrtMemset(data[i], sizes[i], 0, sizes[i]), ACL_SUCCESS);
  }
  const int64_t shape[2] = {kRows, kHidden};
  const int64_t scaleShape[2] = {kRows, kHidden / 128};
  aclTensor* x = aclCreateTensor(shape, 2, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, shape, 2, data[0]);
  aclTensor* scales =
      aclCreateTensor(scaleShape, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, scaleShape, 2, data[1]);
  aclTensor* output = aclCreateTensor(shape, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 2, data[2]);
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  same(aclnnQuantAllReduceGetWorkspaceSize(x, scales, group, "sum", output, &workspace, &executor), 0);
  same(aclnnQuantAllReduce(data[3], workspace, executor, stream), 0);
  for (aclTensor* tensor : {x, scales, output}) aclDestroyTensor(tensor);
}

}  // namespace

TEST_CASE("a rank that never comes: the wait ends, with the rank's name") {
  setenv("VATLAS_PEER_GRACE_MS", "200", 1);
  {
    const Machine machine;
    int32_t devices[2] = {0, 1};
    HcclComm comms[2] = {};
    REQUIRE(HcclCommInitAll(2, devices, comms) == HCCL_SUCCESS);
    onThread([&] {
      submitAllReduce(0, comms[0], nullptr);
      same(aclrtSynchronizeStreamWithTimeout(nullptr, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
      same(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_VECTOR_CORE_TIMEOUT);
      contains(message(), "rank 1");
      same(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);  // answered once
    });
  }
  unsetenv("VATLAS_PEER_GRACE_MS");
}

TEST_CASE("a rank that comes late changes no time") {
  std::vector<std::string> reports;
  for (const int delay : {0, 60, 5}) {
    const Machine machine;
    int32_t devices[2] = {0, 1};
    HcclComm comms[2] = {};
    REQUIRE(HcclCommInitAll(2, devices, comms) == HCCL_SUCCESS);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(delay));
        submitAllReduce(rank, comms[rank], nullptr);
        same(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
      });
    }
    for (std::thread& thread : threads) thread.join();
    reports.emplace_back(vatlasReportJson());
  }
  CHECK(reports[1] == reports[0]);
  CHECK(reports[2] == reports[0]);
  CHECK(nlohmann::json::parse(reports[0]).at("kernels").size() == 2);
  CHECK_FALSE(nlohmann::json::parse(reports[0]).at("order_uncertain").get<bool>());
}

TEST_CASE("a thread that sleeps outside the API does not stop the others") {
  const Machine machine;
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);  // this thread holds time at its clock
  std::promise<void> done;
  std::thread other([&] {
    same(aclrtSetDevice(1), ACL_SUCCESS);
    std::vector<char> host(1 << 20);
    void* memory = nullptr;
    same(aclrtMalloc(&memory, host.size(), ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    for (int i = 0; i < 20; ++i) {
      same(aclrtMemcpy(memory, host.size(), host.data(), host.size(), ACL_MEMCPY_HOST_TO_DEVICE),
           ACL_SUCCESS);
    }
    done.set_value();
  });
  const auto ended = done.get_future().wait_for(std::chrono::seconds(30));
  CHECK(ended == std::future_status::ready);
  other.join();
  CHECK(aclrtSynchronizeDevice() == ACL_SUCCESS);
}

TEST_CASE("ranks that disagree are told so") {
  const Machine machine;
  int32_t devices[2] = {0, 1};
  HcclComm comms[2] = {};
  REQUIRE(HcclCommInitAll(2, devices, comms) == HCCL_SUCCESS);
  onThread([&] {
    submitAllReduce(0, comms[0], nullptr);
    submitAllReduce(1, comms[1], nullptr);
    same(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  });
}

TEST_CASE("an interrupt ends all waits") {
  const Machine machine;
  int32_t devices[2] = {0, 1};
  HcclComm comms[2] = {};
  REQUIRE(HcclCommInitAll(2, devices, comms) == HCCL_SUCCESS);
  std::promise<void> submitted;
  std::thread waiting([&] {
    submitAllReduce(0, comms[0], nullptr);
    submitted.set_value();
    same(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_DEVICE_TASK_ABORT);
  });
  submitted.get_future().wait();
  vatlasInterrupt();
  waiting.join();
}
