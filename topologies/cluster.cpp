#include "topologies/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "topologies/cluster_plan.h"
#include "topologies/fabric_shape.h"
#include "topologies/imported_fabric.h"
#include "topologies/link_changes.h"
#include "topologies/node_plan.h"
#include "topologies/routing.h"

namespace railyard::topologies {
namespace {

using sim::bad_input;
using sim::DeviceId;
using sim::Result;

sim::DeviceId device_id(std::uint64_t index) { return DeviceId(static_cast<std::size_t>(index)); }

Result<void> check_sizes(const ClusterSpec& spec, const MachineSpec& machine) {
  if (spec.nodes == 0) return bad_input("nodes is 0; a cluster needs at least one node");
  const std::uint64_t gpus = std::uint64_t{spec.nodes} * machine.gpus.size();
  if (gpus > kMaxGpus)
    return bad_input(fmt::format("{} nodes of {} GPUs are {} GPUs; at most {} are supported",
                                 spec.nodes, machine.gpus.size(), gpus, kMaxGpus));
  const bool alone = spec.nodes <= machine.nodes_per_nvlink_domain && machine.nvswitch;
  if (spec.fabric.kind == FabricKind::none && spec.nodes > 1 && !alone)
    return bad_input(
        fmt::format("fabric 'none' connects nothing, but there are {} nodes; choose a "
                    "fabric (one of: {})",
                    spec.nodes, sim::enum_names<FabricKind>()));
  if (spec.fabric.kind == FabricKind::none && machine.flat && machine.gpus.size() > 1)
    return bad_input(fmt::format("machine '{}' has nothing inside: its {} GPUs need a fabric",
                                 machine.name, machine.gpus.size()));
  return {};
}

Result<void> check_links(const ClusterPlan& plan) {
  if (plan.slots() <= kMaxLinks) return {};
  return bad_input(
      fmt::format("the cluster has {} links (both directions counted); at most {} "
                  "are supported",
                  plan.slots(), kMaxLinks));
}

// What the fabric connects. The GPUs of a flat machine have the ports that the scenario states.
FabricEndpoints endpoints_of(const ClusterSpec& spec, const MachineSpec& machine) {
  const bool stated = machine.flat && spec.fabric.link_rate.raw() > 0;
  FabricEndpoints out;
  out.nodes = spec.nodes;
  out.rails = machine.flat ? machine.gpus.size() : machine.nics.size();
  out.names = machine.nic_names;
  out.port_rate = stated ? spec.fabric.link_rate : machine.nic.value;
  return out;
}

Result<ClusterPlan> make_plan(const ClusterSpec& spec, const MachineSpec& machine) {
  ClusterPlan plan;
  plan.nodes = spec.nodes;
  plan.nodes_per_domain = machine.nodes_per_nvlink_domain;
  plan.flat = machine.flat;
  plan.node = plan_node(machine);
  plan.routing = spec.fabric.routing;
  if (spec.fabric.kind == FabricKind::imported) {
    RAILYARD_ASSIGN(plan.imported, resolve_imported(spec.fabric, endpoints_of(spec, machine)));
  } else {
    RAILYARD_ASSIGN(plan.fabric, resolve_fabric(spec.fabric, endpoints_of(spec, machine)));
  }
  RAILYARD_TRY(check_links(plan));
  return plan;
}

class Builder {
 public:
  Builder(const ClusterSpec& spec, const MachineSpec& machine, const ClusterPlan& plan)
      : spec_(spec), machine_(machine), plan_(plan) {}

  sim::Topology build() {
    topology_.devices.reserve(plan_.devices());
    topology_.links.reserve(plan_.slots());
    add_nodes();
    add_switches();
    add_node_links();
    add_cables();
    RAILYARD_CHECK(topology_.devices.size() == plan_.devices(), "the plan numbers the devices");
    RAILYARD_CHECK(topology_.links.size() == plan_.slots(), "the plan numbers the links");
    return std::move(topology_);
  }

 private:
  void add_nodes() {
    for (std::uint32_t n = 0; n < plan_.nodes; ++n) {
      sim::Node node;
      node.name = plan_.imported ? plan_.imported->hosts[n] : fmt::format("node{}", n);
      node.machine = machine_.name;
      node.nvlink_domain = static_cast<std::uint32_t>(n / plan_.nodes_per_domain);
      for (std::uint32_t local = 0; local < plan_.node.own_devices; ++local) {
        const PlanDevice& device = plan_.node.devices[local];
        topology_.devices.push_back(
            {device.kind, n, device.local_index, node.name + "/" + local_name(device)});
      }
      for (std::uint32_t i = 0; i < plan_.node.gpus; ++i)
        node.gpus.push_back(device_id(plan_.device(n, i)));
      for (std::uint32_t i = 0; i < plan_.node.nics; ++i)
        node.nics.push_back(device_id(plan_.device(n, plan_.node.gpus + i)));
      topology_.nodes.push_back(std::move(node));
    }
    if (!plan_.node.shares_nvswitch()) return;
    for (std::uint32_t d = 0; d < plan_.domains(); ++d)
      topology_.devices.push_back(
          {sim::DeviceKind::nvswitch, sim::kNoNode, d, fmt::format("domain{}/nvswitch0", d)});
  }

  void add_switches() {
    if (plan_.imported) return add_imported_switches();
    const FabricShape& shape = plan_.fabric;
    const char* leaf = shape.kind == FabricKind::one_switch ? "switch" : "leaf";
    add_level(leaf, shape.leaves);
    add_level("spine", shape.spines());
    add_level("core", shape.cores());
  }

  void add_imported_switches() {
    std::vector<std::uint32_t> of_level(plan_.imported->switches.size() + 1);
    for (const ImportedSwitch& at : plan_.imported->switches)
      topology_.devices.push_back(
          {sim::DeviceKind::fabric_switch, sim::kNoNode, of_level[at.level]++, at.name});
  }

  void add_level(const char* level, std::uint64_t count) {
    for (std::uint32_t i = 0; i < count; ++i)
      topology_.devices.push_back(
          {sim::DeviceKind::fabric_switch, sim::kNoNode, i, fmt::format("{}/{}", level, i)});
  }

  void add_node_links() {
    for (std::uint64_t n = 0; n < plan_.nodes; ++n)
      for (const PlanLink& planned : plan_.node.links) {
        sim::Link link;
        link.from = device_id(plan_.device(n, planned.from));
        link.to = device_id(plan_.device(n, planned.to));
        link.link_class = planned.link_class;
        link.capacity = planned.capacity;
        link.width = planned.width;
        topology_.links.push_back(link);
      }
  }

  void add_cable(std::uint64_t a, std::uint64_t b, sim::Link link) {
    link.from = device_id(a);
    link.to = device_id(b);
    topology_.links.push_back(link);
    std::swap(link.from, link.to);
    topology_.links.push_back(link);
  }

  // Endpoints' cables come first, as in every plan.
  void add_imported_cables() {
    const ImportedFabric& fabric = *plan_.imported;
    for (std::uint32_t c = 0; c < fabric.cables.size(); ++c) {
      const ImportedCable& cable = fabric.cables[c];
      const bool host = c < fabric.endpoints();
      sim::Link link;
      link.link_class = host ? sim::LinkClass::nic : sim::LinkClass::fabric;
      link.capacity = cable.rate;
      if (host && !machine_.nic_rates.empty())
        link.capacity = std::min(link.capacity, machine_.nic_rates[c % fabric.rails]);
      link.extra_latency = host ? spec_.fabric.link_latency : spec_.fabric.trunk_latency;
      link.width = cable.width;
      const std::uint64_t a = host ? plan_.endpoint(c / fabric.rails, c % fabric.rails)
                                   : plan_.first_switch() + cable.a;
      add_cable(a, plan_.first_switch() + cable.b, link);
    }
  }

  void add_cables() {
    if (plan_.imported) return add_imported_cables();
    const FabricShape& shape = plan_.fabric;
    sim::Link host;
    host.link_class = sim::LinkClass::nic;
    host.capacity = shape.host_rate;
    host.extra_latency = spec_.fabric.link_latency;
    for (std::uint64_t n = 0; shape.endpoints() > 0 && n < plan_.nodes; ++n)
      for (std::uint64_t r = 0; r < shape.rails; ++r) {
        host.capacity = shape.host_rate;  // a slower port than the others stays slower
        if (!machine_.nic_rates.empty())
          host.capacity = std::min(host.capacity, machine_.nic_rates[r]);
        add_cable(plan_.endpoint(n, r), plan_.first_switch() + shape.leaf_of(n, r), host);
      }
    for_each_trunk(shape, [&](const Trunk& trunk) {
      sim::Link link;
      link.link_class = sim::LinkClass::fabric;
      const std::int64_t most = std::numeric_limits<std::int64_t>::max() / trunk.width;
      link.capacity =
          sim::Bandwidth::from_raw(std::min(shape.trunk_rate.raw(), most)) * trunk.width;
      link.extra_latency = spec_.fabric.trunk_latency;
      link.width = trunk.width;
      add_cable(plan_.first_switch() + trunk.a, plan_.first_switch() + trunk.b, link);
    });
  }

  const ClusterSpec& spec_;
  const MachineSpec& machine_;
  const ClusterPlan& plan_;
  sim::Topology topology_;
};

// Leaves the disabled links out; says where the others went.
SlotMap remove_disabled(sim::Topology& topology, const std::vector<bool>& enabled) {
  SlotMap map(enabled.size());
  std::size_t kept = 0;
  for (std::size_t slot = 0; slot < enabled.size(); ++slot) {
    if (!enabled[slot]) continue;
    map[slot] = sim::LinkId(kept);
    topology.links[kept++] = topology.links[slot];
  }
  topology.links.resize(kept);
  return map;
}

}  // namespace

Result<MachineSpec> cluster_machine(const ClusterSpec& spec) {
  if (spec.custom) return *spec.custom;
  return find_machine(spec.machine);
}

Result<MachineSpec> resolve_machine(const ClusterSpec& spec) {
  RAILYARD_ASSIGN(MachineSpec machine, cluster_machine(spec));
  RAILYARD_TRY(check_machine(machine));
  RAILYARD_ASSIGN(machine, apply_overrides(std::move(machine), spec.overrides));
  const std::uint32_t rails = spec.fabric.rails;
  if (rails == 0) return machine;
  if (machine.flat)
    return bad_input(
        fmt::format("fabric.rails is {}, but machine '{}' has no NICs: every GPU has "
                    "a port of its own",
                    rails, machine.name));
  if (rails > machine.nics.size())
    return bad_input(
        fmt::format("fabric.rails is {}, but the nodes have {} NICs", rails, machine.nics.size()));
  spread_nics(machine, rails);
  return machine;
}

Result<ClusterSize> cluster_size(const ClusterSpec& spec) {
  RAILYARD_ASSIGN(const MachineSpec machine, resolve_machine(spec));
  RAILYARD_TRY(check_sizes(spec, machine));
  RAILYARD_ASSIGN(const ClusterPlan plan, make_plan(spec, machine));
  return ClusterSize{plan.gpus(), plan.devices(), plan.slots()};
}

Result<sim::Topology> build(const ClusterSpec& spec) {
  RAILYARD_ASSIGN(const MachineSpec machine, resolve_machine(spec));
  RAILYARD_TRY(check_sizes(spec, machine));
  RAILYARD_ASSIGN(ClusterPlan plan, make_plan(spec, machine));
  sim::Topology topology = Builder(spec, machine, plan).build();
  RAILYARD_ASSIGN(const std::vector<bool> enabled, apply_changes(topology, spec.changes));
  SlotMap map;
  if (!enabled.empty()) map = remove_disabled(topology, enabled);
  topology.routing = make_routing(std::move(plan), std::move(map));
  return topology;
}

}  // namespace railyard::topologies
