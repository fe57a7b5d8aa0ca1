// Cluster plan: the numbering of a cluster's devices and links, in closed form. The builder fills
// it in, routing reads it back.
//
// Devices: nodes one after the other (each in the order of its NodePlan), shared NVSwitches by
// NVLink domain, leaves, spines, cores. Link slots: nodes one after the other, then two per cable
// of the fabric (closed forms of its shape, or numbered by the imported fabric). A slot is a link's
// number as planned; disabled links leave no gap in Topology::links, so that slots are mapped to
// links afterwards.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/topology.h"
#include "topologies/fabric_shape.h"
#include "topologies/imported_fabric.h"
#include "topologies/node_plan.h"

namespace railyard::topologies {

struct ClusterPlan {
  std::uint64_t nodes = 1;
  std::uint64_t nodes_per_domain = 1;
  bool flat = false;  // endpoints of the fabric are GPUs, not NICs
  NodePlan node;
  FabricShape fabric;
  std::shared_ptr<const ImportedFabric> imported;  // instead of the shape, if set
  FabricRouting routing = FabricRouting::ecmp;

  [[nodiscard]] std::uint64_t domains() const {
    return (nodes + nodes_per_domain - 1) / nodes_per_domain;
  }
  [[nodiscard]] std::uint64_t gpus() const { return nodes * node.gpus; }

  [[nodiscard]] std::uint64_t first_shared() const { return nodes * node.own_devices; }
  [[nodiscard]] std::uint64_t first_switch() const {
    return first_shared() + (node.shares_nvswitch() ? domains() : 0);
  }
  [[nodiscard]] std::uint64_t switches() const {
    return imported ? imported->switches.size() : fabric.switches();
  }
  [[nodiscard]] std::uint64_t cables() const {
    return imported ? imported->cables.size() : fabric.cables();
  }
  [[nodiscard]] std::uint64_t rails() const { return imported ? imported->rails : fabric.rails; }
  [[nodiscard]] std::uint64_t devices() const { return first_switch() + switches(); }
  // A device of the plan of one node.
  [[nodiscard]] std::uint64_t device(std::uint64_t node_index, std::uint32_t local) const {
    return local < node.own_devices ? node_index * node.own_devices + local
                                    : first_shared() + node_index / nodes_per_domain;
  }
  [[nodiscard]] std::uint64_t endpoint(std::uint64_t node_index, std::uint64_t rail) const {
    return node_index * node.own_devices + (flat ? 0 : node.gpus) + rail;
  }

  [[nodiscard]] std::uint64_t first_cable_slot() const { return nodes * node.links.size(); }
  [[nodiscard]] std::uint64_t slots() const { return first_cable_slot() + 2 * cables(); }
};

// A cable between two switches; `a` is the lower level, or the lower group of a dragonfly+.
struct Trunk {
  std::uint64_t cable = 0;
  std::uint64_t a = 0;  // switch numbers: leaves, spines, cores
  std::uint64_t b = 0;
  std::uint16_t width = 1;
};

// All trunks, in cable order.
template <typename Visit>
void for_each_trunk(const FabricShape& shape, Visit&& visit) {
  const std::uint64_t first_spine = shape.leaves;
  const std::uint64_t first_core = first_spine + shape.spines();
  const std::uint64_t spines = shape.spines_per_block;
  for (std::uint64_t leaf = 0; leaf < shape.leaves; ++leaf)
    for (std::uint64_t s = 0; s < spines; ++s)
      visit(Trunk{shape.leaf_cable(leaf, s), leaf, first_spine + shape.block_of(leaf) * spines + s,
                  shape.trunks});
  for (std::uint64_t spine = 0; spine < shape.spines(); ++spine)
    for (std::uint64_t c = 0; c < shape.cores_per_spine; ++c)
      visit(Trunk{shape.core_cable(spine / spines, spine % spines, c), first_spine + spine,
                  first_core + spine % spines * shape.cores_per_spine + c, shape.core_trunks});
  if (shape.global_cables == 0) return;
  const std::uint64_t groups = shape.blocks;
  for (std::uint64_t low = 0; low < groups; ++low)
    for (std::uint64_t rest = 0; rest < (groups - low - 1) * shape.global_cables; ++rest) {
      const std::uint64_t high = low + 1 + rest / shape.global_cables;
      const std::uint64_t c = rest % shape.global_cables;
      visit(Trunk{shape.global_cable(low, high, c),
                  first_spine + low * spines + shape.global_spine(low, high, c),
                  first_spine + high * spines + shape.global_spine(high, low, c),
                  shape.global_width(c)});
    }
}

}  // namespace railyard::topologies
