// What NCCL's decision files say of one node's search, as inputs of algorithms/nccl's plan.
#pragma once

#include <vector>

#include "algorithms/nccl/plan.h"
#include "tests/decisions/decision_files.h"

namespace railyard::tests {

// The graphs as the file has them.
std::vector<sim::ChannelGraph> graphs_of(const DecisionFile& file);
// The graphs as our own search finds them.
std::vector<sim::ChannelGraph> searched_graphs(const DecisionFile& file,
                                               const algorithms::nccl::NodeTopology& node);

algorithms::nccl::NodeTopology first_node_of(const DecisionFile& file);

// A communicator whose nodes are all like rank 0's.
algorithms::nccl::CommInputs comm_inputs(const DecisionFile& file,
                                         const algorithms::nccl::NodeTopology& node,
                                         const std::vector<sim::ChannelGraph>& graphs);

}  // namespace railyard::tests
