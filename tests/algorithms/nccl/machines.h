// Communicators of identical nodes whose search results are given as numbers, for tests of what
// comes after the search.
#pragma once

#include <map>
#include <string>

#include "algorithms/nccl/plan.h"

namespace railyard::algorithms::nccl {

struct SearchResult {
  std::int32_t channels = 0;
  double bw_intra = 0;
  double bw_inter = 0;
  sim::GraphPattern pattern = sim::GraphPattern::ring;
};

struct MachineSpec {
  std::int32_t nodes = 1;
  std::int32_t gpus = 8;  // per node
  std::int32_t capability = 90;
  SearchResult ring;
  SearchResult tree;
  SearchResult nvls;  // no channels: no NVLS
  sim::PathType intra = sim::PathType::nvl;
  sim::PathType inter = sim::PathType::pix;
  std::int32_t cross_nic = 0;
  bool same_channels = true;
  CpuArch arch = CpuArch::x86;
  CpuVendor vendor = CpuVendor::intel;
};

// Channel c of ring and tree is 0, 1, ... turned by c; NVLS' is GPU c. GPU and NIC of equal index
// belong together: channel c enters by NIC c and leaves by its last GPU's.
CommInputs machine(const MachineSpec& spec);

Environment variables(const std::map<std::string, std::string>& values);
CommPlan plan_of(const CommInputs& inputs, const std::map<std::string, std::string>& values = {});

// DGX H100 as NCCL's search has it: one node, and several with a 400 Gb/s NIC per GPU.
MachineSpec h100(std::int32_t nodes);

}  // namespace railyard::algorithms::nccl
