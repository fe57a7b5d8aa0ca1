// A node and a fabric that come from two files: which NICs of the node are which adapters of the
// fabric's hosts, and which hosts are such nodes.
//
// Names decide: a NIC is cabled if the hosts have an adapter of its name. The NICs that most hosts
// have cabled are the node's; its others (of another network) are not on this fabric. A host is a
// node if it has all of those. An AdapterMap gives other names: then all NICs of the machine are
// cabled, under those names. Where no host has an adapter called as any NIC, the node's NICs are
// the adapters of the hosts that have just as many, in natural order. Where the fabric tells no
// adapters (SLURM), every host has all NICs in its leaf.
//
//   RAILYARD_ASSIGN(const FabricMatch match, match_fabric(*source, machine, {}));
//   match.hosts.size()  // nodes
//
// Cost: O(hosts x adapters).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/result.h"
#include "topologies/fabric.h"
#include "topologies/fabric_source.h"
#include "topologies/machine.h"

namespace railyard::topologies {

// Names that someone wrote down, instead of those in the machine's file.
struct AdapterMap {
  std::vector<std::string> all;  // of any host in NIC order; empty: the machine's names
  HostAdapters by_host;          // of these hosts instead
};

struct FabricMatch {
  std::vector<std::uint32_t> nics;    // of the machine, those on the fabric
  std::vector<std::string> adapters;  // their names in the fabric; empty: by order
  std::vector<std::string> hosts;     // that are nodes, in natural order

  // What did not match.
  std::vector<std::string> left_out;     // hosts, and why: "z has no cabled adapter 'mlx5_2'"
  std::vector<std::string> not_cabled;   // NICs of the machine
  std::vector<std::string> not_of_node;  // adapters of the nodes: "mlx5_9 (of 12 hosts)"
  std::vector<std::string> notes;        // how it was matched where names did not decide
};

// Refused: a machine without NICs, a fabric none of whose hosts fits, a map that does not.
sim::Result<FabricMatch> match_fabric(const FabricSource& fabric, const MachineSpec& machine,
                                      const AdapterMap& names);

// The machine with these NICs only, as what a fabric reaches.
MachineSpec with_nics(MachineSpec machine, const std::vector<std::uint32_t>& nics);

}  // namespace railyard::topologies
