// Fabric shape: a FabricSpec resolved for a number of nodes - how many switches of each level, and
// closed forms for which link joins what, so that routing needs no tables.
//
// One shape covers every kind: endpoints (NIC r of node n) hang from leaves, leaves of a block (the
// whole fabric, a pod or a group) reach the spines of that block, spines reach cores or, in a
// dragonfly+, spines of other groups. A single switch is a leaf without spines.
//
// Links come in pairs, up and down; a *cable* is a pair's number, and slots 2c and 2c + 1 are its
// directed links (up first; between groups: from the lower to the higher group first).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/result.h"
#include "topologies/fabric.h"

namespace railyard::topologies {

struct FabricShape {
  FabricKind kind = FabricKind::none;
  std::uint64_t nodes = 0;
  std::uint64_t rails = 0;  // endpoints per node
  std::uint64_t hosts_per_leaf = 1;
  std::uint64_t leaf_ports = 0;  // host ports of a full leaf
  std::uint64_t leaves = 0;
  std::uint64_t leaves_per_block = 1;
  std::uint64_t blocks = 0;  // pods or groups
  std::uint64_t spines_per_block = 0;
  std::uint64_t cores_per_spine = 0;
  std::uint64_t global_cables = 0;  // distinct spine pairs between two groups
  std::uint64_t global_links = 0;   // cables between two groups, parallel ones counted
  std::uint16_t trunks = 1;
  std::uint16_t core_trunks = 1;
  sim::Bandwidth host_rate;
  sim::Bandwidth trunk_rate;

  [[nodiscard]] std::uint64_t spines() const { return blocks * spines_per_block; }
  [[nodiscard]] std::uint64_t cores() const { return spines_per_block * cores_per_spine; }
  [[nodiscard]] std::uint64_t switches() const { return leaves + spines() + cores(); }
  [[nodiscard]] std::uint64_t endpoints() const { return nodes * rails; }

  [[nodiscard]] std::uint64_t leaf_of(std::uint64_t node, std::uint64_t rail) const {
    const std::uint64_t unit = node / hosts_per_leaf;
    return kind == FabricKind::rail_optimised ? unit * rails + rail : unit;
  }
  [[nodiscard]] std::uint64_t block_of(std::uint64_t leaf) const { return leaf / leaves_per_block; }
  // The endpoint's number in leaf order, for static routing.
  [[nodiscard]] std::uint64_t destination_index(std::uint64_t node, std::uint64_t rail) const {
    return kind == FabricKind::rail_optimised ? node : node * rails + rail;
  }

  // Cables.
  [[nodiscard]] std::uint64_t host_cable(std::uint64_t node, std::uint64_t rail) const {
    return node * rails + rail;
  }
  [[nodiscard]] std::uint64_t leaf_cable(std::uint64_t leaf, std::uint64_t spine) const {
    return endpoints() + leaf * spines_per_block + spine;
  }
  [[nodiscard]] std::uint64_t core_cable(std::uint64_t block, std::uint64_t spine,
                                         std::uint64_t core) const {
    return endpoints() + leaves * spines_per_block +
           (block * spines_per_block + spine) * cores_per_spine + core;
  }
  // low < high; cable < global_cables.
  [[nodiscard]] std::uint64_t global_cable(std::uint64_t low, std::uint64_t high,
                                           std::uint64_t cable) const {
    const std::uint64_t pair = low * (2 * blocks - low - 1) / 2 + (high - low - 1);
    return endpoints() + leaves * spines_per_block + pair * global_cables + cable;
  }
  // The spine of `group` in which the cable to `peer` ends.
  [[nodiscard]] std::uint64_t global_spine(std::uint64_t group, std::uint64_t peer,
                                           std::uint64_t cable) const {
    const std::uint64_t position = peer < group ? peer : peer - 1;
    return (position * global_links + cable) % spines_per_block;
  }
  [[nodiscard]] std::uint16_t global_width(std::uint64_t cable) const {
    return static_cast<std::uint16_t>(global_links / global_cables +
                                      (cable < global_links % global_cables ? 1 : 0));
  }
  [[nodiscard]] std::uint64_t cables() const {
    return endpoints() + leaves * spines_per_block + spines() * cores_per_spine +
           (blocks < 2 ? 0 : blocks * (blocks - 1) / 2 * global_cables);
  }

  // Bandwidth of a full leaf's host ports / of its up links; 0 where it has none.
  [[nodiscard]] double leaf_oversubscription() const;
  [[nodiscard]] double spine_oversubscription() const;
};

// What the fabric connects: `rails` endpoints of every node, each with a port of `port_rate`.
struct FabricEndpoints {
  std::uint64_t nodes = 1;
  std::uint64_t rails = 1;
  sim::Bandwidth port_rate;
  std::vector<std::string> names{};  // of the NICs of a node, where they are known
};

// The spec's counts checked and completed; errors name the field and the numbers.
sim::Result<FabricShape> resolve_fabric(const FabricSpec& spec, const FabricEndpoints& endpoints);

}  // namespace railyard::topologies
