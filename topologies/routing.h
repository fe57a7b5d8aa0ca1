// The Routing of a built cluster: node_routes.h inside nodes, fabric_routes.h between them, and
// NVSwitch to NVSwitch inside an NVLink domain that spans nodes.
//
// Between nodes only fabric endpoints (NICs; GPUs of a flat machine) are joined: the NICs of a path
// are way points that the caller chooses. Switches of the fabric are no end points.
#pragma once

#include <memory>

#include "sim/topology.h"
#include "topologies/cluster_plan.h"
#include "topologies/fabric_routes.h"

namespace railyard::topologies {

// Keeps the plan and the map; knows nothing of the Topology it will belong to.
std::shared_ptr<const sim::Routing> make_routing(ClusterPlan plan, SlotMap links);

}  // namespace railyard::topologies
