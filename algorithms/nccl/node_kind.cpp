#include "algorithms/nccl/node_kind.h"

#include <algorithm>

#include "algorithms/nccl/nets.h"
#include "sim/check.h"

namespace railyard::algorithms::nccl {
namespace {

sim::ChannelGraph with_local_indices(sim::ChannelGraph graph,
                                     const std::vector<std::int32_t>& ranks) {
  for (sim::ChannelGraph::Channel& channel : graph.channels)
    for (std::int32_t& gpu : channel.gpus) {
      const auto found = std::ranges::lower_bound(ranks, gpu);
      RAILYARD_CHECK(found != ranks.end() && *found == gpu, "a graph of another node");
      gpu = static_cast<std::int32_t>(found - ranks.begin());
    }
  return graph;
}

sim::ChannelGraph& slot_of(sim::GraphKind kind, NodeKind& node) {
  switch (kind) {
    case sim::GraphKind::ring: return node.ring;
    case sim::GraphKind::tree: return node.tree;
    case sim::GraphKind::collnet_chain: return node.collnet_chain;
    case sim::GraphKind::collnet_direct: return node.collnet_direct;
    case sim::GraphKind::nvls: break;
  }
  return node.nvls;
}

}  // namespace

std::vector<std::int32_t> node_ranks(const NodeTopology& node) {
  std::vector<std::int32_t> ranks;
  for (std::int32_t g = 0; g < node.gpus(); ++g) ranks.push_back(node.gpu(g).rank);
  std::ranges::sort(ranks);
  return ranks;
}

NodeKind node_kind(const NodeTopology& node, const std::vector<sim::ChannelGraph>& graphs) {
  NodeKind kind;
  const std::vector<std::int32_t> ranks = node_ranks(node);
  for (const sim::ChannelGraph& graph : graphs)
    slot_of(graph.kind, kind) = with_local_indices(graph, ranks);
  float net = 0;
  for (std::int32_t g = 0; g < node.gpus(); ++g) {
    const float nearest = min_net_bandwidth(node, g);
    const std::int32_t channels = p2p_channels_per_peer(node, g);
    net = g == 0 ? nearest : std::min(net, nearest);
    kind.p2p_channels_per_peer = g == 0 ? channels : std::min(kind.p2p_channels_per_peer, channels);
    const std::int32_t inside = older_channels_inside(node, g);
    kind.older_channels_inside = g == 0 ? inside : std::min(kind.older_channels_inside, inside);
    const std::int32_t nets = older_net_count(node, g);
    kind.older_net_count = g == 0 ? nets : std::min(kind.older_net_count, nets);
  }
  kind.min_net_bandwidth = net;
  for (const std::int32_t rank : ranks)
    kind.compute_capabilities.push_back(node.gpu(node.system().gpu_of_rank(rank)).sm);
  const Vertex& cpu = node.system().at(VertexKind::cpu, 0);
  kind.cpu_arch = cpu.arch;
  kind.cpu_vendor = cpu.vendor;
  kind.nvswitches = node.system().count(VertexKind::nvs);
  kind.all_nvlink = node.max_type(VertexKind::gpu) < sim::PathType::pix;
  return kind;
}

}  // namespace railyard::algorithms::nccl
