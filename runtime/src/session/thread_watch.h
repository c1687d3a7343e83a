// Looks at the process's threads from outside: who sleeps, who runs, who is there at all.
#pragma once

#include <cstdint>
#include <vector>

namespace vatlas::runtime {

struct ThreadLook {
  bool exists = false;
  bool asleep = false;         // in an interruptible sleep
  std::uint64_t switches = 0;  // voluntary context switches so far: the same number means the same sleep
};

ThreadLook lookAtThread(int tid);
std::vector<int> threadsOfProcess();

}  // namespace vatlas::runtime
