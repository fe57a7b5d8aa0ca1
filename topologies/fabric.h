// Fabric: the switches and cables between nodes, as a scenario states them. Kinds:
//
//   none            a single node, or nodes of one NVLink domain
//   switch          one switch with a port for every NIC (or every GPU of a `flat` machine)
//   rail-optimised  a leaf per rail: NIC r of the hosts of a leaf group share leaf r of the group;
//                   two levels: every leaf reaches every spine; three levels: pods of leaf groups,
//                   spine s of every pod reaches the cores of plane s
//   fat-tree        the same with all NICs of a host on one leaf
//   dragonfly+      groups of leaves and spines, fully bipartite; `global_links` cables between
//                   every two groups, dealt out over the spines in turn
//   imported        as files list it (fabric_source.h, imported_fabric.h)
//
// Oversubscription of a leaf = bandwidth of its host ports / bandwidth of its up links, with all
// ports in use; of a spine likewise towards the cores.
//
// Routing. Up-down over the fewest switches. Among n equal-cost next hops
//   ecmp    takes splitmix64(flow_hash ^ splitmix64(switch)) mod n, where `switch` numbers the
//           choosing switch among all fabric switches;
//   static  takes (destination / k) mod n (D-mod-k): `destination` is the port's index in leaf
//           order, k = 1 at a leaf and the number of spines at a spine. flow_hash is ignored.
// Next hops that no longer lead to the destination are left out first. If none is left a shortest
// detour over switches is taken (breadth first, lowest link first), and if there is none, no route.
// An imported fabric with forwarding tables is routed by them alone; without, over the fewest
// switches, static with k = the product of the choices passed so far.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/enum_table.h"
#include "sim/units.h"

namespace railyard::topologies {

struct FabricSource;

// By host: its adapters in NIC order.
using HostAdapters = std::map<std::string, std::vector<std::string>>;

enum class FabricKind { none, one_switch, rail_optimised, fat_tree, dragonfly_plus, imported };
enum class FabricRouting { ecmp, destination };

struct FabricSpec {
  FabricKind kind = FabricKind::none;
  FabricRouting routing = FabricRouting::ecmp;

  sim::Bandwidth link_rate;      // a host port; 0 = the NIC's; the slower of the two counts
  sim::Bandwidth trunk_rate;     // one cable between switches; 0 = as a host port
  sim::Duration link_latency{};  // of a host link, on top of the profile's class latency
  sim::Duration trunk_latency{};

  std::uint32_t rails = 0;  // NICs per node that are cabled; 0 = all. The others are left out.
  std::uint32_t levels = 2;
  std::uint32_t hosts_per_leaf = 32;       // hosts of a leaf (rail-optimised: of a leaf group)
  std::uint32_t spines = 0;                // in all, per pod or per group; 0 = by oversubscription
  std::uint32_t trunks = 1;                // parallel cables from a leaf to a spine
  std::optional<double> oversubscription;  // of a leaf; 1 unless `spines` is given

  // Three levels.
  std::uint32_t hosts_per_pod = 0;
  std::uint32_t cores_per_spine = 0;  // cores of a plane; 0 = by core_oversubscription
  std::uint32_t core_trunks = 1;
  std::optional<double> core_oversubscription;

  // dragonfly+.
  std::uint32_t leaves_per_group = 0;
  std::uint32_t global_links = 0;  // cables between two groups; 0 = one per spine

  // imported: `link_rate` and `trunk_rate`, where stated, replace what the files tell.
  std::string file;                            // as written; read by whoever sets `source`
  std::vector<std::string> tables;             // files
  std::shared_ptr<const FabricSource> source;  // what they hold
  std::vector<std::string> adapters;           // of a host in NIC order; empty: all it has
  HostAdapters adapters_by_host;               // where a host's differ from those
  std::vector<std::string> hosts;              // in node order; empty: all that have the NICs

  std::uint32_t switch_ports = 0;  // radix that no switch may exceed; 0 = unlimited
};

}  // namespace railyard::topologies

namespace railyard::sim {
template <>
struct EnumTable<topologies::FabricKind> {
  static constexpr std::string_view kind = "fabric";
  static constexpr std::array entries{
      EnumEntry{topologies::FabricKind::none, "none"},
      EnumEntry{topologies::FabricKind::one_switch, "switch"},
      EnumEntry{topologies::FabricKind::rail_optimised, "rail-optimised"},
      EnumEntry{topologies::FabricKind::fat_tree, "fat-tree"},
      EnumEntry{topologies::FabricKind::dragonfly_plus, "dragonfly+"},
      EnumEntry{topologies::FabricKind::imported, "imported"}};
};
template <>
struct EnumTable<topologies::FabricRouting> {
  static constexpr std::string_view kind = "fabric routing";
  static constexpr std::array entries{EnumEntry{topologies::FabricRouting::ecmp, "ecmp"},
                                      EnumEntry{topologies::FabricRouting::destination, "static"}};
};
}  // namespace railyard::sim
