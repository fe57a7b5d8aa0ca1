// Who talks to whom on every channel, across nodes. Source: NCCL 2.30.7 graph/connect.cc, rings.cc,
// trees.cc, and ncclTopoGetNetDev in search.cc.
//
// Rings. Inside a node the search's order; the last GPU of node k sends to the first of node k + 1.
//   Nodes whose ring has crossNic 2 and an odd number exchange channels in pairs (0 with 1, ...)
//   if the number of channels is even, so that a ring which changes NIC inside a node stays on
//   rails.
// Trees. Inside a node the search's order is a chain, first GPU on top. Over the nodes the double
//   tree: the first half of the doubled channels has tree 0, the second tree 1. The GPU with the
//   edge to the parent is the first; those with the edges to the two child nodes are, by pattern:
//   balanced tree second and first, split tree second and second, tree first and first.
// NVLS. Heads: the distinct first GPUs of the search's channels, in order; as many as the node with
//   the fewest has. NVLSTree joins head h of every node by the double tree, channel by channel in
//   turn tree 0 and tree 1.
// CollNet. Chains as the search's order, head first, below the network's root.
//
// NICs: a rank sends and receives between nodes on channel c by the entry NIC of search channel
// c mod n if it is that channel's first GPU, else by its exit NIC; a head of NVLS by the NICs of
// its search channels in turn.
//
// Cost: O(ranks x search channels) to build; rings of repeated channels are stored once.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/nccl/comm.h"
#include "sim/collective.h"

namespace railyard::algorithms::nccl {

inline constexpr std::int32_t kNone = -1;

struct Connections {
  // By source channel (CommInfo::source), 2 x search_channels of each.
  std::vector<std::vector<std::uint32_t>> rings;   // ranks, from rank 0
  std::vector<std::vector<sim::TreeEdges>> trees;  // by rank
  // [head][node] = rank
  std::vector<std::vector<std::int32_t>> nvls_heads;
};

// `info` is merge_nodes(inputs).
Connections connect(const CommInputs& inputs, const CommInfo& info);

// A rank's place in NVLS and NVLSTree on a channel.
struct NvlsEdges {
  std::int32_t head = kNone;  // its index among the heads; kNone for the others
  std::int32_t up = kNone;    // NVLSTree, ranks: only heads have edges
  std::array<std::int32_t, 2> down{kNone, kNone};  // packed to the front
};
NvlsEdges nvls_edges(const CommInfo& info, const Connections& connections, std::int32_t rank,
                     std::int32_t channel);

// A rank's neighbours in the CollNet chain of a channel; up = kNone at the head (the network).
struct ChainEdges {
  std::int32_t up = kNone;
  std::int32_t down = kNone;
};
ChainEdges collnet_chain_edges(const CommInputs& inputs, const CommInfo& info, std::int32_t rank,
                               std::int32_t channel);

// An edge between nodes and the NICs it uses, as NCCL's net ids (sim::ChannelGraph); kNone where
// the graph names none.
struct NetHop {
  std::int32_t from = 0;  // ranks
  std::int32_t to = 0;
  std::int64_t net_out = kNone;
  std::int64_t net_in = kNone;
};
// Of one channel and algorithm: ring (its direction), tree and nvls_tree (both directions, child
// before parent). Other algorithms: none, their peers are not ranks.
std::vector<NetHop> net_hops(const CommInputs& inputs, const CommInfo& info,
                             const Connections& connections, Algorithm algorithm,
                             std::int32_t channel);

// Rings and trees of all channels as the schedules want them. NICs stay with net_hops(): only the
// caller knows which device a net id is.
sim::Channels to_channels(const CommInfo& info, const Connections& connections);

}  // namespace railyard::algorithms::nccl
