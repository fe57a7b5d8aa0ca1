// sim::Hardware -> MachineSpec: a node that a topology file describes, so that it can be simulated.
//
// What the file does not say comes from the nearest machine of the catalogue (by NVLink, C2C and
// compute capability; by PCIe generation where the file does not know its GPUs), and each such
// assumption is one line. GPUs are numbered by CUDA index where the file has it, else by bus id;
// NICs are the network devices (ports) in the order of NCCL's dev numbers.
//
// As NCCL sees it, with these exceptions, each said in `assumptions`:
//   PCIe speeds are read for what they mean ("16.0 GT/s"), where NCCL takes an unknown spelling
//     for the 3rd generation; a GPU behind a NIC's own <pci>, which NCCL drops, is kept
//   NVLinks go both ways and are as many as the end with more of them says, at most what the GPU
//     has; those to CPUs and to GPUs that are not in the file are left out
//   devices without PCIe (sockets, bridges of containers) are left out where there are real NICs
//   a NIC with several ports whose PCIe link is narrower than they are together becomes a switch
//   several hosts in one file (an NVLink domain) must be alike; the first one is taken
//
// Refused: no GPUs (AWS's files do not list them), devices without class beside no GPU, AMD GPUs
// (no machine of the catalogue is near), hosts that differ in GPUs or NICs.
//
//   RAILYARD_ASSIGN(const ImportedMachine imported, machine_of(hardware, {.name = "my-node"}));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/hardware.h"
#include "sim/result.h"
#include "topologies/machine.h"

namespace railyard::topologies {

struct ImportedMachine {
  MachineSpec machine;
  std::string like;                      // the catalogue machine that supplied the rest
  std::uint32_t hosts = 1;               // in the file; > 1: an NVLink domain
  std::vector<std::string> assumptions;  // one line each
  std::vector<std::string> borrowed;     // what the file could not say, in a word or two each
};

struct ImportOptions {
  std::string name = "imported";
  std::string like;  // a catalogue machine; empty: the nearest
};

sim::Result<ImportedMachine> machine_of(const sim::Hardware& hardware,
                                        const ImportOptions& options = {});

}  // namespace railyard::topologies
