#include "vatlas/sim/simulation.h"

#include "machine.h"
#include "simulation_state.h"

namespace vatlas::sim {

Simulation::Simulation(const ClusterConfig& cluster, const SimulationOptions& options)
    : state_(std::make_unique<State>(cluster, options)) {}
Simulation::~Simulation() = default;

const ClusterConfig& Simulation::cluster() const {
  return state_->machine.cluster;
}
DeviceMemory& Simulation::memory() {
  return state_->machine.memory;
}
void Simulation::schedule(SimTime at, EventOrder order, std::function<void()> action) {
  state_->machine.schedule(at, order, std::move(action));
}
void Simulation::launch(std::vector<KernelLaunch> parts, LaunchDone done) {
  state_->machine.launch(std::move(parts), std::move(done));
}
void Simulation::copy(const Copy& copy, std::function<void(SimTime)> done) {
  state_->machine.copy(copy, std::move(done));
}
SimTime Simulation::run(SimTime limit) {
  return state_->machine.run(limit);
}
SimTime Simulation::nextEvent() const {
  return state_->machine.nextEvent();
}
SimTime Simulation::now() const {
  return state_->machine.now;
}
bool Simulation::stalled() const {
  return state_->machine.stalled();
}
void Simulation::cancelAll() {
  state_->machine.cancelAll();
}
void Simulation::setStopFlag(const std::atomic<bool>* flag) {
  state_->machine.setStopFlag(flag);
}
void Simulation::setTrace(TraceSink* sink) {
  state_->machine.setTrace(sink);
}
void Simulation::setPrintSink(std::function<void(int, int, std::string_view)> sink) {
  state_->machine.printSink = std::move(sink);
}
void Simulation::resetResources() {
  state_->machine.fabric.resetUse();
}

std::vector<ResourceReport> Simulation::resources() const {
  std::vector<ResourceReport> reports;
  const Fabric& fabric = state_->machine.fabric;
  for (int i = 0; i < fabric.resourceCount(); ++i) {
    const ResourceUse use = fabric.use(i);
    reports.push_back(
        {use.name, use.isLink, use.from, use.to, use.kind, use.capacityBytesPerSecond, use.bytes, use.busy});
  }
  return reports;
}

}  // namespace vatlas::sim
