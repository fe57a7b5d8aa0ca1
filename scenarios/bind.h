// Binding: from a scenario to the values a run is made of - topology, ranks, channels, costs - and
// the rule that says with which algorithm and protocol a message goes. The one place where
// topologies/, algorithms/ and models/ meet.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "algorithms/communicator.h"
#include "scenarios/nccl_cluster.h"
#include "scenarios/scenario.h"
#include "sim/collective.h"
#include "sim/cost.h"
#include "sim/topology.h"

namespace railyard::scenarios {

// A group of ranks with its channels.
struct Communication {
  std::string name;
  sim::Group group;
  std::unique_ptr<sim::CollectiveSource> communicator;
  const algorithms::Communicator* nccl = nullptr;  // the same, where NCCL is the back end
  std::shared_ptr<const GroupPlan> plan;  // NCCL's; null where the scenario names its choices
};

// Everything that is built once and not changed by running. Addresses are stable: costs point into
// it.
struct Bound {
  sim::Topology topology;
  sim::Parameters parameters;
  sim::Group world;
  std::unique_ptr<sim::CostModel> costs;
  std::vector<Communication> communications;  // of every group that the workload names
};

// Errors point at the line of what does not fit: a group that does not divide the world, a root
// outside its group, a link that is not there, ...
Result<std::unique_ptr<Bound>> bind(const Scenario& scenario);

// The memory that bind() will take, from the size of the cluster alone.
Result<double> bind_memory_bytes(const Scenario& scenario);

// The communications of a named group (several for a regular division).
std::vector<Communication*> communications_of(Bound& bound, const std::string& group);

// The entry of Scenario::nccl that serves a call of a size, where choices are named.
std::size_t choice_index(const Scenario& scenario, sim::Bytes size);

// What a collective is asked with; NCCL's count x element size as in CollectiveCall.
struct AskedCall {
  sim::Collective collective = sim::Collective::all_reduce;
  sim::Bytes size;
  std::int64_t element_size = 4;
};

// The call that NCCL's choice, or the scenario's, makes of it. A named algorithm that the
// collective does not have gives way to the ring. Sends and receives (AllToAll, Gather, ...)
// have no LL128: where choices are listed by size they take Simple; a single choice stands. Error:
// NCCL's, where its variables leave nothing to choose from.
Result<sim::CollectiveCall> choose(const Scenario& scenario, const Communication& communication,
                                   const AskedCall& asked);

}  // namespace railyard::scenarios
