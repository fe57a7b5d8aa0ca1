// MachineSpec -> sim::Hardware: what NCCL would find on a machine of the catalogue, so that its
// decisions for that machine can be made. A machine that was read from a topology file gives the
// file back, whole.
//
// Bus ids are made up, unique and ascending in the tree's order; GPUs keep their index as dev, NICs
// theirs, named mlx5_N. PCIe speeds are the generation and width whose rate is nearest to the
// machine's. Partitions of one switch chip (PcieSwitch::width > 1) carry Broadcom's ids, by which
// NCCL flattens them. Every NIC has a card and a port of its own and, like every GPU, GPUDirect.
// Cost: O(entry).
//
//   RAILYARD_ASSIGN(const sim::Hardware hardware, hardware_of(find_machine("dgx-a100").value()));
#pragma once

#include "sim/hardware.h"
#include "sim/result.h"
#include "topologies/machine.h"

namespace railyard::topologies {

// Refuses a flat machine, which has no inside.
sim::Result<sim::Hardware> hardware_of(const MachineSpec& machine);

}  // namespace railyard::topologies
