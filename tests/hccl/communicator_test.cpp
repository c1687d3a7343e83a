#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "hccl/hccl.h"
#include "machine.h"

using namespace vatlas::test;

namespace {

// A body for each rank, on a thread with the rank's device.
template <typename Body>
void onRanks(int ranks, Body&& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      same(aclrtSetDevice(rank), ACL_SUCCESS);
      body(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string rankTable(int ranks, const char* version = "2.0") {
  std::string list;
  for (int i = 0; i < ranks; ++i) {
    const std::string n = std::to_string(i);
    list += std::string(i == 0 ? "" : ",") + "{\"rank_id\":" + n + ",\"local_id\":" + n +
            ",\"device_id\":" + n + ",\"level_list\":[]}";
  }
  return std::string("{\"version\":\"") + version + "\",\"rank_count\":" + std::to_string(ranks) +
         ",\"rank_list\":[" + list + "]}";
}

class TableFile {
 public:
  explicit TableFile(const std::string& text)
      : path_("/tmp/vatlas_table_" + std::to_string(getpid()) + ".json") {
    std::ofstream(path_) << text;
  }
  ~TableFile() { unlink(path_.c_str()); }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("HcclCommInitAll: ranks, names, destruction") {
  const Machine machine("ascend950dt_4p");
  int32_t devices[4] = {3, 2, 1, 0};
  HcclComm comms[4] = {};
  REQUIRE(HcclCommInitAll(4, devices, comms) == HCCL_SUCCESS);
  char first[128] = {};
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t rank = 99;
    uint32_t size = 0;
    char name[128] = {};
    CHECK(HcclGetRankId(comms[i], &rank) == HCCL_SUCCESS);
    CHECK(HcclGetRankSize(comms[i], &size) == HCCL_SUCCESS);
    CHECK(HcclGetCommName(comms[i], name) == HCCL_SUCCESS);
    if (i == 0) std::memcpy(first, name, sizeof first);
    CHECK(rank == i);
    CHECK(size == 4);
    CHECK(std::strcmp(first, name) == 0);
  }
  for (HcclComm comm : comms) CHECK(HcclCommDestroy(comm) == HCCL_SUCCESS);
  CHECK(HcclCommDestroy(comms[0]) == HCCL_E_PARA);
  CHECK(HcclCommDestroy(nullptr) == HCCL_SUCCESS);
  uint32_t rank = 0;
  CHECK(HcclGetRankId(comms[0], &rank) == HCCL_E_PARA);
  CHECK(HcclGetRankId(nullptr, &rank) == HCCL_E_PTR);
}

TEST_CASE("HcclCommInitAll: bad arguments") {
  const Machine machine("ascend950dt_2p");
  int32_t devices[3] = {0, 0, 7};
  HcclComm comms[3] = {};
  CHECK(HcclCommInitAll(0, devices, comms) == HCCL_E_PARA);
  CHECK(HcclCommInitAll(2, nullptr, comms) == HCCL_E_PTR);
  CHECK(HcclCommInitAll(2, devices, nullptr) == HCCL_E_PTR);
  CHECK(HcclCommInitAll(2, devices, comms) == HCCL_E_PARA);
  CHECK_THAT(message(), Catch::Contains("twice"));
  CHECK(HcclCommInitAll(3, devices, comms) == HCCL_E_PARA);
  devices[1] = 2;
  CHECK(HcclCommInitAll(2, devices, comms) == HCCL_E_PARA);
  setenv("HCCL_BUFFSIZE", "0", 1);
  devices[1] = 1;
  CHECK(HcclCommInitAll(2, devices, comms) == HCCL_E_PARA);
  CHECK_THAT(message(), Catch::Contains("HCCL_BUFFSIZE"));
  unsetenv("HCCL_BUFFSIZE");
}

TEST_CASE("windows are zero, sized by config, and come back") {
  const Machine machine("ascend950dt_2p");
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  size_t before = 0;
  size_t during = 0;
  size_t after = 0;
  size_t total = 0;
  REQUIRE(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total) == ACL_SUCCESS);
  HcclRootInfo info;
  REQUIRE(HcclGetRootInfo(&info) == HCCL_SUCCESS);
  HcclComm comms[2] = {};
  onRanks(2, [&](int rank) {
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    config.hcclBufferSize = 10;
    std::strcpy(config.hcclCommName, "ten");
    CHECK(HcclCommInitRootInfoConfig(2, &info, static_cast<uint32_t>(rank), &config, &comms[rank]) ==
          HCCL_SUCCESS);
    char name[128] = {};
    same(HcclGetCommName(comms[rank], name), HCCL_SUCCESS);
    same(std::strcmp(name, "ten"), 0);
  });
  REQUIRE(aclrtGetMemInfo(ACL_HBM_MEM, &during, &total) == ACL_SUCCESS);
  CHECK(before - during >= 21 << 20);
  CHECK(before - during < 22 << 20);
  onRanks(2, [&](int rank) { same(HcclCommDestroy(comms[rank]), HCCL_SUCCESS); });
  REQUIRE(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total) == ACL_SUCCESS);
  CHECK(after == before);
}

TEST_CASE("root info: meetings that fail") {
  setenv("VATLAS_PEER_GRACE_MS", "300", 1);
  {
    const Machine machine("ascend950dt_4p");
    REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
    HcclRootInfo info;
    REQUIRE(HcclGetRootInfo(&info) == HCCL_SUCCESS);
    HcclComm comm = nullptr;
    CHECK(HcclGetRootInfo(nullptr) == HCCL_E_PTR);
    CHECK(HcclCommInitRootInfo(0, &info, 0, &comm) == HCCL_E_PARA);
    CHECK(HcclCommInitRootInfo(2, &info, 2, &comm) == HCCL_E_PARA);
    CHECK(HcclCommInitRootInfo(2, nullptr, 0, &comm) == HCCL_E_PTR);
    CHECK(HcclCommInitRootInfo(2, &info, 0, nullptr) == HCCL_E_PTR);
    CHECK(HcclCommInitRootInfo(9, &info, 0, &comm) == HCCL_E_PARA);
    HcclRootInfo garbage;
    std::memset(&garbage, 'x', sizeof garbage);
    CHECK(HcclCommInitRootInfo(2, &garbage, 0, &comm) == HCCL_E_PARA);
    CHECK(HcclCommInitRootInfo(2, &info, 0, &comm) == HCCL_E_TIMEOUT);
    CHECK_THAT(message(), Catch::Contains("rank 1"));
    onThread([&] { CHECK(HcclCommInitRootInfo(2, &info, 0, &comm) == HCCL_E_RUNTIME); });  // no device
    HcclCommConfig config;
    std::memset(&config, 0, sizeof config);
    CHECK(HcclCommInitRootInfoConfig(2, &info, 0, &config, &comm) == HCCL_E_PARA);
    CHECK(HcclCommInitRootInfoConfig(2, &info, 0, nullptr, &comm) == HCCL_E_PTR);
    HcclCommConfigInit(&config);
    std::memset(config.hcclCommName, 'n', sizeof config.hcclCommName);
    CHECK(HcclCommInitRootInfoConfig(2, &info, 0, &config, &comm) == HCCL_E_PARA);
    // Ranks that do not fit together: somebody is refused, nobody hangs.
    HcclRootInfo again;
    REQUIRE(HcclGetRootInfo(&again) == HCCL_SUCCESS);
    std::vector<HcclResult> results(3, HCCL_SUCCESS);
    std::vector<HcclComm> comms(3);
    onRanks(3, [&](int rank) {
      results[static_cast<std::size_t>(rank)] =
          HcclCommInitRootInfo(rank == 2 ? 3 : 2, &again, rank == 2 ? 1 : static_cast<uint32_t>(rank),
                               &comms[static_cast<std::size_t>(rank)]);
    });
    CHECK(std::count(results.begin(), results.end(), HCCL_SUCCESS) < 3);
  }
  unsetenv("VATLAS_PEER_GRACE_MS");
}

TEST_CASE("rank tables") {
  const Machine machine("ascend950dt_4p");
  {
    const TableFile file(rankTable(4));
    HcclComm comms[4] = {};
    onRanks(4, [&](int rank) {
      same(HcclCommInitClusterInfo(file.path(), static_cast<uint32_t>(rank), &comms[rank]), HCCL_SUCCESS);
      uint32_t id = 99;
      same(HcclGetRankId(comms[rank], &id), HCCL_SUCCESS);
      same(id, static_cast<uint32_t>(rank));
    });
    onRanks(4, [&](int rank) { same(HcclCommDestroy(comms[rank]), HCCL_SUCCESS); });
  }
  REQUIRE(aclrtSetDevice(0) == ACL_SUCCESS);
  HcclComm comm = nullptr;
  CHECK(HcclCommInitClusterInfo(nullptr, 0, &comm) == HCCL_E_PTR);
  CHECK(HcclCommInitClusterInfo("/nonexistent.json", 0, &comm) == HCCL_E_OPEN_FILE_FAILURE);
  const auto refused = [&](const std::string& text, uint32_t rank = 0) {
    const TableFile file(text);
    CAPTURE(text);
    CHECK(HcclCommInitClusterInfo(file.path(), rank, &comm) == HCCL_E_PARA);
    CHECK(message() != "");
  };
  refused("");
  refused("{");
  refused("[]");
  refused(rankTable(4, "1.0"));
  refused(rankTable(4), 4);
  refused(rankTable(4), 1);  // the thread's device is 0
  refused(rankTable(8));     // devices that the cluster does not have
  refused("{\"version\":\"2.0\",\"rank_count\":2,\"rank_list\":[]}");
  refused("{\"version\":\"2.0\",\"rank_count\":1,\"rank_list\":[{\"rank_id\":0,\"local_id\":0}]}");
  refused(
      "{\"version\":\"2.0\",\"rank_count\":1,\"rank_list\":[{\"rank_id\":\"a\",\"local_id\":0,\"device_id\":"
      "0}]}");
  refused("{\"version\":\"2.0\",\"rank_count\":99999999,\"rank_list\":[]}");
}

TEST_CASE("error strings") {
  CHECK(std::string(HcclGetErrorString(HCCL_SUCCESS)) != std::string(HcclGetErrorString(HCCL_E_PARA)));
  CHECK(HcclGetErrorString(static_cast<HcclResult>(500)) != nullptr);
  CHECK(HcclGetErrorString(static_cast<HcclResult>(777)) != nullptr);
}
