// Routes through the fabric, from the shape's closed forms; the rules are in fabric.h.
//
// Cost of a route: O(1) on an intact fabric, O(choices) where links are missing, O(switch links)
// for a detour. Memory: none on an intact fabric, else an adjacency list of the switches.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/topology.h"
#include "topologies/cluster_plan.h"

namespace railyard::topologies {

// Slot -> link; invalid where the link is disabled. Empty: none is, and link = slot.
using SlotMap = std::vector<sim::LinkId>;

// The port of NIC `rail` (of GPU `rail` on a flat machine) of a node.
struct Endpoint {
  std::uint64_t node = 0;
  std::uint64_t rail = 0;
};

class FabricRoutes {
 public:
  // Both must outlive the object.
  FabricRoutes(const ClusterPlan& plan, const SlotMap& links);

  // False if there is none; then `out` is as before.
  bool append(Endpoint from, Endpoint to, std::uint64_t flow_hash, sim::Route& out) const;

 private:
  struct Hop {
    std::uint32_t to = 0;
    std::uint64_t slot = 0;
  };
  struct Query;

  [[nodiscard]] bool alive(std::uint64_t slot) const {
    return links_.empty() || links_[slot].valid();
  }
  [[nodiscard]] std::uint64_t slot(std::uint64_t cable, bool down) const {
    return first_slot_ + 2 * cable + (down ? 1 : 0);
  }
  void push(std::uint64_t slot, sim::Route& out) const;
  void build_hops();

  template <typename Usable>
  [[nodiscard]] std::uint64_t choose(std::uint64_t choices, std::uint64_t key,
                                     Usable&& usable) const;
  [[nodiscard]] std::uint64_t key(const Query& query, std::uint64_t at_switch,
                                  std::uint64_t divisor) const;
  [[nodiscard]] bool in_block(const Query& query, sim::Route& out) const;
  [[nodiscard]] bool over_cores(const Query& query, sim::Route& out) const;
  [[nodiscard]] bool over_groups(const Query& query, sim::Route& out) const;
  [[nodiscard]] bool detour(const Query& query, sim::Route& out) const;

  const FabricShape& shape_;
  const SlotMap& links_;
  FabricRouting routing_;
  std::uint64_t first_slot_;
  std::vector<std::uint32_t> hop_offsets_;  // by switch, only if links are missing
  std::vector<Hop> hops_;
};

// The mixing function of ECMP (Steele, Lea, Flood 2014).
constexpr std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace railyard::topologies
