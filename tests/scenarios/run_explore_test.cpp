// Which way a prediction moves when something changes: sensitivities of one run, and a study over
// a grid by brute force.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "scenarios/explore.h"
#include "scenarios/run.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using tests::full_scenario;
using tests::good_run;
using tests::shipped_scenario;

std::map<std::string, double> sensitivities(const Scenario& scenario) {
  RunOptions options;
  options.sensitivity = true;
  std::map<std::string, double> change;  // what -> relative change of the objective
  for (const SensitivityRow& row : good_run(scenario, options).sensitivity) {
    CHECK(row.change == doctest::Approx(0.1));
    change[row.what] =
        static_cast<double>(row.varied.count()) / static_cast<double>(row.base.count()) - 1;
  }
  return change;
}

// A faster link can cost a compute-bound step a little: a collective that may send faster is taken
// to draw more memory bandwidth for as long as it runs, and it does not become shorter by as much.
constexpr double kRounding = 2e-4;

TEST_CASE("compute-bound: compute speed is nearly all, links and launches nearly nothing") {
  const auto change = sensitivities(shipped_scenario("resnet50-ddp-2gpu.yaml"));
  CHECK(change.at("compute speed") < -0.08);
  CHECK(change.at("compute speed") > -0.0910);  // 1 / 1.1
  CHECK(change.at("nvlink bandwidth") < kRounding);
  CHECK(change.at("nvlink bandwidth") > -0.01);
  CHECK(change.at("launch cost") < 0.01);
}

// A batch of one image: 161 tensors' worth of kernels of a few microseconds each.
TEST_CASE("launch-bound: ten per cent more launch cost is ten per cent more time") {
  const Scenario scenario = shipped_scenario("resnet50-ddp-2gpu.yaml", {"ddp.batch_per_gpu=1"});
  CHECK(good_run(scenario).ddp->bound_by == "host launches");
  const auto change = sensitivities(scenario);
  CHECK(change.at("launch cost") == doctest::Approx(0.1).epsilon(0.01));
  CHECK(change.at("compute speed") == doctest::Approx(0).epsilon(1e-3));
  CHECK(change.at("nvlink bandwidth") == doctest::Approx(0).epsilon(1e-3));
}

TEST_CASE("communication-bound: the network decides") {
  const Scenario scenario = full_scenario(
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, nics_per_node: 1, fabric: {kind: "
      "switch, "
      "link_rate: 100Gb/s}, nic_rate: 100Gb/s}\nranks: {gpus_per_node: 1}\n"
      "nccl: {algorithm: Ring, protocol: Simple, channels: 4}\n"
      "ddp: {model: vgg16, batch_per_gpu: 8, precision: amp-fp16, optimizer: sgd}\n");
  CHECK(good_run(scenario).ddp->bound_by == "communication");
  const auto change = sensitivities(scenario);
  CHECK(change.at("nic bandwidth") < -0.05);
  CHECK(change.at("compute speed") > change.at("nic bandwidth"));
}

TEST_CASE("collectives: bandwidth helps large messages, latency hurts small ones") {
  const auto of = [](const char* size, const char* protocol) {
    return sensitivities(
        full_scenario("railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, nics_per_node: 2, "
                      "fabric: {kind: switch}}\nnccl: {algorithm: Ring, channels: 16, protocol: " +
                      std::string(protocol) + "}\ncollectives: [{collective: AllReduce, sizes: [" +
                      size + "]}]\n"));
  };
  const auto large = of("1GiB", "Simple");
  CHECK(large.at("nic bandwidth") < -0.05);
  CHECK(large.at("latencies") < 0.05);
  CHECK(large.count("compute speed") == 0);
  const auto small = of("1KiB", "LL");
  CHECK(small.at("latencies") > 0.01);
  CHECK(small.at("latencies") > 2 * large.at("latencies"));
  for (const auto* changes : {&large, &small})
    for (const auto& each : *changes)
      if (each.first.ends_with("bandwidth")) CHECK_MESSAGE(each.second < kRounding, each.first);
}

// Without the memory a collective takes from kernels, a faster link never makes a step slower.
TEST_CASE("a faster link does not make a step slower") {
  for (const char* file : {"resnet50-ddp-2gpu.yaml", "bert-large-ddp-dgx-a100.yaml"}) {
    CAPTURE(file);
    double last = 1e300;
    for (const char* efficiency : {"0.05", "0.1", "0.2", "0.4", "0.8"}) {
      const Scenario scenario =
          shipped_scenario(file, {std::string("parameters.links.nvlink.efficiency=") + efficiency,
                                  "parameters.gpu.comm_hbm_factor=0"});
      const double step = sim::to_us(good_run(scenario).ddp->step_time);
      CHECK(step <= last * (1 + 1e-6));
      last = step;
    }
  }
}

// The grid of an explore: block, every point run.
double best_cap(const std::vector<std::string>& sets, std::vector<double>& steps) {
  std::vector<std::string> all{
      "ddp.batch_per_gpu=64", "ranks.count=8",
      "explore={vary: {ddp.bucket_cap_mb: [1, 4, 8, 25, 50, 100]}, objective: step_time}"};
  all.insert(all.end(), sets.begin(), sets.end());
  const Scenario scenario = shipped_scenario("resnet50-ddp-2gpu.yaml", all);
  double best = 0;
  double best_step = 1e300;
  for (const ExplorePoint& point : explore_points(scenario)) {
    auto one = scenario_at(scenario, point);
    REQUIRE(one.ok());
    const RunResult result = good_run(one.value());
    const double step = sim::to_us(objective_time(result));
    CHECK(step == sim::to_us(result.ddp->step_time));
    steps.push_back(step);
    if (step >= best_step) continue;
    best_step = step;
    best = *one.value().ddp->buckets.bucket_cap_mb;
  }
  return best;
}

// Ten times the latency makes every bucket cost ten times its fixed part, so fewer are better.
//
// A link ten times slower pulls the other way. All buckets but the last hide behind backward as
// long as their sum does; what stays exposed is the transfer of the last one, which grows with its
// size times the slowness. Small buckets make it small, and the fixed cost of many is hidden.
TEST_CASE("the best bucket size grows with latency and shrinks with bandwidth") {
  std::vector<double> base;
  std::vector<double> late;
  std::vector<double> slow;
  const double usual = best_cap({}, base);
  const double with_latency = best_cap(
      {"parameters.links.nvlink.latency=2500ns", "parameters.protocols.Simple.hop_latency=10us",
       "parameters.protocols.Simple.op_overhead=41us"},
      late);
  const double with_slow_links = best_cap({"parameters.links.nvlink.efficiency=0.0797"}, slow);
  CHECK(with_latency > usual);
  CHECK(with_slow_links < usual);
  for (std::size_t i = 0; i < base.size(); ++i) {
    CHECK(late[i] > base[i]);
    CHECK(slow[i] > base[i]);
  }
  // One bucket for all hides nothing: the slower link costs more there than anywhere.
  CHECK(slow.back() - base.back() > slow.front() - base.front());
}

}  // namespace
}  // namespace railyard::scenarios
