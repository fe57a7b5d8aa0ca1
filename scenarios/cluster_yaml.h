// The `cluster:` block that `railyard topo import` writes, from what importers found: a node, a
// fabric, or both. A file that scenarios can include; what was assumed stands above it as comments.
//
//   cluster:
//     nodes: 30
//     machine: {...}                      # machine_yaml.h
//     fabric:
//       file: "../fabric.ibnet"           # relative to the written file
//       tables: ["../opensm.fdbs"]
//       adapters: [mlx5_0, mlx5_3]        # of the node's NICs, in their order
//       adapters_by_host: {host028: [mlx5_1, mlx5_3]}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/document.h"
#include "topologies/fabric_match.h"
#include "topologies/hardware_machine.h"

namespace railyard::scenarios {

struct WrittenFabric {
  std::string file;                 // as the block names it; empty: no fabric
  std::vector<std::string> tables;  // likewise
  std::vector<std::string> adapters;
  topologies::HostAdapters by_host;
};

struct WrittenCluster {
  std::string source;                                    // the imported files
  std::vector<std::string> comments;                     // a line each
  const topologies::ImportedMachine* machine = nullptr;  // null: the scenario states it
  std::uint32_t nodes = 0;                               // 0: the scenario states them
  WrittenFabric fabric;
};

// The node alone; `source` names the imported file.
std::string cluster_yaml(const topologies::ImportedMachine& imported, const std::string& source);

// Refused: a path or a name that is not UTF-8 or has control characters.
Result<std::string> cluster_yaml(const WrittenCluster& cluster);

// A file of adapter names, {host028: [mlx5_3, mlx5_2]}; those of "*" are every other host's.
Result<topologies::AdapterMap> read_adapter_map(const std::string& path);

}  // namespace railyard::scenarios
