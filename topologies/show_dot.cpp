// Graphviz text: a cluster box per node, ranks from the GPUs up to the cores.
#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "topologies/show.h"

namespace railyard::topologies {
namespace {

using sim::DeviceKind;
using sim::LinkClass;

std::string_view style_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::gpu: return "shape=box, style=filled, fillcolor=\"#c7e9c0\"";
    case DeviceKind::nic: return "shape=box, style=filled, fillcolor=\"#c6dbef\"";
    case DeviceKind::nvswitch: return "shape=box, style=\"filled,rounded\", fillcolor=\"#74c476\"";
    case DeviceKind::pcie_switch: return "shape=ellipse, style=filled, fillcolor=\"#f0f0f0\"";
    case DeviceKind::cpu: return "shape=box, style=\"filled,rounded\", fillcolor=\"#fdd0a2\"";
    case DeviceKind::fabric_switch:
      return "shape=box, style=\"filled,rounded\", fillcolor=\"#9ecae1\"";
  }
  return "";
}

std::string_view colour_of(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::nvlink: return "#238b45";
    case LinkClass::pcie: return "#737373";
    case LinkClass::c2c: return "#88419d";
    case LinkClass::smp: return "#d94801";
    case LinkClass::nic: return "#2171b5";
    case LinkClass::fabric: return "#08306b";
  }
  return "black";
}

// Higher devices are drawn above: an edge goes from the higher to the lower one.
int height(const sim::Device& device) {
  switch (device.kind) {
    case DeviceKind::gpu: return 1;
    case DeviceKind::nvswitch: return 0;
    case DeviceKind::nic: return 5;
    case DeviceKind::pcie_switch: return 3;
    case DeviceKind::cpu: return 4;
    case DeviceKind::fabric_switch: break;
  }
  const char level = device.name.front();  // core, spine, leaf or switch
  return level == 'c' ? 9 : device.name.rfind("spine", 0) == 0 ? 8 : 7;
}

std::string short_name(const sim::Device& device) {
  const std::size_t slash = device.name.find('/');
  const bool inside = device.node != sim::kNoNode && slash != std::string::npos;
  return inside ? device.name.substr(slash + 1) : device.name;
}

void print_device(const sim::Topology& topology, std::size_t index, std::string& text) {
  const sim::Device& device = topology.devices[index];
  text += fmt::format("    d{} [label=\"{}\", {}];\n", index, short_name(device),
                      style_of(device.kind));
}

void print_nodes(const sim::Topology& topology, std::string& text) {
  std::multimap<std::uint32_t, std::size_t> by_node;
  for (std::size_t i = 0; i < topology.devices.size(); ++i)
    by_node.emplace(topology.devices[i].node, i);
  for (std::size_t n = 0; n < topology.nodes.size(); ++n) {
    text += fmt::format("  subgraph cluster_{} {{\n    label=\"{}: {}\"; color=gray;\n", n,
                        topology.nodes[n].name, topology.nodes[n].machine);
    const auto range = by_node.equal_range(static_cast<std::uint32_t>(n));
    for (auto it = range.first; it != range.second; ++it) print_device(topology, it->second, text);
    text += "  }\n";
  }
  const auto range = by_node.equal_range(sim::kNoNode);
  for (auto it = range.first; it != range.second; ++it) print_device(topology, it->second, text);
}

void print_edges(const sim::Topology& topology, std::string& text) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> drawn;  // a direction each
  for (std::size_t i = 0; i < topology.links.size(); ++i)
    drawn.emplace(std::pair{topology.links[i].from.value(), topology.links[i].to.value()}, i);
  for (const sim::Link& link : topology.links) {
    const sim::Device& from = topology.devices[link.from.index()];
    const sim::Device& to = topology.devices[link.to.index()];
    const bool back = drawn.contains({link.to.value(), link.from.value()});
    const int step = height(from) - height(to);
    const bool second = step < 0 || (step == 0 && link.from > link.to);
    if (back && second) continue;  // its partner is drawn
    const bool turned = second;    // alone and pointing up: drawn from above, arrow at the tail
    const char* direction = back ? "none" : turned ? "back" : "forward";
    text += fmt::format(
        "  d{} -> d{} [dir={}, color=\"{}\", label=\"{}{:.4g}\"{}];\n",
        (turned ? link.to : link.from).value(), (turned ? link.from : link.to).value(), direction,
        colour_of(link.link_class), link.width > 1 ? fmt::format("{}x: ", link.width) : "",
        sim::to_gigabytes_per_second(link.capacity), step == 0 ? ", constraint=false" : "");
  }
}

}  // namespace

sim::Result<std::string> to_dot(const sim::Topology& topology, std::size_t max_devices) {
  if (topology.devices.size() > max_devices)
    return sim::bad_input(
        fmt::format("the topology has {} devices; a picture of more than {} is "
                    "not readable (show fewer nodes)",
                    topology.devices.size(), max_devices));
  std::string text =
      "// Link labels: GB/s of one direction. Green NVLink, grey PCIe, purple C2C, orange SMP, "
      "blue "
      "network.\n"
      "digraph topology {\n"
      "  rankdir=TB; nodesep=0.15; ranksep=0.6;\n"
      "  node [fontname=\"Helvetica\", fontsize=10];\n"
      "  edge [fontname=\"Helvetica\", fontsize=8];\n";
  print_nodes(topology, text);
  print_edges(topology, text);
  return text + "}\n";
}

}  // namespace railyard::topologies
