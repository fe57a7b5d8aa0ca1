// fully_shard jobs: bytes on the wire by formulas of their own, what waits for what, and what is
// refused. The order on every stream is in golden_streams_test.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "scenarios/run.h"
#include "scenarios/training_result.h"
#include "tests/scenarios/run_helpers.h"
#include "tests/scenarios/tiny_network.h"

namespace railyard::scenarios {
namespace {

using tests::full_scenario;
using tests::good_run;

using tests::TinyShape;
const auto& kUnits = tests::kTinyUnits;

std::string job(const std::string& more, const std::string& ranks = "count: 4") {
  return tests::tiny_job("fsdp", ranks, more);
}

std::int64_t padded(const std::vector<TinyShape>& unit, std::int64_t shards) {
  std::int64_t sum = 0;
  for (const TinyShape& shape : unit)
    sum += (shape.rows + shards - 1) / shards * shards * shape.columns;
  return sum;
}

RunResult traced(const std::string& text, std::vector<std::string> sets = {}) {
  RunOptions options;
  options.trace_ranks = 4;
  return good_run(full_scenario(text, std::move(sets)), options);
}

TEST_CASE("fsdp: bytes on the wire are the formulas of full sharding") {
  for (const std::int64_t n : {2, 4, 8}) {
    const RunResult result =
        good_run(full_scenario(job("", "count: " + std::to_string(n)), {"fsdp.reduce_dtype=fp32"}));
    // Blocks are gathered twice in bf16, the root once; every unit is reduced once in fp32.
    std::int64_t gathered = padded(kUnits[0], n) * 2;
    std::int64_t reduced = padded(kUnits[0], n) * 4;
    for (std::size_t b = 1; b < 4; ++b) {
      gathered += 2 * padded(kUnits[b], n) * 2;
      reduced += padded(kUnits[b], n) * 4;
    }
    auto bytes = tests::sent_bytes(result);
    CHECK(bytes[sim::Collective::all_gather] == gathered * (n - 1) / n);
    CHECK(bytes[sim::Collective::reduce_scatter] == reduced * (n - 1) / n);
    CHECK(bytes.size() == 2);
  }
}

TEST_CASE("fsdp: without resharding every unit is gathered once") {
  auto bytes =
      tests::sent_bytes(good_run(full_scenario(job(""), {"fsdp.reshard_after_forward=false"})));
  std::int64_t gathered = 0;
  for (const auto& unit : kUnits) gathered += padded(unit, 4) * 2;
  CHECK(bytes[sim::Collective::all_gather] == gathered * 3 / 4);
  CHECK(bytes[sim::Collective::reduce_scatter] == gathered * 3 / 4);  // reduced in bf16 as well
}

TEST_CASE("fsdp: hybrid sharding adds an AllReduce of the shard over the replicas") {
  const std::string groups = "count: 8, groups: {shard: {size: 4}, replica: {size: 2, stride: 4}}";
  auto bytes = tests::sent_bytes(good_run(
      full_scenario(job("", groups), {"fsdp.shard_group=shard", "fsdp.replica_group=replica"})));
  std::int64_t all = 0;
  std::int64_t blocks = 0;
  for (std::size_t u = 0; u < 4; ++u) {
    all += padded(kUnits[u], 4) * 2;
    blocks += u > 0 ? padded(kUnits[u], 4) * 2 : 0;
  }
  CHECK(bytes[sim::Collective::all_gather] == (all + blocks) * 3 / 4);
  CHECK(bytes[sim::Collective::reduce_scatter] == all * 3 / 4);
  CHECK(bytes[sim::Collective::all_reduce] == all / 4);  // 2 (g/N) (R-1)/R with R = 2
}

TEST_CASE("fsdp: resharding to a smaller group gathers there in backward") {
  const std::string groups = "count: 4, groups: {pair: {size: 2}}";
  const RunResult result =
      good_run(full_scenario(job("", groups), {"fsdp.reshard_after_forward=pair"}));
  std::int64_t whole = 0;
  std::int64_t pairs = 0;
  for (const CallRow& row : result.training->calls) {
    if (row.collective != sim::Collective::all_gather) continue;
    (row.group == "pair" ? pairs : whole) += row.sent.raw();
  }
  CHECK(whole == (padded(kUnits[0], 4) + 3 * padded(kUnits[1], 4)) * 2 * 3 / 4);
  CHECK(pairs == 3 * padded(kUnits[1], 4) * 2 / 2);
}

// post_backward: the compute stream waits for the previous ReduceScatter before the next input.
TEST_CASE("fsdp: at most one ReduceScatter is outstanding") {
  const RunResult result = traced(job(""));
  sim::Time previous{};
  int checked = 0;
  std::vector<sim::Span> spans = result.spans;
  std::ranges::stable_sort(spans, {}, &sim::Span::start);
  for (const sim::Span& span : spans) {
    if (span.rank != 0) continue;
    const std::string& name = result.span_names[span.name];
    if (name.starts_with("reduce copy-in")) {
      CHECK(span.start >= previous);
      ++checked;
    }
    if (name.starts_with("ReduceScatter")) previous = span.end;
  }
  CHECK(checked == 8);
}

TEST_CASE("fsdp: accumulation with and without reduction in every micro-batch") {
  const auto counts = [](std::vector<std::string> sets) {
    sets.emplace_back("fsdp.gradient_accumulation=3");
    std::map<sim::Collective, std::int64_t> calls;
    const RunResult result = good_run(full_scenario(job(""), sets));
    for (const CallRow& row : result.training->calls) calls[row.collective] += row.count;
    return calls;
  };
  auto all = counts({});
  CHECK(all[sim::Collective::reduce_scatter] == 12);
  CHECK(all[sim::Collective::all_gather] == 3 * 7);
  auto last = counts({"fsdp.requires_gradient_sync=false"});
  CHECK(last[sim::Collective::reduce_scatter] == 4);
  CHECK(last[sim::Collective::all_gather] == 3 * 7);  // parameters are resharded all the same
  // Left whole behind the first two backwards, the next forward gathers nothing, its backward the
  // blocks that forward resharded: 7 + 3 + 3.
  auto whole = counts({"fsdp.requires_gradient_sync=false", "fsdp.reshard_after_backward=false"});
  CHECK(whole[sim::Collective::all_gather] == 13);
}

TEST_CASE("fsdp: replay changes nothing") {
  const RunResult with = good_run(full_scenario(job("")));
  const RunResult without = good_run(full_scenario(job(""), {"engine.replay=false"}));
  CHECK(with.replays > 0);
  CHECK(without.replays == 0);
  CHECK(with.trace_hash == without.trace_hash);
  CHECK(with.training->step_time == without.training->step_time);
}

TEST_CASE("fsdp: what is refused, and what is warned of") {
  CHECK(tests::error_of_run(full_scenario(job(""), {})) == "no error");
  const auto read = [](const std::string& set) {
    const auto scenario = scenario_from_text(job(""), "s.yaml", {.sets = {set}});
    return scenario.ok() ? std::string() : scenario.error().text();
  };
  CHECK(read("fsdp.shard_group=nodes").find("no group 'nodes' in ranks.groups") !=
        std::string::npos);
  CHECK(read("fsdp.reshard=true").find("unknown key 'reshard'") != std::string::npos);
  CHECK(read("ddp={}").find("ddp") != std::string::npos);
  const RunResult small = good_run(full_scenario(job(""), {"parameters.gpu.hbm_capacity=1MB"}));
  CHECK(std::ranges::any_of(small.notes, [](const std::string& note) {
    return note.starts_with("out of memory: shards of parameters");
  }));
}

}  // namespace
}  // namespace railyard::scenarios
