// Routes between nodes: valid and minimal on every fabric, balanced, and around what is missing.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/topologies/support.h"
#include "topologies/fabric_routes.h"

namespace railyard::topologies {
namespace {

using test::cluster;
using test::must_build;

// Small fabrics of every kind, more than one block each.
std::vector<std::pair<std::string, ClusterSpec>> small_fabrics() {
  std::vector<std::pair<std::string, ClusterSpec>> all;
  all.emplace_back("switch", cluster("gh200-4", 3, FabricKind::one_switch));
  auto flat = cluster("flat", 2, FabricKind::one_switch);
  flat.overrides.gpus_per_node = 5;
  all.emplace_back("flat switch", flat);
  flat.fabric.kind = FabricKind::fat_tree;
  flat.nodes = 5;
  flat.fabric.hosts_per_leaf = 2;
  flat.fabric.spines = 3;
  all.emplace_back("flat fat tree", flat);
  for (const FabricKind kind : {FabricKind::rail_optimised, FabricKind::fat_tree}) {
    auto spec = cluster("gh200-4", 11, kind);  // the last leaf and pod are not full
    spec.fabric.hosts_per_leaf = 2;
    spec.fabric.spines = 3;
    all.emplace_back(std::string(sim::to_text(kind)) + " 2", spec);
    spec.fabric.levels = 3;
    spec.fabric.hosts_per_pod = 4;
    spec.fabric.cores_per_spine = 2;
    all.emplace_back(std::string(sim::to_text(kind)) + " 3", spec);
  }
  for (const std::uint32_t global_links : {1u, 2u, 3u, 5u}) {
    auto spec = cluster("gh200-4", 11, FabricKind::dragonfly_plus);
    spec.fabric.hosts_per_leaf = 1;
    spec.fabric.leaves_per_group = 2;
    spec.fabric.spines = 3;
    spec.fabric.global_links = global_links;
    all.emplace_back("dragonfly+ " + std::to_string(global_links), spec);
  }
  return all;
}

// Every pair of endpoints, a few hashes: a path, as short as the oracle's, twice the same.
void check_all_pairs(const sim::Topology& topology, std::size_t slack = 0) {
  const test::Oracle oracle(topology);
  const auto ports = test::endpoints(topology);
  for (const sim::DeviceId from : ports) {
    const std::vector<std::size_t> distance = oracle.distances(from);
    for (const sim::DeviceId to : ports) {
      if (from == to) continue;
      for (const std::uint64_t hash : {0u, 1u, 77u}) {
        sim::Route route;
        sim::Route again;
        const bool found = topology.routing->append_route(from, to, hash, route);
        REQUIRE(found == (distance[to.index()] > 0));
        if (!found) {
          REQUIRE(route.empty());
          continue;
        }
        REQUIRE(test::is_path(topology, route, from, to));
        REQUIRE(route.size() >= distance[to.index()]);
        REQUIRE(route.size() <= distance[to.index()] + slack);
        topology.routing->append_route(from, to, hash, again);
        REQUIRE(route == again);
      }
    }
  }
}

TEST_CASE("routes are valid, minimal and repeatable between all pairs of every fabric") {
  for (const auto& fabric : small_fabrics())
    for (const auto& mode : sim::EnumTable<FabricRouting>::entries) {
      CAPTURE(fabric.first);
      CAPTURE(mode.name);
      ClusterSpec spec = fabric.second;
      spec.fabric.routing = mode.value;
      check_all_pairs(must_build(spec));
    }
}

TEST_CASE("a lost switch or cable is routed around, minimally, wherever a way is left") {
  for (const auto& fabric : small_fabrics()) {
    ClusterSpec spec = fabric.second;
    if (spec.fabric.kind == FabricKind::one_switch) continue;
    CAPTURE(fabric.first);
    spec.changes = {{.pattern = "spine/1", .disable = true},
                    {.pattern = "leaf/0->spine/0", .disable = true}};
    check_all_pairs(must_build(spec));
  }
}

TEST_CASE("dragonfly+ without the cables between two groups detours over a third") {
  auto spec = cluster("gh200-4", 6, FabricKind::dragonfly_plus);
  spec.fabric.hosts_per_leaf = 1;
  spec.fabric.leaves_per_group = 2;
  spec.fabric.spines = 1;
  spec.changes = {{.pattern = "spine/0<->spine/1", .disable = true}};
  const auto topology = must_build(spec);
  check_all_pairs(topology);
  CHECK(test::route_text(topology, test::must_route(topology, "node0/nic0", "node2/nic0")) ==
        "node0/nic0->leaf/0 leaf/0->spine/0 spine/0->spine/2 spine/2->spine/1 spine/1->leaf/2 "
        "leaf/2->node2/nic0");
}

TEST_CASE("a NIC whose cable is down, or cut-off leaves, have no route") {
  auto spec = cluster("gh200-4", 4, FabricKind::fat_tree);
  spec.fabric.hosts_per_leaf = 2;
  spec.fabric.spines = 2;
  spec.changes = {{.pattern = "node0/nic1->leaf/0", .disable = true}};
  const auto topology = must_build(spec);
  check_all_pairs(topology);
  sim::Route route;
  CHECK_FALSE(topology.routing->append_route(test::device(topology, "node0/nic1"),
                                             test::device(topology, "node1/nic1"), 0, route));
  CHECK(topology.routing->append_route(test::device(topology, "node1/nic1"),
                                       test::device(topology, "node0/nic1"), 0, route));
  spec.changes = {{.pattern = "spine/*", .disable = true}};
  check_all_pairs(must_build(spec));
}

TEST_CASE("ECMP takes splitmix64(hash ^ splitmix64(switch)) mod n") {
  auto spec = cluster("gh200-4", 6, FabricKind::fat_tree);
  spec.fabric.hosts_per_leaf = 2;
  spec.fabric.spines = 7;
  const auto topology = must_build(spec);
  for (std::uint64_t hash = 0; hash < 50; ++hash) {
    const auto route = test::must_route(topology, "node2/nic0", "node5/nic3", hash);
    const std::uint64_t spine = splitmix64(hash ^ splitmix64(1)) % 7;  // from leaf 1
    CHECK(topology.link_name(route[1]) == "leaf/1->spine/" + std::to_string(spine));
  }
  CHECK(splitmix64(0) == 0xe220a8397b1dcdaf);  // the published first output for seed 0
}

// How often each spine is used by leaf 0's flows to the hosts of other leaves.
std::map<std::string, int> spine_use(const sim::Topology& topology, bool vary_hash) {
  std::map<std::string, int> use;
  std::uint64_t flow = 0;
  for (std::size_t node = 8; node < topology.nodes.size(); ++node)
    for (std::size_t nic = 0; nic < topology.nodes[node].nics.size(); ++nic) {
      sim::Route route;
      topology.routing->append_route(topology.nodes[0].nics[nic], topology.nodes[node].nics[nic],
                                     vary_hash ? flow++ : 7, route);
      REQUIRE(route.size() == 4);
      ++use[topology.devices[topology.links[route[1].index()].to.index()].name];
    }
  return use;
}

TEST_CASE("static routing spreads destinations evenly, ECMP by hash, roughly") {
  for (const FabricKind kind : {FabricKind::rail_optimised, FabricKind::fat_tree}) {
    auto spec = cluster("hgx-h100", 72, kind);
    spec.fabric.hosts_per_leaf = 8;
    spec.fabric.spines = 8;
    spec.fabric.routing = FabricRouting::destination;
    const auto even = spine_use(must_build(spec), false);
    CHECK(even.size() == 8);
    for (const auto& [spine, count] : even) CHECK(count == 64);
    spec.fabric.routing = FabricRouting::ecmp;
    const auto hashed = spine_use(must_build(spec), true);
    CHECK(hashed.size() == 8);
    for (const auto& [spine, count] : hashed) {
      CHECK(count > 64 / 2);  // 512 flows in 8 bins: 64 +- 7.5
      CHECK(count < 64 * 2);
    }
  }
}

TEST_CASE("static routing: flows to the hosts of a leaf never share a link down to it") {
  auto spec = cluster("gh200-4", 16, FabricKind::fat_tree);
  spec.fabric.levels = 3;
  spec.fabric.hosts_per_leaf = 2;  // 8 ports, 8 spines: 1:1
  spec.fabric.hosts_per_pod = 8;
  spec.fabric.routing = FabricRouting::destination;
  const auto topology = must_build(spec);
  const auto ports = test::endpoints(topology);
  for (const std::size_t shift : {8u, 16u, 32u, 40u}) {  // every port sends to port + shift
    CAPTURE(shift);
    std::map<sim::LinkId, int> load;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      sim::Route route;
      REQUIRE(
          topology.routing->append_route(ports[i], ports[(i + shift) % ports.size()], 0, route));
      for (const sim::LinkId link : route) ++load[link];
    }
    for (const auto& [link, flows] : load) CHECK(flows == 1);
  }
}

}  // namespace
}  // namespace railyard::topologies
