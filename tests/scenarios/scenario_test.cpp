#include "scenarios/scenario.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/scenarios/helpers.h"

namespace railyard::scenarios {
namespace {

using tests::error_of;
using tests::scenario_of;
using tests::with;

constexpr std::string_view kNccl = "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\n";
constexpr std::string_view kRun = "collectives: [{collective: AllReduce, sizes: [1MiB]}]\n";

// Errors start with "s.yaml:" and the place; collectives are line 5 of these, other blocks line 6.
std::string with_run(std::string_view more) {
  return with(std::string(kNccl) + std::string(kRun) + std::string(more));
}

TEST_CASE("a whole scenario") {
  const Scenario s = scenario_of(R"(railyard: 1
name: all keys
description: of the first blocks
seed: 7
cluster:
  machine: hgx-h100
  nodes: 4
  gpus_per_node: 4
  nics_per_node: 2
  nic_rate: 200Gb/s
  fabric: {kind: fat-tree, routing: static, levels: 3, hosts_per_leaf: 2, oversubscription: 1.5,
           hosts_per_pod: 4, link_rate: 200Gb/s, link_latency: 1us}
  disable: ["node1/nic0"]
  slow: [{link: "leaf/*", speed: 0.5}, {link: "node0/nic1", extra_latency: 2us}]
ranks:
  order: round-robin
  nodes: [3, 1]
  groups: {tp: {size: 2}, odd: [1, 3]}
nccl:
  - {up_to: 64KiB, algorithm: tree, protocol: ll, channels: 2}
  - {algorithm: Ring, protocol: LL128, channels: 8}
collectives:
  - {collective: allgather, sizes: {from: 1KiB, to: 8KiB, factor: 2}, dtype: bf16, group: tp}
  - {collective: Broadcast, sizes: [3B, 5MB], root: 1, group: odd}
traffic: [{from: 0, to: 1, size: 1MiB, start: 5us}, {pattern: incast, size: 1KiB, to: 2, count: 1}]
engine: {credits: false, replay: false, trace: messages}
parameters: {links: {nvlink: {efficiency: 0.5}}}
)");
  CHECK(s.name == "all keys");
  CHECK(s.seed == 7);
  CHECK(s.cluster.machine == "hgx-h100");
  CHECK(s.cluster.nodes == 4);
  CHECK(s.cluster.overrides.gpus_per_node == 4U);
  CHECK(s.cluster.overrides.nic_rate == sim::gigabits_per_second(200));
  CHECK(s.cluster.fabric.kind == topologies::FabricKind::fat_tree);
  CHECK(s.cluster.fabric.routing == topologies::FabricRouting::destination);
  CHECK(s.cluster.fabric.oversubscription == 1.5);
  REQUIRE(s.cluster.changes.size() == 3);
  CHECK(s.cluster.changes[0].disable);
  CHECK(s.cluster.changes[1].speed == 0.5);
  CHECK(s.cluster.changes[2].extra_latency == sim::microseconds(2));
  CHECK(s.ranks.order == topologies::PlacementOrder::round_robin);
  CHECK(s.ranks.nodes == std::vector<std::uint32_t>{3, 1});
  REQUIRE(s.groups.size() == 2);
  CHECK(s.groups[0].division->size == 2);
  CHECK(s.groups[1].ranks == std::vector<std::uint32_t>{1, 3});
  REQUIRE(s.nccl.size() == 2);
  CHECK(s.nccl[0].up_to == sim::bytes(65536));
  CHECK(s.nccl[0].algorithm == sim::Algorithm::tree);
  CHECK(s.nccl[1].channels == 8);
  REQUIRE(s.collectives.size() == 2);
  CHECK(s.collectives[0].sizes.size() == 4);
  CHECK(s.collectives[0].sizes.back() == sim::bytes(8192));
  CHECK(s.collectives[0].dtype == models::Dtype::bf16);
  CHECK(s.collectives[1].sizes[1] == sim::bytes(5'000'000));
  CHECK(s.traffic.flows == std::vector<Flow>{{0, 1, sim::bytes(1 << 20), sim::microseconds(5)}});
  CHECK(s.traffic.patterns.at(0).pattern == Pattern::incast);
  CHECK_FALSE(s.engine.credits);
  CHECK(s.engine.trace == TraceDetail::messages);
  CHECK(s.profile == "h100-hgx");
  CHECK(s.parameters.link(sim::LinkClass::nvlink).efficiency == 0.5);
}

TEST_CASE("defaults") {
  const Scenario s = scenario_of(with_run(""));
  CHECK(s.name == "s");
  CHECK(s.seed == 1);
  CHECK(s.engine.credits);
  CHECK(s.engine.replay);
  CHECK(s.collectives[0].group == "world");
  CHECK(s.collectives[0].dtype == models::Dtype::fp32);
  CHECK_FALSE(s.explore);
}

TEST_CASE("the top of a scenario") {
  CHECK(error_of("a: 1") ==
        "s.yaml:1:1: unknown key 'a' (keys: railyard, name, description, seed, "
        "cluster, ranks, nccl, backend, env, collectives, ddp, fsdp, fsdp1, megatron, zero, "
        "data_parallel, horovod, local_sgd, replay, kv, traffic, faults, host, "
        "engine, "
        "explore, "
        "profile, parameters)");
  CHECK(error_of("name: x") == "s.yaml:1:1: the key 'railyard' is missing");
  CHECK(error_of("railyard: 2") == "s.yaml:1:11: railyard: 2 is out of range (1 to 1)");
  CHECK(error_of("railyard: 1") == "s.yaml:1:1: the key 'cluster' is missing");
  CHECK(error_of("[]") == "s.yaml:1:1: a map of keys and values is expected");
  CHECK(error_of(with_run("seed: -1")) ==
        "s.yaml:6:7: seed: -1 is out of range (0 to 9007199254740992)");
  CHECK(error_of(with_run("colectives: []"))
            .starts_with("s.yaml:6:1: unknown key 'colectives'; did you mean 'collectives'?"));
  CHECK(error_of(with_run("engine:")) == "s.yaml:6:1: engine: the key has no value");
  CHECK(error_of(with_run("engine: {replay: yes}")) ==
        "s.yaml:6:18: engine.replay: true or false is expected, not 'yes'");
  CHECK(error_of(with_run("include: x.yaml")) == "s.yaml:6:10: include: is not allowed here");
}

TEST_CASE("exactly one workload") {
  CHECK(
      error_of(with("")) ==
      "s.yaml:1:1: a workload is missing: one of 'ddp', 'collectives', 'fsdp', 'fsdp1', "
      "'megatron', 'zero', 'data_parallel', 'horovod', 'local_sgd', 'replay', 'kv' and 'traffic'");
  CHECK(error_of(with_run("ddp: {model: resnet50, batch_per_gpu: 1, precision: fp32, "
                          "optimizer: sgd}"))
            .starts_with("s.yaml:1:1: one workload is expected: 'ddp' and 'collectives' exclude"));
  CHECK(error_of(with(kRun))
            .starts_with(
                "s.yaml:1:1: the key 'nccl' is missing: 'nccl: auto' lets NCCL's rules choose"));
  CHECK(error_of(with("traffic: {pattern: all-to-all, size: 1MiB}")) == "no error");
}

TEST_CASE("cluster: absurd values and misspelt names") {
  const auto cluster = [](std::string_view block) {
    return error_of("railyard: 1\ncluster: " + std::string(block) +
                    "\ntraffic: {pattern: all-to-all, size: 1MiB}");
  };
  CHECK(cluster("{machine: hgx-h100, nodes: 2}") == "no error");
  CHECK(cluster("{machine: hgx-h100}") == "s.yaml:2:10: cluster: the key 'nodes' is missing");
  CHECK(cluster("{machine: hgx-h100, nodes: 0}") ==
        "s.yaml:2:37: cluster.nodes: 0 is out of range (1 to 1000000)");
  CHECK(cluster("{machine: hgx-h100, nodes: -3}") ==
        "s.yaml:2:37: cluster.nodes: -3 is out of range (1 to 1000000)");
  CHECK(cluster("{machine: hgx-h100, nodes: 2.5}") ==
        "s.yaml:2:37: cluster.nodes: a whole number is expected, not '2.5'");
  CHECK(cluster("{machine: hgx-h100, nodes: '2'}") ==
        "s.yaml:2:37: cluster.nodes: a whole number is expected, not text in quotes");
  CHECK(cluster("{machine: hgx-h100, nodes: [2]}") ==
        "s.yaml:2:37: cluster.nodes: a whole number is expected, not a list");
  CHECK(cluster("{machine: hgx-h100, nodes: 99999999999999999999}") ==
        "s.yaml:2:37: cluster.nodes: a whole number is expected, not '99999999999999999999'");
  CHECK(cluster("{machine: hgx-h100, nodes: 200000}") ==
        "s.yaml:2:10: cluster: 200000 nodes of 8 GPUs are 1600000 GPUs; at most 1000000 can be "
        "simulated");
  CHECK(cluster("{machine: hgx-h10, nodes: 2}").starts_with("s.yaml:2:20: cluster.machine: "));
  CHECK(cluster("{machine: hgx-h10, nodes: 2}").find("hgx-h100") != std::string::npos);
  CHECK(cluster("{machine: hgx-h100, nodes: 1, gpus_per_node: 9}")
            .starts_with("s.yaml:2:10: cluster: "));
  CHECK(cluster("{machine: hgx-h100, nodes: 2, nod: 1}")
            .starts_with("s.yaml:2:40: cluster: unknown key 'nod'; did you mean 'nodes'?"));
  CHECK(cluster("{machine: hgx-h100, nodes: 2, fabric: {kind: fat-tee}}")
            .starts_with("s.yaml:2:55: cluster.fabric.kind: unknown fabric 'fat-tee'; did you mean "
                         "'fat-tree'?"));
  CHECK(cluster("{machine: hgx-h100, nodes: 2, fabric: {levels: 2}}") ==
        "s.yaml:2:48: cluster.fabric: the key 'kind' is missing");
  CHECK(
      cluster("{machine: hgx-h100, nodes: 2, fabric: {kind: switch, link_rate: 400}}")
          .starts_with("s.yaml:2:74: cluster.fabric.link_rate: '400' is not a bandwidth: the unit "
                       "is missing"));
  CHECK(
      cluster("{machine: hgx-h100, nodes: 2, fabric: {kind: fat-tree, oversubscription: .nan}}") ==
      "s.yaml:2:83: cluster.fabric.oversubscription: a number is expected, not '.nan'");
  CHECK(cluster("{machine: hgx-h100, nodes: 2, fabric: {kind: fat-tree, oversubscription: nan}}") ==
        "s.yaml:2:83: cluster.fabric.oversubscription: a number is expected, not 'nan'");
  CHECK(cluster("{machine: hgx-h100, nodes: 2, slow: [{link: x}]}") ==
        "s.yaml:2:47: cluster.slow[0]: 'speed', 'extra_latency' or 'pcie' is expected");
  CHECK(cluster("{machine: hgx-h100, nodes: 2, slow: [{link: x, speed: 0}]}") ==
        "s.yaml:2:64: cluster.slow[0].speed: 0 is out of range (1e-06 to 1)");
  CHECK(cluster("{machine: hgx-h100, nodes: 2, disable: x}") ==
        "s.yaml:2:49: cluster.disable: a list is expected, not a single value");
}

TEST_CASE("ranks and groups") {
  CHECK(error_of(with_run("ranks: {order: hostmajor}"))
            .starts_with("s.yaml:6:16: ranks.order: unknown placement order 'hostmajor'; did you "
                         "mean 'host-major'?"));
  CHECK(error_of(with_run("ranks: {gpus: [0, -1]}")) ==
        "s.yaml:6:19: ranks.gpus[1]: -1 is out of range (0 to 4294967295)");
  CHECK(error_of(with_run("ranks: {gpus: [0], gpus_per_node: 1}")) ==
        "s.yaml:6:8: ranks: 'gpus' and 'gpus_per_node' exclude each other");
  CHECK(error_of(with_run("ranks: {groups: {world: [0]}}")) ==
        "s.yaml:6:25: ranks.groups.world: 'world' is the group of all ranks already");
  CHECK(error_of(with_run("ranks: {groups: {a: [0, 1, 0]}}")) ==
        "s.yaml:6:21: ranks.groups.a: rank 0 is listed twice");
  CHECK(error_of(with_run("ranks: {groups: {a: []}}")) ==
        "s.yaml:6:21: ranks.groups.a: a group has at least one rank");
  CHECK(error_of(with_run("ranks: {groups: {a: 4}}")) ==
        "s.yaml:6:21: ranks.groups.a: a list of ranks or {size: ..., stride: ...} is expected");
  CHECK(error_of(with_run("ranks: {groups: {a: {stride: 4}}}")) ==
        "s.yaml:6:21: ranks.groups.a: the key 'size' is missing");
  CHECK(
      error_of(with(std::string(kNccl) + "ranks: {groups: {pairs: {size: 2}}}\ncollectives: "
                                         "[{collective: AllReduce, sizes: [1B], group: pears}]")) ==
      "s.yaml:6:15: collectives[0]: no group 'pears' in ranks.groups; did you mean 'pairs'? "
      "(groups: world, pairs)");
}

TEST_CASE("nccl: named choices, and auto") {
  const auto nccl = [](std::string_view block) {
    return error_of(with("nccl: " + std::string(block) + "\n" + std::string(kRun)));
  };
  const std::string chooser =
      "NCCL chooses all or nothing: 'nccl: auto', with NCCL_ALGO and NCCL_PROTO in 'env:' to "
      "narrow "
      "the choice";
  CHECK(nccl("{algorithm: auto, protocol: LL, channels: 2}") ==
        "s.yaml:4:19: nccl.algorithm: " + chooser);
  CHECK(nccl("[{algorithm: Ring, protocol: AUTO, channels: 2}]") ==
        "s.yaml:4:36: nccl[0].protocol: " + chooser);
  CHECK(nccl("{choice: best}") == "s.yaml:4:16: nccl.choice: 'auto' is expected");
  CHECK(nccl("Ring") ==
        "s.yaml:4:7: nccl: 'auto', {choice: auto, ...}, {algorithm: ..., protocol: ..., channels: "
        "...} or a list of the latter is expected");
  CHECK(nccl("{algorithm: Ring, protocol: LL}") ==
        "s.yaml:4:7: nccl: the key 'channels' is missing");
  CHECK(nccl("{algorithm: Ring, protocol: LL, channels: 65}") ==
        "s.yaml:4:49: nccl.channels: 65 is out of range (1 to 64)");
  CHECK(nccl("{algorithm: Rig, protocol: LL, channels: 6}")
            .starts_with(
                "s.yaml:4:19: nccl.algorithm: unknown algorithm 'Rig'; did you mean 'Ring'?"));
  CHECK(nccl("{up_to: 1KiB, algorithm: Ring, protocol: LL, channels: 6}") ==
        "s.yaml:4:7: nccl: 'up_to' belongs to a list of choices by size");
  const std::string one = "algorithm: Ring, protocol: LL, channels: 6}";
  CHECK(nccl("[]") == "s.yaml:4:7: nccl: the list is empty");
  CHECK(nccl("[{up_to: 1KiB, " + one + "]") ==
        "s.yaml:4:8: nccl[0]: the last entry serves all larger sizes: it has no 'up_to'");
  CHECK(nccl("[{" + one + ", {" + one + "]") ==
        "s.yaml:4:8: nccl[0]: every entry but the last needs 'up_to'");
  CHECK(nccl("[{up_to: 2KiB, " + one + ", {up_to: 1KiB, " + one + ", {" + one + "]") ==
        "s.yaml:4:67: nccl[1]: 'up_to' must grow from entry to entry");
}

TEST_CASE("collectives: sizes, roots") {
  const auto run = [](std::string_view entry) {
    return error_of(with(std::string(kNccl) + "collectives: [" + std::string(entry) + "]"));
  };
  CHECK(
      run("{collective: AllReduc, sizes: [1B]}")
          .starts_with("s.yaml:5:28: collectives[0].collective: unknown collective 'AllReduc'; did "
                       "you mean 'AllReduce'?"));
  CHECK(run("{collective: AllReduce}") ==
        "s.yaml:5:15: collectives[0]: the key 'sizes' is missing");
  CHECK(run("{collective: AllReduce, sizes: [1024]}")
            .starts_with("s.yaml:5:47: collectives[0].sizes[0]: '1024' is not a size: the unit is "
                         "missing"));
  CHECK(run("{collective: AllReduce, sizes: [0B]}") ==
        "s.yaml:5:47: collectives[0].sizes[0]: a size must be positive");
  CHECK(run("{collective: AllReduce, sizes: [9000TiB]}") ==
        "s.yaml:5:47: collectives[0].sizes[0]: a size is at most 2^53 B (8 PiB)");
  CHECK(run("{collective: AllReduce, sizes: []}") ==
        "s.yaml:5:46: collectives[0].sizes: the list is empty");
  CHECK(run("{collective: AllReduce, sizes: 1MiB}") ==
        "s.yaml:5:46: collectives[0].sizes: a list of sizes or {from: 8B, to: 1GiB, factor: 2} is "
        "expected");
  CHECK(run("{collective: AllReduce, sizes: {from: 8B, to: 4B, factor: 2}}") ==
        "s.yaml:5:46: collectives[0].sizes: 0 < from <= to is expected");
  CHECK(run("{collective: AllReduce, sizes: {from: 8B, to: 40B}}") ==
        "s.yaml:5:46: collectives[0].sizes: one of 'factor' and 'step' is expected");
  CHECK(run("{collective: AllReduce, sizes: {from: 8B, to: 40B, factor: 1}}") ==
        "s.yaml:5:74: collectives[0].sizes.factor: 1 is out of range (2 to 1000000)");
  CHECK(run("{collective: AllReduce, sizes: {from: 1B, to: 1GiB, step: 1B}}") ==
        "s.yaml:5:46: collectives[0].sizes: more than 10000 sizes");
  CHECK(run("{collective: AllReduce, sizes: [1B], root: 3}") ==
        "s.yaml:5:15: collectives[0]: 'root' belongs to Broadcast, Reduce, Gather and Scatter");
  const Scenario s = scenario_of(
      with(std::string(kNccl) +
           "collectives: [{collective: AllReduce, sizes: {from: 1PB, to: 8PB, factor: 1000000}},\n"
           "              {collective: AllReduce, sizes: {from: 4B, to: 13B, step: 4B}}]"),
      {"collectives.0.sizes.from=1TB", "collectives.0.sizes.to=2TB"});
  CHECK(s.collectives[0].sizes.size() == 1);
  CHECK(s.collectives[1].sizes.back() == sim::bytes(12));
}

TEST_CASE("traffic") {
  const auto traffic = [](std::string_view block) {
    return error_of(with("traffic: " + std::string(block)));
  };
  CHECK(traffic("3") == "s.yaml:4:10: traffic: a list of flows, or one pattern, is expected");
  CHECK(traffic("[{from: 1, to: 1, size: 1B}]") ==
        "s.yaml:4:11: traffic[0]: 'from' and 'to' are the same rank");
  CHECK(traffic("[{from: 1, to: 2, size: 0B}]") ==
        "s.yaml:4:11: traffic[0]: a size must be positive");
  CHECK(traffic("{pattern: all, size: 1B}")
            .starts_with("s.yaml:4:20: traffic.pattern: unknown traffic pattern 'all'"));
  CHECK(traffic("{pattern: all-to-all, size: 1B, spread: 1}") ==
        "s.yaml:4:50: traffic.spread: 1 is out of range (0 to 0.99)");
  CHECK(traffic("{pattern: uniform, size: 1B}") ==
        "s.yaml:4:10: traffic: the pattern uniform needs 'count'");
  CHECK(traffic("{pattern: permutation, size: 1B, count: 2}") ==
        "s.yaml:4:10: traffic: 'count' belongs to the patterns incast and uniform");
  CHECK(traffic("{pattern: uniform, size: 1B, count: 2, to: 2}") ==
        "s.yaml:4:10: traffic: 'to' belongs to the pattern incast");
}

TEST_CASE("--set is applied before decoding and named in errors") {
  const Scenario s = scenario_of(
      with_run(""), {"cluster.nodes=16", "name=other", "seed=3", "collectives.0.sizes=[2MiB, 3MiB]",
                     "cluster.fabric.link_rate=200Gb/s"});
  CHECK(s.cluster.nodes == 16);
  CHECK(s.name == "other");
  CHECK(s.seed == 3);
  CHECK(s.collectives[0].sizes.size() == 2);
  CHECK(error_of(with_run(""), {"cluster.nodes=0"}) ==
        "--set cluster.nodes=0: cluster.nodes: 0 is out of range (1 to 1000000)");
  CHECK(error_of(with_run(""), {"cluter.nodes=1"})
            .starts_with("--set cluter.nodes=1: unknown key 'cluter'; did you mean 'cluster'?"));
  CHECK(error_of(with_run(""), {"nccl.algorithm=auto"})
            .starts_with("--set nccl.algorithm=auto: nccl.algorithm: NCCL chooses all or nothing"));
  CHECK(error_of(with_run(""), {"nodes"}) ==
        "--set nodes: key=value is expected, for instance cluster.nodes=8");
}

TEST_CASE("the resolved text is a scenario that says the same") {
  const Scenario s = scenario_of(with_run("# comment\nengine: {trace: none}"), {"cluster.nodes=3"});
  const std::string text = resolved_yaml(s);
  const Scenario again = scenario_of(text);
  CHECK(resolved_yaml(again) == text);
  CHECK(again.cluster.nodes == 3);
  CHECK(again.profile == s.profile);
  CHECK(text.find("profile: h100-hgx") != std::string::npos);
  CHECK(text.find("include") == std::string::npos);
}

TEST_CASE("errors stay on one line, whatever the file holds") {
  for (const std::string_view text :
       {"railyard: \"1\\n2\"", "\"a\\nb\": 1", "railyard: 1\nname: [\"x\\ny\"]",
        "railyard: 1\ncluster: {machine: \"h\\n\\x01x\", nodes: 1}\ntraffic: []"}) {
    const std::string error = error_of(text);
    CHECK(error != "no error");
    CHECK(error.find('\n') == std::string::npos);
    CHECK(error.find('\x01') == std::string::npos);
  }
  CHECK(error_of("railyard: 1\nname: " + std::string(5000, 'x')).size() < 1000);
  CHECK(error_of(std::string(5000, 'x') + ": 1").size() < 1000);
}

TEST_CASE("nccl: auto takes a version, what is missing, and NCCL's variables") {
  const auto scenario = scenario_from_text(
      with("nccl: {choice: auto, version: 2.28.9, gpudirect: false, collnet: true}\n"
           "env: {NCCL_ALGO: 'allreduce:tree', NCCL_CROSS_NIC: 0}\n" +
           std::string(kRun)),
      "s.yaml");
  REQUIRE_MESSAGE(scenario.ok(), scenario.error().text());
  const NcclSetup& setup = scenario.value().nccl_setup;
  CHECK(setup.choose);
  CHECK(setup.version == "2.28.9");
  CHECK_FALSE(setup.gpudirect);
  CHECK(setup.collnet);
  CHECK(setup.infiniband);
  CHECK(setup.env.at("NCCL_ALGO") == "allreduce:tree");
  CHECK(setup.env.at("NCCL_CROSS_NIC") == "0");
  CHECK(scenario.value().nccl.empty());

  const auto env = [](std::string_view block) {
    return error_of(with("nccl: auto\nenv: " + std::string(block) + "\n" + std::string(kRun)));
  };
  CHECK(env("{CUDA_VISIBLE_DEVICES: 0}") ==
        "s.yaml:5:29: env.CUDA_VISIBLE_DEVICES: only NCCL_* variables are expected");
  CHECK(env("{NCCL_ALGO: [Ring]}") == "s.yaml:5:18: env.NCCL_ALGO: a text or number is expected");
  CHECK(error_of(with(std::string(kNccl) + "env: {NCCL_ALGO: Ring}\n" + std::string(kRun))) ==
        "s.yaml:5:6: env: NCCL's variables steer NCCL's choice: they need 'nccl: auto'");
}

}  // namespace
}  // namespace railyard::scenarios
