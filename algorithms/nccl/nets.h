// Nets: which network devices a GPU uses, channel by channel, and which GPU a device belongs to.
// "Local" ends are those with the most bandwidth and, among these, the best path type.
//
// GPUs that share local devices start at different ones: GPU number modulo the GPUs that share,
// bit-reversed where the devices are a power of two; then on by channel, over as many devices as
// fall to a GPU (NCCL_NETDEVS_POLICY). Source: facts 3.5, NCCL 2.30.7 src/graph/topo.cc.
//
//   local_nets(node, 0)  // dgx_h100: {0}
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/nccl/node_topology.h"

namespace railyard::algorithms::nccl {

inline constexpr std::int32_t kMaxChannels = 64;

struct LocalEnds {
  std::vector<std::int32_t> indices;
  sim::PathType type = sim::PathType::dis;
};
LocalEnds local_ends(const NodeTopology& node, PathEnd from, VertexKind kind);

// The network device of a channel of a GPU; -1: the GPU reaches none.
std::int32_t local_net(const NodeTopology& node, std::int32_t gpu, std::int32_t channel);
// Those of all channels, in order, without repetition.
std::vector<std::int32_t> local_nets(const NodeTopology& node, std::int32_t gpu);
// The first GPU among the device's local ones that chooses it; -1: none does.
std::int32_t find_local_gpu(const NodeTopology& node, std::int32_t net);
// Slowest local device of a GPU, 0 without any.
float min_net_bandwidth(const NodeTopology& node, std::int32_t gpu);

// Channels that send and receive to one peer may use, before rounding to powers of two: the least
// over all peers, the network's share counted if the communicator leaves the node (facts 2.9).
std::int32_t p2p_channels_per_peer(const NodeTopology& node, std::int32_t gpu);
// Before NCCL 2.29: over the peers inside the node, where a way through a third GPU counts as none.
std::int32_t older_channels_inside(const NodeTopology& node, std::int32_t gpu);
// And the local devices that fill the GPU's own link to its CPU; 0 where a switch is between them.
std::int32_t older_net_count(const NodeTopology& node, std::int32_t gpu);

}  // namespace railyard::algorithms::nccl
