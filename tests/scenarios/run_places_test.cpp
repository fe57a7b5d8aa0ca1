// What only the built cluster can tell to be wrong is still said with its line.
#include <doctest/doctest.h>

#include "scenarios/run.h"
#include "scenarios/where.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using tests::error_of_run;
using tests::full_scenario;

// Line 2 is the cluster of 16 ranks, line 3 NCCL's choice, line 4 the first of `rest`.
Scenario sixteen(const std::string& rest, const std::string& cluster = "") {
  return full_scenario(
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch}" + cluster +
      "}\nnccl: {algorithm: Ring, protocol: LL128, channels: 8}\n" + rest);
}

// The same from a run and from the estimate that comes before it.
std::string error_in(const Scenario& scenario) {
  const std::string error = error_of_run(scenario);
  const auto estimated = estimate(scenario);
  CHECK((estimated.ok() ? "no error" : estimated.error().text()) == error);
  return error;
}

const std::string kReduce = "collectives: [{collective: AllReduce, sizes: [1MiB], group: g}]\n";

TEST_CASE("groups: what does not fit the world") {
  CHECK(error_in(sixteen("ranks: {groups: {g: [0, 3, 16]}}\n" + kReduce)) ==
        "s.yaml:4:28: ranks.groups.g[2]: rank 16 is not in the world of 16 ranks");
  CHECK(error_in(sixteen("ranks: {groups: {g: {size: 3}}}\n" + kReduce)) ==
        "s.yaml:4:21: ranks.groups.g: group 'g': the world's 16 ranks do not divide by size 3 x "
        "stride 1 = 3");
  CHECK(error_in(sixteen("ranks:\n  groups:\n    g:\n      size: 17\n" + kReduce)) ==
        "s.yaml:7:7: ranks.groups.g: group 'g': size 17 exceeds the world's 16 ranks");
}

TEST_CASE("roots: outside the group of the call") {
  CHECK(error_in(sixteen("collectives:\n  - {collective: AllReduce, sizes: [1MiB]}\n"
                         "  - {collective: Broadcast, sizes: [1MiB], root: 16}\n")) ==
        "s.yaml:6:50: collectives[1].root: root 16 of a group of 16 ranks; expected 0 to 15");
  CHECK(
      error_in(sixteen("ranks: {groups: {g: {size: 4}}}\n"
                       "collectives: [{collective: Reduce, sizes: [8B], root: 4, group: g}]\n")) ==
      "s.yaml:5:55: collectives[0].root: root 4 of a group of 4 ranks; expected 0 to 3");
}

TEST_CASE("ranks: more than there are GPUs") {
  const std::string all = "collectives: [{collective: AllReduce, sizes: [1MiB]}]\n";
  CHECK(error_in(sixteen("ranks: {count: 17}\n" + all))
            .starts_with("s.yaml:4:16: ranks.count: the world has 17 ranks, but "));
  CHECK(error_in(sixteen("ranks: {nodes: [0, 5]}\n" + all))
            .starts_with("s.yaml:4:16: ranks.nodes: placement.nodes names node 5"));
  CHECK(error_in(sixteen("ranks: {gpus_per_node: 9}\n" + all))
            .starts_with("s.yaml:4:24: ranks.gpus_per_node: placement.gpus_per_node is 9"));
}

TEST_CASE("cluster: links and fabrics that cannot be") {
  const std::string all = "collectives: [{collective: AllReduce, sizes: [1MiB]}]\n";
  CHECK(error_in(sixteen(all, ", disable: [node0/nic0, node9/nic0]"))
            .starts_with("s.yaml:2:86: cluster.disable[1]: link change 'node9/nic0': no device"));
  CHECK(error_in(sixteen(all, ", slow: [{link: spine/0, speed: 0.5}]"))
            .starts_with("s.yaml:2:78: cluster.slow[0].link: link change 'spine/0': no device"));
  CHECK(error_in(full_scenario("railyard: 1\ncluster: {machine: hgx-h100, nodes: 2,\n  fabric: "
                               "{kind: switch, rails: 9}}\ntraffic: {from: 0, to: 1, size: 1B}\n"))
            .starts_with("s.yaml:3:33: cluster.fabric.rails: fabric.rails is 9, but"));
}

TEST_CASE("nccl: a protocol that a call does not have") {
  CHECK(error_in(sixteen("collectives: [{collective: AllToAll, sizes: [1MiB]}]\n"))
            .starts_with("s.yaml:3:35: nccl.protocol: AllToAll is made of sends and receives"));
}

TEST_CASE("traffic: flows and patterns are counted as they are listed") {
  const auto traffic = [](const std::string& text) {
    return error_in(full_scenario(
        "railyard: 1\ncluster: {machine: flat, nodes: 8, fabric: {kind: switch}}\n" + text));
  };
  CHECK(traffic("traffic: {from: 8, to: 1, size: 1B}\n") ==
        "s.yaml:3:10: traffic: a flow from rank 8 to rank 1: there are 8 ranks");
  const std::string mixed =
      "traffic:\n  - {pattern: all-to-all, size: 1MiB}\n  - {from: 0, to: 1, size: 1B}\n";
  CHECK(traffic(mixed + "  - {from: 0, to: 9, size: 1B}\n") ==
        "s.yaml:6:5: traffic[2]: a flow from rank 0 to rank 9: there are 8 ranks");
  CHECK(traffic(mixed + "  - {pattern: incast, to: 9, size: 1MiB}\n") ==
        "s.yaml:6:5: traffic[2]: incast to rank 9: there are 8 ranks");
}

TEST_CASE("ddp: a batch whose work cannot be counted") {
  CHECK(error_of_run(sixteen("ddp: {model: {parameters: [{name: w, elements: 1}], layers: [{name: "
                             "a, kind: gemm,\n      parameters: [w], forward_flops: 1e18}]},\n"
                             "      batch_per_gpu: 1000, precision: fp32, optimizer: sgd}\n"))
            .starts_with("s.yaml:6:22: ddp.batch_per_gpu: batch_per_gpu 1000 is too large"));
}

TEST_CASE("where: the nearest that was written") {
  const Scenario scenario = sixteen("ranks: {groups: {g: [0, 1]}}\n" + kReduce);
  CHECK(where(scenario, "ranks.groups.g[1]").error("x").text() ==
        "s.yaml:4:25: ranks.groups.g[1]: x");
  CHECK(where(scenario, "ranks.groups.g[7].more").path == "ranks.groups.g");
  CHECK(where(scenario, "ranks.count").path == "ranks");
  CHECK(where(scenario, "collectives[0].sizes[0]").error("x").text() ==
        "s.yaml:5:47: collectives[0].sizes[0]: x");
  Scenario made;
  CHECK(where(made, "ddp.model").error("x").text() == "ddp.model: x");
}

}  // namespace
}  // namespace railyard::scenarios
