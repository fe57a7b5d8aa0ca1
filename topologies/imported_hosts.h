// Which hosts and adapters of a fabric graph become the nodes and NICs of a cluster; the rules are
// in imported_fabric.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/result.h"
#include "topologies/fabric.h"
#include "topologies/fabric_shape.h"
#include "topologies/import/fabric_graph.h"

namespace railyard::topologies {

// A cabled port of an adapter.
struct HostPort {
  std::string name;  // the device, "mlx5_0"; of a further port of it, "mlx5_0/2"
  std::uint32_t node = 0;
  std::uint32_t port = 0;  // index into the node's ports
};

struct FabricHost {
  std::string name;
  std::vector<HostPort> ports;
};

struct ChosenHosts {
  std::uint64_t rails = 0;
  std::vector<FabricHost> hosts;  // each with as many ports as there are rails, in NIC order
  std::vector<std::string> notes;
};

// Every host with a cabled adapter, in natural order, ports likewise.
std::vector<FabricHost> hosts_of(const FabricGraph& graph);

sim::Result<ChosenHosts> choose_hosts(const FabricSpec& spec, const FabricEndpoints& endpoints);

}  // namespace railyard::topologies
