// Counts, capacities and refusals of build().
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>

#include "tests/topologies/support.h"
#include "topologies/fabric_source.h"

namespace railyard::topologies {
namespace {

using sim::DeviceKind;
using sim::LinkClass;
using test::build_error;
using test::cluster;
using test::must_build;

std::map<LinkClass, std::size_t> link_counts(const sim::Topology& topology) {
  std::map<LinkClass, std::size_t> counts;
  for (const sim::Link& link : topology.links) ++counts[link.link_class];
  return counts;
}

std::size_t switches(const sim::Topology& topology, const std::string& level) {
  std::size_t count = 0;
  for (const sim::Device& device : topology.devices)
    count += device.kind == DeviceKind::fabric_switch && device.name.rfind(level + "/", 0) == 0;
  return count;
}

// Of one switch: bandwidth from below / bandwidth to the level above, off the wires.
double oversubscription(const sim::Topology& topology, const std::string& name,
                        const std::string& above) {
  const sim::DeviceId id = test::device(topology, name);
  double up = 0;
  double down = 0;
  for (const sim::Link& link : topology.links) {
    if (link.from != id) continue;
    const bool upwards = topology.devices[link.to.index()].name.rfind(above + "/", 0) == 0;
    (upwards ? up : down) += static_cast<double>(link.capacity.raw());
  }
  return down / up;
}

// Six hosts of eight adapters on two leaves, as ibnetdiscover lists them from the hosts' side.
FabricSourcePtr six_hosts() {
  std::string text =
      "Switch 64 \"S-a\" # \"a\"\n[60] \"S-b\"[60] # \"b\" lid 2 4xNDR\n"
      "[61] \"S-b\"[61] # \"b\" lid 2 4xNDR\n\n";
  for (int i = 0; i < 48; ++i)
    text += fmt::format("Ca 1 \"H-{:x}\" # \"h{} mlx5_{}\"\n[1] \"S-{}\"[{}] # \"x\" 4xNDR\n\n",
                        0x100 + i, i / 8, i % 8, i < 24 ? "a" : "b", i % 24 + 1);
  return parse_fabric_source({"six", text}, {}).value();
}

TEST_CASE("links and devices are consistent on every fabric") {
  for (const auto& entry : sim::EnumTable<FabricKind>::entries) {
    CAPTURE(entry.name);
    auto spec = cluster("hgx-h100", entry.value == FabricKind::none ? 1 : 6, entry.value);
    spec.fabric.hosts_per_leaf = 2;
    if (entry.value == FabricKind::dragonfly_plus) spec.fabric.leaves_per_group = 1;
    if (entry.value == FabricKind::imported) {
      spec.fabric = {};
      spec.fabric.kind = FabricKind::imported;
      spec.fabric.source = six_hosts();
    }
    const auto topology = must_build(spec);
    std::set<std::string> names;
    std::set<std::pair<sim::DeviceId, sim::DeviceId>> pairs;
    for (const sim::Device& device : topology.devices) CHECK(names.insert(device.name).second);
    for (const sim::Link& link : topology.links) {
      CHECK(link.from.index() < topology.devices.size());
      CHECK(link.to.index() < topology.devices.size());
      CHECK(link.capacity.raw() > 0);
      CHECK(pairs.insert({link.from, link.to}).second);  // parallel links are one
    }
    for (const auto& [from, to] : pairs) CHECK(pairs.contains({to, from}));
    for (std::size_t n = 0; n < topology.nodes.size(); ++n)
      for (std::size_t i = 0; i < topology.nodes[n].gpus.size(); ++i) {
        const sim::Device& gpu = topology.devices[topology.nodes[n].gpus[i].index()];
        CHECK(gpu.kind == DeviceKind::gpu);
        CHECK(gpu.node == n);
        CHECK(gpu.local_index == i);
      }
  }
}

TEST_CASE("HGX H100 on a rail-optimised two-level fabric, counted by hand") {
  auto spec = cluster("hgx-h100", 64, FabricKind::rail_optimised);  // 2 groups of 32 hosts
  const auto topology = must_build(spec);
  CHECK(topology.gpu_count() == 512);
  CHECK(switches(topology, "leaf") == 16);   // 2 groups x 8 rails
  CHECK(switches(topology, "spine") == 32);  // 32 ports of a leaf at 1:1
  auto counts = link_counts(topology);
  CHECK(counts[LinkClass::nvlink] == 64 * 8 * 2);
  CHECK(counts[LinkClass::pcie] == 64 * (8 + 8 + 8) * 2);
  CHECK(counts[LinkClass::smp] == 64 * 2);
  CHECK(counts[LinkClass::nic] == 64 * 8 * 2);
  CHECK(counts[LinkClass::fabric] == 16 * 32 * 2);
  // Rails: NIC 3 of every host of a group ends in the same leaf.
  CHECK(topology.link_name(test::must_route(topology, "node0/nic3", "node31/nic3")[0]) ==
        "node0/nic3->leaf/3");
  CHECK(topology.link_name(test::must_route(topology, "node40/nic3", "node63/nic3")[0]) ==
        "node40/nic3->leaf/11");
}

TEST_CASE("the wires have the oversubscription that was asked for") {
  for (const double ratio : {1.0, 2.0, 4.0}) {
    CAPTURE(ratio);
    auto spec = cluster("hgx-h100", 32, FabricKind::rail_optimised);
    spec.fabric.hosts_per_leaf = 16;
    spec.fabric.oversubscription = ratio;
    CHECK(oversubscription(must_build(spec), "leaf/0", "spine") == doctest::Approx(ratio));
    spec.fabric.kind = FabricKind::fat_tree;
    CHECK(oversubscription(must_build(spec), "leaf/0", "spine") == doctest::Approx(ratio));
    spec.fabric.levels = 3;
    spec.fabric.hosts_per_pod = 32;
    spec.fabric.trunks = 2;
    spec.fabric.trunk_rate = sim::gigabits_per_second(800);
    spec.fabric.core_oversubscription = 2;
    const auto topology = must_build(spec);
    CHECK(oversubscription(topology, "leaf/0", "spine") == doctest::Approx(ratio));
    CHECK(oversubscription(topology, "spine/0", "core") == doctest::Approx(2));
  }
}

TEST_CASE("three levels: pods, planes and cores, counted by hand") {
  auto spec = cluster("gh200-4", 16, FabricKind::fat_tree);
  spec.fabric.levels = 3;
  spec.fabric.hosts_per_leaf = 2;  // 8 ports
  spec.fabric.hosts_per_pod = 8;   // 4 leaves
  spec.fabric.spines = 4;
  spec.fabric.cores_per_spine = 2;
  const auto topology = must_build(spec);
  CHECK(switches(topology, "leaf") == 8);
  CHECK(switches(topology, "spine") == 8);  // 2 pods x 4
  CHECK(switches(topology, "core") == 8);   // 4 planes x 2
  CHECK(link_counts(topology)[LinkClass::fabric] == (8 * 4 + 8 * 2) * 2);
}

TEST_CASE("dragonfly+: every two groups have the stated number of cables") {
  for (const std::uint32_t global_links : {1u, 2u, 3u, 7u}) {
    CAPTURE(global_links);
    auto spec = cluster("gh200-4", 20, FabricKind::dragonfly_plus);
    spec.fabric.hosts_per_leaf = 2;
    spec.fabric.leaves_per_group = 2;
    spec.fabric.spines = 3;
    spec.fabric.global_links = global_links;
    const auto topology = must_build(spec);  // 5 groups
    CHECK(switches(topology, "spine") == 15);
    std::map<std::pair<std::uint32_t, std::uint32_t>, unsigned> cables;
    for (const sim::Link& link : topology.links) {
      const sim::Device& from = topology.devices[link.from.index()];
      const sim::Device& to = topology.devices[link.to.index()];
      if (from.name.rfind("spine", 0) == 0 && to.name.rfind("spine", 0) == 0)
        cables[{from.local_index / 3, to.local_index / 3}] += link.width;
    }
    CHECK(cables.size() == 20);
    for (const auto& [groups, count] : cables) CHECK(count == global_links);
  }
}

TEST_CASE("4096 GPUs on one switch: one port each, at the stated rate and latency") {
  auto spec = cluster("flat", 1, FabricKind::one_switch);
  spec.overrides.gpus_per_node = 4096;
  spec.fabric.link_rate = sim::gigabytes_per_second(100);
  spec.fabric.link_latency = sim::nanoseconds(250);
  const auto topology = must_build(spec);
  CHECK(topology.gpu_count() == 4096);
  CHECK(topology.devices.size() == 4097);
  REQUIRE(topology.links.size() == 8192);
  CHECK(topology.links[17].capacity == sim::gigabytes_per_second(100));
  CHECK(topology.links[17].extra_latency == sim::nanoseconds(250));
  CHECK(test::route_text(topology, test::must_route(topology, "node0/gpu7", "node0/gpu4095")) ==
        "node0/gpu7->switch/0 switch/0->node0/gpu4095");
}

TEST_CASE("rails cable only some NICs, and a slow port limits a fast NIC") {
  auto spec = cluster("hgx-h100", 4, FabricKind::rail_optimised);
  spec.fabric.rails = 1;
  spec.fabric.hosts_per_leaf = 4;
  spec.fabric.link_rate = sim::gigabits_per_second(200);
  const auto topology = must_build(spec);
  CHECK(topology.nodes[0].nics.size() == 1);
  CHECK(switches(topology, "leaf") == 1);
  for (const sim::Link& link : topology.links)
    if (link.link_class == LinkClass::nic) CHECK(link.capacity == sim::gigabits_per_second(200));
}

TEST_CASE("trays of one rack need no fabric, other nodes do") {
  CHECK(must_build(cluster("gb200-nvl72", 18)).gpu_count() == 72);
  CHECK(build_error(cluster("gb200-nvl72", 19)) ==
        "fabric 'none' connects nothing, but there are 19 nodes; choose a fabric (one of: none, "
        "switch, rail-optimised, fat-tree, dragonfly+, imported)");
  auto flat = cluster("flat", 1);
  flat.overrides.gpus_per_node = 8;
  CHECK(build_error(flat) == "machine 'flat' has nothing inside: its 8 GPUs need a fabric");
}

TEST_CASE("absurd sizes are refused with the number, before anything is built") {
  CHECK(build_error(cluster("hgx-h100", 0)) == "nodes is 0; a cluster needs at least one node");
  CHECK(build_error(cluster("hgx-h100", 4'000'000'000, FabricKind::one_switch)) ==
        "4000000000 nodes of 8 GPUs are 32000000000 GPUs; at most 1000000 are supported");
  auto spec = cluster("hgx-h100", 100'000, FabricKind::rail_optimised);
  spec.fabric.spines = 1'000'000;
  // 2 x 25,000 leaves x 10^6 spines, 16 NIC links and 66 inside each node.
  CHECK(build_error(spec) ==
        "the cluster has 50008200000 links (both directions counted); at most 2147483648 are "
        "supported");
  spec.fabric.spines = 1'000'001;
  CHECK(build_error(spec) == "fabric.spines is 1000001; at most 1000000 is supported");
  spec.fabric.spines = 1;
  spec.fabric.trunks = 65'535;
  CHECK(build_error(spec) ==
        "65535 parallel cables of 50GB/s are 3.27675e+06 GB/s; at most 100000 GB/s between two "
        "switches are supported");
  spec.fabric.trunks = 70'000;
  CHECK(build_error(spec) == "fabric.trunks is 70000; at most 65535 is supported");
}

TEST_CASE("a fabric that contradicts itself is refused") {
  const auto error = [](auto&& change) {
    auto spec = cluster("hgx-h100", 64, FabricKind::rail_optimised);
    change(spec.fabric);
    return build_error(spec);
  };
  CHECK(error([](FabricSpec& f) { f.rails = 9; }) ==
        "fabric.rails is 9, but the nodes have 8 NICs");
  CHECK(error([](FabricSpec& f) { f.levels = 4; }) == "fabric.levels is 4; 2 or 3 are supported");
  CHECK(error([](FabricSpec& f) { f.hosts_per_leaf = 0; }) == "fabric.hosts_per_leaf is 0");
  CHECK(error([](FabricSpec& f) { f.trunks = 0; }) ==
        "fabric.trunks is 0: leaves and spines are not connected");
  CHECK(error([](FabricSpec& f) { f.core_trunks = 0; }) ==
        "fabric.core_trunks is 0: spines and cores are not connected");
  CHECK(error([](FabricSpec& f) { f.levels = 3; }) ==
        "a three-level fabric needs fabric.hosts_per_pod");
  CHECK(error([](FabricSpec& f) {
          f.levels = 3;
          f.hosts_per_pod = 40;
        }) == "fabric.hosts_per_pod 40 is not a multiple of hosts_per_leaf 32");
  CHECK(error([](FabricSpec& f) { f.hosts_per_pod = 64; }) ==
        "fabric.hosts_per_pod, cores_per_spine and core_oversubscription need levels: 3");
  CHECK(error([](FabricSpec& f) { f.leaves_per_group = 2; }) ==
        "fabric.leaves_per_group and global_links are for dragonfly+ only");
  CHECK(error([](FabricSpec& f) { f.kind = FabricKind::dragonfly_plus; }) ==
        "dragonfly+ needs fabric.leaves_per_group");
  CHECK(error([](FabricSpec& f) { f.oversubscription = 0; }) ==
        "fabric.oversubscription is 0; it must be positive");
}

TEST_CASE("oversubscription that does not divide, or contradicts the spines, is refused") {
  auto spec = cluster("hgx-h100", 64, FabricKind::rail_optimised);
  spec.fabric.oversubscription = 3;
  CHECK(build_error(spec) ==
        "fabric.oversubscription 3 does not divide: a leaf with 32 ports of 50GB/s needs 10.67 "
        "switches above it (1 cable(s) of 50GB/s to each); set fabric.spines or the number of "
        "cables");
  spec.fabric.spines = 8;
  CHECK(build_error(spec) ==
        "fabric.spines = 8 gives 4:1 at a leaf, but fabric.oversubscription is 3; state one of "
        "them");
  spec.fabric.oversubscription = 4;
  CHECK(build_error(spec).empty());
}

TEST_CASE("a fabric whose switches have too few ports cannot hold the nodes") {
  auto spec = cluster("hgx-h100", 512, FabricKind::rail_optimised);
  spec.fabric.switch_ports = 64;
  CHECK(build_error(spec) ==
        "the fabric cannot hold the nodes: a spine needs 128 ports, but fabric.switch_ports is 64");
  spec.fabric.hosts_per_leaf = 33;
  CHECK(build_error(spec) ==
        "the fabric cannot hold the nodes: a leaf needs 66 ports, but fabric.switch_ports is 64");
  spec.fabric.kind = FabricKind::one_switch;
  CHECK(build_error(spec) ==
        "the fabric cannot hold the nodes: a switch needs 4096 ports, but fabric.switch_ports is "
        "64");
}

TEST_CASE("a fabric needs NICs, and flat machines have no rails to choose") {
  auto spec = cluster("hgx-h100", 2, FabricKind::one_switch);
  spec.overrides.nics_per_node = 0;
  CHECK(build_error(spec) == "a 'switch' fabric needs NICs, but the nodes have none");
  auto flat = cluster("flat", 2, FabricKind::one_switch);
  flat.fabric.rails = 1;
  CHECK(build_error(flat) ==
        "fabric.rails is 1, but machine 'flat' has no NICs: every GPU has a port of its own");
}

}  // namespace
}  // namespace railyard::topologies
