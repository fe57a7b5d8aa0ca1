// NCCL's decisions for a group of ranks of a scenario: from the topology and the machine's hardware
// to algorithms/nccl's plan, and from the plan to channels whose NICs are devices of the topology.
//
//   RAILYARD_ASSIGN(auto cluster, plan_group(scenario, topology, group));
//   PlannedCommunicator made = planned_communicator(cluster, topology, group);
//   choose(cluster->comm, nccl_call);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "algorithms/communicator.h"
#include "algorithms/nccl/cluster.h"
#include "algorithms/nccl/selection.h"
#include "models/nn/dtype.h"
#include "scenarios/scenario.h"
#include "sim/collective.h"
#include "sim/topology.h"

namespace railyard::scenarios {

// A group as NCCL sees it. Ranks are the group's.
struct GroupPlan {
  algorithms::nccl::Environment env;
  algorithms::nccl::Cluster cluster;
  std::vector<std::int32_t> net_numbers;  // NCCL's device number of every NIC of a host, ascending
  bool gpu_initiated = false;             // sends between nodes
  std::vector<std::string> warnings;      // what is lost or not exact, for the user
};

// Errors: a flat machine, which has no inside; a variable that NCCL would refuse.
Result<std::shared_ptr<const GroupPlan>> plan_group(const Scenario& scenario,
                                                    const sim::Topology& topology,
                                                    const sim::Group& group);

// The ranks of a named group of the scenario; of a regular division the first part.
Result<sim::Group> group_of(const Scenario& scenario, const sim::Topology& topology,
                            const std::string& name);

// What a communicator on the plan is made of: rings, trees and heads of every channel, with the
// NICs and the stops in host memory of each edge that is not straight from GPU to GPU; launch
// limits, channels and stops of sends and receives.
struct PlannedCommunicator {
  sim::Channels channels;
  algorithms::CommunicatorOptions options;
};
PlannedCommunicator planned_communicator(const std::shared_ptr<const GroupPlan>& plan,
                                         const sim::Topology& topology, const sim::Group& group);

// The call with NCCL's choice of algorithm, protocol and channels. AllToAll and the other groups of
// sends and receives are not chosen: their protocol follows from the size per peer.
Result<sim::CollectiveCall> choose_call(const GroupPlan& plan, sim::CollectiveCall call);

}  // namespace railyard::scenarios
