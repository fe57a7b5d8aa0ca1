// What looks wrong in a topology file: a link trained low, a failed NVLink, a NIC far from its GPU.
// A finding compares devices of one host with their equals; it is a hint, not a proof.
//
//   PCIe   slower than the link of the fastest equal device; slower than the ports behind it; a
//          spelling that NCCL takes for the 3rd generation
//   NVLink fewer than the GPU with most has, more than its generation has, one way only, none on a
//          GPU that is made for it (SXM, by PCI id), to itself or to what is not in the file
//   NICs   a port slower than its equals; a GPU without a NIC below its PCIe switch or its CPU
//          where the others have one; a PCIe tree with fewer NICs than its equals (a missing rail)
//   GDR    off where the others have it
//   tree   devices below a NIC, which NCCL drops
#pragma once

#include <string>
#include <vector>

#include "sim/hardware.h"

namespace railyard::topologies {

struct Finding {
  std::string where;  // "GPU 3 (0000:5e:00.0)"
  std::string what;
};

// In the order of the rules, then of the file. Cost: O(devices^2).
std::vector<Finding> check_hardware(const sim::Hardware& hardware);

}  // namespace railyard::topologies
