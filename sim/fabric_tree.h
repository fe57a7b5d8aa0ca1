// FabricGraph: the links of the network (NIC - switch, switch - switch), and shortest trees of it.
// SHARP's trees: every switch sums what comes from below and sends one sum up, the root's result
// comes down the same way, so each link of the tree carries the data once in each direction.
//
//   FabricGraph graph(topology);
//   FabricTree tree = graph.tree(root);           // root: a fabric switch
//   tree.distance(nic);                           // hops to the root; kUnreachable
//   tree.append_path_up(nic, links);              // nic -> ... -> root
//
// Paths are the shortest; of equal ones the one over the lowest link numbers. O(links) each.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/topology.h"

namespace railyard::sim {

class FabricTree {
 public:
  static constexpr std::uint32_t kUnreachable = 0xffffffff;

  [[nodiscard]] std::uint32_t distance(DeviceId device) const { return distance_[device.index()]; }
  // The links from a device to the root, and from the root to it; the device must be reachable.
  void append_path_up(DeviceId device, Route& out) const;
  void append_path_down(DeviceId device, Route& out) const;
  [[nodiscard]] const std::vector<DeviceId>& by_distance() const { return order_; }

 private:
  friend class FabricGraph;
  std::vector<std::uint32_t> distance_;  // by device
  std::vector<LinkId> up_, down_;        // by device: its first link up, and the last one down
  std::vector<DeviceId> next_;           // by device: the next one towards the root
  std::vector<DeviceId> order_;          // reachable devices, the root first
};

class FabricGraph {
 public:
  // Only links that have a way back are used. Keeps a reference.
  explicit FabricGraph(const Topology& topology);
  [[nodiscard]] FabricTree tree(DeviceId root) const;

 private:
  struct Edge {
    DeviceId to;
    LinkId link;
    LinkId back;
  };
  const Topology& topology_;
  std::vector<std::vector<Edge>> edges_;  // by device
};

}  // namespace railyard::sim
