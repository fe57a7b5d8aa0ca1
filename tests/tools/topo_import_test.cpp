#include "tools/cli/topo_import.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/helpers.h"
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
  CHECK(none.error().text() == target + ": -o has nothing to write: no file gives a machine");
  const auto nowhere =
      cli::import_report({.files = {bare}, .output = directory.path("no/such/node.yaml")});
  REQUIRE_FALSE(nowhere.ok());
  CHECK(contains(nowhere.error().text(), "node.yaml: cannot be written"));
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
  CHECK(report.complaints[0] ==
        graph + ": NCCL graph XML describes no machine that could be checked");
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
