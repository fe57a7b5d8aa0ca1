// What a topology is, as text: the tree, the matrix of `nvidia-smi topo -m`, and graphviz DOT.
// Every function returns a string; equal nodes are folded where it says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/enum_table.h"
#include "sim/result.h"
#include "sim/topology.h"

namespace railyard::topologies {

// How two devices of a node are connected, in nvidia-smi's terms.
enum class PathType { self, nvlink, pix, pxb, phb, node, sys };

struct PathCell {
  PathType type = PathType::sys;
  std::uint16_t nvlinks = 0;  // of NV#
};
std::string to_text(PathCell cell);  // "X", "NV18", "PIX", ...

// GPUs first, then NICs, both by local index; square.
struct PathMatrix {
  std::size_t gpus = 0;
  std::size_t nics = 0;
  std::vector<PathCell> cells;  // row-major
  [[nodiscard]] PathCell at(std::size_t row, std::size_t column) const {
    return cells[row * (gpus + nics) + column];
  }
};
// Of one node. PIX: one PCIe switch; PXB: several; PHB or NODE: through the CPU, by the machine's
// host bridges (NODE where the catalogue does not know the machine); SYS: between NUMA nodes.
PathMatrix path_matrix(const sim::Topology& topology, std::size_t node);

// As `nvidia-smi topo -m` prints it: header, rows, legend, NIC legend. The affinity columns are
// there if the node's machine is in the catalogue.
std::string show_matrix(const sim::Topology& topology, std::size_t node);

// Nodes -> CPUs -> PCIe switches -> GPUs and NICs with link rates, then the fabric's levels. Nodes
// that read the same are shown once ("node0 .. node31: 32 equal nodes").
std::string show_tree(const sim::Topology& topology);

// Graphviz input: one edge per link pair. Refused above `max_devices`, where no picture helps.
sim::Result<std::string> to_dot(const sim::Topology& topology, std::size_t max_devices = 600);

}  // namespace railyard::topologies

namespace railyard::sim {
template <>
struct EnumTable<topologies::PathType> {
  static constexpr std::string_view kind = "path type";
  static constexpr std::array entries{
      EnumEntry{topologies::PathType::self, "X"},  EnumEntry{topologies::PathType::nvlink, "NV"},
      EnumEntry{topologies::PathType::pix, "PIX"}, EnumEntry{topologies::PathType::pxb, "PXB"},
      EnumEntry{topologies::PathType::phb, "PHB"}, EnumEntry{topologies::PathType::node, "NODE"},
      EnumEntry{topologies::PathType::sys, "SYS"}};
};
}  // namespace railyard::sim
