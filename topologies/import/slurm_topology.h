// SLURM's topology.conf and topology.yaml, read into a fabric graph: the tree plugin (SwitchName=,
// Nodes=, Switches=) and the block plugin (BlockName=, Nodes=, BlockSizes=). A node is an adapter
// without a device name; every line of the tree is one cable. The file knows neither rates, nor
// trunks, nor rails, nor spines above a tree's root: all that is a note.
//
// topology.conf: keys ignore case, '#' starts a comment, a '\' at a line's end continues it. Names
// are hostlists: "n[001-016,18],m[1-2]x[0-3]".
//
// topology.yaml: a list of named topologies. The first with `cluster_default: true` is read, else
// the first; if that is no tree or block (flat, ring, torus3d), the first that is one. Which, and
// what the others are, is a note.
//
// Refused, with the line: unknown keys, a switch named but not defined or defined twice, one with
// two parents, a loop, hostlists that do not parse, more than kMaxSlurmNames names; of YAML also
// tags, anchors and aliases, and what is larger than kMaxSlurmYaml. A node under two leaves counts
// for the first, as SLURM warns.
//
// Sources: topology.conf(5), topology.yaml(5). Cost: O(text + names).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"
#include "topologies/import/fabric_graph.h"

namespace railyard::topologies {

// Ten times the hosts of the largest GPU clusters, and read in a second.
inline constexpr std::size_t kMaxSlurmNames = 250'000;
inline constexpr std::size_t kMaxSlurmYaml = std::size_t{16} << 20;  // bytes

bool looks_like_slurm_topology(std::string_view text);
sim::Result<FabricGraph> parse_slurm_topology(std::string_view text, const std::string& name);

// "n[1-3],m" -> n1, n2, n3, m; at most `most` names.
sim::Result<std::vector<std::string>> expand_hostlist(std::string_view list, std::size_t most);

}  // namespace railyard::topologies
