// Path types between the GPUs and NICs of a node, read off its links.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "topologies/node_view.h"
#include "topologies/show.h"

namespace railyard::topologies {
namespace {

using sim::DeviceKind;

// The machine's host bridges; machines that are not in the catalogue have one per root port.
bool one_host_bridge(const sim::Node& node) {
  const auto machine = find_machine(node.machine);
  return machine.ok() && machine.value().one_host_bridge_per_cpu;
}

class PathFinder {
 public:
  PathFinder(const NodeView& view, bool one_bridge) : view_(view), one_bridge_(one_bridge) {}

  [[nodiscard]] PathCell between(sim::DeviceId a, sim::DeviceId b) const {
    if (a == b) return {PathType::self, 0};
    if (const std::uint16_t links = nvlinks(a, b); links > 0) return {PathType::nvlink, links};
    return {host_path(ancestors(a), ancestors(b)), 0};
  }

 private:
  // Direct NVLinks, or those to an NVSwitch that both have.
  [[nodiscard]] std::uint16_t nvlinks(sim::DeviceId a, sim::DeviceId b) const {
    std::uint16_t best = 0;
    for (const NodeView::Edge& edge : view_.nvlinks_of(a)) {
      if (edge.to == b) return edge.width;
      if (view_.kind(edge.to) != DeviceKind::nvswitch) continue;
      for (const NodeView::Edge& other : view_.nvlinks_of(b))
        if (other.to == edge.to) best = std::max(best, std::min(edge.width, other.width));
    }
    return best;
  }

  // From the device itself up to its CPU.
  [[nodiscard]] std::vector<sim::DeviceId> ancestors(sim::DeviceId device) const {
    std::vector<sim::DeviceId> chain{device};
    for (sim::DeviceId up = view_.parent(device); up.valid(); up = view_.parent(up))
      chain.push_back(up);
    return chain;
  }

  [[nodiscard]] PathType host_path(const std::vector<sim::DeviceId>& a,
                                   const std::vector<sim::DeviceId>& b) const {
    std::size_t common = 0;  // from the CPU downwards
    while (common < a.size() && common < b.size() &&
           a[a.size() - 1 - common] == b[b.size() - 1 - common])
      ++common;
    if (common == 0) return PathType::sys;
    const sim::DeviceId top = a[a.size() - common];
    if (view_.kind(top) == DeviceKind::cpu) return one_bridge_ ? PathType::phb : PathType::node;
    // Switches on the way: below `top` on both sides (the devices themselves are none), and `top`.
    const std::size_t switches = (a.size() - common - 1) + (b.size() - common - 1) + 1;
    return switches == 1 ? PathType::pix : PathType::pxb;
  }

  const NodeView& view_;
  bool one_bridge_;
};

// A row's trailing affinity cells; empty if the machine is unknown.
struct Affinity {
  std::string cpus;
  std::string numa;
};

std::vector<Affinity> affinities(const sim::Node& node, const NodeView& view) {
  std::vector<Affinity> rows;
  const auto machine = find_machine(node.machine);
  if (!machine.ok() || machine.value().flat) return rows;
  for (const sim::DeviceId gpu : node.gpus) {
    sim::DeviceId top = gpu;
    while (view.parent(top).valid()) top = view.parent(top);
    const std::uint32_t cpu = view.local_index(top);
    const auto& numa = machine.value().numa;
    const bool known = view.kind(top) == DeviceKind::cpu && cpu < numa.size();
    rows.push_back(known ? Affinity{numa[cpu].cpus, std::to_string(numa[cpu].id)}
                         : Affinity{"N/A", "N/A"});
  }
  return rows;
}

constexpr std::string_view kLegend =
    "\n"
    "Legend:\n"
    "\n"
    "  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes "
    "(e.g., QPI/UPI)\n"
    "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges "
    "within a NUMA node\n"
    "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
    "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host "
    "Bridge)\n"
    "  PIX  = Connection traversing at most a single PCIe bridge\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n";

}  // namespace

std::string to_text(PathCell cell) {
  if (cell.type == PathType::nvlink) return fmt::format("NV{}", cell.nvlinks);
  return std::string(sim::to_text(cell.type));
}

PathMatrix path_matrix(const sim::Topology& topology, std::size_t node) {
  RAILYARD_CHECK(node < topology.nodes.size(), "a node of this topology");
  const NodeView view(topology, node);
  const sim::Node& host = topology.nodes[node];
  const PathFinder finder(view, one_host_bridge(host));
  std::vector<sim::DeviceId> devices = host.gpus;
  devices.insert(devices.end(), host.nics.begin(), host.nics.end());
  PathMatrix matrix{host.gpus.size(), host.nics.size(), {}};
  matrix.cells.reserve(devices.size() * devices.size());
  for (const sim::DeviceId a : devices)
    for (const sim::DeviceId b : devices) matrix.cells.push_back(finder.between(a, b));
  return matrix;
}

std::string show_matrix(const sim::Topology& topology, std::size_t node) {
  const PathMatrix matrix = path_matrix(topology, node);
  const std::vector<Affinity> rows = affinities(topology.nodes[node], NodeView(topology, node));
  const auto label = [&](std::size_t i) {
    return i < matrix.gpus ? fmt::format("GPU{}", i) : fmt::format("NIC{}", i - matrix.gpus);
  };
  const std::size_t size = matrix.gpus + matrix.nics;
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += "\t" + label(i);
  if (!rows.empty()) text += "\tCPU Affinity\tNUMA Affinity";
  text += "\n";
  for (std::size_t row = 0; row < size; ++row) {
    text += label(row);
    for (std::size_t column = 0; column < size; ++column)
      text += row == column ? "\t X " : "\t" + to_text(matrix.at(row, column));
    if (row < rows.size()) text += "\t" + rows[row].cpus + "\t" + rows[row].numa;
    text += "\n";
  }
  text += kLegend;
  if (matrix.nics == 0) return text;
  text += "\nNIC Legend:\n\n";
  for (std::size_t i = 0; i < matrix.nics; ++i)
    text += fmt::format("  NIC{}: {}\n", i,
                        topology.devices[topology.nodes[node].nics[i].index()].name);
  return text;
}

}  // namespace railyard::topologies
