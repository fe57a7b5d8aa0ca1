// The graph search: how NCCL lays its channels through one node, per communication pattern. A
// channel is an order of the node's GPUs with the network devices it enters and leaves by; each
// reserves the same bandwidth on every link it uses, and as many channels as fit are wanted.
//
// The search is NCCL's own, step for step: candidate bandwidths from fast to slow, depth first
// within a budget of visited GPUs, relaxing one demand after the other, then doubling channels and
// raising bandwidths again. It is exact, not optimal: what NCCL misses, this misses too. Arithmetic
// is float, as NCCL's; every comparison depends on it.
//
// Cost: at most 2^19 visits per pattern, each up to the hops of a path; 72 GPUs below a second.
// Source: facts 3.5, NCCL 2.30.7 src/graph/search.cc and init.cc.
//
//   RAILYARD_ASSIGN(auto graphs, find_graphs(node, {.nvls = nvls_available(node, env)}));
//   graphs[0].kind == sim::GraphKind::ring
#pragma once

#include <vector>

#include "algorithms/nccl/node_topology.h"
#include "sim/channel_graph.h"
#include "sim/result.h"

namespace railyard::algorithms::nccl {

struct GraphOptions {
  bool collnet = false;  // also search chains and heads for a collective network
  bool nvls = false;     // also search heads for NVLink multicast
  // NCCL_GRAPH_FILE: a graph found here replaces the search for its kind.
  const std::vector<sim::ChannelGraph>* file = nullptr;
  bool file_has_ranks = false;  // else its channels hold device numbers
};

// In NCCL's order: ring, tree, [chain, direct], [nvls]. The tree has the ring's channel count.
// Channels hold ranks; of NVLS and CollNetDirect heads only the head. Errors: a GPU that the
// network cannot be reached from in a node that needs it, a graph file that names other GPUs.
sim::Result<std::vector<sim::ChannelGraph>> find_graphs(const NodeTopology& node,
                                                        const GraphOptions& options);

// Whether NCCL would try NVLS in this node at all: more than one GPU, and multicast unless
// NCCL_NVLS_ENABLE says 0 or 1. The search then also asks for an NVSwitch and Hopper.
bool nvls_available(const NodeTopology& node, const Environment& environment);

}  // namespace railyard::algorithms::nccl
