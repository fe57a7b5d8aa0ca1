// Default heads of a channel (sim::Heads): who sums for its node, and where nodes meet.
//
// One node: every rank is a head, at most 32. More nodes: one per rail, the GPU nearest its NIC
// (NCCL: one per NVLS search channel, which is the same on machines with a NIC per GPU); where
// nodes have no NICs, the k-th ranks of all nodes. All nodes have as many heads; k is the rail.
// The tree of NVLSTree is over the nodes: tree 0 of the double binary tree on even channels, tree 1
// on odd ones (NCCL 2.30, connect.cc). The switch of the k-th heads is the fabric switch nearest to
// all of their NICs; of several equally near ones, channels take turns.
//
// Cost: O(links) per head and candidate switch, once per communicator.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/places.h"
#include "sim/collective.h"
#include "sim/topology.h"

namespace railyard::algorithms {

// Adds the heads to all `channels`. `rails`: as many as the channels use (0: no NICs).
void add_default_heads(const sim::Topology& topology, const Places& places, const sim::Group& group,
                       std::uint32_t rails, sim::Channels& channels);

// The NIC by which a head meets the others in a switch: its first; invalid if it has none.
sim::DeviceId head_nic(const Places& places, std::uint32_t rank);

}  // namespace railyard::algorithms
