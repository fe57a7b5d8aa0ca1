// What the tests of nvidia-smi matrices share: path types read off a sim::Hardware, and the cells
// they are compared with.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "sim/hardware.h"
#include "topologies/import/smi_topo.h"

namespace railyard::topologies::test {

// (device, device) -> "PIX" ...; GPUs as "g<dev>", NICs as "n<dev>".
using Cells = std::map<std::pair<std::string, std::string>, std::string>;

// By walking up from both devices, from nvidia-smi's legend: one bridge between them PIX, several
// PXB, none in common PHB (one PCI domain) or NODE, another CPU SYS.
Cells cells_of(const sim::Hardware& hardware);

// The PCI cells of the matrix (of the better direction); pairs known by NVLink only are left out.
Cells pci_cells(const SmiMatrix& matrix);

// The NVLink cells: what the hardware has for them, min(links, links) through switches.
std::map<std::pair<std::string, std::string>, int> nvlinks_of(const sim::Hardware& hardware);

}  // namespace railyard::topologies::test
