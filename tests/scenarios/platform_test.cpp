// Platforms of published measurements as scenarios.
#include "scenarios/platform.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "scenarios/nccl_cluster.h"
#include "tests/paths.h"
#include "tests/skip.h"
#include "topologies/cluster.h"
#include "topologies/placement.h"

namespace railyard::scenarios {
namespace {

Platform platform_of(std::string_view text) {
  const auto root = parse_yaml(text, "m.yaml");
  REQUIRE_MESSAGE(root.ok(), (root.ok() ? "" : root.error().text()));
  auto platform = read_platform({root.value().find("platform"), "platform"});
  REQUIRE_MESSAGE(platform.ok(), (platform.ok() ? "" : platform.error().text()));
  return std::move(platform).value();
}

PlatformCall all_reduce(std::map<std::string, std::string> env = {}) {
  PlatformCall call;
  call.sizes = {sim::bytes(1024), sim::bytes(1 << 20)};
  call.env = std::move(env);
  return call;
}

PlatformScenario made(const Platform& platform, const PlatformCall& call = all_reduce()) {
  auto scenario = scenario_of(platform, call);
  REQUIRE_MESSAGE(scenario.ok(), (scenario.ok() ? "" : scenario.error().text()));
  return std::move(scenario).value();
}

std::string refusal(const Platform& platform) {
  const auto scenario = scenario_of(platform, all_reduce());
  return scenario.ok() ? "a scenario" : scenario.error().text();
}

std::string profile_of(const Platform& platform, std::map<std::string, std::string> env) {
  return made(platform, all_reduce(std::move(env))).scenario.profile;
}

constexpr std::string_view kP5 =
    "platform:\n  name: p5-like\n  machine: hgx-h100\n  nodes: 2\n  gpus_per_node: 8\n"
    "  processes: null\n  intra: nvswitch\n  nics_per_node: 32\n  nic_rate: \"100 Gb/s\"\n"
    "  fabric: efa\n  transport: rdma-gdr\n  nccl_used: \"2.22.3\"\n  library: nccl\n"
    "  predictable: true\n  why_not: null\n  spread: [eks]\n  assumed: [nic_rate]\n";

TEST_CASE("Slingshot: the library's variables choose how messages are matched and copied") {
  Platform p = platform_of(kP5);
  p.machine = "gh200-quad";
  p.gpus_per_node = 4;
  p.fabric = NetworkClass::slingshot;
  const std::string matching = "FI_CXI_RX_MATCH_MODE";
  CHECK(profile_of(p, {{matching, "hybrid"}, {"FI_HMEM_CUDA_USE_GDRCOPY", "0"}}) == "gh200");
  const std::string software = "gh200 + net-slingshot-software";
  CHECK(profile_of(p, {{matching, "software"}, {"FI_HMEM_CUDA_USE_GDRCOPY", "1"}}) == software);
  CHECK(profile_of(p, {{matching, "software"}, {"FI_HMEM_CUDA_USE_GDRCOPY", "0"}}) ==
        software + " + net-slingshot-cuda-copy");
  CHECK(profile_of(p, {{matching, "software"}, {"FI_CXI_RDZV_PROTO", "alt_read"}}) ==
        software + " + net-slingshot-alt-read");
  CHECK(profile_of(p, {{"FI_CXI_DISABLE_NON_INJECT_MSG_IDC", "1"}}) ==
        "gh200 + net-slingshot-no-inline");
  // The machine's own profile has the network's figures.
  const auto network_of = [&](const std::string& machine, std::map<std::string, std::string> env) {
    p.machine = machine;
    return made(p, all_reduce(std::move(env))).scenario.parameters.network;
  };
  for (const char* machine : {"gh200-quad", "a100-quad-nvlink"}) {
    CHECK(network_of(machine, {}).inline_to == sim::bytes(192));
    CHECK(network_of(machine, {}).inline_copy == sim::microseconds(12));
    CHECK(network_of(machine, {{"FI_CXI_DISABLE_NON_INJECT_MSG_IDC", "1"}}).inline_to.raw() == 0);
  }
  // Nothing of it on another network.
  p.fabric = NetworkClass::infiniband;
  CHECK(profile_of(p, {{matching, "software"}}) == "a100-quad");
  for (const auto fabric : {NetworkClass::infiniband, NetworkClass::roce, NetworkClass::efa,
                            NetworkClass::tcp, NetworkClass::tcpx, NetworkClass::tcpxo}) {
    p.fabric = fabric;
    CHECK(network_of("gh200-quad", {{matching, "software"}}).inline_to.raw() == 0);
  }
}

TEST_CASE("a platform's block is read, null as absent") {
  const Platform p5 = platform_of(kP5);
  CHECK(p5.name == "p5-like");
  CHECK(p5.nodes == 2U);
  CHECK_FALSE(p5.processes.has_value());
  CHECK(p5.nics_per_node == 32U);
  CHECK(p5.nic_rate == sim::gigabits_per_second(100));
  CHECK(p5.fabric == NetworkClass::efa);
  CHECK(p5.transport == NetworkPath::rdma_gdr);
  CHECK(p5.why_not.empty());
  CHECK(p5.spread == std::vector<std::string>{"eks"});
  CHECK(p5.notes.empty());

  const Platform odd = platform_of("platform: {machine: gb10, fabric: token-ring, intra: magic}\n");
  CHECK_FALSE(odd.fabric.has_value());
  CHECK(odd.notes == std::vector<std::string>{"intra 'magic' is not known; taken as not stated",
                                              "fabric 'token-ring' is not known; taken as not "
                                              "stated"});
  const auto bad = parse_yaml("platform: {nodes: two}\n", "m.yaml");
  CHECK(read_platform({bad.value().find("platform"), "platform"}).error().text() ==
        "m.yaml:1:19: platform.nodes: a whole number is expected, not 'two'");
}

TEST_CASE("a platform's scenario says in YAML what the platform says") {
  const PlatformScenario p5 = made(platform_of(kP5), all_reduce({{"NCCL_ALGO", "Ring"}}));
  const Scenario& s = p5.scenario;
  CHECK(s.name == "p5-like");
  CHECK(s.cluster.machine == "hgx-h100");
  CHECK(s.cluster.overrides.nics_per_node == 8U);
  CHECK(s.cluster.overrides.nic_rate == sim::gigabits_per_second(400));
  CHECK(s.cluster.fabric.kind == topologies::FabricKind::one_switch);
  CHECK(s.nccl_setup.choose);
  CHECK(s.nccl_setup.version == "2.22.3");
  CHECK(s.nccl_setup.gpudirect);
  CHECK(s.nccl_setup.env.at("NCCL_ALGO") == "Ring");
  CHECK(s.profile == "h100-hgx + net-efa");
  REQUIRE(s.collectives.size() == 1);
  CHECK(s.collectives[0].sizes.size() == 2);
  CHECK(s.ranks.gpus_per_process == 1);
  CHECK(p5.text.find("nics_per_node: 8") != std::string::npos);
  // The text is all of it.
  const auto again = scenario_from_text(p5.text, "again.yaml");
  REQUIRE(again.ok());
  CHECK(resolved_yaml(again.value()) == resolved_yaml(s));
}

TEST_CASE("processes, fewer GPUs and what connects them inside the node") {
  Platform p = platform_of(
      "platform: {name: a, machine: a40-pcie, nodes: 1, gpus_per_node: 2, processes: per-node, "
      "intra: nvlink-bridge, nics_per_node: 0, fabric: none, transport: none, library: nccl}\n");
  const Scenario bridged = made(p).scenario;
  CHECK(bridged.cluster.overrides.nvlink == topologies::NvlinkWiring::bridges);
  CHECK(bridged.cluster.overrides.nics_per_node == 0U);
  CHECK(bridged.ranks.gpus_per_node == 2);
  CHECK(bridged.ranks.gpus_per_process == 2);
  CHECK_FALSE(bridged.ranks.thread_per_gpu);
  CHECK(bridged.profile == "a40-pcie");
  CHECK(bridged.nccl_setup.version.empty());
  p.intra = Intra::shm;
  p.thread_per_gpu = true;
  const Scenario shared = made(p).scenario;
  CHECK(shared.cluster.overrides.nvlink == topologies::NvlinkWiring::as_built);
  CHECK_FALSE(shared.nccl_setup.p2p);
  CHECK(shared.ranks.thread_per_gpu);
  p.machine = "pcie-8-nvlink";
  p.intra = Intra::pcie_host;
  CHECK(made(p).scenario.cluster.overrides.nvlink == topologies::NvlinkWiring::none);
  p.machine = "l40s-pcie";
  p.intra = Intra::nvlink_bridge;
  CHECK(refusal(p).find("no NVLink bridge fits the GPUs of machine 'l40s-pcie'") !=
        std::string::npos);
}

TEST_CASE("the network: fabric, transport and the profile behind the machine's") {
  Platform p = platform_of(kP5);
  const auto scenario = [&] { return made(p).scenario; };
  p.fabric = NetworkClass::infiniband;
  CHECK(scenario().profile == "h100-hgx");
  CHECK(scenario().cluster.fabric.kind == topologies::FabricKind::rail_optimised);
  p.fabric = NetworkClass::roce;
  p.transport = NetworkPath::rdma_host;
  p.nic_measured = sim::gigabits_per_second(60);
  CHECK(scenario().profile == "h100-hgx + net-roce");
  CHECK_FALSE(scenario().nccl_setup.gpudirect);
  CHECK(scenario().nccl_setup.infiniband);
  CHECK(scenario().cluster.fabric.link_rate == sim::gigabits_per_second(60));
  p.fabric = NetworkClass::slingshot;
  p.transport = NetworkPath::tcp;
  CHECK(scenario().profile == "h100-hgx + net-tcp");
  CHECK_FALSE(scenario().nccl_setup.infiniband);
  CHECK(scenario().cluster.fabric.kind == topologies::FabricKind::dragonfly_plus);
  p.fabric = NetworkClass::tcpx;
  CHECK(scenario().profile == "h100-hgx + net-tcpx");
  CHECK(scenario().nccl_setup.infiniband);
  p.machine = "gh200-quad";
  p.gpus_per_node = 4;
  p.transport = NetworkPath::rdma_gdr;
  p.fabric = NetworkClass::slingshot;
  CHECK(scenario().profile == "gh200");
  p.fabric = NetworkClass::infiniband;
  CHECK(scenario().profile == "gh200 + net-ib");
  p.machine = "gb200-nvl72";
  p.nvlink_domain_gpus = 4;
  CHECK(scenario().cluster.overrides.nodes_per_nvlink_domain == 1U);
  p.fabric = NetworkClass::nvlink_domain;
  p.nvlink_domain_gpus = 72;
  CHECK(scenario().cluster.overrides.nodes_per_nvlink_domain == 18U);
  CHECK(scenario().cluster.fabric.kind == topologies::FabricKind::none);
  // NIC and GPU on root ports of their own: NCCL must be told.
  p = platform_of(kP5);
  p.machine = "h100-pcie";
  p.fabric = NetworkClass::infiniband;
  CHECK(scenario().nccl_setup.env ==
        std::map<std::string, std::string>{{"NCCL_NET_GDR_LEVEL", "SYS"}});
}

TEST_CASE("EFA from p5 on: a network device for the NICs of a GPU, and the plugin's variables") {
  Platform p = platform_of(kP5);  // 32 NICs of 100 Gb/s for 8 GPUs
  const Scenario striped = made(p).scenario;
  CHECK(striped.cluster.overrides.nics_per_node == 8U);
  CHECK(striped.cluster.overrides.nic_rate == sim::gigabits_per_second(400));
  CHECK(striped.nccl_setup.env.at("NCCL_BUFFSIZE") == "8388608");
  CHECK(striped.nccl_setup.env.at("NCCL_NVLS_CHUNKSIZE") == "524288");
  // p4d: four NICs for eight GPUs, one device each, nothing set.
  p.machine = "hgx-a100";
  p.nics_per_node = 4;
  const Scenario plain = made(p).scenario;
  CHECK(plain.cluster.overrides.nics_per_node == 4U);
  CHECK(plain.nccl_setup.env.empty());
}

TEST_CASE("GB10: one port is two NICs of half its rate, unless what a NIC reaches is stated") {
  Platform p = platform_of(kP5);
  p.machine = "gb10";
  p.gpus_per_node = 1;
  p.nics_per_node = 1;
  p.nic_rate = sim::gigabits_per_second(200);
  p.fabric = NetworkClass::roce;
  const auto cluster = [&p] { return made(p).scenario.cluster.overrides; };
  CHECK(cluster().nics_per_node == 2U);
  CHECK(cluster().nic_rate == sim::gigabits_per_second(100));
  p.nic_measured = sim::gigabits_per_second(108);  // of the one that was used
  CHECK(cluster().nics_per_node == 1U);
  CHECK(cluster().nic_rate == sim::gigabits_per_second(200));
  p.nic_measured.reset();
  p.nics_per_node = 2;
  CHECK(cluster().nics_per_node == 2U);
  CHECK(cluster().nic_rate == sim::gigabits_per_second(200));
  p.machine = "l40s-pcie";  // others have a NIC for a port
  p.nics_per_node = 1;
  CHECK(cluster().nics_per_node == 1U);
}

TEST_CASE("of the variables only NCCL's, without remarks and without what names the host's") {
  std::vector<std::string> notes;
  const std::map<std::string, std::string> kept =
      usable_variables(platform_of(kP5),
                       {{"command", "-b 8"},
                        {"NCCL_BUFFSIZE", "8388608 (current script)"},
                        {"NCCL_NET", "AWS Libfabric"},
                        {"NCCL_ALGO", "default (Ring; LL to 64 KB)"},
                        {"NCCL_PROTO", "as stated in file"},
                        {"NCCL_IB_HCA", "mlx5_2,mlx5_8"},
                        {"NCCL_IB_DISABLE", "1"},
                        {"NCCL_TOPO_FILE", "/etc/topo.xml"}},
                       notes);
  CHECK(kept == std::map<std::string, std::string>{{"NCCL_BUFFSIZE", "8388608"},
                                                   {"NCCL_NET", "AWS Libfabric"}});
  CHECK(notes.size() == 5);
  CHECK(std::ranges::count(notes, "NCCL_PROTO left out: 'as stated in file' is no value of it") ==
        1);
  CHECK(std::ranges::count(notes, "NCCL_IB_HCA left out: it names things of the host") == 1);
}

TEST_CASE("what a platform does not say is the reason for no scenario") {
  const auto why = [](auto&& change) {
    Platform p = platform_of(kP5);
    change(p);
    return refusal(p);
  };
  CHECK(why([](Platform& p) { p.machine = "unknown"; }) ==
        "no scenario: the machine is not stated");
  CHECK(why([](Platform& p) { p.machine = "cpu"; }) == "no scenario: there are no GPUs");
  CHECK(why([](Platform& p) { p.library = "gloo"; }) == "no scenario: the library is gloo");
  CHECK(why([](Platform& p) { p.nodes.reset(); }) ==
        "no scenario: the number of nodes is not stated");
  CHECK(why([](Platform& p) { p.gpus_per_node.reset(); }) ==
        "no scenario: the number of GPUs per node is not stated");
  CHECK(why([](Platform& p) { p.fabric.reset(); }) ==
        "no scenario: what connects the nodes is not stated");
  CHECK(why([](Platform& p) { p.fabric = NetworkClass::none; }) ==
        "no scenario: nothing connects the nodes");
  CHECK(why([](Platform& p) { p.gpus_per_node = 9; }) ==
        "no scenario: 9 GPUs take part, but machine 'hgx-h100' has 8");
  CHECK(why([](Platform& p) {
          p.nodes = 1;
          p.gpus_per_node = 1;
        }) == "no scenario: one GPU communicates with nobody");
  CHECK(why([](Platform& p) {
          p.machine = "hgx-h10";
        }).starts_with("no scenario: unknown machine 'hgx-h10'; did you mean 'hgx-h100'?"));
}

// Of one run of reference/measured.
struct Measured {
  Platform platform;
  PlatformCall call;
};

Measured read_measured(const std::string& path) {
  const auto text = read_text_file(path);
  REQUIRE(text.ok());
  const auto root = parse_yaml(text.value(), path);
  REQUIRE_MESSAGE(root.ok(), (root.ok() ? "" : root.error().text()));
  Measured out;
  auto platform = read_platform({root.value().find("platform"), "platform"});
  REQUIRE_MESSAGE(platform.ok(), (platform.ok() ? "" : platform.error().text()));
  out.platform = std::move(platform).value();
  out.call = all_reduce();
  const Node* collective = root.value().find("collective");
  if (const auto known = sim::parse_enum<sim::Collective>(collective->scalar); known.ok())
    out.call.collective = known.value();
  if (const Node* env = root.value().find("env"))
    for (const Entry& entry : env->entries) out.call.env.emplace(entry.key, entry.value.scalar);
  return out;
}

void plan(const Scenario& scenario) {
  const auto topology = topologies::build(scenario.cluster);
  REQUIRE_MESSAGE(topology.ok(), (topology.ok() ? "" : topology.error().text()));
  const auto world = topologies::place_world(topology.value(), scenario.ranks);
  REQUIRE_MESSAGE(world.ok(), (world.ok() ? "" : world.error().text()));
  const auto group = plan_group(scenario, topology.value(), world.value());
  REQUIRE_MESSAGE(group.ok(), (group.ok() ? "" : group.error().text()));
  CHECK(!planned_communicator(group.value(), topology.value(), world.value()).channels.empty());
}

TEST_CASE("every published run is a scenario that NCCL can plan, or says why it is none") {
  std::size_t files = 0;
  std::size_t scenarios = 0;
  std::set<std::string> planned;
  std::error_code failed;
  const auto directory = std::filesystem::path(RAILYARD_SHARED_DIR) / "reference" / "measured";
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string path = entry.path().string();
    CAPTURE(path);
    ++files;
    const Measured run = read_measured(path);
    CHECK(run.platform.notes.empty());
    const auto scenario = scenario_of(run.platform, run.call);
    if (!scenario.ok()) {
      CHECK(scenario.error().message.starts_with("no scenario: "));
      // Those that can be predicted lack nothing, if they are NCCL's.
      CHECK((!run.platform.predictable || run.platform.library != "nccl"));
      continue;
    }
    ++scenarios;
    if (*run.platform.nodes <= 8 && planned.insert(scenario.value().text).second)
      plan(scenario.value().scenario);
  }
  if (files == 0) RAILYARD_SKIP("no reference data");
  CHECK(scenarios * 10 > files * 8);
}

}  // namespace
}  // namespace railyard::scenarios
