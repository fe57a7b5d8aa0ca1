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

// Where the names of adapters are looked for.
struct AdapterNames {
  const std::vector<std::string>& all;  // of any host in NIC order; empty: its ports in their order
  const HostAdapters& by_host;          // of these hosts instead
};

// Some hosts of a fabric that can be nodes of so many NICs, and why the others cannot.
struct FittingHosts {
  std::vector<FabricHost> hosts;      // each with as many ports as there are rails, in NIC order
  std::vector<std::string> left_out;  // "z has no cabled adapter 'mlx5_2'"
};

struct ChosenHosts {
  std::uint64_t rails = 0;
  std::vector<FabricHost> hosts;  // each with as many ports as there are rails, in NIC order
  std::vector<std::string> notes;
};

// Every host with a cabled adapter, in natural order, ports likewise.
std::vector<FabricHost> hosts_of(const FabricGraph& graph);

// A source that tells no adapters (SLURM's): a host's one port stands for all its NICs.
bool tells_adapters(const FabricGraph& graph);
FabricHost with_all_nics(const FabricHost& host, std::uint64_t rails);

FittingHosts fitting_hosts(const std::vector<FabricHost>& all, const AdapterNames& names,
                           std::uint64_t rails);

// Every host of the map is one of the fabric and has `rails` names; errors begin with `key`.
sim::Result<void> check_adapter_map(const HostAdapters& by_host, const std::vector<FabricHost>& all,
                                    std::uint64_t rails, const std::string& key);

sim::Result<ChosenHosts> choose_hosts(const FabricSpec& spec, const FabricEndpoints& endpoints);

}  // namespace railyard::topologies
