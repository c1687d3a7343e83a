// The session joins host threads to the simulation: virtual clocks, streams, events, waiting.
//
// Time. Each host thread has a virtual clock, which advances by the modelled cost of its calls. A command
// carries the clock of the thread that submits it. The simulation thread handles an event only when its time
// is smaller than the clock of every active thread: one that has a current device and is neither blocked in
// one of our calls nor gone. A thread that sleeps outside our calls (in a join, a barrier of its own) is left
// aside after a wall-clock grace; when it comes back its clock is raised to the session's, and the run is
// marked order-uncertain if another thread was active at that moment. A kernel of a communicator starts when
// every rank's stream has reached it (a gang); each rank's part starts at its own time. A timeout does not
// fire while a gang is incomplete until a wall-clock grace without any call has passed.
//
// Commands may be submitted for a time that the simulation has passed elsewhere (threads that start late):
// that is fine as long as the device itself has not passed it; else the command counts from the device's time
// and the run is marked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vatlas/sim/config.h"
#include "vatlas/sim/simulation.h"

namespace vatlas::runtime {

using sim::SimTime;

// One per host thread that uses the session; owned by the session, lives until the session ends.
class HostThread;

// Identity of a communicator across its ranks. Ranks of one group share one object.
struct GangGroup {
  std::string name;
  std::vector<int> devices;  // by rank
};

struct KernelRequest {
  std::string
      image;  // device image, by name ("quant_all_reduce"), found beside the library or in VATLAS_KERNEL_PATH
  std::string kernel;  // name in its table
  std::vector<std::byte> args;
  int blocks = 1;
  std::shared_ptr<const GangGroup> gang;  // null: an ordinary kernel
  int gangRank = 0;
  void* hcclContext = nullptr;
  std::string signature;  // must be the same on all ranks of a gang: operator, shapes, dtypes
  std::shared_ptr<void> keepAlive;
  SimTime timeout = 0;  // 0: the product's
};

struct CopyRequest {
  enum class Kind : std::uint8_t { HostToHost, HostToDevice, DeviceToHost, DeviceToDevice, Set } kind{};
  void* destination = nullptr;
  const void* source = nullptr;
  int value = 0;
  std::uint64_t bytes = 0;
};

using StreamId = std::uint64_t;  // generation-checked; 0 is never valid
using EventId = std::uint64_t;

enum class WaitResult : std::uint8_t { Done, TimedOut, Failed, NoSuchObject, Aborted };

// What the last launch on a device did, for reports.
struct KernelRecord {
  int device = 0;
  std::string kernel;
  std::string signature;
  std::string gang;
  SimTime start = 0, end = 0;
  sim::LaunchStats stats;
};

// First error of a stream, kept until it is fetched: the aclError to answer and the text that explains it.
struct StreamError {
  int code = 0;
  std::string errorCode;  // "EE..." number of the message
  std::string message;
};

class Session {
 public:
  // The session of this process: created on first use from VATLAS_CLUSTER (else the default cluster). Throws
  // ConfigError or std::runtime_error when it cannot be made; callers turn that into a code and a message.
  static std::shared_ptr<Session> open();
  static std::shared_ptr<Session> currentOrNull();
  static void close();  // aclFinalize: waits for submitted work, ends the simulation thread
  static void useCluster(const std::string& nameOrPath);  // before open; overrides VATLAS_CLUSTER
  static void interruptCurrent() noexcept;  // async-signal-safe; nothing happens without a session

  virtual ~Session() = default;

  virtual const sim::ClusterConfig& cluster() const = 0;
  virtual sim::DeviceMemory& memory() = 0;

  // Threads
  // ------------------------------------------------------------------------------------------------------
  // The calling thread's record; created on first use. It becomes active by bindDevice.
  virtual HostThread& thread() = 0;
  virtual void bindDevice(HostThread& thread, int device) = 0;  // -1: no device any more
  virtual SimTime clock(const HostThread& thread) const = 0;
  virtual void spend(HostThread& thread, SimTime cost) = 0;  // modelled cost of a call; > 0
  // Blocking outside streams (rendezvous of ranks): between these the thread does not hold time back. The
  // thread that releases others calls endBlock for each before it wakes them, with the clock they go on with.
  virtual void beginBlock(HostThread& thread) = 0;
  virtual void endBlock(HostThread& thread, SimTime clock) = 0;

  // Streams
  // ------------------------------------------------------------------------------------------------------
  virtual StreamId createStream(int device) = 0;
  virtual bool destroyStream(HostThread& thread, StreamId stream, bool wait) = 0;
  virtual int streamDevice(StreamId stream) const = 0;  // -1: no such stream
  virtual bool submitKernel(HostThread& thread, StreamId stream, KernelRequest request) = 0;
  virtual bool submitCopy(HostThread& thread, StreamId stream, const CopyRequest& request) = 0;
  virtual bool submitCallback(HostThread& thread, StreamId stream, std::function<void(SimTime)> action) = 0;
  virtual bool recordEvent(HostThread& thread, EventId event, StreamId stream) = 0;
  virtual bool waitEvent(HostThread& thread, StreamId stream, EventId event) = 0;
  // Blocks the thread until all that was submitted to the stream so far is done; timeout in simulated time
  // from now (kNever: none). Failed: takeStreamError has why.
  virtual WaitResult synchronizeStream(HostThread& thread, StreamId stream, SimTime timeout) = 0;
  virtual WaitResult synchronizeDevice(HostThread& thread, int device, SimTime timeout) = 0;
  virtual bool queryStream(HostThread& thread, StreamId stream, bool& done) = 0;
  virtual std::optional<StreamError> takeStreamError(StreamId stream) = 0;

  // Events
  // -------------------------------------------------------------------------------------------------------
  virtual EventId createEvent(int device) = 0;
  virtual bool destroyEvent(EventId event) = 0;
  virtual WaitResult synchronizeEvent(HostThread& thread, EventId event, SimTime timeout) = 0;
  virtual bool queryEvent(HostThread& thread, EventId event, bool& recorded, bool& done) = 0;
  virtual std::optional<SimTime> eventTime(EventId event) = 0;  // of the last completed record

  // Copies that block the caller.
  virtual WaitResult copyNow(HostThread& thread, int device, const CopyRequest& request) = 0;

  // Observation
  // --------------------------------------------------------------------------------------------------
  virtual std::vector<KernelRecord>
  takeKernelRecords() = 0;  // since the last call, in order of (end, device)
  virtual std::vector<sim::ResourceReport> resources() = 0;
  virtual void resetResources() = 0;
  virtual bool orderUncertain() const = 0;  // host timing may have changed simulated times
  // Streams a Chrome/Perfetto trace to a file until stopTrace, the next one or the end; cores: how many AIV
  // cores a card to show in full (-1: all). False with errno set when the file cannot be opened.
  virtual bool startTrace(const std::string& path, int cores) = 0;
  virtual bool stopTrace() = 0;  // false: the file cannot be written
  // Async-signal-safe request to stop: waits return Aborted, kernels are cancelled, the trace is closed.
  virtual void interrupt() noexcept = 0;
};

}  // namespace vatlas::runtime
