// From the topology and the graphs of one node to what a communicator's plan needs of it.
//
//   RAILYARD_ASSIGN(const NodeTopology node, NodeTopology::build(request, env, capabilities));
//   RAILYARD_ASSIGN(const auto graphs, find_graphs(node, options));
//   inputs.kinds.push_back(node_kind(node, graphs));
//   inputs.nodes.push_back({.kind = 0, .ranks = node_ranks(node)});
//
// Nodes with equal hardware, ranks on the same devices in the same order, share one kind.
#pragma once

#include <vector>

#include "algorithms/nccl/comm.h"
#include "algorithms/nccl/node_topology.h"

namespace railyard::algorithms::nccl {

// The node's ranks, ascending: the local indices of its kind.
std::vector<std::int32_t> node_ranks(const NodeTopology& node);

// `graphs` hold ranks, as find_graphs() returns them.
NodeKind node_kind(const NodeTopology& node, const std::vector<sim::ChannelGraph>& graphs);

}  // namespace railyard::algorithms::nccl
