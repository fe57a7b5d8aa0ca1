#include "algorithms/nccl/nets.h"

#include <algorithm>
#include <limits>

namespace railyard::algorithms::nccl {
namespace {

using sim::PathType;

std::int32_t divide_up(std::int32_t a, std::int32_t b) { return (a + b - 1) / b; }

// The bits of `value` below `power`, a power of two, in reverse order.
std::int32_t mirror(std::int32_t value, std::int32_t power) {
  std::int32_t mirrored = 0;
  for (std::int32_t bit = 1, image = power >> 1; bit < power; bit <<= 1, image >>= 1)
    if ((value & bit) != 0) mirrored |= image;
  return mirrored;
}

std::int32_t nets_per_gpu(const NodeSettings& settings, std::int32_t nets, std::int32_t gpus) {
  switch (settings.net_policy) {
    case NetDevicePolicy::all: return nets;
    case NetDevicePolicy::at_most: return std::min(settings.net_policy_max, nets);
    case NetDevicePolicy::automatic: break;
  }
  return divide_up(nets, gpus);
}

struct NetShare {
  std::int32_t nets = 0;
  float bandwidth = 0;
};

// Local devices, as many as the GPU's way to its CPU can feed.
NetShare usable_nets(const NodeTopology& node, std::int32_t gpu) {
  NetShare share;
  const std::int32_t cpu = node.local_cpu(gpu);
  if (cpu < 0) return share;
  const float limit = node.path({VertexKind::gpu, gpu}, {VertexKind::cpu, cpu}).bandwidth;
  for (const std::int32_t net : local_nets(node, gpu)) {
    share.bandwidth += node.net_path(gpu, net).bandwidth;
    ++share.nets;
    if (share.bandwidth >= limit) break;
  }
  return share;
}

std::int32_t channels_to_other_nodes(const NodeTopology& node, std::int32_t gpu) {
  const NodeSettings& settings = node.settings();
  if (settings.channels_per_net_peer)
    return static_cast<std::int32_t>(*settings.channels_per_net_peer);
  const NetShare share = usable_nets(node, gpu);
  if (share.nets == 0) return 2;
  const auto per_channel = static_cast<std::int32_t>(settings.p2p_channel_net_bandwidth);
  return std::max(share.nets, divide_up(static_cast<std::int32_t>(share.bandwidth), per_channel));
}

}  // namespace

LocalEnds local_ends(const NodeTopology& node, PathEnd from, VertexKind kind) {
  LocalEnds local;
  if (!node.paths().any(from, kind)) return local;
  float best = 0;
  for (std::int32_t i = 0; i < node.system().count(kind); ++i) {
    const Path& path = node.path(from, {kind, i});
    if (path.bandwidth > best || (path.bandwidth == best && path.type < local.type)) {
      best = path.bandwidth;
      local.type = path.type;
      local.indices.clear();
    }
    if (path.bandwidth == best && path.type == local.type) local.indices.push_back(i);
  }
  return local;
}

std::int32_t local_net(const NodeTopology& node, std::int32_t gpu, std::int32_t channel) {
  const std::vector<std::int32_t> nets =
      local_ends(node, {VertexKind::gpu, gpu}, VertexKind::net).indices;
  if (nets.empty()) return -1;
  const auto gpus = static_cast<std::int32_t>(
      local_ends(node, {VertexKind::net, nets.front()}, VertexKind::gpu).indices.size());
  if (gpus == 0) return -1;
  const auto count = static_cast<std::int32_t>(nets.size());
  std::int32_t start = node.gpu(gpu).dev % gpus;
  if ((count & (count - 1)) == 0) start = mirror(start, count);
  start += channel % nets_per_gpu(node.settings(), count, gpus);
  return nets[static_cast<std::size_t>(start % count)];
}

std::vector<std::int32_t> local_nets(const NodeTopology& node, std::int32_t gpu) {
  std::vector<std::int32_t> nets;
  for (std::int32_t channel = 0; channel < kMaxChannels; ++channel) {
    const std::int32_t net = local_net(node, gpu, channel);
    if (net < 0 || (channel > 0 && net == nets.front())) break;
    nets.push_back(net);
  }
  return nets;
}

std::int32_t find_local_gpu(const NodeTopology& node, std::int32_t net) {
  const std::vector<std::int32_t> gpus =
      local_ends(node, {VertexKind::net, net}, VertexKind::gpu).indices;
  for (std::int32_t channel = 0; channel < kMaxChannels; ++channel)
    for (const std::int32_t gpu : gpus)
      if (local_net(node, gpu, channel) == net) return gpu;
  return -1;
}

float min_net_bandwidth(const NodeTopology& node, std::int32_t gpu) {
  float least = std::numeric_limits<float>::max();
  for (const std::int32_t net : local_nets(node, gpu))
    least = std::min(least, node.net_path(gpu, net).bandwidth);
  return least < std::numeric_limits<float>::max() ? least : 0;
}

namespace {

// `through_third`: NVLink by way of a third GPU counts as NVLink.
std::int32_t channels_inside(const NodeTopology& node, std::int32_t gpu, bool through_third) {
  std::int32_t least = kMaxChannels;
  for (std::int32_t peer = 0; peer < node.gpus(); ++peer) {
    if (peer == gpu) continue;
    const Path& path = node.gpu_path(peer, gpu);
    const float per_link = nvlink_bandwidth(node.gpu(gpu).sm);
    const bool nvlink = path.type == PathType::nvl || (through_third && path.type == PathType::nvb);
    const std::int32_t links =
        nvlink ? std::max(1, static_cast<std::int32_t>(path.bandwidth / per_link)) : 1;
    least = std::min(least, 2 * links);
  }
  return least;
}

}  // namespace

std::int32_t p2p_channels_per_peer(const NodeTopology& node, std::int32_t gpu) {
  const std::int32_t least = channels_inside(node, gpu, true);
  return node.inter() ? std::min(least, channels_to_other_nodes(node, gpu)) : least;
}

std::int32_t older_channels_inside(const NodeTopology& node, std::int32_t gpu) {
  return channels_inside(node, gpu, false);
}

std::int32_t older_net_count(const NodeTopology& node, std::int32_t gpu) {
  constexpr std::int32_t kHopsOfOwnLink = 2;  // GPU, its device, CPU
  const std::int32_t cpu = node.local_cpu(gpu);
  if (cpu < 0) return 0;
  const Path& path = node.path({VertexKind::gpu, gpu}, {VertexKind::cpu, cpu});
  if (path.hops() > kHopsOfOwnLink) return 0;
  float filled = 0;
  std::int32_t count = 0;
  for (const std::int32_t net : local_ends(node, {VertexKind::gpu, gpu}, VertexKind::net).indices) {
    if (filled >= path.bandwidth) break;
    filled += node.net_path(gpu, net).bandwidth;
    ++count;
  }
  return count;
}

}  // namespace railyard::algorithms::nccl
