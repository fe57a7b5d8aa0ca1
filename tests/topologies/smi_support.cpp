#include "tests/topologies/smi_support.h"

#include <algorithm>
#include <vector>

namespace railyard::topologies::test {
namespace {

struct Leaf {
  std::string name;
  std::size_t cpu = 0;
  std::vector<std::string> bridges;  // outermost first
  std::string domain;
  std::string bus_id;
  std::vector<sim::HardwareNvlink> nvlinks;
};

void collect(const sim::HardwarePci& pci, Leaf above, std::vector<Leaf>& out) {
  above.domain = pci.bus_id.substr(0, 4);
  above.bus_id = pci.bus_id;
  if (pci.gpu) {
    above.name = "g" + std::to_string(pci.gpu->dev);
    above.nvlinks = pci.gpu->nvlinks;
    out.push_back(above);
  }
  for (const auto& nic : pci.nics)
    for (const auto& net : nic.nets) {
      above.name = "n" + std::to_string(net.dev);
      out.push_back(above);
    }
  above.bridges.push_back(pci.bus_id);
  for (const auto& child : pci.children) collect(child, above, out);
}

std::vector<Leaf> leaves(const sim::Hardware& hardware) {
  std::vector<Leaf> out;
  for (std::size_t i = 0; i < hardware.cpus.size(); ++i)
    for (const auto& pci : hardware.cpus[i].pci) {
      Leaf root;
      root.cpu = i;
      collect(pci, root, out);
    }
  return out;
}

std::string path_of(const Leaf& a, const Leaf& b) {
  if (a.cpu != b.cpu) return "SYS";
  std::size_t common = 0;
  while (common < a.bridges.size() && common < b.bridges.size() &&
         a.bridges[common] == b.bridges[common])
    ++common;
  if (common == 0) return a.domain == b.domain ? "PHB" : "NODE";
  const std::size_t crossed = a.bridges.size() + b.bridges.size() - 2 * common + 1;
  return crossed == 1 ? "PIX" : "PXB";
}

std::string name_in(const SmiMatrix& m, std::size_t i) {
  return i < m.gpus ? "g" + m.labels[i].substr(3) : "n" + std::to_string(i - m.gpus);
}

}  // namespace

Cells cells_of(const sim::Hardware& hardware) {
  const std::vector<Leaf> all = leaves(hardware);
  Cells cells;
  for (const Leaf& a : all)
    for (const Leaf& b : all)
      if (a.name != b.name) cells[{a.name, b.name}] = path_of(a, b);
  return cells;
}

Cells pci_cells(const SmiMatrix& m) {
  Cells cells;
  for (std::size_t a = 0; a < m.labels.size(); ++a)
    for (std::size_t b = 0; b < m.labels.size(); ++b) {
      if (a == b) continue;
      SmiPath path = m.cell(a, b).path;
      const SmiPath back = m.cell(b, a).path;
      if (path < SmiPath::pix || (back >= SmiPath::pix && back < path)) path = back;
      if (path >= SmiPath::pix)
        cells[{name_in(m, a), name_in(m, b)}] = std::string(sim::to_text(path));
    }
  return cells;
}

std::map<std::pair<std::string, std::string>, int> nvlinks_of(const sim::Hardware& hardware) {
  const std::vector<Leaf> all = leaves(hardware);
  std::map<std::pair<std::string, std::string>, int> out;
  for (const Leaf& a : all)
    for (const auto& link : a.nvlinks)
      for (const Leaf& b : all) {
        const bool plane = link.target_class == sim::kPciClassNvswitch;
        if (a.name == b.name || b.nvlinks.empty() || (!plane && b.bus_id != link.target)) continue;
        const std::uint32_t there = plane ? b.nvlinks[0].count : link.count;
        out[{a.name, b.name}] = static_cast<int>(std::min(link.count, there));
      }
  return out;
}

}  // namespace railyard::topologies::test
