// The switches and nodes that a SLURM topology names, as a fabric graph: what topology.conf and
// topology.yaml have in common. The rules are in slurm_topology.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"
#include "topologies/import/fabric_graph.h"

namespace railyard::topologies {

struct SlurmSwitch {
  std::size_t line = 0;
  std::string name;
  std::vector<std::string> nodes;
  std::vector<std::string> switches;  // below it
};

struct SlurmTree {
  bool blocks = false;  // of the block plugin: the switches are blocks
  std::vector<SlurmSwitch> switches;
  std::string block_sizes;         // as written; empty: none
  std::vector<std::string> notes;  // of the reader
};

// `name` is what errors call the file.
sim::Result<FabricGraph> slurm_graph(const SlurmTree& tree, const std::string& name);

// The newer form, topology.yaml.
bool looks_like_slurm_yaml(std::string_view text);
sim::Result<SlurmTree> read_slurm_yaml(std::string_view text, const std::string& name);

}  // namespace railyard::topologies
