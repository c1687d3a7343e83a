// Ranks that come one by one, each on a thread of its own, and leave as one communicator.
#pragma once

#include <string>

#include "communicator.h"

namespace vatlas::hccl {

struct Arrival {
  std::string key;   // the same for the ranks that belong together
  std::string name;  // of the communicator; empty: the settings' or a fresh one
  std::uint32_t ranks = 0;
  std::uint32_t rank = 0;
  int device = 0;
  Settings settings;
};

// Waits for the other ranks. The communicator of this rank, or a code with the thread's message set.
HcclResult meet(const char* function, const runtime::Call& call, const Arrival& arrival, HcclComm& comm);

}  // namespace vatlas::hccl
