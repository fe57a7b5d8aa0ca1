#include "scenarios/explore.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/scenarios/helpers.h"

namespace railyard::scenarios {
namespace {

using tests::error_of;
using tests::scenario_of;

std::string explored(std::string_view block) {
  return tests::with(
      "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
      "collectives: [{collective: AllReduce, sizes: [1MiB]}]\nexplore: " +
      std::string(block) + "\n");
}

TEST_CASE("the grid has every combination, the first axis slowest") {
  const Scenario s = scenario_of(explored(
      "{vary: {nccl.algorithm: [Ring, Tree], cluster.nodes: [2, 4, 8]}, objective: busbw}"));
  CHECK(s.explore->objective == Objective::busbw);
  const auto points = explore_points(s);
  REQUIRE(points.size() == 6);
  CHECK(points[0][0].path == "nccl.algorithm");
  CHECK(points[0][0].value == "Ring");
  CHECK(points[1][1].path == "cluster.nodes");
  CHECK(points[1][1].value == "4");
  CHECK(points[5][0].value == "Tree");
  CHECK(points[5][1].value == "8");
}

TEST_CASE("a point is a scenario of its own") {
  const Scenario s = scenario_of(explored("{vary: {nccl.algorithm: [Ring, Tree], seed: [1, 9]}}"));
  CHECK(s.explore->objective == Objective::time);
  const auto one = scenario_at(s, explore_points(s).back());
  REQUIRE(one.ok());
  CHECK(one.value().nccl[0].algorithm == sim::Algorithm::tree);
  CHECK(one.value().seed == 9);
  CHECK_FALSE(one.value().explore);
  CHECK(explore_points(one.value()).empty());
  CHECK(scenario_of(resolved_yaml(one.value())).seed == 9);
  CHECK(s.seed == 1);
}

TEST_CASE("values may be blocks, and keys that the scenario leaves at their default") {
  const Scenario s =
      scenario_of(explored("{vary: {nccl: [{algorithm: Tree, protocol: LL, channels: 2}, "
                           "{algorithm: Ring, protocol: LL, "
                           "channels: 4}], parameters.links.nvlink.efficiency: [0.5, 0.9]}}"));
  const auto points = explore_points(s);
  REQUIRE(points.size() == 4);
  CHECK(points[0][0].value == "{algorithm: Tree, protocol: LL, channels: 2}");
  const auto last = scenario_at(s, points[3]);
  REQUIRE(last.ok());
  CHECK(last.value().nccl[0].channels == 4);
  CHECK(last.value().parameters.link(sim::LinkClass::nvlink).efficiency == 0.9);
}

TEST_CASE("the step time is what a training job is judged by") {
  const Scenario s = scenario_of(
      tests::with("nccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
                  "ddp: {model: resnet18, batch_per_gpu: 8, precision: fp32, optimizer: sgd}\n"
                  "explore: {vary: {ddp.bucket_cap_mb: [1, 25]}}\n"));
  CHECK(s.explore->objective == Objective::step_time);
  CHECK(scenario_at(s, explore_points(s)[0]).value().ddp->buckets.bucket_cap_mb == 1.0);
}

TEST_CASE("explore: errors") {
  const auto error = [](std::string_view block) { return error_of(explored(block)); };
  CHECK(error("{objective: time}") == "s.yaml:6:10: explore: the key 'vary' is missing");
  CHECK(error("{vary: {}}") == "s.yaml:6:17: explore.vary: nothing is varied");
  CHECK(error("{vary: {seed: []}}") ==
        "s.yaml:6:24: explore.vary.'seed': the list of values is empty");
  CHECK(error("{vary: {seed: 3}}") ==
        "s.yaml:6:24: explore.vary.'seed': a list is expected, not a single value");
  CHECK(error("{vary: {seed: [3, ~]}}") ==
        "s.yaml:6:28: explore.vary.'seed'[1]: a value is missing");
  CHECK(error("{vary: {explore.vary: [3]}}") ==
        "s.yaml:6:32: explore.vary.'explore.vary': an exploration cannot vary itself");
  CHECK(error("{vary: {nccl.algoritm: [Ring]}}")
            .starts_with("s.yaml:6:18: nccl: explore varies 'nccl.algoritm' = Ring: unknown key "
                         "'algoritm'; did you mean 'algorithm'?"));
  CHECK(error("{vary: {nccl.channels: [8, 0]}}") ==
        "s.yaml:6:37: nccl.channels: explore varies 'nccl.channels' = 0: 0 is out of range (1 to "
        "64)");
  CHECK(error("{vary: {collectives.1.dtype: [fp16]}}") ==
        "s.yaml:6:18: explore varies 'collectives.1.dtype' = fp16: no list item 1: the list has 1");
  CHECK(error("{vary: {seed: [1], name: [x]}, objective: speed}")
            .starts_with("s.yaml:6:52: explore.objective: unknown objective 'speed'"));
  std::string many = "[1";
  for (int i = 2; i < 400; ++i) many += ", " + std::to_string(i);
  CHECK(error("{vary: {seed: " + many + "], cluster.nodes: " + many + "]}}") ==
        "s.yaml:6:17: explore.vary: more than 100000 points or 1000 values");
}

}  // namespace
}  // namespace railyard::scenarios
