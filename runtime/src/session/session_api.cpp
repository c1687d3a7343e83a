// The session of the process: made on first use, ended by aclFinalize.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "session/embedded_session.h"
#include "vatlas/runtime/communicators.h"
#include "vatlas/runtime/config.h"

namespace vatlas::runtime {
namespace {

struct Process {
  std::mutex mutex;
  std::shared_ptr<EmbeddedSession> session;
  std::string wish;  // of useCluster
};
Process& process() {
  static auto* instance = new Process;  // leaked: used while the process exits
  return *instance;
}

std::atomic<EmbeddedSession*> interruptible{nullptr};  // for signal handlers, which can take no lock

// A whole number in an environment variable; `otherwise` when it is not set.
long environmentNumber(const char* name, long otherwise, long least, long most) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (errno != 0 || *end != '\0' || value < least || value > most) {
    throw std::runtime_error(fmt::format(
        "environment variable {} is \"{}\"; allowed: a whole number from {} to {}", name, text, least, most));
  }
  return value;
}

std::string clusterWish(const Process& p) {
  if (!p.wish.empty()) return p.wish;
  const char* name = std::getenv("VATLAS_CLUSTER");
  return name != nullptr && *name != '\0' ? name : std::string{};
}

void endAtExit() {
  std::shared_ptr<EmbeddedSession> session;
  {
    Process& p = process();
    const std::lock_guard lock(p.mutex);
    session = std::move(p.session);
    interruptible = nullptr;
  }
  SimThread* thread = SimThread::currentOrNull();
  if (session && thread != nullptr && !thread->isCurrent()) {
    session->interrupt();
    session->shutDown();
  }
}

}  // namespace

std::shared_ptr<Session> Session::open() {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  if (p.session) return p.session;
  const std::string wish = clusterWish(p);
  const std::filesystem::path file = wish.empty() ? defaultCluster() : findCluster(wish);
  p.session = std::make_shared<EmbeddedSession>(loadCluster(file));
  interruptible = p.session.get();
  static const int registered = std::atexit(endAtExit);
  (void)registered;
  if (const char* trace = std::getenv("VATLAS_TRACE"); trace != nullptr && *trace != '\0') {
    const auto cores = static_cast<int>(environmentNumber("VATLAS_TRACE_CORES", 1, -1, 1024));
    if (!p.session->startTrace(trace, cores)) {
      p.session->shutDown();
      p.session.reset();
      throw std::runtime_error(fmt::format("the trace file {} cannot be written", trace));
    }
  }
  return p.session;
}

std::shared_ptr<Session> Session::currentOrNull() {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  return p.session;
}

void Session::close() {
  std::shared_ptr<EmbeddedSession> session;
  {
    Process& p = process();
    const std::lock_guard lock(p.mutex);
    session = std::move(p.session);
    p.session.reset();
    interruptible = nullptr;
  }
  if (session) {
    const auto gone = session->gone();
    session->shutDown();
    session.reset();
    // Calls of other threads end now; the next machine needs the same addresses.
    for (int i = 0; i < 5000 && !*gone; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  clearCommunicators();
}

void Session::interruptCurrent() noexcept {
  if (EmbeddedSession* session = interruptible.load()) session->interrupt();
}

void Session::useCluster(const std::string& nameOrPath) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  p.wish = nameOrPath;
}

EmbeddedSession::EmbeddedSession(sim::ClusterConfig cluster)
    : cluster_(std::move(cluster)),
      simThread_(SimThread::instance()),
      lastCall_(std::chrono::steady_clock::now()) {
  peerGrace_ = std::chrono::milliseconds(environmentNumber("VATLAS_PEER_GRACE_MS", 3000, 1, 86'400'000));
  chaos_ = static_cast<std::uint64_t>(environmentNumber("VATLAS_CHAOS", 0, 0, 1'000'000'000));
  const auto devices = static_cast<std::size_t>(cluster_.ranks);
  leftClock_.assign(devices, 0);
  sequences_.assign(devices, 0);
  streamCount_.assign(devices, 0);
  sim::SimulationOptions options;
  options.hostMemoryCeiling =
      static_cast<std::uint64_t>(environmentNumber("VATLAS_HOST_MEMORY_MB", 0, 0, 1'000'000'000)) << 20;
  std::exception_ptr error;
  simThread_.runAndWait([&] {
    try {
      simulation_ = std::make_unique<sim::Simulation>(cluster_, options);
      watchTimer_ = std::make_unique<SimThread::Timer>();
    } catch (...) {
      error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
  memory_ = &simulation_->memory();
  simulation_->setStopFlag(&stopRun_);
  simulation_->setPrintSink([](int device, int block, std::string_view text) {
    const bool newline = !text.empty() && text.back() == '\n';
    fmt::print("[device {} block {}] {}{}", device, block, text, newline ? "" : "\n");
    std::fflush(stdout);
  });
  simThread_.setSignalReceiver([this] { pump(); });
}

EmbeddedSession::~EmbeddedSession() {
  if (!stopped_) shutDown();
  simThread_.runAndWait([this] { simulation_.reset(); });
  *gone_ = true;
}

std::vector<KernelRecord> EmbeddedSession::takeKernelRecords() {
  const Lock lock(mutex_);
  std::vector<KernelRecord> records = std::exchange(records_, {});
  std::stable_sort(records.begin(), records.end(), [](const KernelRecord& a, const KernelRecord& b) {
    return a.end != b.end ? a.end < b.end : a.device < b.device;
  });
  return records;
}

std::vector<sim::ResourceReport> EmbeddedSession::resources() {
  std::vector<sim::ResourceReport> reports;
  simThread_.runAndWait([&] {
    if (simulation_) reports = simulation_->resources();
  });
  return reports;
}

void EmbeddedSession::resetResources() {
  simThread_.runAndWait([&] {
    if (simulation_) simulation_->resetResources();
  });
}

bool EmbeddedSession::orderUncertain() const {
  const Lock lock(mutex_);
  return uncertain_;
}

bool EmbeddedSession::startTrace(const std::string& path, int cores) {
  stopTrace();
  std::unique_ptr<TraceWriter> writer = TraceWriter::open(path, cores, cluster_.ranks);
  if (!writer) return false;
  simThread_.runAndWait([&] {
    simulation_->setTrace(writer.get());
    trace_ = std::move(writer);
  });
  return true;
}

bool EmbeddedSession::stopTrace() {
  bool good = true;
  simThread_.runAndWait([&] {
    if (simulation_) simulation_->setTrace(nullptr);
    if (trace_) good = trace_->close();
    trace_.reset();
  });
  return good;
}

}  // namespace vatlas::runtime
