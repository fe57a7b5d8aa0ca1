// SLURM's topology.conf: the tree plugin (SwitchName=, Nodes=, Switches=) and the block plugin
// (BlockName=, Nodes=, BlockSizes=), read into a fabric graph. A node is an adapter without a
// device name; every line of the tree is one cable. The file knows neither rates, nor trunks, nor
// rails, nor spines above a tree's root: all that is a note.
//
// Keys ignore case, '#' starts a comment, a '\' at a line's end continues it. Names are hostlists:
// "n[001-016,18],m[1-2]x[0-3]".
//
// Refused, with the line: unknown keys, a switch named but not defined or defined twice, one with
// two parents, a loop, hostlists that do not parse, more than kMaxSlurmNames names. A node under
// two leaves counts for the first, as SLURM warns. topology.yaml (SLURM 25.05) is not read.
//
// Source: topology.conf(5). Cost: O(text + names).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"
#include "topologies/import/fabric_graph.h"

namespace railyard::topologies {

inline constexpr std::size_t kMaxSlurmNames = 1'000'000;

bool looks_like_slurm_topology(std::string_view text);
sim::Result<FabricGraph> parse_slurm_topology(std::string_view text, const std::string& name);

// "n[1-3],m" -> n1, n2, n3, m; at most `most` names.
sim::Result<std::vector<std::string>> expand_hostlist(std::string_view list, std::size_t most);

}  // namespace railyard::topologies
