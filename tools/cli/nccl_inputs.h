// Where `railyard nccl plan` gets its question from when it is no scenario: a topology file with a
// number of identical hosts, or the `inputs` block of a decision dump.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sim/result.h"
#include "tools/cli/nccl_plan.h"

namespace railyard::cli {

// Identical hosts, ranks host by host in the order of the GPUs' dev numbers.
struct UniformHosts {
  std::string topology;  // path of an NCCL topology XML
  std::int32_t hosts = 1;
  std::int32_t hosts_per_domain = 1;  // of an NVLink domain; 1 = none beyond a host
  std::map<std::string, std::string> env;
  std::string version;            // "2.28.9"; empty = the newest known
  bool p2p = true;                // CUDA gives GPUs access to each other
  std::optional<bool> multicast;  // default: GPUs from Hopper on
  bool collnet = false;           // a SHARP-like plugin
  algorithms::nccl::DataType type = algorithms::nccl::DataType::float32;
};

sim::Result<NcclPlan> plan_uniform(const UniformHosts& hosts);

// Reads the `inputs` block of a JSON file and nothing else of it; its topology lies in topo/ beside
// the file. Keys: topo, nodes, and optionally hostsPerNvlinkDomain, p2p, multicast, collnet, dtype
// (NCCL's number), env, nccl (a version).
sim::Result<UniformHosts> read_inputs(const std::string& path);

}  // namespace railyard::cli
