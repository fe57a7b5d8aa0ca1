// Node view: the links inside one node of a Topology, as a tree (each device's way to its CPU) and
// the NVLinks beside it. Reads sim::Topology only, so it serves imported topologies as well.
//
// Cost: O(links of the topology) for one node; views() makes all of them in one pass.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/topology.h"
#include "topologies/machine.h"

namespace railyard::topologies {

class NodeView {
 public:
  struct Edge {
    sim::DeviceId to;
    sim::LinkId link;
    std::uint16_t width = 1;
  };

  NodeView(const sim::Topology& topology, std::size_t node);
  static std::vector<NodeView> views(const sim::Topology& topology);

  // The device above: a PCIe switch or CPU; invalid for a CPU or a device cut off.
  [[nodiscard]] sim::DeviceId parent(sim::DeviceId device) const;
  [[nodiscard]] const std::vector<Edge>& children(sim::DeviceId device) const;  // link: downwards
  [[nodiscard]] const std::vector<Edge>& nvlinks_of(sim::DeviceId device) const;
  // NIC (or flat GPU) - fabric switch.
  [[nodiscard]] const std::vector<Edge>& ports_of(sim::DeviceId device) const;
  [[nodiscard]] const std::vector<Edge>& smp_of(sim::DeviceId cpu) const;
  [[nodiscard]] const std::vector<sim::DeviceId>& devices() const { return devices_; }

  [[nodiscard]] sim::DeviceKind kind(sim::DeviceId device) const {
    return topology_->devices[device.index()].kind;
  }
  [[nodiscard]] std::uint32_t local_index(sim::DeviceId device) const {
    return topology_->devices[device.index()].local_index;
  }

 private:
  struct Entry {
    sim::DeviceId parent;
    std::vector<Edge> children;
    std::vector<Edge> nvlinks;
    std::vector<Edge> ports;
    std::vector<Edge> smp;
  };
  explicit NodeView(const sim::Topology& topology) : topology_(&topology) {}
  void add(sim::LinkId link);
  [[nodiscard]] const Entry& entry(sim::DeviceId device) const;

  const sim::Topology* topology_;
  std::vector<sim::DeviceId> devices_;
  std::unordered_map<std::uint32_t, Entry> entries_;
};

}  // namespace railyard::topologies
