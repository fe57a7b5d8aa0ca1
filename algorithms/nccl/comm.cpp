#include "algorithms/nccl/comm.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "algorithms/nccl/channel_counts.h"

namespace railyard::algorithms::nccl {
namespace {

using sim::ChannelGraph;

constexpr std::size_t kMaxLocalRanks = 72;

sim::Result<void> check_graph(const ChannelGraph& graph, std::size_t local_ranks, bool whole,
                              const std::string& where) {
  for (std::size_t c = 0; c < graph.channels.size(); ++c) {
    const std::vector<std::int32_t>& gpus = graph.channels[c].gpus;
    const std::set<std::int32_t> unique(gpus.begin(), gpus.end());
    const bool in_range = !gpus.empty() && *unique.begin() >= 0 &&
                          static_cast<std::size_t>(*unique.rbegin()) < local_ranks;
    if (!in_range || unique.size() != gpus.size() || (whole && gpus.size() != local_ranks))
      return sim::bad_input(
          fmt::format("{} graph, channel {}: expected {} of GPUs 0 to {}", sim::to_text(graph.kind),
                      c, whole ? "an order" : "a list", local_ranks - 1),
          where);
  }
  return {};
}

sim::Result<void> check_kind(const NodeKind& kind, std::size_t ranks, const std::string& where) {
  if (kind.compute_capabilities.size() != ranks)
    return sim::bad_input(fmt::format("{} ranks, but {} compute capabilities", ranks,
                                      kind.compute_capabilities.size()),
                          where);
  for (const ChannelGraph* graph : {&kind.ring, &kind.tree, &kind.collnet_chain})
    RAILYARD_TRY(check_graph(*graph, ranks, true, where));
  for (const ChannelGraph* graph : {&kind.collnet_direct, &kind.nvls})
    RAILYARD_TRY(check_graph(*graph, ranks, false, where));
  if (kind.ring.channels.empty() || kind.tree.channels.empty())
    return sim::bad_input("no ring or no tree channels", where);
  return {};
}

sim::Result<void> check_node(const CommInputs& inputs, std::size_t n, CommInfo& info) {
  const CommNode& node = inputs.nodes[n];
  const std::string where = fmt::format("nodes[{}]", n);
  if (node.kind >= inputs.kinds.size())
    return sim::bad_input(fmt::format("kind {} of {}", node.kind, inputs.kinds.size()), where);
  if (node.ranks.empty() || node.ranks.size() > kMaxLocalRanks)
    return sim::bad_input(fmt::format("{} ranks (1 to {})", node.ranks.size(), kMaxLocalRanks),
                          where);
  for (const std::int32_t rank : node.ranks) {
    if (rank < 0 || rank >= info.ranks || info.node_of[static_cast<std::size_t>(rank)] >= 0)
      return sim::bad_input(
          fmt::format("rank {} is not one of 0 to {}, each once", rank, info.ranks - 1), where);
    info.node_of[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(n);
  }
  if (n > 0 && std::ranges::min(node.ranks) < std::ranges::min(inputs.nodes[n - 1].ranks))
    return sim::bad_input("nodes must stand in order of their lowest rank", where);
  return check_kind(inputs.kinds[node.kind], node.ranks.size(),
                    fmt::format("kinds[{}]", node.kind));
}

void merge_graph(const ChannelGraph& graph, bool first, GraphSummary& all) {
  const auto channels = static_cast<std::int32_t>(graph.channels.size());
  // A graph that was never searched is all zero in NCCL, and takes part in the minimum as such.
  const auto intra = channels == 0 ? 0.0F : static_cast<float>(graph.bw_intra);
  const auto inter = channels == 0 ? 0.0F : static_cast<float>(graph.bw_inter);
  if (first) {
    all = {channels,
           graph.same_channels,
           intra,
           inter,
           static_cast<float>(graph.latency_inter),
           graph.type_intra,
           graph.type_inter,
           graph.cross_nic};
    return;
  }
  all.channels = std::min(all.channels, channels);
  all.same_channels = all.same_channels && graph.same_channels;
  all.bw_intra = std::min(all.bw_intra, intra);
  all.bw_inter = std::min(all.bw_inter, inter);
  all.type_intra = std::max(all.type_intra, graph.type_intra);
  all.type_inter = std::max(all.type_inter, graph.type_inter);
  all.cross_nic = std::max(all.cross_nic, graph.cross_nic);
}

void merge_kind(const NodeKind& kind, bool first, CommInfo& info) {
  merge_graph(kind.ring, first, info.ring);
  merge_graph(kind.tree, first, info.tree);
  merge_graph(kind.collnet_chain, first, info.collnet_chain);
  merge_graph(kind.collnet_direct, first, info.collnet_direct);
  merge_graph(kind.nvls, first, info.nvls);
  const auto [lowest, highest] = std::ranges::minmax(kind.compute_capabilities);
  const auto net = static_cast<float>(kind.min_net_bandwidth);
  if (first) {
    info.min_capability = lowest;
    info.max_capability = highest;
    info.cpu_arch = kind.cpu_arch;
    info.cpu_vendor = kind.cpu_vendor;
    info.nvswitches = kind.nvswitches;
    info.all_nvlink = kind.all_nvlink;
    info.min_net_bandwidth = net;
    info.max_tree_pattern = kind.tree.pattern;
    return;
  }
  info.min_capability = std::min(info.min_capability, lowest);
  info.max_capability = std::max(info.max_capability, highest);
  if (info.cpu_arch != kind.cpu_arch) info.cpu_arch = CpuArch::mixed;
  if (info.cpu_vendor != kind.cpu_vendor) info.cpu_vendor = CpuVendor::mixed;
  info.all_nvlink = info.all_nvlink && kind.all_nvlink;
  info.min_net_bandwidth = std::min(info.min_net_bandwidth, net);
  info.max_tree_pattern = std::max(info.max_tree_pattern, kind.tree.pattern);
}

// Which nodes' kinds take part, first node's first, each once.
std::vector<std::size_t> kinds_in_use(const CommInputs& inputs) {
  std::vector<std::size_t> kinds;
  for (const CommNode& node : inputs.nodes)
    if (std::ranges::find(kinds, node.kind) == kinds.end()) kinds.push_back(node.kind);
  return kinds;
}

bool nvls_possible(const CommInputs& inputs, const CommInfo& info, const Environment& env) {
  const std::int64_t enable = env.integer("NCCL_NVLS_ENABLE", 2);
  if (enable == 0 || info.min_local_ranks < 2 || info.nvls.channels == 0) return false;
  return enable == 2 ? inputs.multicast : true;
}

bool collnet_enabled(const CommInputs& inputs, const CommInfo& info, const Environment& env) {
  const bool asked = env.integer("NCCL_COLLNET_ENABLE", inputs.collnet.enabled ? 1 : 0) == 1;
  return asked && inputs.collnet.present && info.collnet_chain.channels > 0 &&
         info.nodes >= env.integer("NCCL_COLLNET_NODE_THRESHOLD", 2);
}

// NCCL takes CollNet's heads from NVLS where there is NVLS, else from CollNetDirect.
void find_heads(const CommInputs& inputs, CommInfo& info) {
  bool first = true;
  for (const std::size_t k : kinds_in_use(inputs)) {
    const auto heads = static_cast<std::int32_t>(graph_heads(inputs.kinds[k].nvls).size());
    info.nvls_heads = first ? heads : std::min(info.nvls_heads, heads);
    first = false;
  }
  if (!info.nvls_support) info.nvls_heads = 0;
  const CommNode& node = inputs.nodes.front();
  const NodeKind& kind = inputs.kinds[node.kind];
  const std::vector<std::int32_t> direct = graph_heads(kind.collnet_direct);
  std::vector<std::int32_t> heads = info.nvls_support ? graph_heads(kind.nvls) : direct;
  if (info.nvls_support) heads.resize(static_cast<std::size_t>(info.nvls_heads));
  info.direct_heads = static_cast<std::int32_t>(direct.size());
  info.direct_is_alone = direct.size() == 1 && node.ranks.size() == 1;
  info.collnet_heads = static_cast<std::int32_t>(heads.size());
  info.collnet_chain_support = std::ranges::all_of(
      graph_heads(kind.collnet_chain),
      [&](std::int32_t head) { return std::ranges::find(heads, head) != heads.end(); });
}

}  // namespace

const GraphSummary& CommInfo::graph(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::ring: return ring;
    case Algorithm::collnet_direct: return collnet_direct;
    case Algorithm::collnet_chain: return collnet_chain;
    case Algorithm::nvls:
    case Algorithm::nvls_tree: return nvls;
    case Algorithm::tree:
    case Algorithm::pat: break;
  }
  return tree;
}

std::vector<std::int32_t> graph_heads(const ChannelGraph& graph) {
  std::vector<std::int32_t> heads;
  for (const ChannelGraph::Channel& channel : graph.channels)
    if (std::ranges::find(heads, channel.gpus.front()) == heads.end())
      heads.push_back(channel.gpus.front());
  return heads;
}

sim::Result<CommInfo> merge_nodes(const CommInputs& inputs, const Environment& env) {
  if (inputs.nodes.empty()) return sim::bad_input("a communicator without ranks", "nodes");
  CommInfo info;
  std::size_t ranks = 0;
  for (const CommNode& node : inputs.nodes) {
    ranks += node.ranks.size();
    info.local_ranks.push_back(static_cast<std::int32_t>(node.ranks.size()));
  }
  info.ranks = static_cast<std::int32_t>(ranks);
  info.nodes = static_cast<std::int32_t>(inputs.nodes.size());
  info.node_of.assign(ranks, -1);
  for (std::size_t n = 0; n < inputs.nodes.size(); ++n) RAILYARD_TRY(check_node(inputs, n, info));
  info.min_local_ranks = std::ranges::min(info.local_ranks);
  info.max_local_ranks = std::ranges::max(info.local_ranks);
  info.mnnvl = inputs.mnnvl;
  info.host_network = inputs.host_network;
  info.collnet_plugin = inputs.collnet;
  bool first = true;
  for (const std::size_t k : kinds_in_use(inputs)) {
    merge_kind(inputs.kinds[k], first, info);
    first = false;
  }
  info.search_channels = std::min(info.ring.channels, info.tree.channels);
  info.ring.channels = info.tree.channels = info.search_channels;
  info.nvls_support = nvls_possible(inputs, info, env);
  if (!info.nvls_support) info.nvls = {};
  info.collnet = collnet_enabled(inputs, info, env);
  find_heads(inputs, info);
  count_channels(inputs, env, info);
  return info;
}

}  // namespace railyard::algorithms::nccl
