#include "algorithms/nccl/connect.h"

#include <algorithm>

#include "algorithms/double_tree.h"
#include "sim/check.h"

namespace railyard::algorithms::nccl {
namespace {

using sim::ChannelGraph;
using sim::GraphPattern;
using sim::TreeEdges;

std::size_t to_index(std::int32_t n) { return static_cast<std::size_t>(n); }

const NodeKind& kind_of(const CommInputs& inputs, std::size_t node) {
  return inputs.kinds[inputs.nodes[node].kind];
}

// The search channel whose order `node` has on ring channel `channel`.
std::size_t ring_channel(const CommInputs& inputs, const CommInfo& info, std::size_t node,
                         std::size_t channel) {
  const bool exchanged =
      kind_of(inputs, node).ring.cross_nic == 2 && info.search_channels % 2 == 0 && node % 2 == 1;
  return exchanged ? channel ^ 1U : channel;
}

std::vector<std::uint32_t> ring_from_rank_0(const CommInputs& inputs, const CommInfo& info,
                                            std::size_t channel) {
  std::vector<std::uint32_t> ring;
  for (std::size_t n = 0; n < inputs.nodes.size(); ++n) {
    const std::vector<std::int32_t>& ranks = inputs.nodes[n].ranks;
    const std::size_t search = ring_channel(inputs, info, n, channel);
    for (const std::int32_t gpu : kind_of(inputs, n).ring.channels[search].gpus)
      ring.push_back(static_cast<std::uint32_t>(ranks[to_index(gpu)]));
  }
  const auto zero = std::ranges::find(ring, 0U);
  RAILYARD_CHECK(zero != ring.end(), "merge_nodes() has checked the orders");
  std::rotate(ring.begin(), zero, ring.end());
  return ring;
}

// Which positions of the intra-node order hold the edges to the parent's and the children's nodes.
struct TreeEnds {
  std::int32_t to_parent = 0;  // ranks
  std::array<std::int32_t, 2> to_child{};
};

TreeEnds tree_ends(const CommInputs& inputs, std::size_t node, std::size_t channel) {
  const ChannelGraph& graph = kind_of(inputs, node).tree;
  const std::vector<std::int32_t>& order = graph.channels[channel].gpus;
  const auto rank_at = [&](std::size_t position) {
    return inputs.nodes[node].ranks[to_index(order[std::min(position, order.size() - 1)])];
  };
  TreeEnds ends;
  ends.to_parent = rank_at(0);
  ends.to_child[0] = rank_at(graph.pattern == GraphPattern::tree ? 0 : 1);
  ends.to_child[1] = rank_at(graph.pattern == GraphPattern::split_tree ? 1 : 0);
  return ends;
}

void add_child(std::int32_t child, TreeEdges& edges) {
  const auto free = std::ranges::find(edges.down, kNone);
  RAILYARD_CHECK(free != edges.down.end(), "a tree with more than three children");
  *free = child;
}

void chain_inside(const CommInputs& inputs, std::size_t node, std::size_t channel,
                  std::vector<TreeEdges>& tree) {
  const std::vector<std::int32_t>& ranks = inputs.nodes[node].ranks;
  const std::vector<std::int32_t>& order = kind_of(inputs, node).tree.channels[channel].gpus;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    const std::int32_t above = ranks[to_index(order[i])];
    const std::int32_t below = ranks[to_index(order[i + 1])];
    tree[to_index(above)].down[0] = below;
    tree[to_index(below)].up = above;
  }
}

// `which`: tree 0 or 1 of the double tree.
std::vector<TreeEdges> build_tree(const CommInputs& inputs, const CommInfo& info,
                                  std::size_t channel, std::uint32_t which) {
  const auto nodes = static_cast<std::uint32_t>(inputs.nodes.size());
  std::vector<TreeEdges> tree(to_index(info.ranks));
  std::vector<TreeEnds> ends;
  for (std::size_t n = 0; n < nodes; ++n) {
    chain_inside(inputs, n, channel, tree);
    ends.push_back(tree_ends(inputs, n, channel));
  }
  for (std::uint32_t n = 0; n < nodes; ++n) {
    const NodeTreeEdges edges = double_tree(which, n, nodes);
    for (std::size_t child = 0; child < edges.children.size(); ++child) {
      if (edges.children[child] == kNoNeighbour) continue;
      const std::int32_t below = ends[to_index(edges.children[child])].to_parent;
      add_child(below, tree[to_index(ends[n].to_child[child])]);
      tree[to_index(below)].up = ends[n].to_child[child];
    }
  }
  return tree;
}

std::size_t local_index(const CommInputs& inputs, std::size_t node, std::int32_t rank) {
  const std::vector<std::int32_t>& ranks = inputs.nodes[node].ranks;
  return static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
}

// The NIC that `rank` uses on `channel`.
std::int64_t net_of(const CommInputs& inputs, const CommInfo& info, Algorithm algorithm,
                    std::int32_t rank, std::int32_t channel) {
  const auto node = to_index(info.node_of[to_index(rank)]);
  const auto local = static_cast<std::int32_t>(local_index(inputs, node, rank));
  const NodeKind& kind = kind_of(inputs, node);
  if (algorithm == Algorithm::nvls_tree) {
    std::vector<std::int64_t> nets;
    for (std::size_t c = 0; c < to_index(info.nvls.channels); ++c)
      if (kind.nvls.channels[c].gpus.front() == local)
        nets.push_back(kind.nvls.channels[c].nets[0]);
    return nets.empty() ? kNone : nets[to_index(channel) % nets.size()];
  }
  const ChannelGraph& graph = algorithm == Algorithm::ring ? kind.ring : kind.tree;
  const ChannelGraph::Channel& search = graph.channels[to_index(channel % info.search_channels)];
  return search.nets[search.gpus.front() == local ? 0 : 1];
}

}  // namespace

Connections connect(const CommInputs& inputs, const CommInfo& info) {
  Connections result;
  const std::size_t channels = to_index(info.search_channels);
  for (std::size_t c = 0; c < channels; ++c)
    result.rings.push_back(ring_from_rank_0(inputs, info, c));
  for (std::size_t c = 0; c < channels; ++c) result.rings.push_back(result.rings[c]);
  for (const std::uint32_t which : {0U, 1U})
    for (std::size_t c = 0; c < channels; ++c)
      result.trees.push_back(build_tree(inputs, info, c, which));
  for (std::int32_t h = 0; h < info.nvls_heads; ++h) {
    result.nvls_heads.emplace_back();
    for (std::size_t n = 0; n < inputs.nodes.size(); ++n) {
      const std::vector<std::int32_t> heads = graph_heads(kind_of(inputs, n).nvls);
      result.nvls_heads.back().push_back(inputs.nodes[n].ranks[to_index(heads[to_index(h)])]);
    }
  }
  return result;
}

NvlsEdges nvls_edges(const CommInfo& info, const Connections& connections, std::int32_t rank,
                     std::int32_t channel) {
  NvlsEdges edges;
  const std::int32_t node = info.node_of[to_index(rank)];
  for (std::size_t h = 0; h < connections.nvls_heads.size(); ++h)
    if (connections.nvls_heads[h][to_index(node)] == rank)
      edges.head = static_cast<std::int32_t>(h);
  if (edges.head == kNone || info.nodes == 1) return edges;
  const std::vector<std::int32_t>& heads = connections.nvls_heads[to_index(edges.head)];
  const NodeTreeEdges tree =
      double_tree(static_cast<std::uint32_t>(channel % 2), static_cast<std::uint32_t>(node),
                  static_cast<std::uint32_t>(info.nodes));
  if (tree.parent != kNoNeighbour) edges.up = heads[to_index(tree.parent)];
  std::size_t filled = 0;
  for (const std::int32_t child : tree.children)
    if (child != kNoNeighbour) edges.down[filled++] = heads[to_index(child)];
  return edges;
}

ChainEdges collnet_chain_edges(const CommInputs& inputs, const CommInfo& info, std::int32_t rank,
                               std::int32_t channel) {
  RAILYARD_CHECK(info.collnet, "no CollNet");
  const auto node = to_index(info.node_of[to_index(rank)]);
  const std::vector<std::int32_t>& ranks = inputs.nodes[node].ranks;
  const auto search = to_index(info.source[to_index(channel)] % info.search_channels);
  const std::vector<std::int32_t>& order =
      kind_of(inputs, node).collnet_chain.channels[search].gpus;
  ChainEdges edges;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (ranks[to_index(order[i])] != rank) continue;
    if (i > 0) edges.up = ranks[to_index(order[i - 1])];
    if (i + 1 < order.size()) edges.down = ranks[to_index(order[i + 1])];
  }
  return edges;
}

std::vector<NetHop> net_hops(const CommInputs& inputs, const CommInfo& info,
                             const Connections& connections, Algorithm algorithm,
                             std::int32_t channel) {
  std::vector<NetHop> hops;
  const auto add = [&](std::int32_t from, std::int32_t to) {
    if (info.node_of[to_index(from)] == info.node_of[to_index(to)]) return;
    hops.push_back({from, to, net_of(inputs, info, algorithm, from, channel),
                    net_of(inputs, info, algorithm, to, channel)});
  };
  const auto add_both = [&](std::int32_t child, std::int32_t parent) {
    if (parent == kNone) return;
    add(child, parent);
    add(parent, child);
  };
  const std::size_t source = to_index(info.source[to_index(channel % info.channels)]);
  if (algorithm == Algorithm::ring) {
    const std::vector<std::uint32_t>& ring = connections.rings[source];
    for (std::size_t i = 0; i < ring.size(); ++i)
      add(static_cast<std::int32_t>(ring[i]),
          static_cast<std::int32_t>(ring[(i + 1) % ring.size()]));
  }
  for (std::int32_t rank = 0; rank < info.ranks; ++rank) {
    if (algorithm == Algorithm::tree) add_both(rank, connections.trees[source][to_index(rank)].up);
    if (algorithm == Algorithm::nvls_tree)
      add_both(rank, nvls_edges(info, connections, rank, channel).up);
  }
  return hops;
}

sim::Channels to_channels(const CommInfo& info, const Connections& connections) {
  sim::Channels channels;
  for (const std::int32_t source : info.source)
    channels.push_back({.ring = connections.rings[to_index(source)],
                        .tree = connections.trees[to_index(source)],
                        .net_edges = {}});
  return channels;
}

}  // namespace railyard::algorithms::nccl
