// DeepSpeed's ZeRO: bytes on the wire by formulas of their own, the trace of stage 3 by hand, and
// what is refused. The order on every stream: golden_streams_test.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "models/zero/buckets.h"
#include "models/zero/parameter_trace.h"
#include "scenarios/run.h"
#include "scenarios/training_result.h"
#include "tests/scenarios/run_helpers.h"
#include "tests/scenarios/tiny_network.h"
#include "tests/scenarios/toy_network.h"

namespace railyard::scenarios {
namespace {

using sim::Collective;
using tests::call_counts;
using tests::full_scenario;
using tests::good_run;
using tests::kTinyUnits;
using tests::sent_bytes;

std::string job(int stage, const std::string& more = "", const std::string& ranks = "count: 4") {
  return tests::tiny_job("zero", ranks, "  stage: " + std::to_string(stage) + "\n" + more);
}
std::string count(std::int64_t ranks) { return "count: " + std::to_string(ranks); }

std::vector<std::int64_t> sizes() {
  std::vector<std::int64_t> sizes;
  for (const auto& unit : kTinyUnits)
    for (const tests::TinyShape& shape : unit) sizes.push_back(shape.elements());
  return sizes;
}
std::int64_t total() {
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes()) sum += size;
  return sum;
}
std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
// Every parameter has N equal parts.
std::int64_t padded(std::int64_t n, std::int64_t larger_than = -1) {
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes())
    if (size > larger_than) sum += round_up(size, n);
  return sum;
}
// Bytes that a rank sends on average in the AllReduce of one fp32: gradient norm.
std::int64_t norm_bytes(std::int64_t n) { return 2 * 4 * (n - 1) / n; }

// What backward needs is not kept: prefetching would skip and so keep all of so small a network.
const std::string kReleaseAll =
    "  stage3_max_reuse_distance: 0\n  stage3_prefetch_bucket_size: 0\n";

std::string error_of(const std::string& text) {
  const auto scenario = scenario_from_text(text, "s.yaml", {});
  return scenario.ok() ? tests::error_of_run(scenario.value()) : scenario.error().text();
}

TEST_CASE("zero: bytes of stages 1 and 2") {
  for (const std::int64_t n : {2, 4, 8})
    for (const int stage : {1, 2}) {
      CAPTURE(n);
      CAPTURE(stage);
      auto bytes = sent_bytes(good_run(full_scenario(job(stage, "", count(n)))));
      // The default "reduce_scatter" is an AllReduce of every bucket: 2 g (N-1)/N in bf16.
      CHECK(bytes[Collective::all_reduce] == 2 * total() * 2 * (n - 1) / n + norm_bytes(n));
      // The flat buffer is padded to 2 N elements.
      CHECK(bytes[Collective::all_gather] == round_up(total(), 2 * n) * 2 * (n - 1) / n);
      CHECK(bytes.size() == 2);
      // A Reduce of each owner's part to it: on a ring of N every rank but the last in line sends
      // it all.
      auto owners = sent_bytes(good_run(
          full_scenario(job(stage, "  use_multi_rank_bucket_allreduce: false\n", count(n)))));
      CHECK(static_cast<double>(owners[Collective::reduce]) ==
            doctest::Approx(static_cast<double>(total() * 2 * (n - 1) / n)).epsilon(1e-4));
      CHECK(owners[Collective::all_reduce] == norm_bytes(n));
    }
}

// 124,439,808 parameters, the tied embedding among them once; every tensor divides by 4.
TEST_CASE("zero: bytes of GPT-2") {
  const auto sent = [](const std::string& options) {
    return sent_bytes(good_run(
        full_scenario("railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {count: 4}\n"
                      "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\nzero: {model: gpt2, "
                      "batch_per_gpu: 1, "
                      "precision: bf16, optimizer: adamw, iterations: 2, " +
                      options + "}\n")));
  };
  const std::int64_t once = std::int64_t{124'439'808} * 2 * 3 / 4;
  for (const std::string stage : {"1", "2"}) {
    auto bytes = sent("stage: " + stage);
    CHECK(bytes[Collective::all_reduce] == 2 * once + norm_bytes(4));
    CHECK(bytes[Collective::all_gather] == once);
  }
  auto kept = sent("stage: 3");  // all of it lies within the reuse distance
  CHECK(kept[Collective::all_gather] == once);
  CHECK(kept[Collective::reduce_scatter] == once);
  // Released after every use: forward and backward use each once, the tied embedding twice.
  auto twice = sent(
      "stage: 3, stage3_max_reuse_distance: 0, stage3_prefetch_bucket_size: 0, "
      "stage3_param_persistence_threshold: 0");
  const std::int64_t tied = std::int64_t{50257} * 768 * 2 * 3 / 4;
  CHECK(twice[Collective::all_gather] == 2 * once + 2 * tied);
  CHECK(twice[Collective::reduce_scatter] == once);
}

TEST_CASE("zero: communication_data_type is what reductions carry") {
  auto bytes = sent_bytes(good_run(full_scenario(job(2, "  communication_data_type: fp32\n"))));
  CHECK(bytes[Collective::all_reduce] == 2 * total() * 4 * 3 / 4 + norm_bytes(4));
}

TEST_CASE("zero: stage 2 reduces in every micro-batch, stage 1 in the last") {
  const auto bytes = [](int stage) {
    return sent_bytes(good_run(full_scenario(job(stage, "  gradient_accumulation: 3\n"))));
  };
  const std::int64_t once = 2 * total() * 2 * 3 / 4;
  CHECK(bytes(1)[Collective::all_reduce] == once + norm_bytes(4));
  CHECK(bytes(2)[Collective::all_reduce] == 3 * once + norm_bytes(4));
}

TEST_CASE("zero: AllGather in one call, or in pieces of allgather_bucket_size") {
  // 1,296,405 elements are padded to 1,296,408, a multiple of 2 x 4.
  REQUIRE(total() == 1'296'405);
  const std::int64_t part = 1'296'408 / 4;
  auto one = call_counts(good_run(full_scenario(job(2))));
  CHECK(one[Collective::all_gather] == 1);
  const RunResult pieces = good_run(
      full_scenario(job(2, "  all_gather_into_tensor: false\n  allgather_bucket_size: 5e5\n")));
  CHECK(call_counts(pieces)[Collective::all_gather] == part * 4 / 500'000);
  CHECK(sent_bytes(pieces)[Collective::all_gather] == part * 4 * 2 * 3 / 4);
  const RunResult noted = good_run(full_scenario(job(2, "  allgather_bucket_size: 5e5\n")));
  CHECK(call_counts(noted)[Collective::all_gather] == 1);
  CHECK(std::ranges::any_of(noted.notes, [](const std::string& note) {
    return note.starts_with("allgather_bucket_size has no effect");
  }));
}

TEST_CASE("zero: bytes of stage 3 without persistent parameters or reuse") {
  for (const std::int64_t n : {2, 4, 8}) {
    CAPTURE(n);
    auto bytes = sent_bytes(good_run(full_scenario(
        job(3, "  stage3_param_persistence_threshold: 0\n" + kReleaseAll, count(n)))));
    CHECK(bytes[Collective::all_gather] == 2 * padded(n) * 2 * (n - 1) / n);  // forward, backward
    CHECK(bytes[Collective::reduce_scatter] == padded(n) * 2 * (n - 1) / n);
    CHECK(bytes[Collective::all_reduce] == norm_bytes(n));
  }
}

TEST_CASE("zero: stage 3 keeps what is small or soon needed again") {
  // Default thresholds: parameters up to 100,000 elements are persistent and gathered once, behind
  // the step; the rest is within the reuse distance and gathered once.
  auto bytes = sent_bytes(good_run(full_scenario(job(3))));
  CHECK(bytes[Collective::all_gather] == padded(4) * 2 * 3 / 4);
  // All released: large ones twice.
  auto twice = sent_bytes(good_run(full_scenario(job(3, kReleaseAll))));
  CHECK(twice[Collective::all_gather] == (padded(4) + padded(4, 100'000)) * 2 * 3 / 4);
  CHECK(twice[Collective::reduce_scatter] == padded(4) * 2 * 3 / 4);
}

TEST_CASE("zero: hpZ gathers backward's parameters in the smaller group") {
  std::map<std::string, std::int64_t> by_group;
  const RunResult result = good_run(full_scenario(job(
      3, "  stage3_param_persistence_threshold: 0\n  zero_hpz_partition_size: 2\n" + kReleaseAll,
      count(8))));
  for (const CallRow& row : result.training->calls)
    if (row.collective == Collective::all_gather) by_group[row.group] += row.sent.raw();
  CHECK(by_group["world"] == padded(8) * 2 * 7 / 8);
  CHECK(by_group["hpz"] == padded(8) * 2 / 2);
}

TEST_CASE("zero: quantized weights are one byte each, and a scale for 8000") {
  auto bytes = sent_bytes(good_run(
      full_scenario(job(3,
                        "  zero_quantized_weights: true\n  stage3_prefetch_bucket_size: 0\n"
                        "  stage3_param_persistence_threshold: 0\n"))));
  // Modules: the embedding, three blocks of two parameters, the head.
  std::int64_t expected = 0;
  const std::vector<std::int64_t> modules{round_up(512'512, 4) / 4, (261'120 + 8) / 4,
                                          (261'120 + 8) / 4, (261'120 + 8) / 4, 512 / 4};
  for (const std::int64_t shard : modules) expected += 3 * (shard + 4 * ((shard + 7999) / 8000));
  CHECK(bytes[Collective::all_gather] == expected);
}

TEST_CASE("zero: quantized gradients are exchanged in int4, in the node and between nodes") {
  const RunResult result = good_run(
      full_scenario(job(3,
                        "  zero_quantized_gradients: true\n  intra_node_group: local\n"
                        "  inter_node_group: across\n",
                        "count: 8, groups: {local: {size: 4}, across: {size: 2, stride: 4}}")));
  std::map<std::string, std::int64_t> by_group;
  for (const CallRow& row : result.training->calls)
    if (row.collective == Collective::all_to_all) by_group[row.group] += row.sent.raw();
  // All four matrices divide by 16 elements: 512,512 and three times 261,120; the head's is a
  // matrix of one column.
  const std::int64_t int4 = (512'512 + 3 * 261'120 + 512) / 2;
  CHECK(by_group["local"] == int4 * 3 / 4);
  CHECK(by_group["across"] == int4 / 4 / 2);
  // The blocks' p1 of 7 x 1 elements do not: reduced as ever, padded to 8.
  CHECK(sent_bytes(result)[Collective::reduce_scatter] == 3 * 8 * 2 * 7 / 8);
}

TEST_CASE("zero: a gradient that would overflow the bucket reduces it first") {
  const auto network = tests::network_with({100, 300, 700, 50, 450});
  const auto buckets = models::zero_buckets(network, {4, 3, 2, 1, 0}, 500);
  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0].parameters == std::vector<std::uint32_t>{4, 3});  // 500: just full
  CHECK(buckets[1].parameters == std::vector<std::uint32_t>{2});     // larger than a bucket
  CHECK(buckets[2].parameters == std::vector<std::uint32_t>{1, 0});
}

// 1600 elements, 4 ranks: parts of 400. p1 is [100, 400), p2 [400, 1100).
TEST_CASE("zero: parts of a bucket belong to the ranks that the flat buffer gives them to") {
  const auto network = tests::network_with({100, 300, 700, 50, 450});
  CHECK(models::flat_elements(network, 4) == 1600);
  CHECK(models::flat_elements(network, 7) == 1610);
  const auto parts = models::owned_parts(network, {{2, 1}, 1000}, 4);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].rank == 0);
  CHECK(parts[0].elements == 300);
  CHECK(parts[1].elements == 400);
  CHECK(parts[2].elements == 300);
}

using Parameters = std::vector<std::uint32_t>;

Parameters gathered(const std::vector<models::GatherSet>& sets) {
  Parameters all;
  for (const models::GatherSet& set : sets)
    all.insert(all.end(), set.parameters.begin(), set.parameters.end());
  return all;
}

// Four modules of 10 elements each and their backward: trace 0 1 2 3 3 2 1 0. Prefetch 15: two
// parameters (the second goes over). Reuse distance 10: only the very next module's are kept.
//   step 0 fetch 0, prefetch 1 2     release 0
//   step 1          prefetch 3 (3's second use is skipped with it: it is on its way), 2 again:
//   skipped
//   ...
TEST_CASE("zero: stage 3's trace, by hand") {
  models::TracedModel model;
  model.elements = {10, 10, 10, 10};
  model.persistent = {false, false, false, false};
  model.modules = {{0}, {1}, {2}, {3}, {3}, {2}, {1}, {0}};
  model.forward_modules = 4;
  models::TraceLimits limits{
      .prefetch_bucket_size = 15, .max_live_parameters = 1000, .max_reuse_distance = 10};
  std::vector<bool> copies(4, false);
  const auto plan = models::plan_trace(model, limits, models::Pass::first, false, copies);
  REQUIRE(plan.steps.size() == 8);
  CHECK(gathered(plan.steps[0].fetch) == Parameters{0});
  CHECK(gathered(plan.steps[0].prefetch) == Parameters{1, 2});
  CHECK(plan.steps[0].waits == Parameters{0});
  // The queue goes on with 3 (gathered), 3 (on its way), 2 (on its way), 1 (in use): all skipped
  // and marked, so none of them is released in forward; then 0, released behind step 0.
  CHECK(plan.steps[1].fetch.empty());
  CHECK(plan.steps[1].waits == Parameters{1});
  CHECK(gathered(plan.steps[1].prefetch) == Parameters{0, 3});
  for (std::size_t step = 2; step < 8; ++step) {
    CHECK(plan.steps[step].fetch.empty());
    CHECK(plan.steps[step].prefetch.empty());
  }
  CHECK(plan.steps[7].waits == Parameters{0});
  CHECK(plan.most_live == 40);

  const auto recorded = models::plan_trace(model, limits, models::Pass::recording, false, copies);
  for (const models::FetchStep& step : recorded.steps) {
    CHECK(gathered(step.fetch).size() == 1);  // nothing is kept, nothing prefetched
    CHECK(step.prefetch.empty());
  }

  limits.max_live_parameters = 20;  // room for one more than the module's own
  const auto tight = models::plan_trace(model, limits, models::Pass::first, false, copies);
  CHECK(gathered(tight.steps[0].prefetch) == Parameters{1});
}

TEST_CASE("zero: overlap_comm hides reductions, replay changes nothing") {
  const auto step = [](const std::string& overlap) {
    return good_run(full_scenario(
                        job(2, "  reduce_bucket_size: 270000\n  overlap_comm: " + overlap + "\n",
                            "count: 8")))
        .training->exposed;
  };
  CHECK(step("true") < step("false"));
  for (const int stage : {1, 2, 3})
    CHECK(good_run(full_scenario(job(stage))).trace_hash ==
          good_run(full_scenario(job(stage), {"engine.replay=false"})).trace_hash);
}

TEST_CASE("zero: what is refused, and what is warned of") {
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  };
  has(error_of(job(0)), "zero.stage: 0 is out of range (1 to 3)");
  has(error_of(tests::tiny_job("zero", "count: 4")), "the key 'stage' is missing");
  has(error_of(job(2, "  stage3_prefetch_bucket_size: 5e7\n")),
      "zero.stage3_prefetch_bucket_size: belongs to stage 3, not to stage 2");
  has(error_of(job(2, "  reduce_bucket_size: 1.5\n")),
      "zero.reduce_bucket_size: a whole number of elements is expected");
  has(error_of(job(3, "  zero_quantized_gradients: true\n")),
      "zero.zero_quantized_gradients: needs intra_node_group and inter_node_group");
  has(error_of(job(3, "  zero_hpz_partition_size: 3\n")), "zero_hpz_partition_size");
  has(error_of(job(2, "  bucket: 1\n")), "unknown key 'bucket'");
  const RunResult small = good_run(full_scenario(job(3), {"parameters.gpu.hbm_capacity=1MB"}));
  CHECK(std::ranges::any_of(small.notes, [](const std::string& note) {
    return note.starts_with("out of memory: shards of parameters");
  }));
}

}  // namespace
}  // namespace railyard::scenarios
