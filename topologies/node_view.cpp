#include "topologies/node_view.h"

namespace railyard::topologies {
namespace {

using sim::DeviceKind;
using sim::LinkClass;

// How far from the CPU: a link between two devices of the PCIe tree goes up to the lower number;
// between two switches the one numbered lower is the parent, as in every plan.
int depth(DeviceKind kind) {
  if (kind == DeviceKind::cpu) return 0;
  return kind == DeviceKind::pcie_switch ? 1 : 2;
}

}  // namespace

NodeView::NodeView(const sim::Topology& topology, std::size_t node) : topology_(&topology) {
  for (std::size_t i = 0; i < topology.devices.size(); ++i)
    if (topology.devices[i].node == node) devices_.emplace_back(i);
  for (std::size_t i = 0; i < topology.links.size(); ++i)
    if (topology.devices[topology.links[i].from.index()].node == node) add(sim::LinkId(i));
}

std::vector<NodeView> NodeView::views(const sim::Topology& topology) {
  std::vector<NodeView> views(topology.nodes.size(), NodeView(topology));
  for (std::size_t i = 0; i < topology.devices.size(); ++i)
    if (const std::uint32_t node = topology.devices[i].node; node < views.size())
      views[node].devices_.emplace_back(i);
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const std::uint32_t node = topology.devices[topology.links[i].from.index()].node;
    if (node < views.size()) views[node].add(sim::LinkId(i));
  }
  return views;
}

// `link` starts in this node.
void NodeView::add(sim::LinkId link) {
  const sim::Link& l = topology_->links[link.index()];
  const Edge edge{l.to, link, l.width};
  Entry& from = entries_[l.from.value()];
  switch (l.link_class) {
    case LinkClass::nvlink: from.nvlinks.push_back(edge); return;
    case LinkClass::nic: from.ports.push_back(edge); return;
    case LinkClass::smp: from.smp.push_back(edge); return;
    case LinkClass::fabric: return;
    case LinkClass::pcie:
    case LinkClass::c2c: break;
  }
  const int a = depth(kind(l.from));
  const int b = depth(kind(l.to));
  const bool upwards = b < a || (a == b && local_index(l.to) < local_index(l.from));
  if (upwards) {
    from.parent = l.to;
  } else {
    from.children.push_back(edge);
  }
}

const NodeView::Entry& NodeView::entry(sim::DeviceId device) const {
  static const Entry empty;
  const auto found = entries_.find(device.value());
  return found == entries_.end() ? empty : found->second;
}

sim::DeviceId NodeView::parent(sim::DeviceId device) const { return entry(device).parent; }

const std::vector<NodeView::Edge>& NodeView::children(sim::DeviceId device) const {
  return entry(device).children;
}

const std::vector<NodeView::Edge>& NodeView::nvlinks_of(sim::DeviceId device) const {
  return entry(device).nvlinks;
}

const std::vector<NodeView::Edge>& NodeView::ports_of(sim::DeviceId device) const {
  return entry(device).ports;
}

const std::vector<NodeView::Edge>& NodeView::smp_of(sim::DeviceId cpu) const {
  return entry(cpu).smp;
}

}  // namespace railyard::topologies
