// Topology: the devices of a cluster and the directed links between them. Built once by topologies/
// and never changed; a run keeps its own state elsewhere.
//
// Invariants: link ends are valid devices; capacities are positive line rates of the datasheet (the
// profile's efficiency per link class is applied by the cost model); parallel links between two
// devices are one Link whose capacity is their sum (`width` says how many), unless the forwarding
// tables of an imported fabric tell them apart. A GPU or NIC belongs to one node; fabric switches
// belong to none. Disabled links are left out when it is built.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/enum_table.h"
#include "sim/ids.h"
#include "sim/units.h"

namespace railyard::sim {

enum class DeviceKind { gpu, nic, nvswitch, pcie_switch, cpu, fabric_switch };
template <>
struct EnumTable<DeviceKind> {
  static constexpr std::string_view kind = "device kind";
  static constexpr std::array entries{EnumEntry{DeviceKind::gpu, "gpu"},
                                      EnumEntry{DeviceKind::nic, "nic"},
                                      EnumEntry{DeviceKind::nvswitch, "nvswitch"},
                                      EnumEntry{DeviceKind::pcie_switch, "pcie_switch"},
                                      EnumEntry{DeviceKind::cpu, "cpu"},
                                      EnumEntry{DeviceKind::fabric_switch, "fabric_switch"}};
};

// What a link is made of; the key of per-class parameters in a profile.
enum class LinkClass {
  nvlink,  // GPU - GPU or GPU - NVSwitch
  pcie,    // GPU, NIC or switch - PCIe switch or CPU
  c2c,     // Grace - Hopper chip-to-chip
  smp,     // CPU socket - CPU socket
  nic,     // NIC port - first fabric switch
  fabric   // fabric switch - fabric switch
};
template <>
struct EnumTable<LinkClass> {
  static constexpr std::string_view kind = "link class";
  static constexpr std::array entries{
      EnumEntry{LinkClass::nvlink, "nvlink"}, EnumEntry{LinkClass::pcie, "pcie"},
      EnumEntry{LinkClass::c2c, "c2c"},       EnumEntry{LinkClass::smp, "smp"},
      EnumEntry{LinkClass::nic, "nic"},       EnumEntry{LinkClass::fabric, "fabric"}};
};
inline constexpr std::size_t kLinkClasses = EnumTable<LinkClass>::entries.size();

inline constexpr std::uint32_t kNoNode = 0xffffffff;

struct Device {
  DeviceKind kind = DeviceKind::gpu;
  std::uint32_t node = kNoNode;  // index into Topology::nodes
  std::uint32_t local_index =
      0;             // among the devices of this kind in its node (fabric: its level's)
  std::string name;  // unique: "node3/gpu5", "spine/2"
};

struct Link {
  DeviceId from{};
  DeviceId to{};
  LinkClass link_class = LinkClass::nvlink;
  Bandwidth capacity{};            // line rate of all parallel links together, one direction
  Duration extra_latency{};        // on top of the class latency of the profile (long cables)
  std::uint16_t width = 1;         // parallel links (NVLinks, trunk cables)
  std::uint32_t multiplicity = 1;  // equal links that this one stands for
};

// One host (or NVLink domain) of the cluster.
struct Node {
  std::string name;
  std::string machine;              // catalogue name, e.g. "hgx-h100"
  std::vector<DeviceId> gpus;       // by local index
  std::vector<DeviceId> nics;       // by local index; index = rail where rails exist
  std::uint32_t nvlink_domain = 0;  // nodes of one NVLink domain carry the same number
};

using Route = std::vector<LinkId>;  // consecutive links; empty = same device

// How a path is found; implemented in topologies/. Deterministic: equal arguments, equal route.
class Routing {
 public:
  virtual ~Routing() = default;
  // Appends the links from one device to another to `out`; false if there is no path. `flow_hash`
  // picks among equal-cost paths where the fabric uses ECMP and is ignored under static routing.
  // GPUs of other devices are never passed through except where the machine's rules say so.
  virtual bool append_route(DeviceId from, DeviceId to, std::uint64_t flow_hash,
                            Route& out) const = 0;
};

struct Topology {
  std::vector<Node> nodes;
  std::vector<Device> devices;
  std::vector<Link> links;
  std::shared_ptr<const Routing> routing;

  [[nodiscard]] std::size_t gpu_count() const;
  [[nodiscard]] std::string link_name(LinkId link) const;  // "node0/gpu1->node0/nvswitch0"
  // The route through the given way points (GPU, NIC, NIC, GPU); an error names the missing hop.
  [[nodiscard]] Result<Route> route(const std::vector<DeviceId>& way_points,
                                    std::uint64_t flow_hash) const;
};

}  // namespace railyard::sim
