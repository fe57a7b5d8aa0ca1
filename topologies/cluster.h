// A cluster: equal nodes of one machine, a fabric, and links that differ from the plan. The way
// from a scenario to a sim::Topology.
//
//   ClusterSpec spec;
//   spec.machine = "hgx-h100";
//   spec.nodes = 64;
//   spec.fabric.kind = FabricKind::rail_optimised;
//   RAILYARD_ASSIGN(const sim::Topology topology, build(spec));
//
// Names: "node3", "node3/gpu5", "node3/nic0", "node3/nvswitch0", "node3/pcie2", "node3/cpu1";
// "domain0/nvswitch0" where nodes share NVLink; "switch/0", "leaf/4", "spine/2", "core/1"; a link
// is "node3/nic1->leaf/4". On an imported fabric nodes are called as their hosts and switches as
// the fabric calls them, behind their level: "host028/gpu5", "leaf/ib07".
//
// Cost: time and memory linear in devices + links. Refused before anything is built: more than a
// million GPUs, more than 2^31 links.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/result.h"
#include "sim/topology.h"
#include "topologies/fabric.h"
#include "topologies/machine.h"

namespace railyard::topologies {

inline constexpr std::uint64_t kMaxLinks = std::uint64_t{1} << 31;

// Links to disable or slow. `pattern` is a device ("spine/2": all its links, both directions), or
// "from->to" (one direction) or "from<->to" (both), with '*' for any run of characters.
struct LinkChange {
  std::string pattern;
  bool disable = false;
  double speed = 1.0;             // share of the line rate that is left, 0 < speed <= 1
  sim::Duration extra_latency{};  // added
  // What a PCIe link trained to; only links of that class change, to at most this rate.
  std::optional<sim::Bandwidth> pcie_rate;
};

struct ClusterSpec {
  std::string machine = "hgx-h100";   // catalogue name
  std::optional<MachineSpec> custom;  // used instead of the catalogue if set
  std::uint32_t nodes = 1;
  MachineOverrides overrides;
  FabricSpec fabric;
  std::vector<LinkChange> changes;  // applied in order
};

// The machine of the nodes, before the overrides.
sim::Result<MachineSpec> cluster_machine(const ClusterSpec& spec);

// How much there is to build. Cost: that of the plan, whatever the number of nodes.
struct ClusterSize {
  std::uint64_t gpus = 0;
  std::uint64_t devices = 0;  // GPUs included
  std::uint64_t links = 0;    // both directions counted
};
sim::Result<ClusterSize> cluster_size(const ClusterSpec& spec);

sim::Result<sim::Topology> build(const ClusterSpec& spec);

// The machine of every node, with the overrides applied and the NICs that are not cabled left out.
sim::Result<MachineSpec> resolve_machine(const ClusterSpec& spec);

}  // namespace railyard::topologies
