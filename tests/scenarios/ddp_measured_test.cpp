// ddp: with measured layers and host times: steps that are sums, and what may not be said twice.
#include <doctest/doctest.h>

#include "scenarios/run.h"
#include "tests/scenarios/helpers.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using sim::microseconds;
using tests::full_scenario;
using tests::good_run;

// Two layers of one gradient each (one bucket). Host per step:
//   start 7 + 3, forward 100 + 20 and 200 + 20, backward 50 + 10 twice, 2 hooks of 30,
//   1 collective of 40, 2 copies back of 25, optimizer 60 + 140
constexpr std::int64_t kHost = 10 + 120 + 220 + 120 + 60 + 40 + 50 + 200;

std::string job(const std::string& unit, const std::string& more = "") {
  return "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {count: 2}\n"
         "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
         "parameters: {host: {launch_latency: 0us, collective_start: 0us, op_launch: 500us, "
         "grad_hook: 300us, collective_launch: 99us}, gpu: {kernel_gap: 0us}}\n"
         "ddp:\n  batch_per_gpu: 1\n  precision: fp32\n  optimizer: sgd\n  iterations: 4\n" +
         more +
         "  measured:\n    start: {before: 7us, time: 1us, after: 3us}\n"
         "    optimizer: {before: 60us, time: 2us, after: 140us}\n"
         "    hook: 30us\n    collective: 40us\n    copy_back: 25us\n"
         "  model:\n    parameters:\n      - {name: a, elements: 10}\n      - {name: b, elements: "
         "10}\n"
         "    layers:\n"
         "      - {name: one, kind: conv, parameters: [a], forward: {before: 100us, time: 5" +
         unit + ", after: 20us}, backward: {before: 50us, time: 6" + unit +
         ", after: 10us}}\n"
         "      - {name: two, kind: gemm, parameters: [b], forward: {before: 200us, time: 7" +
         unit + ", after: 20us}, backward: {before: 50us, time: 8" + unit + ", after: 10us}}\n";
}

TEST_CASE("measured DDP, bound by the host: a step is the sum of the host's times") {
  const RunResult result = good_run(full_scenario(job("us")));
  REQUIRE(result.ddp);
  CHECK(result.ddp->iterations.back() == microseconds(kHost));
  // Kernels: start, four of layers, two copies in and out (at the shortest kernel's 1.4 us),
  // optimizer.
  CHECK(result.ddp->compute == microseconds(1 + 5 + 6 + 7 + 8 + 2) + sim::nanoseconds(4 * 1'400));
  CHECK(result.ddp->bucket_bytes.back() == std::vector{sim::bytes(80)});
}

TEST_CASE("measured DDP, bound by the GPU: kernels, and what is exposed of the bucket") {
  const RunResult result = good_run(full_scenario(job("ms")));
  const DdpResult& ddp = *result.ddp;
  CHECK(ddp.step_time == ddp.compute + ddp.exposed);
  CHECK(ddp.compute == sim::microseconds(26'000 + 3) + sim::nanoseconds(4 * 1'400));
  CHECK(ddp.bound_by == "compute");
}

TEST_CASE("measured DDP: times grow with the batch, the host's do not") {
  const RunResult result = good_run(full_scenario(job("us"), {"ddp.batch_per_gpu=3"}));
  CHECK(result.ddp->step_time == microseconds(kHost));
  CHECK(result.ddp->compute == microseconds(1 + 3 * (5 + 6 + 7 + 8) + 2) + sim::nanoseconds(5'600));
}

TEST_CASE("measured DDP can be asked for other buckets") {
  const RunResult result =
      good_run(full_scenario(job("us"), {"ddp.bucket_cap_mb=0.00001"}));  // ten bytes
  CHECK(result.ddp->bucket_bytes.back() == std::vector{sim::bytes(40), sim::bytes(40)});
  CHECK(result.ddp->step_time == microseconds(kHost + 40));  // one more collective to launch
}

std::string layer_error(const std::string& layer) {
  return tests::error_of(tests::with(
      "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\nddp:\n  batch_per_gpu: 1\n"
      "  precision: fp32\n  optimizer: sgd\n  model:\n    parameters: [{name: a, elements: 4}]\n"
      "    layers:\n      - {name: l, kind: gemm, " +
      layer + "}\n"));
}

TEST_CASE("measured layers: mistakes") {
  CHECK(layer_error("forward: 3us") == "no error");
  CHECK(layer_error("backward: {time: 3us}") == "no error");
  CHECK(layer_error("forward: 3us, forward_flops: 8")
            .find("a layer with measured times (forward, backward) has no work besides") !=
        std::string::npos);
  CHECK(layer_error("forward: 2h").find("a measured time is at most an hour") != std::string::npos);
  CHECK(layer_error("forward: {befor: 2us}").find("did you mean 'before'?") != std::string::npos);
}

}  // namespace
}  // namespace railyard::scenarios
