// Scenarios whose fabric comes from the files of a real cluster.
#include <doctest/doctest.h>

#include "scenarios/bind.h"
#include "scenarios/run.h"
#include "tests/scenarios/helpers.h"
#include "topologies/fabric_source.h"

namespace railyard::scenarios {
namespace {

constexpr std::string_view kFabric =
    "Switch 9 \"S-a\" # \"sw\" base port 0 lid 1 lmc 0\n"
    "[1] \"H-1\"[1] # \"left mlx5_0\" lid 2 4xHDR\n[2] \"H-2\"[1] # \"right mlx5_0\" lid 3 "
    "4xHDR\n\n"
    "Ca 1 \"H-1\" # \"left mlx5_0\"\n[1] \"S-a\"[1] # lid 2 lmc 0 \"sw\" lid 1 4xHDR\n\n"
    "Ca 1 \"H-2\" # \"right mlx5_0\"\n[1] \"S-a\"[2] # lid 3 lmc 0 \"sw\" lid 1 4xHDR\n";
constexpr std::string_view kTables =
    "dump_ucast_routes: Switch 0xa\n0x0002 : 001 : 01 : yes\n0x0003 : 002 : 01 : yes\n";

std::string scenario(std::string_view fabric) {
  return "railyard: 1\n"
         "cluster: {machine: flat, nodes: 2, gpus_per_node: 1, fabric: " +
         std::string(fabric) +
         "}\n"
         "traffic: {pattern: all-to-all, size: 1MiB}\n";
}

TEST_CASE("a fabric of files beside the scenario is read, bound and run") {
  const tests::TemporaryDirectory dir;
  dir.write("sub/x.ibnet", kFabric);
  dir.write("sub/y.fdbs", kTables);
  const std::string path =
      dir.write("sub/s.yaml", scenario("{file: x.ibnet, tables: [y.fdbs], hosts: [right, left]}"));
  const auto read = read_scenario(path);
  REQUIRE_MESSAGE(read.ok(), tests::error_of(read));
  CHECK(read.value().cluster.fabric.kind == topologies::FabricKind::imported);
  std::size_t inputs = 0;
  for (const SourceFile& file : read.value().inputs)
    if (file.path == dir.path("sub/x.ibnet") || file.path == dir.path("sub/y.fdbs")) ++inputs;
  CHECK(inputs == 2);
  const auto bound = bind(read.value());
  REQUIRE(bound.ok());
  CHECK(bound.value()->topology.nodes[0].name == "right");
  const auto result = run(read.value(), {});
  CHECK_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));

  // What is resolved is found from anywhere.
  const std::string resolved = dir.write("elsewhere.yaml", resolved_yaml(read.value()));
  const auto again = read_scenario(resolved);
  REQUIRE_MESSAGE(again.ok(), tests::error_of(again));
  CHECK(again.value().cluster.fabric.source->tables.switches.size() == 1);
  const std::string one = dir.write("sub/one.yaml", scenario("{file: x.ibnet, tables: y.fdbs}"));
  CHECK(read_scenario(one).ok());
}

TEST_CASE("a host's adapters may have names of their own") {
  const tests::TemporaryDirectory dir;
  dir.write("x.ibnet", kFabric);
  const auto build = [&](std::string_view map) {
    const auto read = read_scenario(dir.write(
        "s.yaml",
        scenario("{file: x.ibnet, adapters: [hca0], adapters_by_host: " + std::string(map) + "}")));
    REQUIRE_MESSAGE(read.ok(), tests::error_of(read));
    const auto bound = bind(read.value());
    return bound.ok() ? bound.value()->topology.nodes[0].name : bound.error().text();
  };
  CHECK(build("{left: [mlx5_0], right: [mlx5_0]}") == "left");
  CHECK(
      build("{left: [mlx5_0]}")
          .ends_with("cluster.fabric: there are 2 nodes of 1 NICs, but the fabric has 1 hosts with "
                     "that many cabled adapters; left out: right has no cabled adapter 'hca0'"));
  CHECK(build("{lefty: [mlx5_0]}")
            .ends_with("adapters_by_host: no host 'lefty' in the fabric; did you mean 'left'?"));
  CHECK(build("{left: [a, b]}")
            .ends_with("adapters_by_host: left has 2 adapters, but the nodes have 1 NICs"));
  CHECK(tests::error_of(read_scenario(dir.write(
                            "s.yaml", scenario("{file: x.ibnet, adapters_by_host: {left: x}}"))))
            .find("cluster.fabric.adapters_by_host.left: a list is expected, not a single value") !=
        std::string::npos);
}

TEST_CASE("fabric files: errors name the key, or the line of the foreign file") {
  const tests::TemporaryDirectory dir;
  dir.write("x.ibnet", kFabric);
  dir.write("bad.fdbs", "dump_ucast_routes: Switch 0xa\n0x0002 : 999\n");
  const auto error = [&](std::string_view fabric) {
    return tests::error_of(read_scenario(dir.write("s.yaml", scenario(fabric))));
  };
  const std::string at = dir.path("s.yaml") + ":2:";
  CHECK(error("{file: none}").find("cluster.fabric.file: " + dir.path("none") + ": ") !=
        std::string::npos);
  CHECK(error("{file: x.ibnet, tables: bad.fdbs}") ==
        dir.path("bad.fdbs") + ":2: '999' is no port (0 to 254)");
  CHECK(error("{kind: imported}") == at + "62: cluster.fabric: an imported fabric needs 'file'");
  CHECK(error("{file: x.ibnet, spines: 4}")
            .find("cluster.fabric.spines: an imported fabric has the shape that its file tells") !=
        std::string::npos);
  CHECK(error("{file: x.ibnet, tables: y, routing: ecmp}")
            .find("cluster.fabric.routing: the forwarding tables decide the routes") !=
        std::string::npos);
  CHECK(error("{kind: switch, adapters: [a]}")
            .find("cluster.fabric.adapters: this is for fabrics of kind 'imported' only") !=
        std::string::npos);
  CHECK(error("{kind: switch, adapters_by_host: {a: [b]}}")
            .find("cluster.fabric.adapters_by_host: this is for fabrics of kind 'imported' only") !=
        std::string::npos);
  CHECK(error("{kind: switch, file: x.ibnet}")
            .find("cluster.fabric.file: this is for fabrics of kind 'imported' only") !=
        std::string::npos);
}

TEST_CASE("fabric files are left alone where no file may be read") {
  const std::string text = scenario("{file: nowhere.ibnet}");
  const auto read = scenario_from_text(text, "s.yaml", {.read_files = false});
  REQUIRE(read.ok());
  CHECK(read.value().cluster.fabric.source == nullptr);
  const auto bound = bind(read.value());
  REQUIRE(!bound.ok());
  CHECK(bound.error().message == "fabric.file was not read");
}

}  // namespace
}  // namespace railyard::scenarios
