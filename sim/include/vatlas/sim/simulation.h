// The machine: cards, cores, memories and links of one cluster, driven by one ordered heap of events.
// One thread (the session's simulation thread) calls everything here but memory().
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vatlas/sim/config.h"
#include "vatlas/sim/core_port.h"
#include "vatlas/sim/device_memory.h"
#include "vatlas/sim/kernel_image.h"
#include "vatlas/sim/time.h"
#include "vatlas/sim/trace.h"

namespace vatlas::sim {

// Events of one picosecond are handled by (rank, stream, sequence).
struct EventOrder {
  int rank = 0;
  std::uint64_t stream = 0;
  std::uint64_t sequence = 0;
};

// One rank's part of a launch.
struct KernelLaunch {
  int device = 0;
  EventOrder order;
  VatlasKernelEntry entry = nullptr;
  std::string name;
  std::vector<std::byte> args;  // handed to every block
  int blocks = 1;
  void* hcclContext = nullptr;  // device address of the communicator's context, or null
  SimTime start = 0;            // when its stream reached it
  SimTime timeout = kNever;     // simulated time after start at which it is stopped
};

struct FaultReport {
  KernelFault kind = KernelFault::Exception;
  bool timedOut = false;
  std::string what;  // in our words: what, where, which allocation
  std::string kernel;
  int device = 0;
  int block = 0;
  const void* address = nullptr;
};

struct LaunchStats {
  std::array<SimTime, kPipeCount> busy{};  // summed over the cores
  SimTime peerWait = 0;                    // polling for others, summed over the cores
  SimTime longestPeerWait = 0;             // of one core
  int coresUsed = 0;
  std::uint64_t localLoadBytes = 0, localStoreBytes = 0;
  std::uint64_t remoteLoadBytes = 0, remoteStoreBytes = 0;
  std::uint64_t instructions = 0;
};

struct LaunchResult {
  SimTime start = 0;  // the task begins on the device
  SimTime end = 0;    // completion is visible to the stream
  std::optional<FaultReport> fault;
  LaunchStats stats;
};

using LaunchDone = std::function<void(std::size_t part, const LaunchResult&)>;

struct ResourceReport {
  std::string name;
  bool isLink = false;
  int from = -1, to = -1;
  LinkKind kind = LinkKind::UnifiedBus;
  double capacityBytesPerSecond = 0;
  std::uint64_t bytes = 0;
  SimTime busy = 0;
};

struct SimulationOptions {
  std::uint64_t hostMemoryCeiling = 0;  // 0: what the machine offers
  std::size_t recordLimit = 4096;       // records a core may run ahead of time; never changes results
  std::uint64_t resumeSeed =
      0;  // not 0: blocks are resumed in a shuffled order (tests); never changes results
  int watchdogMilliseconds = 10'000;  // wall time a block may compute without an API call; 0: no limit
};

class Simulation {
 public:
  explicit Simulation(const ClusterConfig& cluster, const SimulationOptions& options = {});
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  const ClusterConfig& cluster() const;
  DeviceMemory& memory();

  // Calls `action` at simulated time `at`. An action may add events, launches and copies, also at its own
  // time.
  void schedule(SimTime at, EventOrder order, std::function<void()> action);

  // Runs the parts of a launch side by side (one for an ordinary kernel, one a rank for a communicator's).
  // Each part begins at its own `start`. `done` is called once a part, at its end. When one part faults, the
  // others are cancelled and end with a fault that names it.
  void launch(std::vector<KernelLaunch> parts, LaunchDone done);

  // Moves bytes between host and device or between devices: the bytes at once, the time through the fabric.
  // `done` gets the time at which it is complete. Addresses have been checked by the caller.
  struct Copy {
    enum class Kind : std::uint8_t { HostToDevice, DeviceToHost, DeviceToDevice, Set } kind;
    int device = 0;  // the device side (source of DeviceToDevice)
    int peer = 0;    // destination of DeviceToDevice
    void* destination = nullptr;
    const void* source = nullptr;
    int value = 0;  // Set
    std::uint64_t bytes = 0;
    SimTime start = 0;
    EventOrder order;
  };
  void copy(const Copy& copy, std::function<void(SimTime end)> done);

  // Handles every event earlier than `limit`, in order, and returns the time of the next one (kNever: none is
  // left).
  SimTime run(SimTime limit);
  SimTime nextEvent() const;
  SimTime now() const;  // of the last event handled
  // Launches whose blocks all wait for memory that nobody is about to write (no event is left that could wake
  // them).
  bool stalled() const;
  void cancelAll();  // ends every launch with a fault; for teardown and Ctrl-C
  // run() looks at the flag between blocks and events and returns early when it is set; null: none.
  void setStopFlag(const std::atomic<bool>* flag);

  std::vector<ResourceReport> resources() const;
  void resetResources();
  void setTrace(TraceSink* sink);  // null: off
  void setPrintSink(std::function<void(int device, int block, std::string_view line)> sink);

 private:
  friend struct SimulationAccess;
  struct State;
  std::unique_ptr<State> state_;
};

// The SystemC side: a small fixed model (clock, the process that runs the engine, TLM-2.0 sockets between
// each card and the fabric and for the host link), elaborated once a process. One thread at a time may be in
// run(); it may be another one later.
class SystemCShell {
 public:
  static SystemCShell& instance();
  SimTime run(Simulation& simulation, SimTime limit);  // Simulation::run under sc_start
  static std::string description();                    // version and thread flavour, for `vatlas doctor`

 private:
  SystemCShell();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vatlas::sim
