// The registry through which hccl/ tells the runtime of its communicators, so that operators find them by
// group name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "vatlas/runtime/session.h"

namespace vatlas::runtime {

struct CommunicatorInfo {
  std::string name;                       // group name, shared by all ranks
  std::shared_ptr<const GangGroup> gang;  // one object for all ranks
  int rank = 0;
  int rankSize = 0;
  int device = 0;
  void* hcclContext = nullptr;    // device address of the context that kernels read
  std::uint64_t windowBytes = 0;  // of one window (a communicator has an in and an out window)
  void* handle = nullptr;         // HcclComm of this rank
};

// Which class of operators has used a communicator first. The quantized operators keep state inside the
// windows, so that a communicator that ran them cannot run other collectives, nor the other way round.
enum class CommunicatorUse : std::uint8_t { None, Collectives, QuantizedOperators, UserKernels };

// All functions are thread-safe. Ranks of one process share a name: the key is (name, device).
bool addCommunicator(CommunicatorInfo info);  // false: the name is taken on this device
bool removeCommunicator(std::string_view name, int device);
std::optional<CommunicatorInfo> findCommunicator(std::string_view name, int device);
bool communicatorNameInUse(std::string_view name);
CommunicatorUse communicatorUse(std::string_view name, int device);
// Records the use unless there is one already; gives back the first one.
CommunicatorUse noteCommunicatorUse(std::string_view name, int device, CommunicatorUse use);
void clearCommunicators();  // the session has ended

}  // namespace vatlas::runtime
