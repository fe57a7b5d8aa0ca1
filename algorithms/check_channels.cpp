// check_channels(): channels may come from a file or another program, so what they say is checked.
#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/channels.h"

namespace railyard::algorithms {
namespace {

using sim::bad_input;
using sim::Channel;
using sim::DeviceId;
using sim::Result;
using sim::Topology;
using sim::TreeEdges;

std::string rank_name(std::size_t rank) { return "rank " + std::to_string(rank); }

Result<void> check_ring(std::size_t ranks, const Channel& channel) {
  if (channel.ring.size() != ranks)
    return bad_input("the ring has " + std::to_string(channel.ring.size()) + " ranks; expected " +
                     std::to_string(ranks));
  std::vector<bool> seen(ranks, false);
  for (const std::uint32_t rank : channel.ring) {
    if (rank >= ranks) return bad_input("the ring names " + rank_name(rank) + ", which is none");
    if (seen[rank]) return bad_input(rank_name(rank) + " is in the ring twice");
    seen[rank] = true;
  }
  return {};
}

Result<void> check_children(std::size_t rank, const std::vector<TreeEdges>& tree) {
  for (const std::int32_t down : tree[rank].down) {
    if (down < 0) continue;
    const auto child = static_cast<std::size_t>(down);
    if (child >= tree.size())
      return bad_input("the tree names " + rank_name(child) + ", which is none");
    if (tree[child].up != static_cast<std::int32_t>(rank))
      return bad_input("the tree has " + rank_name(child) + " below " + rank_name(rank) +
                       ", but its parent is " + std::to_string(tree[child].up));
  }
  return {};
}

// With children that agree on their parent, walking down from the one root meets every rank once
// exactly if the tree spans the ranks.
Result<void> check_tree(std::size_t ranks, const Channel& channel) {
  const auto& tree = channel.tree;
  if (tree.size() != ranks)
    return bad_input("the tree has " + std::to_string(tree.size()) + " ranks; expected " +
                     std::to_string(ranks));
  std::vector<std::size_t> reached;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    RAILYARD_TRY(check_children(rank, tree));
    if (tree[rank].up < 0) reached.push_back(rank);
  }
  if (reached.size() != 1)
    return bad_input("the tree has " + std::to_string(reached.size()) + " roots; expected 1");
  for (std::size_t i = 0; i < reached.size() && reached.size() <= ranks; ++i)
    for (const std::int32_t child : tree[reached[i]].down)
      if (child >= 0) reached.push_back(static_cast<std::size_t>(child));
  if (reached.size() != ranks)
    return bad_input("the tree reaches " + std::to_string(reached.size()) + " of " +
                     std::to_string(ranks) + " ranks from its root");
  return {};
}

bool is_kind(const Topology& topology, DeviceId id, sim::DeviceKind kind) {
  return id.index() < topology.devices.size() && topology.devices[id.index()].kind == kind;
}

bool is_nic(const Topology& topology, DeviceId id) {
  return id.valid() && is_kind(topology, id, sim::DeviceKind::nic);
}

Result<void> check_host_stops(const Topology& topology, const sim::NetEdge& edge,
                              const std::string& where) {
  for (const DeviceId stop : {edge.host.out, edge.host.out_ll, edge.host.in})
    if (stop.valid() && !is_kind(topology, stop, sim::DeviceKind::cpu))
      return bad_input(where + " stops in the memory of what is no CPU");
  return {};
}

Result<void> check_net_edges(const Topology& topology, std::size_t ranks, const Channel& channel) {
  for (const sim::NetEdge& edge : channel.net_edges) {
    const std::string where = "the edge from " + rank_name(edge.from) + " to " + rank_name(edge.to);
    if (edge.from >= ranks || edge.to >= ranks)
      return bad_input(where + " leaves the group of " + std::to_string(ranks) + " ranks");
    RAILYARD_TRY(check_host_stops(topology, edge, where));
    const bool in_node = !edge.nic_out.valid() && !edge.nic_in.valid() && edge.host.in.valid();
    if (!in_node && (!is_nic(topology, edge.nic_out) || !is_nic(topology, edge.nic_in)))
      return bad_input(where + " has an end that is no NIC");
  }
  return {};
}

Result<void> check_head_node(const Topology& topology, std::size_t ranks, const sim::HeadNode& node,
                             std::vector<bool>& seen) {
  for (const std::uint32_t rank : node.ranks) {
    if (rank >= ranks)
      return bad_input("a node of heads has " + rank_name(rank) + ", which is none");
    if (seen[rank]) return bad_input(rank_name(rank) + " is in two nodes of heads");
    seen[rank] = true;
  }
  for (const std::uint32_t head : node.heads)
    if (std::find(node.ranks.begin(), node.ranks.end(), head) == node.ranks.end())
      return bad_input(rank_name(head) + " is head of a node that it is not in");
  if (node.nvswitch.valid() && !is_kind(topology, node.nvswitch, sim::DeviceKind::nvswitch))
    return bad_input("a node of heads meets in what is no NVSwitch");
  return {};
}

// The tree over nodes is a tree over ranks 0, 1, ... to check_tree().
Result<void> check_heads(const Topology& topology, std::size_t ranks, const sim::Heads& heads) {
  if (heads.nodes.empty()) return {};
  std::vector<bool> seen(ranks, false);
  for (const sim::HeadNode& node : heads.nodes) {
    RAILYARD_TRY(check_head_node(topology, ranks, node, seen));
    if (node.heads.size() != heads.nodes.front().heads.size())
      return bad_input("nodes have " + std::to_string(heads.nodes.front().heads.size()) + " and " +
                       std::to_string(node.heads.size()) + " heads; expected as many");
  }
  if (std::find(seen.begin(), seen.end(), false) != seen.end())
    return bad_input("the nodes of heads leave out a rank");
  if (heads.nodes.size() > 1) {
    Channel over_nodes;
    over_nodes.tree = heads.tree;
    if (auto result = check_tree(heads.nodes.size(), over_nodes); !result.ok())
      return bad_input("heads: over nodes for ranks, " + result.error().message);
  }
  if (!heads.switches.empty() && heads.switches.size() != heads.nodes.front().heads.size())
    return bad_input("there are " + std::to_string(heads.switches.size()) + " switches for " +
                     std::to_string(heads.nodes.front().heads.size()) + " heads");
  for (const DeviceId id : heads.switches)
    if (!is_kind(topology, id, sim::DeviceKind::fabric_switch))
      return bad_input("heads meet in what is no fabric switch");
  return {};
}

Result<void> check_channel(const Topology& topology, std::size_t ranks, const Channel& channel) {
  RAILYARD_TRY(check_ring(ranks, channel));
  if (!channel.tree.empty()) RAILYARD_TRY(check_tree(ranks, channel));
  RAILYARD_TRY(check_net_edges(topology, ranks, channel));
  return check_heads(topology, ranks, channel.heads);
}

}  // namespace

Result<void> check_channels(const Topology& topology, std::size_t ranks,
                            const sim::Channels& channels) {
  if (channels.empty() || channels.size() > kMaxChannels)
    return bad_input(std::to_string(channels.size()) + " channels; expected 1 to " +
                     std::to_string(kMaxChannels));
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const std::string where = "channel " + std::to_string(i);
    if (channels[i].tree.empty() != channels[0].tree.empty())
      return bad_input("some channels have a tree and some have none", where);
    if (auto result = check_channel(topology, ranks, channels[i]); !result.ok())
      return bad_input(result.error().message, where);
  }
  return {};
}

}  // namespace railyard::algorithms
