// Binding: from a scenario to the values a run is made of - topology, ranks, channels, costs - and
// the rule that says with which algorithm and protocol a message goes. The one place where
// topologies/, algorithms/ and models/ meet.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "algorithms/communicator.h"
#include "models/comm/comm_costs.h"
#include "scenarios/scenario.h"
#include "sim/collective.h"
#include "sim/topology.h"

namespace railyard::scenarios {

// A group of ranks with its channels.
struct Communication {
  std::string name;
  sim::Group group;
  std::unique_ptr<algorithms::Communicator> communicator;
};

// Everything that is built once and not changed by running. Addresses are stable: costs point into
// it.
struct Bound {
  sim::Topology topology;
  sim::Parameters parameters;
  sim::Group world;
  std::unique_ptr<models::CommCosts> costs;
  std::vector<Communication> communications;  // of every group that the workload names
};

// Errors point at the line of what does not fit: a group that does not divide the world, a root
// outside its group, a link that is not there, ...
Result<std::unique_ptr<Bound>> bind(const Scenario& scenario);

// The memory that bind() will take, from the size of the cluster alone.
Result<double> bind_memory_bytes(const Scenario& scenario);

// The communications of a named group (several for a regular division).
std::vector<Communication*> communications_of(Bound& bound, const std::string& group);

// The entry of Scenario::nccl that serves a call of a size.
std::size_t choice_index(const Scenario& scenario, sim::Bytes size);

// The call that the scenario's choice makes of a collective. Broadcast, Reduce, AllGather and
// ReduceScatter have no tree in NCCL: they take the ring. AllToAll is sends and receives, which
// have no LL128: where choices are listed by size it takes Simple; a single choice stands as it is.
sim::CollectiveCall choose(const Scenario& scenario, sim::Collective collective, sim::Bytes size,
                           std::int64_t element_size);

}  // namespace railyard::scenarios
