// Routes inside nodes and NVLink domains.
#include <doctest/doctest.h>

#include "tests/topologies/support.h"

namespace railyard::topologies {
namespace {

using test::cluster;
using test::must_build;
using test::must_route;
using test::route_text;

std::string route_of(const sim::Topology& topology, const std::string& from,
                     const std::string& to) {
  return route_text(topology, must_route(topology, from, to));
}

bool reachable(const sim::Topology& topology, const std::string& from, const std::string& to) {
  return topology.route({test::device(topology, from), test::device(topology, to)}, 0).ok();
}

TEST_CASE("every GPU reaches every GPU and NIC of its node by a path, on every machine") {
  for (const std::string_view name : machine_names()) {
    CAPTURE(name);
    if (name == "flat") continue;
    const auto topology = must_build(cluster(std::string(name), 1));
    std::vector<sim::DeviceId> all = topology.nodes[0].gpus;
    all.insert(all.end(), topology.nodes[0].nics.begin(), topology.nodes[0].nics.end());
    for (const sim::DeviceId gpu : topology.nodes[0].gpus)
      for (const sim::DeviceId other : all) {
        sim::Route out;
        sim::Route back;
        REQUIRE(topology.routing->append_route(gpu, other, 0, out));
        REQUIRE(topology.routing->append_route(other, gpu, 0, back));
        CHECK(test::is_path(topology, out, gpu, other));
        CHECK(test::is_path(topology, back, other, gpu));
        CHECK(out.size() == back.size());
        CHECK(out.empty() == (gpu == other));
      }
  }
}

TEST_CASE("NVSwitch, direct NVLink and NVB") {
  CHECK(route_of(must_build(cluster("hgx-h100", 1)), "node0/gpu2", "node0/gpu5") ==
        "node0/gpu2->node0/nvswitch0 node0/nvswitch0->node0/gpu5");
  const auto cube = must_build(cluster("dgx-1v", 1));
  CHECK(route_of(cube, "node0/gpu0", "node0/gpu4") == "node0/gpu0->node0/gpu4");
  // 0 - 5 is not wired. Through 1: width min(1, 2); 4: min(2, 1); so 1, the lowest.
  CHECK(route_of(cube, "node0/gpu0", "node0/gpu5") ==
        "node0/gpu0->node0/gpu1 node0/gpu1->node0/gpu5");
  // 0 - 7: through 3 min(2, 1), through 4 min(2, 2): the wider one.
  CHECK(route_of(cube, "node0/gpu0", "node0/gpu7") ==
        "node0/gpu0->node0/gpu4 node0/gpu4->node0/gpu7");
  for (const sim::DeviceId a : cube.nodes[0].gpus)
    for (const sim::DeviceId b : cube.nodes[0].gpus) {
      sim::Route route;
      REQUIRE(cube.routing->append_route(a, b, 0, route));
      CHECK(route.size() <= 2);
      for (const sim::LinkId link : route)
        CHECK(cube.links[link.index()].link_class == sim::LinkClass::nvlink);
    }
}

TEST_CASE("PCIe tree and sockets") {
  const auto topology = must_build(cluster("pcie-8", 1));
  CHECK(route_of(topology, "node0/gpu0", "node0/gpu1") ==
        "node0/gpu0->node0/pcie0 node0/pcie0->node0/gpu1");
  CHECK(route_of(topology, "node0/gpu0", "node0/gpu2") ==
        "node0/gpu0->node0/pcie0 node0/pcie0->node0/cpu0 node0/cpu0->node0/pcie1 "
        "node0/pcie1->node0/gpu2");
  CHECK(route_of(topology, "node0/gpu0", "node0/nic1") ==
        "node0/gpu0->node0/pcie0 node0/pcie0->node0/cpu0 node0/cpu0->node0/cpu1 "
        "node0/cpu1->node0/pcie2 node0/pcie2->node0/nic1");
  CHECK(route_of(must_build(cluster("pcie-8-nvlink", 1)), "node0/gpu0", "node0/gpu1") ==
        "node0/gpu0->node0/gpu1");
  // A bridge on 0 - 1 is no way from 0 to 2.
  CHECK(must_route(must_build(cluster("pcie-8-nvlink", 1)), "node0/gpu0", "node0/gpu2").size() ==
        4);
}

// Two GPUs below one switch: what they send each other goes up to the root complex and back. What
// passes a CPU anyway, and what ends there, is not redirected.
TEST_CASE("ACS sends peer-to-peer traffic through the root complex") {
  auto spec = cluster("pcie-8", 1, FabricKind::one_switch);
  spec.overrides.acs = true;
  const auto topology = must_build(spec);
  const auto plain = must_build(cluster("pcie-8", 1, FabricKind::one_switch));
  CHECK(route_of(topology, "node0/gpu0", "node0/gpu1") ==
        "node0/gpu0->node0/pcie0 node0/pcie0->node0/cpu0 node0/cpu0->node0/pcie0 "
        "node0/pcie0->node0/gpu1");
  CHECK(route_of(topology, "node0/nic1", "node0/gpu4") ==
        "node0/nic1->node0/pcie2 node0/pcie2->node0/cpu1 node0/cpu1->node0/pcie2 "
        "node0/pcie2->node0/gpu4");
  const std::vector<std::pair<const char*, const char*>> same{{"gpu0", "gpu2"},  {"gpu0", "nic1"},
                                                              {"gpu0", "cpu0"},  {"gpu0", "cpu1"},
                                                              {"pcie0", "gpu1"}, {"cpu1", "nic1"}};
  for (const auto& [from, to] : same) {
    const std::string a = std::string("node0/") + from;
    const std::string b = std::string("node0/") + to;
    CHECK(route_of(topology, a, b) == route_of(plain, a, b));
  }
  // NVLink is not PCIe.
  auto switched = cluster("hgx-h100", 1);
  switched.overrides.acs = true;
  CHECK(route_of(must_build(switched), "node0/gpu0", "node0/gpu1") ==
        "node0/gpu0->node0/nvswitch0 node0/nvswitch0->node0/gpu1");
}

TEST_CASE("C2C to the own Grace, SMP to another") {
  const auto topology = must_build(cluster("gh200-4", 1));
  CHECK(route_of(topology, "node0/gpu0", "node0/nic0") ==
        "node0/gpu0->node0/cpu0 node0/cpu0->node0/nic0");
  CHECK(route_of(topology, "node0/gpu0", "node0/nic2") ==
        "node0/gpu0->node0/cpu0 node0/cpu0->node0/cpu2 node0/cpu2->node0/nic2");
  CHECK(route_of(topology, "node0/gpu1", "node0/gpu3") == "node0/gpu1->node0/gpu3");
}

TEST_CASE("an NVLink domain joins GPUs of different nodes, and nothing else") {
  const auto topology = must_build(cluster("gb200-nvl72", 19, FabricKind::fat_tree));
  CHECK(route_of(topology, "node0/gpu3", "node17/gpu0") ==
        "node0/gpu3->domain0/nvswitch0 domain0/nvswitch0->node17/gpu0");
  CHECK(route_of(topology, "node2/gpu0", "domain0/nvswitch0") == "node2/gpu0->domain0/nvswitch0");
  CHECK(route_of(topology, "domain0/nvswitch0", "node2/gpu0") == "domain0/nvswitch0->node2/gpu0");
  CHECK_FALSE(reachable(topology, "node0/gpu0", "node18/gpu0"));  // the next rack
  CHECK_FALSE(reachable(topology, "node0/gpu0", "domain1/nvswitch0"));
  CHECK_FALSE(reachable(topology, "node0/cpu0", "node1/gpu0"));
  auto apart = cluster("gb200-nvl72", 2, FabricKind::fat_tree);
  apart.overrides.nodes_per_nvlink_domain = 1;
  CHECK_FALSE(reachable(must_build(apart), "node0/gpu0", "node1/gpu0"));
}

TEST_CASE("NICs of one node meet in the fabric only") {
  CHECK_FALSE(reachable(must_build(cluster("hgx-h100", 1)), "node0/nic0", "node0/nic1"));
  const auto topology = must_build(cluster("hgx-h100", 1, FabricKind::one_switch));
  CHECK(route_of(topology, "node0/nic0", "node0/nic1") ==
        "node0/nic0->switch/0 switch/0->node0/nic1");
}

TEST_CASE("lost NVLinks: the next best way, in the damaged node alone") {
  auto spec = cluster("dgx-1v", 2, FabricKind::one_switch);
  spec.changes = {{.pattern = "node1/gpu0<->node1/gpu1", .disable = true},
                  {.pattern = "node1/gpu0<->node1/gpu4", .disable = true}};
  const auto topology = must_build(spec);
  CHECK(route_of(topology, "node0/gpu0", "node0/gpu1") == "node0/gpu0->node0/gpu1");
  // NVB through 2 or 3, one link wide either way: the lower number.
  CHECK(route_of(topology, "node1/gpu0", "node1/gpu1") ==
        "node1/gpu0->node1/gpu2 node1/gpu2->node1/gpu1");
  // 0 and 4 have no neighbour in common: over the sockets.
  CHECK(route_of(topology, "node1/gpu0", "node1/gpu4") ==
        "node1/gpu0->node1/pcie0 node1/pcie0->node1/cpu0 node1/cpu0->node1/cpu1 "
        "node1/cpu1->node1/pcie2 node1/pcie2->node1/gpu4");
}

TEST_CASE("a GPU off the NVSwitch goes by PCIe, off both, nowhere") {
  auto spec = cluster("hgx-h100", 1);
  spec.changes = {{.pattern = "node0/gpu0<->node0/nvswitch0", .disable = true}};
  const auto topology = must_build(spec);
  CHECK(route_of(topology, "node0/gpu0", "node0/gpu1") ==
        "node0/gpu0->node0/pcie0 node0/pcie0->node0/cpu0 node0/cpu0->node0/pcie1 "
        "node0/pcie1->node0/gpu1");
  spec.changes = {{.pattern = "node0/gpu0", .disable = true}};
  const auto result = must_build(spec).route(
      {test::device(topology, "node0/gpu0"), test::device(topology, "node0/gpu1")}, 0);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message == "no path from node0/gpu0 to node0/gpu1");
}

TEST_CASE("way points are joined in order") {
  const auto topology = must_build(cluster("hgx-h100", 2, FabricKind::one_switch));
  const auto at = [&](const char* name) { return test::device(topology, name); };
  const auto route =
      topology.route({at("node0/gpu1"), at("node0/nic1"), at("node1/nic1"), at("node1/gpu1")}, 0);
  REQUIRE(route.ok());
  CHECK(route_text(topology, route.value()) ==
        "node0/gpu1->node0/pcie1 node0/pcie1->node0/nic1 node0/nic1->switch/0 "
        "switch/0->node1/nic1 node1/nic1->node1/pcie1 node1/pcie1->node1/gpu1");
  CHECK(topology.route({at("node0/gpu1"), at("node0/gpu1")}, 0).value().empty());
  const auto direct = topology.route({at("node0/gpu1"), at("node1/gpu1")}, 0);
  REQUIRE_FALSE(direct.ok());
  CHECK(direct.error().message == "no path from node0/gpu1 to node1/gpu1");
}

}  // namespace
}  // namespace railyard::topologies
