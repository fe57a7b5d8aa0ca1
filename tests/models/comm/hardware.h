// A topology made link by link, for tests of what its connections cost.
#pragma once

#include <string>
#include <vector>

#include "sim/collective.h"
#include "sim/parameters.h"
#include "sim/topology.h"

namespace railyard::tests {

// Numbers of GPUs among the devices, in rank order, with the node of each.
struct GpuPlace {
  int device = 0;
  std::uint32_t node = 0;
};

struct Hardware {
  Hardware(const std::vector<sim::DeviceKind>& devices, const std::vector<GpuPlace>& gpus) {
    for (const sim::DeviceKind kind : devices)
      topology.devices.push_back({kind, 0, 0, "device" + std::to_string(topology.devices.size())});
    std::vector<std::uint32_t> local(devices.size(), 0);
    for (const GpuPlace& gpu : gpus) {
      while (topology.nodes.size() <= gpu.node) {
        topology.nodes.emplace_back();
        topology.nodes.back().nvlink_domain = static_cast<std::uint32_t>(topology.nodes.size() - 1);
      }
      group.push_back({sim::Rank(static_cast<std::uint32_t>(group.size())),
                       sim::DeviceId(static_cast<std::uint32_t>(gpu.device)), gpu.node,
                       local[gpu.node]++});
    }
  }

  void add(int from, int to, sim::LinkClass link_class, sim::Bandwidth capacity) {
    sim::Link link;
    link.from = sim::DeviceId(static_cast<std::uint32_t>(from));
    link.to = sim::DeviceId(static_cast<std::uint32_t>(to));
    link.link_class = link_class;
    link.capacity = capacity;
    topology.links.push_back(link);
  }
  sim::LinkParameters& of(sim::LinkClass c) {
    return parameters.links[static_cast<std::size_t>(c)];
  }
  sim::ProtocolParameters& of(sim::Protocol p) {
    return parameters.protocols[static_cast<std::size_t>(p)];
  }

  sim::Topology topology;
  sim::Parameters parameters;
  sim::Group group;
};

}  // namespace railyard::tests
