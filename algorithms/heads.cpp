#include "algorithms/heads.h"

#include <algorithm>

#include "algorithms/availability.h"
#include "algorithms/double_tree.h"
#include "sim/fabric_tree.h"

namespace railyard::algorithms {
namespace {

using sim::DeviceId;
using sim::DeviceKind;
using sim::FabricGraph;
using sim::FabricTree;
using sim::HeadNode;
using sim::Heads;
using sim::LinkClass;
using sim::Topology;

constexpr std::size_t kMaxMeetingSwitches = 64;  // no more channels than that take turns

// The NVSwitch of every device that has one.
std::vector<DeviceId> nvswitches(const Topology& topology) {
  std::vector<DeviceId> result(topology.devices.size());
  for (const sim::Link& link : topology.links)
    if (link.link_class == LinkClass::nvlink &&
        topology.devices[link.to.index()].kind == DeviceKind::nvswitch)
      result[link.from.index()] = link.to;
  return result;
}

// Heads of a node among several, one for each of the first `rails` rails.
std::vector<std::uint32_t> rail_heads(const Places& places, const Place& place,
                                      std::uint32_t rails) {
  if (rails == 0) return place.ranks;
  std::vector<std::uint32_t> heads;
  for (std::size_t r = 0; r < std::min<std::size_t>(rails, place.rails.size()); ++r)
    for (const std::uint32_t rank : place.ranks) {
      if (!is_gateway(places, rank, place.rails[r])) continue;
      if (std::ranges::find(heads, rank) == heads.end()) heads.push_back(rank);
      break;
    }
  return heads;
}

std::vector<HeadNode> head_nodes(const Topology& topology, const Places& places,
                                 const sim::Group& group, std::uint32_t rails) {
  const std::vector<DeviceId> nvswitch = nvswitches(topology);
  std::vector<HeadNode> nodes;
  std::size_t count = kMaxNvlsHeads;
  for (const Place& place : places.places) {
    HeadNode node;
    node.ranks = place.ranks;
    node.heads = places.places.size() == 1 ? place.ranks : rail_heads(places, place, rails);
    node.nvswitch = nvswitch[group[place.ranks.front()].gpu.index()];
    for (const std::uint32_t rank : place.ranks)
      if (nvswitch[group[rank].gpu.index()] != node.nvswitch) node.nvswitch = {};
    count = std::min(count, node.heads.size());
    nodes.push_back(std::move(node));
  }
  for (HeadNode& node : nodes) node.heads.resize(count);
  return nodes;
}

// Edges over nodes in the tree `which`.
std::vector<sim::TreeEdges> node_tree(std::uint32_t nodes, std::uint32_t which) {
  std::vector<sim::TreeEdges> tree(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const NodeTreeEdges edges = double_tree(which, node, nodes);
    tree[node].up = edges.parent;
    std::copy(edges.children.begin(), edges.children.end(), tree[node].down.begin());
  }
  return tree;
}

// The greatest distance of the root from any of the NICs.
std::uint32_t farthest(const FabricTree& tree, const std::vector<DeviceId>& nics) {
  std::uint32_t most = 0;
  for (const DeviceId nic : nics) most = std::max(most, tree.distance(nic));
  return most;
}

// The fabric switches that are as near to every one of the NICs as to the first, at the smallest
// such distance.
std::vector<DeviceId> meeting_switches(const Topology& topology, const FabricGraph& graph,
                                       const std::vector<DeviceId>& nics) {
  const FabricTree from_first = graph.tree(nics.front());
  std::vector<DeviceId> found;
  std::uint32_t near = FabricTree::kUnreachable;
  for (const DeviceId device : from_first.by_distance()) {
    if (topology.devices[device.index()].kind != DeviceKind::fabric_switch) continue;
    const std::uint32_t distance = from_first.distance(device);
    if (distance > near) break;
    if (farthest(graph.tree(device), nics) != distance) continue;
    near = distance;
    found.push_back(device);
    if (found.size() == kMaxMeetingSwitches) break;
  }
  return found;
}

}  // namespace

DeviceId head_nic(const Places& places, std::uint32_t rank) {
  const auto& rails = places.nearest_rails[rank];
  if (rails.empty()) return {};
  return places.places[places.place_of[rank]].nics[rails.front()];
}

void add_default_heads(const Topology& topology, const Places& places, const sim::Group& group,
                       std::uint32_t rails, sim::Channels& channels) {
  Heads heads;
  heads.nodes = head_nodes(topology, places, group, rails);
  const auto nodes = static_cast<std::uint32_t>(heads.nodes.size());
  std::vector<std::vector<DeviceId>> meeting;  // by head
  if (nodes > 1 && rails > 0) {
    const FabricGraph graph(topology);
    for (std::size_t h = 0; h < heads.nodes.front().heads.size(); ++h) {
      std::vector<DeviceId> nics;
      for (const HeadNode& node : heads.nodes) nics.push_back(head_nic(places, node.heads[h]));
      meeting.push_back(meeting_switches(topology, graph, nics));
    }
  }
  const bool all_meet = std::ranges::none_of(meeting, [](const auto& m) { return m.empty(); });
  for (std::uint32_t c = 0; c < channels.size(); ++c) {
    channels[c].heads = heads;
    if (nodes > 1) channels[c].heads.tree = node_tree(nodes, c % 2);
    if (!all_meet) continue;
    for (const auto& switches : meeting)
      channels[c].heads.switches.push_back(switches[c % switches.size()]);
  }
}

}  // namespace railyard::algorithms
