#include "tools/cli/topo_import.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "scenarios/scenario.h"
#include "tests/tools/helpers.h"
#include "topologies/cluster.h"
#include "topologies/import/nccl_xml.h"
#include "topologies/machine.h"
#include "topologies/machine_hardware.h"

namespace railyard::tests {
namespace {

using nlohmann::json;

std::string xml_of(const char* machine) {
  return topologies::write_nccl_xml(
      topologies::hardware_of(topologies::find_machine(machine).value()).value());
}

// A GPU known by its class alone.
constexpr const char* kBare =
    "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"/>"
    "</cpu></system>";

TEST_CASE("import: one line per file") {
  const TemporaryDirectory directory;
  const std::string h100 = directory.write("h100.xml", xml_of("hgx-h100"));
  const std::string bare = directory.write("bare.xml", kBare);
  const std::string amd =
      directory.write("amd.xml",
                      "<system version=\"2\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" "
                      "class=\"0x120000\"/></cpu></system>");
  const auto report = cli::import_report({.files = {h100, bare, amd}});
  REQUIRE(report.ok());
  CHECK(report.value().complaints.empty());
  const auto all = lines(report.value().text);
  REQUIRE(all.size() == 3);
  CHECK(all[0] == h100 +
                      ": NCCL topology XML: 8 GPUs, 8 NICs, 8 PCIe switches, 2 "
                      "NUMA nodes, 8 GPUs with 18 NVLinks; not in the file, taken from "
                      "hgx-h100: bandwidth between NUMA nodes");
  CHECK(all[1] == bare +
                      ": NCCL topology XML: 1 GPU, 0 NICs, 0 PCIe switches, 1 NUMA "
                      "node; not in the file, taken from dgx-1v: GPU model, NVLinks, PCIe "
                      "speeds, processor");
  CHECK(all[2] == amd +
                      ": NCCL topology XML: 1 GPU, 0 NICs, 0 PCIe switches, 1 NUMA "
                      "node; no machine can be made of it: 1 AMD GPUs; no machine of the "
                      "catalogue stands near them; 1 note");
}

TEST_CASE("import: files that cannot be used are complaints, the others are still read") {
  const TemporaryDirectory directory;
  const std::string bare = directory.write("bare.xml", kBare);
  const std::string text = directory.write("notes.txt", "hello");
  const auto report = cli::import_report({.files = {text, bare, directory.path("none.xml")}});
  REQUIRE(report.ok());
  CHECK(lines(report.value().text).size() == 1);
  REQUIRE(report.value().complaints.size() == 2);
  CHECK(report.value().complaints[0].starts_with(
      text + ": not a kind of file that is known; known: NCCL topology XML, NCCL graph XML, "));
  CHECK(contains(report.value().complaints[1], "none.xml: cannot be opened"));
  const auto unknown = cli::import_report({.files = {bare}, .like = "hgx-h10"});
  REQUIRE_FALSE(unknown.ok());
  CHECK(contains(unknown.error().text(), "did you mean 'hgx-h100'?"));
}

TEST_CASE("import: -o writes the one machine") {
  const TemporaryDirectory directory;
  const std::string bare = directory.write("bare.xml", kBare);
  const std::string h100 = directory.write("my h100.xml", xml_of("hgx-h100"));
  const std::string target = directory.path("node.yaml");
  REQUIRE(cli::import_report({.files = {h100}, .output = target}).ok());
  CHECK(contains(directory.read("node.yaml"), "    name: my-h100\n    like: hgx-h100\n"));
  CHECK_FALSE(directory.has("node.yaml.part"));
  const auto two = cli::import_report({.files = {h100, bare}, .output = target});
  REQUIRE_FALSE(two.ok());
  CHECK(two.error().text() ==
        "-o writes one machine, but " + h100 + " and " + bare + " both have one");
  const std::string empty =
      directory.write("empty.xml", "<system version=\"1\"><cpu numaid=\"0\"/></system>");
  const auto none = cli::import_report({.files = {empty}, .output = target});
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().text() ==
        target + ": -o has nothing to write: no file gives a machine or a fabric");
  const auto nowhere =
      cli::import_report({.files = {bare}, .output = directory.path("no/such/node.yaml")});
  REQUIRE_FALSE(nowhere.ok());
  CHECK(contains(nowhere.error().text(), "node.yaml: cannot be written"));
}

// Hosts x and y with both NICs, y with an adapter more, z with one, v with others.
constexpr const char* kFabric =
    "Switch 40 \"S-a\" # \"r0\" base port 0 lid 20 lmc 0\n"
    "[1] \"H-1\"[1] # \"x mlx5_0\" lid 1 4xNDR\n[2] \"H-3\"[1] # \"y mlx5_0\" lid 3 4xNDR\n"
    "[3] \"H-5\"[1] # \"z mlx5_0\" lid 5 4xNDR\n[4] \"H-7\"[1] # \"v hca0\" lid 7 4xNDR\n"
    "[40] \"S-b\"[40] # \"r1\" lid 21 4xNDR\n\n"
    "Switch 40 \"S-b\" # \"r1\" base port 0 lid 21 lmc 0\n"
    "[1] \"H-2\"[1] # \"x mlx5_2\" lid 2 4xNDR\n[2] \"H-4\"[1] # \"y mlx5_2\" lid 4 4xNDR\n"
    "[3] \"H-6\"[1] # \"y mlx5_9\" lid 6 4xNDR\n[4] \"H-8\"[1] # \"v hca1\" lid 8 4xNDR\n"
    "[40] \"S-a\"[40] # \"r0\" lid 20 4xNDR\n";

std::string fdbs(std::string_view lid_4 = "0x0004 : 002\n") {
  return "dump_ucast_routes: Switch 0xa\n0x0001 : 001\n0x0002 : 040\n0x0003 : 002\n0x0004 : "
         "040\n0x0007 : 004\n0x0008 : 040\n\ndump_ucast_routes: Switch 0xb\n0x0001 : "
         "040\n0x0002 : 001\n0x0003 : 040\n0x0007 : 040\n0x0008 : "
         "004\n" +
         std::string(lid_4);
}

// hgx-h100 with three NICs called mlx5_0, mlx5_1 and mlx5_2; the second is of another network.
std::string three_nics() {
  topologies::MachineSpec machine = topologies::find_machine("hgx-h100").value();
  topologies::spread_nics(machine, 3);
  return topologies::write_nccl_xml(topologies::hardware_of(machine).value());
}

TEST_CASE("import: a node, a fabric and its tables are one cluster") {
  const TemporaryDirectory directory;
  const std::string node = directory.write("in/node.xml", three_nics());
  const std::string fabric = directory.write("in/fabric.ibnet", kFabric);
  const std::string tables = directory.write("in/opensm.fdbs", fdbs());
  const std::string target = directory.path("cluster.yaml");
  const auto report =
      cli::import_report({.files = {tables, node, fabric}, .output = target, .json = false});
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().text()));
  const auto all = lines(report.value().text);
  REQUIRE(all.size() == 3 + 7);
  CHECK(all[3] ==
        "cluster: 2 nodes of 2 NICs: " + node + " on " + fabric + ", routed by " + tables);
  CHECK(all[4] == "cluster: hosts: x, y");
  CHECK(all[5] == "cluster: NICs: mlx5_0, mlx5_2");
  CHECK(all[6] == "cluster: NIC mlx5_1 of the node is not on the fabric and left out");
  CHECK(all[7] == "cluster: adapter mlx5_9 (of 1 host) is no NIC of the node");
  CHECK(all[8] == "cluster: host left out: v has no cabled adapter 'mlx5_0'");
  CHECK(all[9] == "cluster: host left out: z has no cabled adapter 'mlx5_2'");
  const std::string written = directory.read("cluster.yaml");
  CHECK(contains(written, "# host left out: z has no cabled adapter 'mlx5_2'\n"));
  CHECK(contains(written, "\ncluster:\n  nodes: 2\n  machine:\n    name: node\n"));
  CHECK(contains(written,
                 "  fabric:\n    file: \"in/fabric.ibnet\"\n    tables: "
                 "[\"in/opensm.fdbs\"]\n    adapters: [\"mlx5_0\", \"mlx5_2\"]\n"));
  const auto scenario = scenarios::read_scenario(directory.write(
      "s.yaml",
      "include: cluster.yaml\nrailyard: 1\ntraffic: {pattern: all-to-all, size: 1MiB}\n"));
  REQUIRE_MESSAGE(scenario.ok(), (scenario.ok() ? "" : scenario.error().text()));
  const auto topology = topologies::build(scenario.value().cluster);
  REQUIRE_MESSAGE(topology.ok(), (topology.ok() ? "" : topology.error().text()));
  CHECK(topology.value().nodes[1].name == "y");
  CHECK(topology.value().nodes[1].nics.size() == 2);
}

TEST_CASE("import: adapters that have other names than the NICs") {
  const TemporaryDirectory directory;
  topologies::MachineSpec machine = topologies::find_machine("hgx-h100").value();
  topologies::spread_nics(machine, 2);
  const std::string node = directory.write(
      "node.xml", topologies::write_nccl_xml(topologies::hardware_of(machine).value()));
  const std::string fabric = directory.write("fabric.ibnet", kFabric);
  const std::string map = directory.write("map.yaml", "v: [hca1, hca0]\n'*': [mlx5_0, mlx5_2]\n");
  const std::string target = directory.path("cluster.yaml");
  const auto report = cli::import_report(
      {.files = {node, fabric}, .output = target, .adapters = map, .json = true});
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().text()));
  const json cluster = json::parse(report.value().text)[2];
  CHECK(cluster["kind"] == "cluster");
  CHECK(cluster["hosts"] == json{"v", "x", "y"});
  CHECK(cluster["adapters"] == json{"mlx5_0", "mlx5_2"});
  CHECK(cluster["adapters_not_of_node"] == json{"mlx5_9 (of 1 host)"});
  CHECK(cluster["hosts_left_out"] == json{"z has no cabled adapter 'mlx5_2'"});
  CHECK(contains(directory.read("cluster.yaml"),
                 "    adapters_by_host:\n      \"v\": [\"hca1\", \"hca0\"]\n"));
  const auto scenario = scenarios::read_scenario(directory.write(
      "s.yaml",
      "include: cluster.yaml\nrailyard: 1\ntraffic: {pattern: all-to-all, size: 1MiB}\n"));
  REQUIRE_MESSAGE(scenario.ok(), (scenario.ok() ? "" : scenario.error().text()));
  CHECK(topologies::build(scenario.value().cluster).ok());

  const auto error = [&](const char* text) {
    const std::string bad = directory.write("bad.yaml", text);
    const auto made =
        cli::import_report({.files = {node, fabric}, .output = target, .adapters = bad});
    return made.ok() ? "accepted" : made.error().text();
  };
  CHECK(error("vv: [a, b]\n") == "adapters by host: no host 'vv' in the fabric");
  CHECK(error("v: [hca0, hca1]\n") ==
        "adapters by host: v has 2 adapters, but the nodes have 1 NICs");
  CHECK(error("'*': [hca0]\n") == "adapters by host: '*' has 1 adapters, but the node has 2 NICs");
  CHECK(error("v: hca0\n") ==
        directory.path("bad.yaml") + ":1:4: v: a list is expected, not a single value");
}

TEST_CASE("import: what cannot be one cluster") {
  const TemporaryDirectory directory;
  const std::string node = directory.write("node.xml", three_nics());
  const std::string fabric = directory.write("fabric.ibnet", kFabric);
  const std::string tables = directory.write("opensm.fdbs", fdbs());
  const std::string target = directory.path("cluster.yaml");
  const auto error = [&](std::vector<std::string> files) {
    const auto made = cli::import_report({.files = std::move(files), .output = target});
    return made.ok() ? "accepted" : made.error().text();
  };
  CHECK(error({node, fabric, fabric}) ==
        "-o writes one fabric, but " + fabric + " and " + fabric + " both are one");
  CHECK(error({node, tables}) ==
        tables + ": forwarding tables need the fabric that they route: the ibnetdiscover of it");
  const std::string circle = directory.write("circle.fdbs", fdbs("0x0004 : 040\n"));
  const std::string slim = directory.write(
      "slim.ibnet", "Switch 4 \"S-a\" # \"r\"\n[1] \"H-1\"[1] # \"x mlx5_0\" lid 1 4xNDR\n");
  CHECK(error({node, slim}) == "accepted");  // one NIC is on the fabric
  const std::string other = directory.write(
      "other.ibnet", "Switch 4 \"S-a\" # \"r\"\n[1] \"H-1\"[1] # \"x hca0\" lid 1 4xNDR\n");
  CHECK(error({node, other}) ==
        other + ": no host of the fabric fits a node of 3 NICs: x has 1 cabled adapters");
  // Without -o the same is a line.
  const auto line = cli::import_report({.files = {node, other}});
  REQUIRE(line.ok());
  CHECK(lines(line.value().text)[2] ==
        "no cluster: " + other +
            ": no host of the fabric fits a node of 3 NICs: x has 1 cabled "
            "adapters");
  CHECK(contains(error({node, fabric, circle}), "the tables send LID 4 (y NIC 1) in a circle"));
}

TEST_CASE("import: a fabric alone leaves machine and nodes to the scenario") {
  const TemporaryDirectory directory;
  const std::string fabric = directory.write("in/fabric.ibnet", kFabric);
  REQUIRE(cli::import_report({.files = {fabric}, .output = directory.path("f.yaml")}).ok());
  CHECK(contains(directory.read("f.yaml"),
                 "`machine:` and `nodes:` are still to be stated.\nrailyard: 1\ncluster:\n  "
                 "fabric:\n    file: \"in/fabric.ibnet\"\n"));
  const auto scenario = scenarios::read_scenario(directory.write(
      "s.yaml",
      "include: f.yaml\nrailyard: 1\ncluster: {machine: flat, gpus_per_node: 1, nodes: 1}\n"
      "traffic: {pattern: all-to-all, size: 1MiB}\n"));
  CHECK_MESSAGE(scenario.ok(), (scenario.ok() ? "" : scenario.error().text()));
}

TEST_CASE("import: JSON") {
  const TemporaryDirectory directory;
  const std::string h100 = directory.write("h100.xml", xml_of("hgx-h100"));
  const auto report = cli::import_report({.files = {h100}, .json = true});
  REQUIRE(report.ok());
  const json all = json::parse(report.value().text);
  REQUIRE(all.size() == 1);
  CHECK(all[0]["kind"] == "nccl-xml");
  CHECK(all[0]["machine"]["like"] == "hgx-h100");
  CHECK(all[0]["machine"]["gpus"] == 8);
  CHECK(all[0]["machine"]["nvlinks_per_gpu"] == 18);
  CHECK(all[0]["machine"]["nvswitch"] == true);
  // NCCL: 18 links of 20.6 GB/s through the switch; GPU 0 and its NIC share a PCIe switch.
  CHECK(all[0]["machine"]["paths"]["gpu_gpu"][0][7] == json{"NVL", 370.8, 4});
  CHECK(all[0]["machine"]["paths"]["gpu_net"][0][0] == json{"PIX", 48, 4});
}

TEST_CASE("check: one line per finding") {
  const TemporaryDirectory directory;
  std::string text = xml_of("hgx-h100");
  const std::string healthy = directory.write("healthy.xml", text);
  text.replace(text.find("count=\"18\""), 10, "count=\"17\"");
  const std::string sick = directory.write("sick.xml", text);
  const std::string graph =
      directory.write("graph.xml",
                      "<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" crossnic=\"0\" "
                      "nchannels=\"0\" speedintra=\"1\" speedinter=\"1\" typeintra=\"SYS\" "
                      "typeinter=\"SYS\" samechannels=\"0\"/></graphs>");
  const cli::ImportReport report = cli::check_report({healthy, sick, graph});
  CHECK(report.text == healthy + ": nothing found\n" + sick +
                           ": GPU 0 (0000:02:00.0): 17 NVLinks, others have 18\n");
  REQUIRE(report.complaints.size() == 1);
  CHECK(report.complaints[0] == graph + ": NCCL graph XML describes nothing that could be checked");
}

}  // namespace

TEST_CASE("program: a node is imported, included and simulated") {
  const TemporaryDirectory directory;
  directory.write("topo.xml", xml_of("dgx-a100"));
  const Outcome import = run_program(directory, {"topo", "import", "topo.xml", "-o", "node.yaml"});
  CHECK(import.err.empty());
  CHECK(import.status == 0);
  directory.write("s.yaml",
                  "include: node.yaml\nrailyard: 1\ncluster: {nodes: 2, fabric: {kind: switch}}\n"
                  "nccl: {algorithm: Ring, protocol: Simple, channels: 2}\n"
                  "collectives: [{collective: AllReduce, sizes: [1MiB]}]\n");
  const Outcome run = run_program(directory, {"run", "s.yaml", "--no-sensitivity"});
  CHECK(run.err.empty());
  CHECK(run.status == 0);
  CHECK(contains(run.out, "AllReduce"));
  const Outcome show = run_program(directory, {"topo", "show", "s.yaml", "--format", "matrix"});
  CHECK(show.status == 0);
  CHECK(contains(show.out, "NV12"));
  const Outcome check = run_program(directory, {"topo", "check", "topo.xml", "absent.xml"});
  CHECK(check.status == 1);
  CHECK(check.out == "topo.xml: nothing found\n");
  CHECK(contains(check.err, "absent.xml: cannot be opened"));
  CHECK(run_program(directory, {"topo", "import"}).status == 2);
  CHECK(contains(run_program(directory, {"help", "topo"}).out, "topo import"));
}

}  // namespace railyard::tests
