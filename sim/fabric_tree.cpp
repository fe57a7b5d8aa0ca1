#include "sim/fabric_tree.h"

#include <algorithm>
#include <map>
#include <utility>

namespace railyard::sim {
namespace {

bool is_network(const Link& link) {
  return link.link_class == LinkClass::nic || link.link_class == LinkClass::fabric;
}

}  // namespace

FabricGraph::FabricGraph(const Topology& topology)
    : topology_(topology), edges_(topology.devices.size()) {
  std::map<std::pair<DeviceId, DeviceId>, LinkId> links;
  for (std::size_t l = 0; l < topology.links.size(); ++l) {
    const Link& link = topology.links[l];
    if (is_network(link)) links.try_emplace({link.from, link.to}, LinkId(l));
  }
  for (const auto& [ends, link] : links) {
    const auto back = links.find({ends.second, ends.first});
    if (back != links.end())
      edges_[ends.first.index()].push_back({ends.second, link, back->second});
  }
  for (auto& edges : edges_) std::ranges::sort(edges, {}, &Edge::link);
}

FabricTree FabricGraph::tree(DeviceId root) const {
  FabricTree tree;
  const std::size_t count = topology_.devices.size();
  tree.distance_.assign(count, FabricTree::kUnreachable);
  tree.up_.resize(count);
  tree.down_.resize(count);
  tree.next_.resize(count);
  tree.distance_[root.index()] = 0;
  tree.order_.push_back(root);
  for (std::size_t i = 0; i < tree.order_.size(); ++i) {
    const DeviceId at = tree.order_[i];
    const bool passes = topology_.devices[at.index()].kind == DeviceKind::fabric_switch;
    if (!passes && at != root) continue;
    for (const Edge& edge : edges_[at.index()]) {
      if (tree.distance_[edge.to.index()] != FabricTree::kUnreachable) continue;
      tree.distance_[edge.to.index()] = tree.distance_[at.index()] + 1;
      tree.up_[edge.to.index()] = edge.back;
      tree.down_[edge.to.index()] = edge.link;
      tree.next_[edge.to.index()] = at;
      tree.order_.push_back(edge.to);
    }
  }
  return tree;
}

void FabricTree::append_path_up(DeviceId device, Route& out) const {
  RAILYARD_CHECK(distance(device) != kUnreachable, "the tree reaches the device");
  for (; distance(device) > 0; device = next_[device.index()]) out.push_back(up_[device.index()]);
}

void FabricTree::append_path_down(DeviceId device, Route& out) const {
  RAILYARD_CHECK(distance(device) != kUnreachable, "the tree reaches the device");
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  for (; distance(device) > 0; device = next_[device.index()]) out.push_back(down_[device.index()]);
  std::reverse(out.begin() + first, out.end());
}

}  // namespace railyard::sim
