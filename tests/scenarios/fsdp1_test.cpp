// FullyShardedDataParallel jobs: bytes on the wire by formulas of their own, what prefetching and
// the rate limiter change, and what is refused. The order on every stream: golden_streams_test.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "models/fsdp/fsdp1.h"
#include "scenarios/run.h"
#include "scenarios/training_result.h"
#include "tests/scenarios/run_helpers.h"
#include "tests/scenarios/tiny_network.h"

namespace railyard::scenarios {
namespace {

using sim::Collective;
using tests::call_counts;
using tests::full_scenario;
using tests::good_run;
using tests::kTinyUnits;
using tests::sent_bytes;

const std::string kHybrid = "count: 8, groups: {shard: {size: 4}, replica: {size: 2, stride: 4}}";

std::string job(const std::string& ranks = "count: 4", const std::string& more = "") {
  return tests::tiny_job("fsdp1", ranks, more);
}

std::int64_t elements(std::size_t unit) {
  std::int64_t sum = 0;
  for (const tests::TinyShape& shape : kTinyUnits[unit]) sum += shape.elements();
  return sum;
}
// One tensor, padded as a whole.
std::int64_t padded(std::size_t unit, std::int64_t shards) {
  return (elements(unit) + shards - 1) / shards * shards;
}
std::int64_t padded_blocks(std::int64_t shards) { return 3 * padded(1, shards); }
std::int64_t all(std::int64_t shards) { return padded(0, shards) + padded_blocks(shards); }

std::string error_of(const std::string& text, std::vector<std::string> sets = {}) {
  const auto scenario = scenario_from_text(text, "s.yaml", {.sets = std::move(sets)});
  if (!scenario.ok()) return scenario.error().text();
  return tests::error_of_run(scenario.value());
}

TEST_CASE("fsdp1: bytes on the wire are the formulas of every strategy") {
  for (const std::int64_t n : {2, 4, 8}) {
    const auto sent = [&](const std::string& strategy) {
      return sent_bytes(good_run(full_scenario(
          job("count: " + std::to_string(n), "  sharding_strategy: " + strategy + "\n"),
          {"fsdp1.reduce_dtype=fp32"})));
    };
    CAPTURE(n);
    auto full = sent("FULL_SHARD");  // blocks twice, the root once, in bf16; gradients in fp32
    CHECK(full[Collective::all_gather] == (all(n) + padded_blocks(n)) * 2 * (n - 1) / n);
    CHECK(full[Collective::reduce_scatter] == all(n) * 4 * (n - 1) / n);
    CHECK(full.size() == 2);
    auto once = sent("SHARD_GRAD_OP");
    CHECK(once[Collective::all_gather] == all(n) * 2 * (n - 1) / n);
    CHECK(once[Collective::reduce_scatter] == all(n) * 4 * (n - 1) / n);
    auto none = sent("NO_SHARD");  // nothing is padded; as DDP
    const std::int64_t whole = elements(0) + 3 * elements(1);
    CHECK(none.size() == 1);
    CHECK(none[Collective::all_reduce] == 2 * whole * 4 * (n - 1) / n);
  }
}

TEST_CASE("fsdp1: the hybrid strategies add an AllReduce of the shard over the replicas") {
  for (const std::int64_t n : {2, 4}) {
    const std::int64_t r = 8 / n;
    CAPTURE(n);
    const std::string groups = "count: 8, groups: {shard: {size: " + std::to_string(n) +
                               "}, replica: {size: " + std::to_string(r) +
                               ", stride: " + std::to_string(n) + "}}";
    const auto sent = [&](const std::string& strategy) {
      return sent_bytes(good_run(full_scenario(
          job(groups, "  shard_group: shard\n  replica_group: replica\n  sharding_strategy: " +
                          strategy + "\n"))));
    };
    auto full = sent("HYBRID_SHARD");
    CHECK(full[Collective::all_gather] == (all(n) + padded_blocks(n)) * 2 * (n - 1) / n);
    CHECK(full[Collective::reduce_scatter] == all(n) * 2 * (n - 1) / n);
    // 2 (g/N) (R-1)/R of every unit, in whole bytes.
    const auto reduced = [&](std::size_t unit) {
      return 2 * (padded(unit, n) * 2 / n) * (r - 1) / r;
    };
    CHECK(full[Collective::all_reduce] == reduced(0) + 3 * reduced(1));
    auto once = sent("_HYBRID_SHARD_ZERO2");
    CHECK(once[Collective::all_gather] == all(n) * 2 * (n - 1) / n);
    CHECK(once[Collective::all_reduce] == full[Collective::all_reduce]);
  }
}

// GPT-2: blocks of 7,087,872 elements; the root has both embeddings, ln_f, and the tied head. All
// divide by 4.
TEST_CASE("fsdp1: bytes of GPT-2") {
  const std::int64_t block = 7'087'872;
  const std::int64_t root = 50257 * 768 + 1024 * 768 + 2 * 768;
  auto bytes = sent_bytes(good_run(full_scenario(
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {count: 4}\nnccl: auto\n"
      "fsdp1: {model: gpt2, batch_per_gpu: 1, precision: bf16, optimizer: adamw, iterations: "
      "2}\n")));
  CHECK(bytes[Collective::all_gather] == (root + 2 * 12 * block) * 2 * 3 / 4);
  CHECK(bytes[Collective::reduce_scatter] == (root + 12 * block) * 2 * 3 / 4);
}

// 512,512 + 512 elements and 261,120 + 7: neither divides by 7 or 4. FSDP2 would pad each
// parameter: 1001 rows to 1004, 7 to 8.
TEST_CASE("fsdp1: a unit is padded as a whole, its parameters to 16 bytes with use_orig_params") {
  models::NetworkSpec spec;
  spec.name = "toy";
  spec.parameters = {{.name = "a", .shape = {1001, 3}}, {.name = "b", .shape = {7}}};
  spec.layers = {{.name = "l", .parameters = {"a", "b"}}};
  const auto network = models::validate(spec);
  REQUIRE(network.ok());
  const models::ShardUnit unit{"root", {0, 1}};
  models::Fsdp1Options options;
  options.shards = 4;
  CHECK(models::flat_size(network.value(), unit, options).elements == 3010);
  CHECK(models::flat_size(network.value(), unit, options).padded == 3012);
  options.strategy = models::ShardingStrategy::no_shard;
  CHECK(models::flat_size(network.value(), unit, options).padded == 3010);
  options.strategy = models::ShardingStrategy::full_shard;
  options.use_orig_params = true;  // b starts at 3008, a multiple of 8 bf16 elements; ends at 3015
  CHECK(models::flat_size(network.value(), unit, options).elements == 3016);
  CHECK(models::flat_size(network.value(), unit, options).padded == 3016);
  options.param_dtype = models::Dtype::fp32;  // multiples of 4: 3004
  CHECK(models::flat_size(network.value(), unit, options).elements == 3012);
}

// torch/distributed/algorithms/_comm_hooks/default_hooks.py, by hand.
TEST_CASE("fsdp1: gradients are divided before and after the reduction") {
  const std::map<std::int64_t, std::int64_t> by_hand{{1, 1},  {2, 2},   {3, 2},   {4, 2},
                                                     {6, 4},  {8, 4},   {16, 4},  {24, 8},
                                                     {64, 8}, {100, 8}, {128, 16}};
  for (const auto& [ranks, factor] : by_hand) {
    const std::int64_t count = ranks;  // clang++ captures no structured binding
    CAPTURE(count);
    CHECK(models::predivide_factor(count) == factor);
  }
}

TEST_CASE("fsdp1: no_sync reduces once, parameters are gathered all the same") {
  const auto counts = [](const std::string& more) {
    return call_counts(
        good_run(full_scenario(job("count: 4", "  gradient_accumulation: 3\n" + more))));
  };
  auto every = counts("");
  CHECK(every[Collective::reduce_scatter] == 12);
  CHECK(every[Collective::all_gather] == 3 * 7);
  auto last = counts("  no_sync: true\n");
  CHECK(last[Collective::reduce_scatter] == 4);
  // The root is freed behind every backward, as FULL_SHARD's strategies are.
  CHECK(last[Collective::all_gather] == 3 * 7);
  // _should_free_in_backward: without a reduction SHARD_GRAD_OP leaves units whole.
  auto whole = counts("  no_sync: true\n  sharding_strategy: SHARD_GRAD_OP\n");
  CHECK(whole[Collective::all_gather] == 4);
  auto freed = counts("  sharding_strategy: SHARD_GRAD_OP\n");
  CHECK(freed[Collective::all_gather] == 3 * 4);
}

// Starts of the last iteration's spans of rank 0, by name, in order.
std::vector<sim::Span> spans_named(const RunResult& result, const std::string& name) {
  std::vector<sim::Span> spans;
  for (const sim::Span& span : result.spans)
    if (span.rank == 0 && result.span_names[span.name] == name) spans.push_back(span);
  std::ranges::stable_sort(spans, {}, &sim::Span::start);
  return spans;
}

RunResult traced(const std::string& text, std::vector<std::string> sets = {}) {
  RunOptions options;
  options.trace_ranks = 1;
  return good_run(full_scenario(text, std::move(sets)), options);
}

// With two freed units in the queue the host waits for the older one's event before it issues the
// next AllGather: layers.2 (third block) is not gathered before layers.0 has been computed.
TEST_CASE("fsdp1: limit_all_gathers keeps the third AllGather behind the first unit's free") {
  const auto third_after_first = [](const std::string& limit) {
    const RunResult result = traced(job(), {"fsdp1.limit_all_gathers=" + limit});
    return spans_named(result, "AllGather layers.2").front().start >=
           spans_named(result, "layers.0.mlp").front().end;
  };
  CHECK(third_after_first("true"));
  CHECK_FALSE(third_after_first("false"));
}

TEST_CASE("fsdp1: what the limiter saves is said in the memory table") {
  const auto gathered = [](const std::string& limit) {
    const RunResult result = good_run(full_scenario(job(), {"fsdp1.limit_all_gathers=" + limit}));
    for (const MemoryRow& row : result.training->memory)
      if (row.what == "gathered units") return row.bytes;
    return 0.0;
  };
  CHECK(gathered("true") == static_cast<double>((padded(0, 4) + 2 * padded(1, 4)) * 2));
  CHECK(gathered("false") == static_cast<double>(all(4) * 2));
}

// By the end of backward: PRE hides the AllGather behind the unit before, POST and none do not.
TEST_CASE("fsdp1: BACKWARD_PRE is no slower than BACKWARD_POST, that no slower than none") {
  const auto step = [](const std::string& prefetch) {
    return good_run(full_scenario(job("count: 8"), {"fsdp1.backward_prefetch=" + prefetch}))
        .training->step_time;
  };
  CHECK(step("BACKWARD_PRE") < step("BACKWARD_POST"));
  CHECK(step("BACKWARD_POST") <= step("none"));
}

// A host that is slow to launch is not ahead of the GPU: only then does it matter that the next
// AllGather is issued before this unit's kernels. The order of the first pass is not known
// beforehand.
TEST_CASE("fsdp1: forward_prefetch issues the next AllGather first, from the second pass on") {
  // In the first and in the second iteration.
  const auto gathered_before_embed = [](const std::string& prefetch) {
    const RunResult result =
        traced(job(), {"fsdp1.forward_prefetch=" + prefetch, "parameters.host.op_launch=300us"});
    const auto gathers = spans_named(result, "AllGather layers.0");  // forward, backward of each
    const auto embeds = spans_named(result, "embed");
    REQUIRE(gathers.size() == 4);
    REQUIRE(embeds.size() == 2);
    return std::pair(gathers[0].start < embeds[0].start, gathers[2].start < embeds[1].start);
  };
  CHECK(gathered_before_embed("false") == std::pair(false, false));
  CHECK(gathered_before_embed("true") == std::pair(false, true));
}

TEST_CASE("fsdp1: replay changes nothing") {
  const RunResult with = good_run(full_scenario(job()));
  const RunResult without = good_run(full_scenario(job(), {"engine.replay=false"}));
  CHECK(with.replays > 0);
  CHECK(without.replays == 0);
  CHECK(with.trace_hash == without.trace_hash);
}

TEST_CASE("fsdp1: what is refused, and what is warned of") {
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  };
  has(error_of(job("count: 4", "  sharding_strategy: HYBRID_SHARD\n")),
      "fsdp1: HYBRID_SHARD needs replica_group besides shard_group");
  has(error_of(job(kHybrid, "  shard_group: shard\n  replica_group: replica\n")),
      "fsdp1.replica_group: FULL_SHARD has no replicas");
  has(error_of(job("count: 8, groups: {shard: {size: 4}}", "  shard_group: shard\n")),
      "fsdp1.shard_group: shard_group 'shard' has 4 of the world's 8 ranks");
  has(error_of(job("count: 8, groups: {shard: {size: 4}, replica: {size: 4}}",
                   "  shard_group: shard\n  replica_group: replica\n"
                   "  sharding_strategy: HYBRID_SHARD\n")),
      "fsdp1.replica_group: 4 shards (group 'shard') x 4 replicas (group 'replica') are not the "
      "world's 8 ranks");
  has(error_of(job("count: 8, groups: {shard: {size: 3}}", "  shard_group: shard\n")),
      "the world's 8 ranks do not divide by size 3");
  has(error_of(job("count: 4", "  sharding_strategy: ZERO3\n")),
      "fsdp1.sharding_strategy: unknown sharding strategy 'ZERO3'");
  has(error_of(job("count: 4", "  backward_prefetch: PRE\n")),
      "fsdp1.backward_prefetch: unknown backward prefetch 'PRE'");
  const RunResult small = good_run(full_scenario(job(), {"parameters.gpu.hbm_capacity=1MB"}));
  CHECK(std::ranges::any_of(small.notes, [](const std::string& note) {
    return note.starts_with("out of memory: shards of parameters");
  }));
}

}  // namespace
}  // namespace railyard::scenarios
