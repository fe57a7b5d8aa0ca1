// What looks wrong in a fabric that ibnetdiscover listed: ports are compared with their equals, so
// a finding is a hint, not a proof.
//
//   host cables   slower than most of those of hosts with as many adapters (trained low or narrow)
//   trunks        slower than others at both of their ends
//   rails         a host without an adapter that most hosts of its kind have
//   leaves        fewer cables to other switches than most leaves
//
// "Most" is more than half. Cost: O(ports log ports).
#pragma once

#include <vector>

#include "topologies/hardware_check.h"
#include "topologies/import/fabric_graph.h"

namespace railyard::topologies {

std::vector<Finding> check_fabric(const FabricGraph& graph);

}  // namespace railyard::topologies
