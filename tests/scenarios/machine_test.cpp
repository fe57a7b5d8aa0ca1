// `cluster.machine:` as a mapping, and `cluster.topology_file:`.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "scenarios/cluster_yaml.h"
#include "scenarios/machine_yaml.h"
#include "scenarios/scenario.h"
#include "tests/paths.h"
#include "tests/scenarios/helpers.h"
#include "tests/skip.h"
#include "topologies/cluster.h"
#include "topologies/import/importer.h"
#include "topologies/import/nccl_xml.h"
#include "topologies/machine_hardware.h"

namespace railyard::scenarios {
namespace {

using tests::error_of;
using tests::scenario_of;
using tests::TemporaryDirectory;

constexpr std::string_view kTraffic = "traffic: {pattern: all-to-all, size: 1MiB}\n";

std::string with_machine(const std::string& machine, const std::string& more = "") {
  return "railyard: 1\ncluster:\n  nodes: 1\n" + more + "  machine: " + machine + "\n" +
         std::string(kTraffic);
}

TEST_CASE("a machine of one's own") {
  const Scenario s = scenario_of(R"(railyard: 1
cluster:
  nodes: 1
  machine:
    name: my-node
    like: hgx-h100
    sm: 90
    cpu: {arch: x86_64, vendor: AuthenticAMD, family: 175, model: 17}
    numa: [{id: 3, cpus: "0-7"}, {}]
    switches: [{parent: cpu0}, {parent: pcie0, links: 2}]
    gpus: [{parent: pcie1}, {parent: pcie1, nvlinks: 17, link: 31.5GB/s}, {parent: cpu1}]
    nics: [{parent: pcie1, rate: 100Gb/s}, {parent: cpu1, link: 15.75GB/s}]
    nvlinks: {per_gpu: 18, rate: 20GB/s, switch: true}
    gpu_link: 60GB/s
    pcie: 61GB/s
    smp: 40GB/s
    nic: 200Gb/s
    host_bridge_per_cpu: true
traffic: {pattern: all-to-all, size: 1MiB}
)");
  CHECK(s.cluster.machine == "my-node");
  CHECK(s.profile == "h100-hgx");
  REQUIRE(s.cluster.custom.has_value());
  const topologies::MachineSpec& machine = *s.cluster.custom;
  CHECK(machine.name == "my-node");
  CHECK(machine.cpu.vendor == "AuthenticAMD");
  CHECK(machine.cpu.model == 17);
  REQUIRE(machine.numa.size() == 2);
  CHECK(machine.numa[0].id == 3);
  CHECK(machine.numa[0].cpus == "0-7");
  CHECK(machine.numa[1].id == 1);
  REQUIRE(machine.switches.size() == 2);
  CHECK(machine.switches[1].width == 2);
  CHECK(machine.switches[1].parent.is_switch);
  REQUIRE(machine.gpus.size() == 3);
  CHECK(machine.gpus[1].rate == sim::gigabytes_per_second(31.5));
  CHECK(machine.gpu_nvlinks == std::vector<std::uint16_t>{18, 17, 18});
  REQUIRE(machine.nics.size() == 2);
  CHECK(machine.nics[1].rate == sim::gigabytes_per_second(15.75));
  CHECK(machine.nic.value == sim::gigabits_per_second(200));
  CHECK(machine.nic_rates ==
        std::vector<sim::Bandwidth>{sim::gigabits_per_second(100), sim::gigabits_per_second(200)});
  CHECK(machine.nvswitch);
  CHECK(machine.nvlink.value == sim::gigabytes_per_second(20));
  CHECK(machine.gpu_host.value == sim::gigabytes_per_second(60));
  CHECK(machine.pcie.value == sim::gigabytes_per_second(61));
  CHECK(machine.smp.value == sim::gigabytes_per_second(40));
  CHECK(machine.one_host_bridge_per_cpu);
  CHECK(topologies::build(s.cluster).ok());
  // The resolved text says it all again.
  const Scenario again = scenario_of(resolved_yaml(s));
  CHECK(resolved_yaml(again) == resolved_yaml(s));
}

TEST_CASE("what is not written comes from the machine that it is like") {
  const Scenario s = scenario_of(
      with_machine("{like: gh200-4, numa: [{}], gpus: [{parent: cpu0}, {parent: cpu0}], nvlinks: "
                   "{per_gpu: 6, pairs: [[0, 1, 6]]}, c2c: {link_mbps: 45000, links: 10}}"));
  const topologies::MachineSpec& machine = *s.cluster.custom;
  CHECK(machine.name == "custom");
  CHECK(s.profile == "gh200");
  CHECK(machine.cpu.arch == "arm64");
  CHECK(machine.compute_capability == 90);
  CHECK(machine.nics.empty());
  CHECK_FALSE(machine.nvswitch);
  REQUIRE(machine.pairs.size() == 1);
  CHECK(machine.pairs[0].links == 6);
  CHECK(machine.gpu_host_class == sim::LinkClass::c2c);
  CHECK(machine.c2c->count == 10);
}

TEST_CASE("machines that cannot be are refused where they are written") {
  const auto error = [](const std::string& machine) { return error_of(with_machine(machine)); };
  CHECK(error("{numa: [{}], gpus: [{parent: cpu0}]}") ==
        "s.yaml:4:12: cluster.machine: the key 'like' is missing");
  CHECK(error("{like: hgx-h10, numa: [{}], gpus: [{parent: cpu0}]}")
            .starts_with("s.yaml:4:19: cluster.machine.like: unknown machine 'hgx-h10'; did you "
                         "mean 'hgx-h100'?"));
  CHECK(error("{like: flat, numa: [{}], gpus: [{parent: cpu0}]}") ==
        "s.yaml:4:19: cluster.machine.like: a flat machine has nothing to supply");
  CHECK(error("{like: pcie-8, gpus: [{parent: cpu0}]}") ==
        "s.yaml:4:12: cluster.machine: the key 'numa' is missing");
  CHECK(error("{like: pcie-8, numa: [{}]}") ==
        "s.yaml:4:12: cluster.machine: the key 'gpus' is missing");
  CHECK(error("{like: pcie-8, numa: [{}], gpus: [{parent: gpu1}]}") ==
        "s.yaml:4:55: cluster.machine.gpus[0].parent: 'cpu0' or 'pcie0' is expected, not 'gpu1'");
  CHECK(error("{like: pcie-8, numa: [{}], gpus: [{parent: cpu}]}") ==
        "s.yaml:4:55: cluster.machine.gpus[0].parent: 'cpu0' or 'pcie0' is expected, not 'cpu'");
  CHECK(error("{like: pcie-8, numa: [{}], gpus: [{parent: pcie0}]}") ==
        "s.yaml:4:12: cluster.machine: machine 'custom': GPU 0 hangs from PCIe switch 0, but there "
        "are 0");
  CHECK(error("{like: pcie-8, numa: [{}], gpus: [{parent: cpu0}], name: pcie-8}") ==
        "s.yaml:4:69: cluster.machine.name: 'pcie-8' is a machine of the catalogue; another name "
        "is needed");
  CHECK(error("{like: pcie-8, numa: [{}], gpus: [{parent: cpu0}], name: a b}") ==
        "s.yaml:4:69: cluster.machine.name: a name is at most 60 letters, digits, '-', '_' and "
        "'.'");
  CHECK(error("{like: pcie-8, numa: [{}], gpus: [{parent: cpu0}], fans: 3}")
            .find("unknown key 'fans'") != std::string::npos);
  CHECK(error("{like: pcie-8, numa: [{}], gpus: [{parent: cpu0, fans: 3}]}")
            .find("unknown key 'fans'") != std::string::npos);
  CHECK(error("{like: pcie-8, numa: [{}], gpus: [{parent: cpu0}], nvlinks: {per_gpu: 4, pairs: "
              "[[0, 1]]}}")
            .find("nvlinks.pairs[0]: [GPU, GPU, number of links] is expected") !=
        std::string::npos);
  CHECK(error("{like: pcie-8, numa: [{}], gpus: [{parent: cpu0, nvlinks: 2}]}")
            .find("NVLinks by GPU need an NVSwitch") != std::string::npos);
  CHECK(error("{like: pcie-8, numa: [{}], gpus: [{parent: cpu0}], nics: [{parent: cpu0, rate: "
              "0GB/s}]}")
            .ends_with("cluster.machine.nics[0].rate: must be positive"));
  CHECK(error("{like: pcie-8, numa: [{}], gpus: [{parent: cpu0, link: 0GB/s}]}")
            .ends_with("cluster.machine.gpus[0].link: must be positive"));
}

topologies::ImportedMachine import(const topologies::MachineSpec& machine,
                                   const std::string& name) {
  auto hardware = topologies::hardware_of(machine);
  REQUIRE(hardware.ok());
  auto imported = topologies::machine_of(hardware.value(), {.name = name, .like = machine.name});
  REQUIRE(imported.ok());
  return std::move(imported).value();
}

TEST_CASE("an imported machine's text is that machine") {
  for (const std::string_view name : topologies::machine_names()) {
    CAPTURE(name);
    const topologies::MachineSpec machine = topologies::find_machine(name).value();
    if (machine.flat || machine.processors_only) continue;
    const topologies::ImportedMachine imported = import(machine, "mine");
    const std::string text = cluster_yaml(imported, "topo.xml") + std::string(kTraffic);
    CAPTURE(text);
    const auto read = scenario_from_text(text, "s.yaml", {.read_files = false});
    REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().text()));
    REQUIRE(read.value().cluster.custom.has_value());
    const topologies::MachineSpec& again = *read.value().cluster.custom;
    CHECK(again.name == "mine");
    CHECK(read.value().profile == machine.profile);
    CHECK(again.compute_capability == machine.compute_capability);
    CHECK(again.cpu.family == machine.cpu.family);
    CHECK(again.one_host_bridge_per_cpu == machine.one_host_bridge_per_cpu);
    // Written once more, it is the same text: nothing is lost.
    topologies::ImportedMachine once_more = imported;
    once_more.machine = again;
    CHECK(cluster_yaml(once_more, "topo.xml") + std::string(kTraffic) == text);
  }
}

TEST_CASE("the machines of public files are scenarios' machines") {
  namespace fs = std::filesystem;
  std::size_t machines = 0;
  for (const char* folder : {"nccl-xml", "smi-topo"}) {
    const fs::path directory = fs::path(RAILYARD_SHARED_DIR) / "samples" / folder;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(directory, failed)) {
      const std::string path = entry.path().string();
      CAPTURE(path);
      const auto file = topologies::import_file(path, {.name = "mine"});
      if (!file.ok() || !file.value().machine) continue;
      ++machines;
      const topologies::ImportedMachine& imported = *file.value().machine;
      const std::string text = cluster_yaml(imported, "x") + std::string(kTraffic);
      const auto read = scenario_from_text(text, "s.yaml", {.read_files = false});
      if (imported.machine.gpus.size() < 2) continue;  // no traffic of one GPU
      REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().text()));
      topologies::ImportedMachine again = imported;
      again.machine = *read.value().cluster.custom;
      CHECK(cluster_yaml(again, "x") + std::string(kTraffic) == text);
    }
  }
  if (machines == 0) RAILYARD_SKIP("no samples");
  CHECK(machines > 80);
}

TEST_CASE("a processor without a printable name is left to the other machine") {
  topologies::ImportedMachine imported = import(topologies::find_machine("pcie-8").value(), "mine");
  imported.machine.cpu = {.arch = "\x80", .vendor = "\"\\"};
  const std::string text = cluster_yaml(imported, "x");
  CHECK(text.find("cpu: {") == std::string::npos);
  CHECK(scenario_of(text + std::string(kTraffic)).cluster.custom->cpu.vendor == "AuthenticAMD");
}

TEST_CASE("a degraded machine's text keeps what differs") {
  topologies::MachineSpec machine = topologies::find_machine("hgx-h100").value();
  machine.gpu_nvlinks = {18, 18, 17, 18, 18, 18, 18, 18};
  machine.nic_rates.assign(8, machine.nic.value);
  machine.nic_rates[5] = sim::gigabits_per_second(200);
  machine.gpus[3].rate = topologies::pcie_rate(16, 8);
  machine.name = "other";
  topologies::ImportedMachine imported;
  imported.machine = machine;
  imported.like = "hgx-h100";
  imported.assumptions = {"nothing much"};
  const std::string text = cluster_yaml(imported, "topo\n.xml");
  CHECK(text.find("# The node of topo?.xml.") == 0);
  CHECK(text.find("# Assumed: nothing much.\n") != std::string::npos);
  CHECK(text.find("nvlinks: 17}") != std::string::npos);
  const Scenario s = scenario_of(text + std::string(kTraffic));
  CHECK(s.cluster.custom->gpu_nvlinks == machine.gpu_nvlinks);
  CHECK(s.cluster.custom->nic_rates == machine.nic_rates);
  CHECK(s.cluster.custom->gpus[3].rate == machine.gpus[3].rate);
}

TEST_CASE("a topology file beside the scenario") {
  const TemporaryDirectory directory;
  const auto hardware = topologies::hardware_of(topologies::find_machine("hgx-h100").value());
  directory.write("topo.xml", topologies::write_nccl_xml(hardware.value()));
  const std::string text = "railyard: 1\ncluster: {topology_file: topo.xml, nodes: 1}\n";
  const auto read = read_scenario(directory.write("s.yaml", text + std::string(kTraffic)));
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().text()));
  const Scenario& s = read.value();
  REQUIRE(s.cluster.custom.has_value());
  CHECK(s.cluster.custom->gpus.size() == 8);
  CHECK(s.cluster.custom->hardware != nullptr);
  CHECK(s.profile == "h100-hgx");
  bool recorded = false;
  for (const SourceFile& file : s.inputs) recorded |= file.path.ends_with("topo.xml");
  CHECK(recorded);
  // The resolved text is read from anywhere.
  const TemporaryDirectory elsewhere;
  const auto again = read_scenario(elsewhere.write("resolved.yaml", resolved_yaml(s)));
  REQUIRE_MESSAGE(again.ok(), (again.ok() ? "" : again.error().text()));
  CHECK(again.value().cluster.custom->gpus.size() == 8);
  // A catalogue machine supplies the rest where one is named.
  const auto like =
      read_scenario(directory.write("like.yaml",
                                    "railyard: 1\ncluster: {topology_file: topo.xml, machine: "
                                    "hgx-h200, nodes: 1}\n" +
                                        std::string(kTraffic)));
  REQUIRE(like.ok());
  CHECK(like.value().profile == "h200-hgx");
}

TEST_CASE("topology files that cannot be used") {
  const TemporaryDirectory directory;
  const auto error = [&](const std::string& cluster) {
    return error_of(read_scenario(directory.write(
        "s.yaml", "railyard: 1\ncluster: " + cluster + "\n" + std::string(kTraffic))));
  };
  directory.write("bad.xml", "<system version=\"1\">\n<cpu/></system>");
  directory.write("none.xml", "<system version=\"1\"><cpu numaid=\"0\"/></system>");
  directory.write("other.txt", "hello");
  directory.write("graph.xml",
                  "<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" crossnic=\"0\" "
                  "nchannels=\"0\" speedintra=\"1\" speedinter=\"1\" typeintra=\"SYS\" "
                  "typeinter=\"SYS\" samechannels=\"0\"/></graphs>");
  CHECK(error("{topology_file: bad.xml, nodes: 1}").find("bad.xml:2: <cpu> has no numaid") !=
        std::string::npos);
  CHECK(error("{topology_file: none.xml, nodes: 1}")
            .find("cluster.topology_file: no GPUs in the file") != std::string::npos);
  CHECK(error("{topology_file: other.txt, nodes: 1}")
            .find("not a kind of file that is known; known: NCCL topology XML") !=
        std::string::npos);
  CHECK(error("{topology_file: graph.xml, nodes: 1}")
            .find("cluster.topology_file: the file describes no machine") != std::string::npos);
  CHECK(error("{topology_file: missing.xml, nodes: 1}").find("missing.xml") != std::string::npos);
  CHECK(error("{topology_file: none.xml, nodes: 1, machine: {like: pcie-8, numa: [{}], gpus: "
              "[{parent: cpu0}]}}")
            .find("beside topology_file, a name of the catalogue is expected") !=
        std::string::npos);
}

}  // namespace
}  // namespace railyard::scenarios
