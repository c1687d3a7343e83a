// What Simulation hides, for the parts of sim/ that need the machine behind it.
#pragma once

#include "machine.h"
#include "vatlas/sim/simulation.h"

namespace vatlas::sim {

struct Simulation::State {
  State(const ClusterConfig& cluster, const SimulationOptions& options) : machine(cluster, options) {}
  Machine machine;
};

// The machine of a simulation, for the shell.
struct SimulationAccess {
  static Machine& machine(Simulation& simulation) { return simulation.state_->machine; }
};

}  // namespace vatlas::sim
