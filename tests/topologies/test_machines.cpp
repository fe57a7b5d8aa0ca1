#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "tests/paths.h"
#include "tests/topologies/support.h"
#include "topologies/machine.h"

namespace railyard::topologies {
namespace {

using sim::LinkClass;
using test::build_error;
using test::cluster;
using test::must_build;

// GB/s of one direction out of a device, over the links of one class.
double rate_out(const sim::Topology& topology, sim::DeviceId device, LinkClass link_class) {
  double sum = 0;
  for (const sim::Link& link : topology.links)
    if (link.from == device && link.link_class == link_class)
      sum += sim::to_gigabytes_per_second(link.capacity);
  return sum;
}

struct Datasheet {
  const char* machine;
  std::size_t gpus;
  double nvlink;  // GB/s one way per GPU
  double host;    // PCIe or C2C of a GPU
  std::size_t nics;
  double network;  // GB/s one way of all NICs of the node
};

TEST_CASE("every machine has the datasheet's bandwidth per GPU and per node") {
  const Datasheet sheets[] = {
      {"dgx-1v", 8, 150, 15.75, 4, 50},        {"dgx-a100", 8, 300, 31.5, 8, 200},
      {"dgx-h100", 8, 450, 63, 8, 400},        {"hgx-h100", 8, 450, 63, 8, 400},
      {"hgx-h200", 8, 450, 63, 8, 400},        {"hgx-b200", 8, 900, 63, 8, 400},
      {"gb200-nvl72", 4, 900, 225, 4, 200},    {"gh200-4", 4, 450, 450, 4, 100},
      {"pcie-8", 8, 0, 31.5, 2, 50},           {"pcie-8-nvlink", 8, 300, 31.5, 2, 50},
      {"dgx-1p", 8, 80, 15.75, 4, 50},         {"dgx-2", 16, 150, 15.75, 8, 100},
      {"hgx-a100", 8, 300, 31.5, 8, 200},      {"a800-hgx", 8, 200, 31.5, 8, 200},
      {"hgx-h800", 8, 200, 63, 8, 400},        {"hgx-h20", 8, 450, 63, 8, 400},
      {"hgx-b300", 8, 900, 118, 8, 800},       {"gb300-nvl72", 4, 900, 225, 4, 400},
      {"gh200-quad", 4, 450, 450, 4, 100},     {"gh200", 1, 0, 450, 1, 50},
      {"v100-quad", 4, 150, 15.75, 4, 50},     {"a100-quad-nvlink", 4, 300, 31.5, 2, 50},
      {"h100-quad", 4, 450, 63, 4, 100},       {"h100-pcie", 8, 0, 63, 2, 100},
      {"a100-pcie", 8, 0, 31.5, 2, 50},        {"a40-pcie", 8, 0, 31.5, 2, 50},
      {"a30-pcie", 8, 0, 31.5, 2, 50},         {"a10-pcie", 8, 0, 31.5, 1, 12.5},
      {"l40s-pcie", 8, 0, 31.5, 2, 50},        {"l4-pcie", 8, 0, 31.5, 1, 12.5},
      {"t4-pcie", 8, 0, 15.75, 1, 12.5},       {"rtx6000-ada-pcie", 8, 0, 31.5, 2, 50},
      {"rtx-pro-6000-pcie", 8, 0, 63, 2, 100}, {"rtx2080ti-pcie", 8, 0, 15.75, 1, 12.5},
      {"rtx3090-pcie", 8, 0, 31.5, 1, 12.5},   {"rtx4090-pcie", 8, 0, 31.5, 1, 12.5},
      {"rtx5090-pcie", 8, 0, 63, 1, 12.5},     {"gb10", 1, 0, 300, 2, 25},
      {"v100-pcie", 8, 0, 15.75, 2, 25},       {"l40-pcie", 8, 0, 31.5, 2, 50},
      {"rtx-a6000-pcie", 8, 0, 31.5, 2, 50},   {"cpu-host", 8, 0, 31.5, 1, 3.125}};
  for (const Datasheet& sheet : sheets) {
    CAPTURE(sheet.machine);
    const auto topology = must_build(cluster(sheet.machine, 1, FabricKind::one_switch));
    const sim::Node& node = topology.nodes[0];
    REQUIRE(node.gpus.size() == sheet.gpus);
    REQUIRE(node.nics.size() == sheet.nics);
    double network = 0;
    for (const sim::DeviceId nic : node.nics) network += rate_out(topology, nic, LinkClass::nic);
    CHECK(network == doctest::Approx(sheet.network));
    for (const sim::DeviceId gpu : node.gpus) {
      CHECK(rate_out(topology, gpu, LinkClass::nvlink) == doctest::Approx(sheet.nvlink));
      const double c2c = rate_out(topology, gpu, LinkClass::c2c);  // beside a Direct NIC's PCIe
      const double host = c2c > 0 ? c2c : rate_out(topology, gpu, LinkClass::pcie);
      CHECK(host == doctest::Approx(sheet.host).epsilon(0.002));
    }
  }
}

TEST_CASE("every catalogue entry is consistent, sourced and found by its name") {
  for (const std::string_view name : machine_names()) {
    CAPTURE(name);
    const auto machine = find_machine(name);
    REQUIRE(machine.ok());
    CHECK(machine.value().name == name);
    CHECK(check_machine(machine.value()).ok());
    CHECK_FALSE(machine.value().title.empty());
    CHECK(std::filesystem::exists(std::filesystem::path(RAILYARD_SOURCE_DIR) /
                                  "scenarios/profiles" / (machine.value().profile + ".yaml")));
    for (const Rate& rate : {machine.value().nvlink, machine.value().gpu_host, machine.value().pcie,
                             machine.value().smp, machine.value().nic})
      CHECK((rate.value.raw() == 0 || !rate.source.empty()));
  }
  CHECK(find_machine("HGX-H100").ok());
}

TEST_CASE("an unknown machine is an error with the nearest name and the list") {
  const auto result = find_machine("hgx-h10");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message.find("unknown machine 'hgx-h10'; did you mean 'hgx-h100'?") == 0);
  CHECK(result.error().message.find("gb200-nvl72") != std::string::npos);
}

TEST_CASE("overrides change counts and rates") {
  auto spec = cluster("hgx-h100", 1, FabricKind::one_switch);
  spec.overrides = {
      .gpus_per_node = 4, .nics_per_node = 2, .nic_rate = sim::gigabits_per_second(200)};
  const auto topology = must_build(spec);
  const sim::Node& node = topology.nodes[0];
  CHECK(node.gpus.size() == 4);
  REQUIRE(node.nics.size() == 2);
  for (const sim::DeviceId nic : node.nics)
    CHECK(rate_out(topology, nic, LinkClass::nic) == doctest::Approx(25));
  // Spread evenly: one NIC stays on each socket (switches 0 and 4).
  CHECK(test::route_text(topology, test::must_route(topology, "node0/nic1", "node0/cpu1")) ==
        "node0/nic1->node0/pcie4 node0/pcie4->node0/cpu1");
}

// p5.48xlarge has four EFA devices beside each GPU, p4d one for two GPUs: AWS's topology files.
TEST_CASE("more and fewer NICs than the entry has spread over its switches") {
  auto spec = cluster("hgx-h100", 2, FabricKind::one_switch);
  spec.overrides = {.nics_per_node = 32, .nic_rate = sim::gigabits_per_second(100)};
  const auto p5 = must_build(spec);
  REQUIRE(p5.nodes[1].nics.size() == 32);
  const auto parent = [](const sim::Topology& topology, const std::string& nic) {
    return test::route_text(topology, test::must_route(topology, nic, "node0/cpu1"));
  };
  CHECK(parent(p5, "node0/nic3").find("node0/nic3->node0/pcie0 ") == 0);
  CHECK(parent(p5, "node0/nic4").find("node0/nic4->node0/pcie1 ") == 0);
  CHECK(parent(p5, "node0/nic31").find("node0/nic31->node0/pcie7 ") == 0);
  CHECK(rate_out(p5, p5.nodes[0].nics[31], LinkClass::nic) == doctest::Approx(12.5));

  spec.machine = "hgx-a100";
  spec.overrides = {.nics_per_node = 4, .nic_rate = sim::gigabits_per_second(100)};
  const auto p4d = must_build(spec);
  for (const char* nic : {"0", "1", "2", "3"})
    CHECK(parent(p4d, fmt::format("node0/nic{}", nic))
              .find(fmt::format("node0/nic{0}->node0/pcie{0} ", nic)) == 0);

  spec = cluster("hgx-h100", 1);
  spec.overrides.nics_per_node = 0;
  CHECK(must_build(spec).nodes[0].nics.empty());
}

TEST_CASE("cards take bridges on neighbours, or lose what NVLinks they have") {
  auto spec = cluster("a40-pcie", 1);
  spec.overrides = {.gpus_per_node = 3, .nvlink = NvlinkWiring::bridges};
  const auto bridged = must_build(spec);
  const double expected[] = {56.25, 56.25, 0};  // 112.5 GB/s both ways; the third card's is gone
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(rate_out(bridged, bridged.nodes[0].gpus[i], LinkClass::nvlink) ==
          doctest::Approx(expected[i]));
  for (const char* machine : {"gb200-nvl72", "hgx-h100", "dgx-1v", "pcie-8-nvlink"}) {
    CAPTURE(machine);
    spec = cluster(machine, 1);
    spec.overrides.nvlink = NvlinkWiring::none;
    const auto bare = must_build(spec);
    CHECK(rate_out(bare, bare.nodes[0].gpus[0], LinkClass::nvlink) == 0);
  }
}

TEST_CASE("an alias is another name of an entry") {
  for (const MachineAlias& alias : machine_aliases()) {
    CAPTURE(std::string(alias.name));
    const auto machine = find_machine(alias.name);
    REQUIRE(machine.ok());
    CHECK(machine.value().name == alias.machine);
    const auto names = machine_names();
    CHECK(std::find(names.begin(), names.end(), alias.name) == names.end());
  }
}

TEST_CASE("fewer GPUs of a cube mesh keep the links among themselves") {
  auto spec = cluster("dgx-1v", 1);
  spec.overrides.gpus_per_node = 4;
  const auto topology = must_build(spec);
  const double expected[] = {100, 100, 125, 125};  // 0: 1+1+2, 1: 1+2+1, 2: 1+2+2, 3: 2+1+2 links
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(rate_out(topology, topology.nodes[0].gpus[i], LinkClass::nvlink) ==
          doctest::Approx(expected[i]));
}

TEST_CASE("nodes of one NVLink domain share an NVSwitch") {
  const auto topology = must_build(cluster("gb200-nvl72", 20, FabricKind::fat_tree));
  std::map<std::uint32_t, int> nodes;
  for (const sim::Node& node : topology.nodes) ++nodes[node.nvlink_domain];
  CHECK(nodes == std::map<std::uint32_t, int>{{0, 18}, {1, 2}});
  const sim::DeviceId nvswitch = test::device(topology, "domain0/nvswitch0");
  CHECK(rate_out(topology, nvswitch, LinkClass::nvlink) == doctest::Approx(72 * 900));
}

TEST_CASE("overrides that do not fit the machine are refused") {
  const auto error = [](const MachineOverrides& overrides, const std::string& machine) {
    auto spec = cluster(machine, 1);
    spec.overrides = overrides;
    return build_error(spec);
  };
  CHECK(error({.gpus_per_node = 9}, "hgx-h100") ==
        "gpus_per_node is 9, but machine 'hgx-h100' has 8 GPUs");
  CHECK(error({.gpus_per_node = 0}, "hgx-h100") ==
        "gpus_per_node is 0; a node needs at least one GPU");
  CHECK(error({.gpus_per_node = 2'000'000}, "flat") ==
        "gpus_per_node is 2000000; at most 1000000 GPUs are supported");
  CHECK(error({.nics_per_node = 257}, "dgx-1v") ==
        "nics_per_node is 257; at most 256 NICs are supported");
  CHECK(error({.nics_per_node = 1}, "flat") ==
        "nics_per_node is 1, but machine 'flat' has no place for NICs");
  CHECK(error({.nvlink = NvlinkWiring::bridges}, "l40s-pcie") ==
        "no NVLink bridge fits the GPUs of machine 'l40s-pcie'");
  CHECK(error({.nic_rate = sim::Bandwidth()}, "dgx-1v") == "nic_rate must be positive");
  CHECK(error({.nodes_per_nvlink_domain = 2}, "dgx-1v") ==
        "machine 'dgx-1v' has no NVSwitch that nodes could share");
  CHECK(error({.nodes_per_nvlink_domain = 0}, "hgx-h100") ==
        "nodes_per_nvlink_domain is 0; 1 = no NVLink between nodes");
}

TEST_CASE("a machine that contradicts itself is refused") {
  const MachineSpec good = find_machine("pcie-8-nvlink").value();
  const auto error = [&](auto&& change) {
    ClusterSpec spec;
    spec.custom = good;
    change(*spec.custom);
    return build_error(spec);
  };
  CHECK(error([](MachineSpec&) {}).empty());
  CHECK(error([](MachineSpec& m) { m.gpus.clear(); }) == "machine 'pcie-8-nvlink' has no GPUs");
  CHECK(error([](MachineSpec& m) { m.gpus[3] = at_switch(4); }) ==
        "machine 'pcie-8-nvlink': GPU 3 hangs from PCIe switch 4, but there are 4");
  CHECK(error([](MachineSpec& m) { m.nics[1] = at_cpu(2); }) ==
        "machine 'pcie-8-nvlink': NIC 1 hangs from CPU 2, but there are 2");
  CHECK(error([](MachineSpec& m) { m.switches[1].parent = at_switch(2); }) ==
        "machine 'pcie-8-nvlink': PCIe switch 1 must come after its parent 2");
  CHECK(error([](MachineSpec& m) { m.switches[1].width = 0; }) ==
        "machine 'pcie-8-nvlink': PCIe switch 1 has no links to its parent");
  CHECK(error([](MachineSpec& m) { m.nvswitch = true; }) ==
        "machine 'pcie-8-nvlink' has NVLink pairs and an NVSwitch; choose one");
  CHECK(error([](MachineSpec& m) { m.pairs[0].b = 0; }) ==
        "machine 'pcie-8-nvlink': bad NVLink pair 0 - 0 (12 links)");
  CHECK(error([](MachineSpec& m) {
          m.pairs.push_back({0, 2, 1});
        }) == "machine 'pcie-8-nvlink': GPU 0 uses 13 NVLinks of 12");
  CHECK(error([](MachineSpec& m) { m.smp = {}; }) ==
        "machine 'pcie-8-nvlink': the smp rate is missing");
  CHECK(error([](MachineSpec& m) { m.flat = true; }) ==
        "machine 'pcie-8-nvlink' is flat: it cannot have NICs or NVLinks");
  CHECK(error([](MachineSpec& m) { m.nodes_per_nvlink_domain = 2; }) ==
        "machine 'pcie-8-nvlink': 2 nodes cannot share NVLink without an NVSwitch");
  CHECK(error([](MachineSpec& m) { m.gpus.resize(2000, at_cpu(0)); }) ==
        "machine 'pcie-8-nvlink' has 2008 devices in a node; at most 1024 are supported");
}

}  // namespace
}  // namespace railyard::topologies
