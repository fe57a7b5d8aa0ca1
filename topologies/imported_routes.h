// Routes through an imported fabric: by its forwarding tables, or over the fewest switches that
// are left; the rules are in fabric.h.
//
// Cost: O(length x log entries) with tables; without, O(choices) a hop, and a distance of two bytes
// for every pair of a switch with hosts and a switch.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/topology.h"
#include "topologies/cluster_plan.h"
#include "topologies/fabric_routes.h"

namespace railyard::topologies {

class ImportedRoutes {
 public:
  // Both must outlive the object; the plan has an imported fabric.
  ImportedRoutes(const ClusterPlan& plan, const SlotMap& links);

  // False if there is none; then `out` is as before. Under tables a disabled cable is not detoured.
  bool append(Endpoint from, Endpoint to, std::uint64_t flow_hash, sim::Route& out) const;

 private:
  [[nodiscard]] std::uint64_t slot(std::uint32_t cable, bool down) const {
    return first_slot_ + 2 * std::uint64_t{cable} + (down ? 1 : 0);
  }
  [[nodiscard]] std::uint64_t slot_from(std::uint32_t cable, std::uint32_t at_switch) const {
    return slot(cable, fabric_.cables[cable].a != at_switch);
  }
  [[nodiscard]] bool alive(std::uint64_t slot) const {
    return links_.empty() || links_[slot].valid();
  }
  void push(std::uint64_t slot, sim::Route& out) const;
  void find_distances();
  [[nodiscard]] bool by_tables(std::uint32_t from, std::uint32_t to, sim::Route& out) const;
  [[nodiscard]] bool by_distance(std::uint32_t from, std::uint32_t to, std::uint64_t flow_hash,
                                 sim::Route& out) const;

  const ImportedFabric& fabric_;
  const SlotMap& links_;
  FabricRouting routing_;
  std::uint64_t first_slot_;
  std::vector<std::vector<std::uint32_t>> trunks_;  // by switch
  std::vector<std::uint32_t> leaf_of_;              // by switch: row of distances_
  std::vector<std::uint16_t> distances_;            // to that leaf, by switch
  std::vector<std::uint32_t> place_;                // by endpoint: its number in leaf order
};

}  // namespace railyard::topologies
