// Megatron's data parallelism: its buckets from a list computed by hand, bytes by the formulas, and
// what overlap changes.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "models/megatron/data_parallel.h"
#include "scenarios/run.h"
#include "scenarios/training_result.h"
#include "tests/scenarios/run_helpers.h"
#include "tests/scenarios/toy_network.h"

namespace railyard::scenarios {
namespace {

using tests::full_scenario;
using tests::good_run;

std::string job(const std::string& more) {
  return "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {count: 8}\n"
         "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
         "megatron: {model: gpt2-medium, batch_per_gpu: 4, sequence_length: 512, precision: "
         "amp-bf16, "
         "optimizer: adamw, iterations: 3" +
         more + "}\n";
}

// Reverse order: 70, 100, 300, 1000 elements. They start at 0, 128 and 256 (multiples of 64); the
// third ends at 556, over the limit of 500, and the bucket at 768, a multiple of lcm(6, 128) = 384.
TEST_CASE("megatron: parameters are aligned, buckets padded") {
  models::MegatronOptions options;
  options.bucket_size = 500;
  options.data_parallel = 6;
  const auto buckets = models::megatron_buckets(tests::network_with({1000, 300, 100, 70}), options);
  REQUIRE(buckets.size() == 2);
  CHECK(buckets[0].parameters == std::vector<std::uint32_t>{3, 2, 1});
  CHECK(buckets[0].elements == 768);
  CHECK(buckets[1].parameters == std::vector<std::uint32_t>{0});
  CHECK(buckets[1].elements == 1152);         // 1000 from 768 on, to 1920 = 5 x 384
  options.use_distributed_optimizer = false;  // nothing is padded
  const auto plain = models::megatron_buckets(tests::network_with({1000, 300, 100, 70}), options);
  REQUIRE(plain.size() == 1);  // 470 after three: not yet full
  CHECK(plain[0].elements == 1470);
}

TEST_CASE("megatron: default buckets grow with the data-parallel size") {
  const auto network = tests::network_with(std::vector<std::int64_t>(10, 30'000'000));
  models::MegatronOptions options;
  options.data_parallel = 8;
  CHECK(models::megatron_buckets(network, options).size() ==
        5);  // 60 M each: 40 M is passed by two
  options.data_parallel = 64;
  CHECK(models::megatron_buckets(network, options).size() == 4);  // three of 90 M, one of 30 M
  options.overlap_grad_reduce = false;
  CHECK(models::megatron_buckets(network, options).size() == 1);
}

std::map<sim::Collective, std::int64_t> sent(const RunResult& result) {
  std::map<sim::Collective, std::int64_t> bytes;
  for (const CallRow& row : result.training->calls) bytes[row.collective] += row.sent.raw();
  return bytes;
}

TEST_CASE("megatron: bytes of a step") {
  const RunResult sharded = good_run(full_scenario(
      job(", overlap_grad_reduce: true, overlap_param_gather: true, grad_reduce_in_fp32: true")));
  auto bytes = sent(sharded);
  // 354,823,168 parameters; padding is below one in a thousand. RS in fp32, AG in bf16.
  const double parameters = 354'823'168;
  CHECK(static_cast<double>(bytes[sim::Collective::reduce_scatter]) ==
        doctest::Approx(parameters * 4 * 7 / 8).epsilon(0.001));
  CHECK(bytes[sim::Collective::reduce_scatter] == 2 * bytes[sim::Collective::all_gather]);
  const RunResult whole = good_run(full_scenario(job(", use_distributed_optimizer: false")));
  auto reduced = sent(whole);
  CHECK(reduced.size() == 1);
  CHECK(static_cast<double>(reduced[sim::Collective::all_reduce]) ==
        doctest::Approx(parameters * 2 * 2 * 7 / 8).epsilon(1e-6));
}

TEST_CASE("megatron: overlap hides what comes behind backward otherwise") {
  const RunResult late = good_run(full_scenario(job("")));
  const RunResult early = good_run(full_scenario(job(", overlap_grad_reduce: true")));
  const RunResult both =
      good_run(full_scenario(job(", overlap_grad_reduce: true, overlap_param_gather: true")));
  CHECK(early.training->exposed < late.training->exposed);
  CHECK(both.training->exposed < early.training->exposed);
  CHECK(both.training->step_time < late.training->step_time);
  auto counts = [](const RunResult& result) {
    std::int64_t calls = 0;
    for (const CallRow& row : result.training->calls) calls += row.count;
    return calls;
  };
  CHECK(counts(late) == 2);  // one bucket: ReduceScatter and AllGather
  CHECK(counts(both) > 10);
  // Only the last micro-batch reduces.
  const RunResult four = good_run(full_scenario(
      job(", overlap_grad_reduce: true, overlap_param_gather: true, gradient_accumulation: 4")));
  CHECK(counts(four) == counts(both));
  CHECK(both.trace_hash ==
        good_run(full_scenario(job(", overlap_grad_reduce: true, overlap_param_gather: true"),
                               {"engine.replay=false"}))
            .trace_hash);
}

TEST_CASE("megatron: an impossible overlap is refused") {
  const auto scenario = scenario_from_text(job(", overlap_param_gather: true"), "s.yaml", {});
  REQUIRE_FALSE(scenario.ok());
  CHECK(scenario.error().text().find(
            "megatron.overlap_param_gather: needs use_distributed_optimizer and "
            "overlap_grad_reduce") != std::string::npos);
}

}  // namespace
}  // namespace railyard::scenarios
