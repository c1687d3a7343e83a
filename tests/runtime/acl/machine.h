// A machine for the length of a test.
#pragma once

#include <catch2/catch.hpp>
#include <mutex>
#include <string>
#include <thread>

#include "acl/acl.h"
#include "vatlas/vatlas.h"

namespace vatlas::test {

class Machine {
 public:
  explicit Machine(const char* cluster = "ascend950dt_2p") {
    REQUIRE(vatlasUseCluster(cluster) == 0);
    REQUIRE(aclInit(nullptr) == ACL_SUCCESS);
  }
  ~Machine() { aclFinalize(); }
};

// The explanation of the last error; reading clears it.
inline std::string message() {
  const char* text = aclGetRecentErrMsg();
  return text == nullptr ? "" : text;
}

// Checks for threads that run side by side: Catch2's own are for one thread at a time.
inline std::mutex& checkMutex() {
  static std::mutex mutex;
  return mutex;
}
template <typename A, typename B>
void same(const A& actual, const B& expected) {
  const std::lock_guard lock(checkMutex());
  CHECK(static_cast<long long>(actual) == static_cast<long long>(expected));
}
inline void contains(const std::string& text, const std::string& part) {
  const std::lock_guard lock(checkMutex());
  CHECK_THAT(text, Catch::Contains(part));
}

// Runs on a thread of its own, which has no context yet.
template <typename Body>
void onThread(Body&& body) {
  std::thread(body).join();
}

}  // namespace vatlas::test
