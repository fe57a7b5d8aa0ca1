// The default source of a communicator's channels: rings and trees by a simple rule, rail aligned.
// NCCL finds them by a search over the topology; that search will replace default_channels() here
// and nothing else, since every algorithm takes sim::Channels as a value.
//
// "Node" below is a Place (algorithms/places.h): an NVLink domain, so that an NVL72 rack is one
// node. A node's rails are the NICs that are nearest to one of the group's GPUs in it. Channel c
// belongs to rail c mod rails.
//
// Rings. Inside a node: local order, turned so that the GPU nearest the channel's NIC comes first.
//   If the last GPU is near the same NIC too (two GPUs share it, or there is one GPU), the ring
//   enters and leaves the node on that rail. Else every odd node runs backwards, so that each edge
//   between nodes joins two NICs of one rail, each nearest its GPU (as NCCL does with crossNic 2).
//   With an odd number of nodes the edge that closes the ring leaves by the NIC of the first
//   node's rail, which is not the last GPU's nearest.
//
// Trees. The GPU nearest the channel's NIC is the node's head and alone has edges to other nodes.
//   The others hang below it in a chain (NCCL's pattern 3). Over the nodes, the first half of the
//   channels uses tree 0 of the double binary tree and the second half tree 1; on one node the
//   tree is the chain.
//
// Relays. A sender that is not next to its NIC goes through the GPU that is, over NVLink (PXN).
// NICs. Every edge between nodes has a NetEdge, both directions of tree edges; a topology in which
//   some node has no NIC (GPUs directly on a switch) gets none.
//
// Invariant: equal arguments give equal channels. Cost: O(ranks x channels + links).
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/collective.h"
#include "sim/result.h"
#include "sim/topology.h"

namespace railyard::algorithms {

struct ChannelOptions {
  std::uint32_t count = 0;  // 0 = default_channel_count()
  std::uint32_t rails = 0;  // use the first so many rails of every node; 0 = all
};

inline constexpr std::uint32_t kMaxChannels = 64;  // NCCL's MAXCHANNELS

// Errors: those of find_places(); more than kMaxChannels; more rails than a node has.
sim::Result<sim::Channels> default_channels(const sim::Topology& topology, const sim::Group& group,
                                            const ChannelOptions& options);

// Stand-in for the outcome of NCCL's search (its values for DGX H100 and A100 where it has any):
//   GPUs on an NVSwitch     one node 24; more: 4 per rail, at most 16, made a multiple of the rails
//   NVLink without switch   12 (a mesh of all GPUs; bridged pairs count as PCIe)
//   PCIe                    one node 2; more: 2 per rail, at most 4
//   one link per GPU        1
sim::Result<std::uint32_t> default_channel_count(const sim::Topology& topology,
                                                 const sim::Group& group);

// Channels from any source against a group of `ranks`: 1 to kMaxChannels of them; every ring a
// permutation of the ranks; every tree (all channels have one, or none has) spans the ranks from
// one root, with parents and children that agree; NICs are NICs of the topology.
sim::Result<void> check_channels(const sim::Topology& topology, std::size_t ranks,
                                 const sim::Channels& channels);

}  // namespace railyard::algorithms
