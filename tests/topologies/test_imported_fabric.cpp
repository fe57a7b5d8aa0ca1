// Clusters on imported fabrics: hosts to nodes, adapters to NICs, routes with and without
// forwarding tables, and what does not fit.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/paths.h"
#include "tests/skip.h"
#include "tests/topologies/support.h"
#include "topologies/fabric_source.h"
#include "topologies/import/text_file.h"
#include "topologies/imported_fabric.h"
#include "topologies/show.h"

namespace railyard::topologies {
namespace {

using test::build_error;
using test::must_build;
using test::must_route;
using test::route_text;

// Two leaves a0 and a1, spines c0 and c1; a0-c0 by two cables. Hosts h1, h2 on a0, h10 on a1.
constexpr std::string_view kFabric =
    "Switch 9 \"S-a0\" # \"a0\" base port 0 lid 1 lmc 0\n"
    "[1] \"H-b1\"[1] # \"h1 mlx5_0\" lid 11 4xHDR\n"
    "[2] \"H-b2\"[1] # \"h2 mlx5_0\" lid 12 4xHDR\n"
    "[5] \"S-c0\"[1] # \"c0\" lid 3 4xHDR\n"
    "[6] \"S-c0\"[2] # \"c0\" lid 3 4xHDR\n"
    "[7] \"S-c1\"[1] # \"c1\" lid 4 4xHDR\n\n"
    "Switch 9 \"S-a1\" # \"a1\" base port 0 lid 2 lmc 0\n"
    "[1] \"H-b3\"[1] # \"h10 mlx5_0\" lid 13 4xEDR\n"
    "[5] \"S-c0\"[3] # \"c0\" lid 3 4xHDR\n"
    "[7] \"S-c1\"[3] # \"c1\" lid 4 4xHDR\n\n"
    "Switch 9 \"S-c0\" # \"c0\" base port 0 lid 3 lmc 0\n"
    "[1] \"S-a0\"[5] # \"a0\" lid 1 4xHDR\n"
    "[2] \"S-a0\"[6] # \"a0\" lid 1 4xHDR\n"
    "[3] \"S-a1\"[5] # \"a1\" lid 2 4xHDR\n\n"
    "Switch 9 \"S-c1\" # \"c1\" base port 0 lid 4 lmc 0\n"
    "[1] \"S-a0\"[7] # \"a0\" lid 1 4xHDR\n"
    "[3] \"S-a1\"[7] # \"a1\" lid 2 4xHDR\n\n"
    "Ca 1 \"H-b1\" # \"h1 mlx5_0\"\n[1](b1) \"S-a0\"[1] # lid 11 lmc 0 \"a0\" lid 1 4xHDR\n\n"
    "Ca 1 \"H-b2\" # \"h2 mlx5_0\"\n[1](b2) \"S-a0\"[2] # lid 12 lmc 0 \"a0\" lid 1 4xHDR\n\n"
    "Ca 1 \"H-b3\" # \"h10 mlx5_0\"\n[1](b3) \"S-a1\"[1] # lid 13 lmc 0 \"a1\" lid 2 4xEDR\n";

// h10 is reached over the second cable to c0, h1 and h2 come back over c1.
constexpr std::string_view kTables =
    "dump_ucast_routes: Switch 0xa0\n0x000b : 001\n0x000c : 002\n0x000d : 006\n"
    "dump_ucast_routes: Switch 0xa1\n0x000b : 007\n0x000c : 007\n0x000d : 001\n"
    "dump_ucast_routes: Switch 0xc0\n0x000d : 003\n"
    "dump_ucast_routes: Switch 0xc1\n0x000b : 001\n0x000c : 001\n0x000d : 003\n";

FabricSourcePtr source(std::string_view graph, std::string_view tables = {}) {
  std::vector<NamedText> texts;
  if (!tables.empty()) texts.emplace_back("t.fdbs", tables);
  auto made = parse_fabric_source({"f", std::string(graph)}, texts);
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().text()));
  return made.value();
}

// Flat machines of one GPU each, which is its own port.
ClusterSpec flat(FabricSourcePtr from, std::uint32_t nodes) {
  ClusterSpec spec = test::cluster("flat", nodes, FabricKind::imported);
  spec.overrides.gpus_per_node = 1;
  spec.overrides.nic_rate = sim::bytes_per_second(50'000'000'000);
  spec.fabric.source = std::move(from);
  return spec;
}

std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
  std::string out(text);
  const std::size_t at = out.find(what);
  REQUIRE(at != std::string::npos);
  return out.replace(at, what.size(), with);
}

TEST_CASE("imported: hosts in natural order, rates of the file, parallel cables as one link") {
  const sim::Topology topology = must_build(flat(source(kFabric), 3));
  REQUIRE(topology.nodes.size() == 3);
  CHECK(topology.nodes[0].name == "h1");
  CHECK(topology.nodes[2].name == "h10");
  const auto link = [&](const std::string& name) {
    for (std::size_t i = 0; i < topology.links.size(); ++i)
      if (topology.link_name(sim::LinkId(i)) == name) return topology.links[i];
    FAIL("no link " << name);
    return sim::Link{};
  };
  const sim::Bandwidth hdr = sim::bytes_per_second(25'000'000'000);
  CHECK(link("h1/gpu0->leaf/a0").capacity == hdr);
  CHECK(link("leaf/a1->h10/gpu0").capacity == sim::bytes_per_second(12'500'000'000));
  CHECK(link("leaf/a0->spine/c0").capacity == hdr * 2);
  CHECK(link("leaf/a0->spine/c0").width == 2);
  CHECK(link("leaf/a0->spine/c1").width == 1);
  CHECK(topology.links.size() == 2 * (3 + 4));
}

TEST_CASE("imported: stated rates replace the file's") {
  ClusterSpec spec = flat(source(kFabric), 3);
  spec.fabric.link_rate = sim::bytes_per_second(40'000'000'000);
  spec.fabric.trunk_rate = sim::bytes_per_second(5'000'000'000);
  for (const sim::Link& link : must_build(spec).links)
    CHECK(link.capacity == (link.link_class == sim::LinkClass::nic
                                ? spec.fabric.link_rate
                                : spec.fabric.trunk_rate * link.width));
}

TEST_CASE("imported: routes are what walking the tables gives") {
  const sim::Topology topology = must_build(flat(source(kFabric, kTables), 3));
  CHECK(topology.links.size() == 2 * (3 + 5));  // every cable is a link
  const auto route = must_route(topology, "h1/gpu0", "h10/gpu0", 77);
  CHECK(route_text(topology, route) ==
        "h1/gpu0->leaf/a0 leaf/a0->spine/c0 spine/c0->leaf/a1 leaf/a1->h10/gpu0");
  // Cables: three hosts, then those of a0 by port: 5, 6, 7. Port 6 is cable 4, upwards slot 8.
  CHECK(route[1] == sim::LinkId(8));
  CHECK(route_text(topology, must_route(topology, "h10/gpu0", "h1/gpu0")) ==
        "h10/gpu0->leaf/a1 leaf/a1->spine/c1 spine/c1->leaf/a0 leaf/a0->h1/gpu0");
  CHECK(route_text(topology, must_route(topology, "h1/gpu0", "h2/gpu0")) ==
        "h1/gpu0->leaf/a0 leaf/a0->h2/gpu0");
}

TEST_CASE("imported: a disabled cable is not detoured under tables, and is without") {
  ClusterSpec spec = flat(source(kFabric, kTables), 3);
  spec.changes.push_back({.pattern = "leaf/a1->spine/c1", .disable = true});
  const sim::Topology fixed = must_build(spec);
  sim::Route route;
  CHECK(!fixed.routing->append_route(test::device(fixed, "h10/gpu0"),
                                     test::device(fixed, "h1/gpu0"), 0, route));
  CHECK(route.empty());
  spec.fabric.source = source(kFabric);
  const sim::Topology free = must_build(spec);
  for (std::uint64_t hash = 0; hash < 8; ++hash)
    CHECK(route_text(free, must_route(free, "h10/gpu0", "h1/gpu0", hash)) ==
          "h10/gpu0->leaf/a1 leaf/a1->spine/c0 spine/c0->leaf/a0 leaf/a0->h1/gpu0");
}

TEST_CASE("imported: without tables both spines are used, static by destination") {
  ClusterSpec spec = flat(source(kFabric), 3);
  const sim::Topology ecmp = must_build(spec);
  std::set<std::string> ways;
  for (std::uint64_t hash = 0; hash < 16; ++hash)
    ways.insert(route_text(ecmp, must_route(ecmp, "h10/gpu0", "h1/gpu0", hash)));
  CHECK(ways.size() == 2);
  spec.fabric.routing = FabricRouting::destination;
  const sim::Topology fixed = must_build(spec);
  CHECK(route_text(fixed, must_route(fixed, "h10/gpu0", "h1/gpu0", 1)) ==
        route_text(fixed, must_route(fixed, "h10/gpu0", "h1/gpu0", 2)));
  CHECK(route_text(fixed, must_route(fixed, "h10/gpu0", "h1/gpu0")) !=
        route_text(fixed, must_route(fixed, "h10/gpu0", "h2/gpu0")));
}

TEST_CASE("imported: faults of the tables are named") {
  const auto fault = [](std::string_view what, std::string_view with) {
    return build_error(flat(source(kFabric, replaced(kTables, what, with)), 3));
  };
  CHECK(fault("0x000d : 006", "0x000d : 008") ==
        "switch leaf/a0 (0x00000000000000a0) sends LID 13 (h10 NIC 0) out of port 8, where no "
        "cable of this cluster is");
  CHECK(fault("0x000d : 006", "0x000d : 000") ==
        "switch leaf/a0 (0x00000000000000a0) sends LID 13 (h10 NIC 0) out of port 0, to itself");
  CHECK(fault("0x000d : 006", "0x000d : 002") ==
        "switch leaf/a0 (0x00000000000000a0) sends LID 13 (h10 NIC 0) out of port 2, to another "
        "host");
  CHECK(fault("0x000d : 006\n", "") ==
        "switch leaf/a0 (0x00000000000000a0) has no entry for LID 13 (h10 NIC 0)");
  CHECK(fault("Switch 0xc0\n0x000d : 003\n", "Switch 0xd0\n0x000d : 003\n") ==
        "there is no forwarding table of switch spine/c0 (0x00000000000000c0), which LID 13 (h10 "
        "NIC 0) passes");
  CHECK(fault("Switch 0xc0\n0x000d : 003\n", "Switch 0xc0\n0x000d : 001\n") ==
        "the tables send LID 13 (h10 NIC 0) in a circle: leaf/a0, spine/c0, leaf/a0");
  const std::string no_lid =
      replaced(replaced(kFabric, "# lid 13 lmc 0 ", "# "), "lid 13 4xEDR", "4xEDR");
  CHECK(build_error(flat(source(no_lid, kTables), 3)) ==
        "no LID of h10 NIC 0 is told, by which tables could be walked");
}

// Two rails that never meet; host x also has a card of its own for storage.
constexpr std::string_view kRails =
    "Ca 1 \"H-1\" # \"x mlx5_0\"\n[1] \"S-a\"[1] # lid 1 lmc 0 \"r0\" lid 9 4xNDR\n\n"
    "Ca 1 \"H-2\" # \"x mlx5_2\"\n[1] \"S-b\"[1] # lid 2 lmc 0 \"r1\" lid 8 4xNDR\n\n"
    "Ca 1 \"H-3\" # \"y mlx5_0\"\n[1] \"S-a\"[2] # lid 3 lmc 0 \"r0\" lid 9 4xNDR\n\n"
    "Ca 2 \"H-4\" # \"y mlx5_2\"\n[1] \"S-b\"[2] # lid 4 lmc 0 \"r1\" lid 8 4xNDR\n"
    "[2] \"S-b\"[4] # lid 7 lmc 0 \"r1\" lid 8 4xNDR\n\n"
    "Ca 1 \"H-5\" # \"z mlx5_0\"\n[1] \"S-a\"[3] # lid 5 lmc 0 \"r0\" lid 9 4xNDR\n\n"
    "Ca 1 \"H-6\" # \"Mellanox Technologies Aggregation Node\"\n"
    "[1] \"S-a\"[9] # lid 6 lmc 0 \"r0\" lid 9 4xNDR\n";

ClusterSpec two_nics(FabricSourcePtr from, std::uint32_t nodes) {
  ClusterSpec spec = test::cluster("hgx-h100", nodes, FabricKind::imported);
  spec.overrides.nics_per_node = 2;
  spec.fabric.source = std::move(from);
  return spec;
}

TEST_CASE("imported: adapters by name, rails apart") {
  ClusterSpec spec = two_nics(source(kRails), 2);
  spec.fabric.adapters = {"mlx5_2", "mlx5_0"};
  const sim::Topology topology = must_build(spec);
  CHECK(topology.nodes[1].name == "y");
  CHECK(route_text(topology, must_route(topology, "x/nic0", "y/nic0")) ==
        "x/nic0->leaf/r1 leaf/r1->y/nic0");
  CHECK(route_text(topology, must_route(topology, "y/nic1", "x/nic1")) ==
        "y/nic1->leaf/r0 leaf/r0->x/nic1");
  sim::Route route;
  CHECK(!topology.routing->append_route(test::device(topology, "x/nic0"),
                                        test::device(topology, "y/nic1"), 0, route));
  CHECK(show_tree(topology).find("leaf x 2") != std::string::npos);
  spec.fabric.adapters = {"mlx5_0", "mlx5_2/2"};
  spec.nodes = 1;
  CHECK(must_build(spec).nodes[0].name == "y");
  spec.fabric.hosts = {"y"};
  CHECK(must_build(spec).nodes[0].name == "y");
}

TEST_CASE("imported: the machine's own NIC names choose the adapters") {
  ClusterSpec spec = two_nics(source(kRails), 2);
  spec.custom = find_machine("hgx-h100").value();
  spec.overrides = {};
  spread_nics(*spec.custom, 2);
  spec.custom->nic_names = {"mlx5_2", "mlx5_0"};
  const sim::Topology topology = must_build(spec);
  CHECK(topology.nodes[1].name == "y");  // its third adapter is not the machine's
  CHECK(route_text(topology, must_route(topology, "x/nic0", "y/nic0")) ==
        "x/nic0->leaf/r1 leaf/r1->y/nic0");
  // Names that no host has are noted, and the count decides.
  const auto by_count =
      resolve_imported(spec.fabric, {.nodes = 1,
                                     .rails = 2,
                                     .port_rate = sim::bytes_per_second(50'000'000'000),
                                     .names = {"ib0", "ib1"}});
  REQUIRE(by_count.ok());
  CHECK(by_count.value()->hosts == std::vector<std::string>{"x"});
  CHECK(
      by_count.value()->notes ==
      std::vector<std::string>{"no host's adapters are called as the machine's NICs: ib0, ib1",
                               "hosts left out: y has 3 cabled adapters, z has 1 cabled adapters"});
}

TEST_CASE("imported: what does not fit") {
  ClusterSpec spec = two_nics(source(kRails), 3);
  CHECK(build_error(spec) ==
        "there are 3 nodes of 2 NICs, but the fabric has 1 hosts with that many cabled adapters; "
        "left out: y has 3 cabled adapters, z has 1 cabled adapters (fabric.adapters names those "
        "to use)");
  spec.fabric.adapters = {"mlx5_0", "mlx5_2"};
  CHECK(build_error(spec) ==
        "there are 3 nodes of 2 NICs, but the fabric has 2 hosts with that many cabled adapters; "
        "left out: z has no cabled adapter 'mlx5_2'");
  spec.fabric.hosts = {"x", "z"};
  CHECK(build_error(spec) ==
        "fabric.hosts: z has no cabled adapter 'mlx5_2'; the nodes have 2 NICs");
  spec.fabric.hosts = {"x", "yy"};
  CHECK(build_error(spec) == "fabric.hosts: no host 'yy' in the fabric");
  spec.fabric.adapters = {"mlx5_0"};
  CHECK(build_error(spec) == "fabric.adapters names 1 adapters, but the nodes have 2 NICs");
  spec.fabric.source = nullptr;
  CHECK(build_error(spec) == "fabric 'imported' needs fabric.file");
  CHECK(build_error(flat(source("Ca 1 \"H-1\" # \"x\"\n[1] \"H-2\"[1] # \"y\" 4xHDR\n"), 1)) ==
        "there are 1 nodes of 1 NICs, but the fabric has 0 hosts with that many cabled adapters");
  CHECK(build_error(flat(source("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n"), 2)) ==
        "the fabric falls apart: no way from NIC 0 of n1 to that of n2 (add a switch above the "
        "roots to the file)");
  const auto none = parse_fabric_source({"f", "hello\n"}, {});
  REQUIRE(!none.ok());
  CHECK(none.error().text() ==
        "f: no fabric: the output of ibnetdiscover (with or without -p) or a topology.conf or "
        "topology.yaml of SLURM is expected");
}

TEST_CASE("imported: a tree of SLURM has all NICs of a host in its leaf") {
  const ClusterSpec spec = two_nics(
      source("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=top Switches=a,b\n"), 2);
  const sim::Topology topology = must_build(spec);
  for (const char* nic : {"/nic0", "/nic1"})
    CHECK(route_text(topology,
                     must_route(topology, std::string("n1") + nic, std::string("n2") + nic)) ==
          std::string("n1") + nic + "->leaf/a leaf/a->spine/top spine/top->leaf/b leaf/b->n2" +
              nic);
}

TEST_CASE("imported: a tree of SLURM takes the stated rates") {
  ClusterSpec spec = flat(source("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\n"
                                 "SwitchName=top Switches=a,b\n"),
                          4);
  spec.fabric.trunk_rate = sim::bytes_per_second(7'000'000'000);
  const sim::Topology topology = must_build(spec);
  const auto route = must_route(topology, "n1/gpu0", "n4/gpu0");
  CHECK(route_text(topology, route) ==
        "n1/gpu0->leaf/a leaf/a->spine/top spine/top->leaf/b leaf/b->n4/gpu0");
  CHECK(topology.links[route[0].index()].capacity == sim::bytes_per_second(50'000'000'000));
  CHECK(topology.links[route[1].index()].capacity == spec.fabric.trunk_rate);
}

// The tables of a real cluster, walked here by hand: from the port that the graph tells, entry by
// entry, over the graph's own cables.
TEST_CASE("imported samples: every route of PlaFRIM is its tables'") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(RAILYARD_SHARED_DIR) / "samples/ib/lft/plafrim";
  if (!fs::exists(folder)) RAILYARD_SKIP("no samples in " RAILYARD_SHARED_DIR);
  std::vector<std::string> tables;
  for (const auto& file : fs::directory_iterator(folder / "ibroutes-fe80:0000:0000:0000"))
    tables.push_back(file.path().string());
  const auto made =
      read_fabric_source((folder / "ib-subnet-fe80:0000:0000:0000.txt").string(), tables);
  REQUIRE(made.ok());
  const FabricGraph& graph = made.value()->graph;
  const sim::Topology topology = must_build(flat(made.value(), 125));
  std::size_t hops = 0;
  std::size_t pairs = 0;
  std::size_t different = 0;
  std::vector<std::pair<std::string, std::uint32_t>> hosts;
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind == GraphNodeKind::adapter)
      hosts.emplace_back(graph.nodes[i].name.substr(0, graph.nodes[i].name.find(' ')), i);
  for (const auto& from : hosts)
    for (const auto& to : hosts) {
      if (from.second == to.second) continue;
      std::vector<std::string> expected;
      std::uint32_t at = graph.nodes[from.second].ports[0].peer;
      for (int i = 0; i < 20 && at != to.second; ++i) {
        expected.push_back(graph.nodes[at].name);
        std::replace(expected.back().begin(), expected.back().end(), ' ', '_');
        const auto port = made.value()
                              ->tables.find(graph.nodes[at].key)
                              ->port(graph.nodes[to.second].ports[0].lid);
        REQUIRE(port.has_value());
        at = graph.nodes[at].port(*port)->peer;
      }
      REQUIRE(at == to.second);
      const auto found = must_route(topology, from.first + "/gpu0", to.first + "/gpu0");
      std::vector<std::string> passed;
      for (const sim::LinkId link : found) {
        const std::string& name = topology.devices[topology.links[link.index()].to.index()].name;
        passed.push_back(name.substr(name.find('/') + 1));
      }
      passed.pop_back();
      if (passed != expected) ++different;
      hops += found.size();
      ++pairs;
    }
  CHECK(different == 0);
  CHECK(pairs == 125 * 124);
  CHECK(hops > 2 * pairs);
}

}  // namespace
}  // namespace railyard::topologies
