// A communicator's plan (algorithms/nccl) in the terms that a log is compared in.
//
//   RAILYARD_ASSIGN(const CommPlan plan, make_comm_plan(inputs, env));
//   const Comparison comparison = compare(predict(plan, env), log, main_communicator(log));
//
// Transports of collectives (send and receive choose their own): between nodes the network device.
// With the nodes' topologies also the relay (PXN) and GPU Direct, and inside nodes P2P, shared
// memory or the network.
#pragma once

#include <memory>
#include <vector>

#include "algorithms/nccl/environment.h"
#include "algorithms/nccl/node_topology.h"
#include "algorithms/nccl/plan.h"
#include "tools/cli/nccl_compare.h"

namespace railyard::cli {

// One per node of the plan; nodes of equal hardware and ranks on equal devices may share one, whose
// ranks are then the first such node's.
using NodeTopologies = std::vector<std::shared_ptr<const algorithms::nccl::NodeTopology>>;

// The prediction keeps copies. `nodes`: empty, or as many as the plan has.
NcclPrediction predict(const algorithms::nccl::CommPlan& plan,
                       const algorithms::nccl::Environment& environment,
                       const NodeTopologies& nodes = {});

}  // namespace railyard::cli
