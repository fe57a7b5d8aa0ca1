// `nvidia-smi topo -m`: the matrix of paths between the GPUs and NICs of one host, as people paste
// it. Read by its vocabulary, not by its columns, so that lost tabs, fused cells ("NODE36-71",
// "NIC8CPU Affinity"), underline codes, log prefixes and collapsed blanks do no harm.
//
// Invariants: labels are the columns in order, GPUs first; cells is labels x labels, row by row;
// the diagonal alone is `self`. Everything repaired or ignored is a note.
//
// Refused, with the line: a text without such a matrix, a row cut short, missing, doubled or out of
// line, a word that is no path type, more than kMaxSmiLabels columns.
//
// Cost: O(text + labels^2). The vocabulary is nvidia-smi's own legend.
//
//   RAILYARD_ASSIGN(const SmiMatrix matrix, parse_smi_topo(text, "topo.txt"));
//   matrix.cell(0, 1).nvlinks == 18
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/enum_table.h"
#include "sim/hardware.h"
#include "sim/result.h"

namespace railyard::topologies {

inline constexpr std::size_t kMaxSmiLabels = 1024;

// `unknown` is N/A. Nearer comes first among the PCI paths.
enum class SmiPath : std::uint8_t { unknown, self, nvlink, pix, pxb, phb, node, sys };

struct SmiCell {
  SmiPath path = SmiPath::unknown;
  std::uint8_t nvlinks = 0;
  friend bool operator==(const SmiCell&, const SmiCell&) = default;
};

// The trailing columns of a GPU's row as printed; empty where the output has none.
struct SmiAffinity {
  std::string cpus;
  std::string numa;
  std::string gpu_numa;
};

struct SmiMatrix {
  std::vector<std::string> labels;
  std::uint32_t gpus = 0;  // labels 0 .. gpus - 1
  std::vector<SmiCell> cells;
  std::vector<SmiAffinity> affinity;     // by GPU
  std::vector<std::string> nic_devices;  // by NIC: the legend's name, or the label; may be empty
  std::vector<std::string> notes;

  [[nodiscard]] std::size_t nics() const { return labels.size() - gpus; }
  [[nodiscard]] SmiCell cell(std::size_t row, std::size_t column) const {
    return cells[row * labels.size() + column];
  }
};

bool looks_like_smi_topo(std::string_view text);

// `name` is what errors call the text. The first matrix of the text counts.
sim::Result<SmiMatrix> parse_smi_topo(std::string_view text, const std::string& name);

// "8 GPUs, 10 NICs; GPU-GPU NV18 x28; ..."
std::string summary(const SmiMatrix& matrix);

// What looks wrong: cells that contradict each other, NVLinks that are fewer than their likes,
// paths that no PCI tree has, NUMA affinities that contradict the paths. One line each.
std::vector<std::string> check(const SmiMatrix& matrix);

// What the matrix does not say, taken as stated here.
struct SmiAssumptions {
  std::int32_t sm = 80;
  std::int32_t nic_speed = 0;  // Mbit/s; 0 = unknown
  std::string pcie_speed;      // "" = unknown
  std::int32_t pcie_width = 0;
  std::string cpu_arch = "x86_64";
  std::string cpu_vendor = "GenuineIntel";
};

struct SmiHardware {
  sim::Hardware hardware;
  std::vector<std::string> unknowns;  // what was assumed, and what the structure cannot reproduce
};

// The smallest PCI tree that gives the matrix. NUMA nodes are the groups that reach each other
// without SYS (a pair known by NVLink only: by its NUMA or CPU affinity); the domain of a bus id is
// a host bridge, PHB inside it and NODE across; a PXB group has a switch above one switch for each
// of its PIX groups. Every NVLink pair becomes direct links, unless a GPU would then have more
// than 18: those end in NVSwitches, of which NCCL sees one.
SmiHardware hardware_of(const SmiMatrix& matrix, const SmiAssumptions& assumptions = {});

}  // namespace railyard::topologies

namespace railyard::sim {
template <>
struct EnumTable<topologies::SmiPath> {
  static constexpr std::string_view kind = "path type";
  static constexpr std::array entries{
      EnumEntry{topologies::SmiPath::unknown, "N/A"}, EnumEntry{topologies::SmiPath::self, "X"},
      EnumEntry{topologies::SmiPath::nvlink, "NV"},   EnumEntry{topologies::SmiPath::pix, "PIX"},
      EnumEntry{topologies::SmiPath::pxb, "PXB"},     EnumEntry{topologies::SmiPath::phb, "PHB"},
      EnumEntry{topologies::SmiPath::node, "NODE"},   EnumEntry{topologies::SmiPath::sys, "SYS"}};
};
}  // namespace railyard::sim
