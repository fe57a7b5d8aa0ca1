// DDP jobs at the edges: one rank, very many iterations, more memory than there is.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>

#include "scenarios/run.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using tests::full_scenario;
using tests::good_run;
using tests::run_of;
using tests::shipped_scenario;

bool notes(const RunResult& result, std::string_view text) {
  return std::ranges::any_of(
      result.notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

std::string job(const std::string& ranks, const std::string& ddp) {
  return "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {count: " + ranks +
         "}\nnccl: {algorithm: Ring, protocol: Simple, channels: 4}\nddp: {" + ddp + "}\n";
}

// NCCL's AllReduce of one rank whose output is its input has nothing to do.
TEST_CASE("ddp: one rank alone moves nothing") {
  for (const char* replay : {"true", "false"}) {
    const RunResult result = good_run(full_scenario(
        job("1", "model: resnet50, batch_per_gpu: 32, precision: fp32, optimizer: sgd"),
        {std::string("engine.replay=") + replay}));
    REQUIRE(result.ddp->buckets.size() == 5);
    for (const BucketRow& bucket : result.ddp->buckets) CHECK(bucket.end == bucket.start);
    CHECK(result.messages == 0);
  }
}

// The host synchronises in iteration 2 only; from then on every iteration is like the last.
TEST_CASE("ddp: an iteration costs what it simulates, not what will be") {
  const std::string model = "model: resnet18, batch_per_gpu: 8, precision: fp32, optimizer: sgd, ";
  const RunResult ten = good_run(full_scenario(job("2", model + "iterations: 10")));
  REQUIRE(ten.ddp->iterations.size() == 10);
  CHECK(ten.ddp->iterations[9] == ten.ddp->iterations[6]);
  CHECK(ten.ddp->bucket_bytes[9] == ten.ddp->bucket_bytes[2]);
  // A million: stopped at once, and nothing was built for the rest.
  RunOptions options;
  options.limits.max_events = 1000;
  const RunResult few = run_of(full_scenario(job("2", model + "iterations: 1000000")), options);
  CHECK(few.outcome == sim::EventQueue::Outcome::limit);
  CHECK(few.events < 100'000);
  const auto all = estimate(full_scenario(job("2", model + "iterations: 1000000")));
  const auto one = estimate(full_scenario(job("2", model + "iterations: 1000")));
  REQUIRE(all.ok());
  CHECK(all.value().events > 900 * one.value().events);
  CHECK(all.value().memory_bytes > 100 * one.value().memory_bytes);
}

// GPT-2 XL: 1,557,611,200 parameters of 4 B; with gradients, buckets and Adam's two states 5 x 6.2
// = 31.2 GB. Views of the buckets save 6.2.
TEST_CASE("ddp: a job that does not fit the GPU's memory is told, and run") {
  const std::string model =
      "model: gpt2-xl, batch_per_gpu: 1, sequence_length: 128, precision: "
      "amp-bf16, optimizer: adamw, iterations: 1";
  const auto at = [&](const std::string& capacity, const std::string& more) {
    return good_run(
        full_scenario(job("2", model + more), {"parameters.gpu.hbm_capacity=" + capacity}));
  };
  CHECK(notes(at("31GB", ""),
              "out of memory: parameters 6.2 GB, gradients 6.2 GB, buckets 6.2 GB and optimizer "
              "state 12.5 GB are 31.2 GB per GPU without any activations, and it has 31.0 GB"));
  CHECK_FALSE(notes(at("32GB", ""), "out of memory"));
  CHECK_FALSE(notes(at("31GB", ", gradient_as_bucket_view: true"), "out of memory"));
}

// 125,000 nodes are a million GPUs, 4 million devices and 17 million links.
TEST_CASE("estimate: the memory of a huge cluster is known before it is built") {
  const Scenario huge = shipped_scenario("gpt2-xl-ddp-4x8-h100.yaml", {"cluster.nodes=125000"});
  const auto refused = estimate(huge, 500e6);
  REQUIRE(refused.ok());
  CHECK(refused.value().memory_bytes > 500e6);
  CHECK(refused.value().memory_bytes < 5e9);
  CHECK(refused.value().events == 0);
  RunOptions options;
  options.limits.max_memory_bytes = 500e6;
  const auto result = run(huge, options);
  REQUIRE(!result.ok());
  CHECK(result.error().message.starts_with("the cluster alone needs about "));
  CHECK(result.error().message.ends_with("more than the limit of 0.5 GB"));
}

TEST_CASE("sensitivity: progress grows through all runs, and a limit is told") {
  RunOptions options;
  options.sensitivity = true;
  std::vector<double> seen;
  options.limits.progress = [&](double share) { seen.push_back(share); };
  const Scenario scenario =
      full_scenario(job("8", "model: resnet50, batch_per_gpu: 32, precision: fp32, optimizer: sgd"),
                    {"engine.replay=false"});
  const auto expected = estimate(scenario);
  REQUIRE(expected.ok());
  options.limits.expected_events = expected.value().events;
  const RunResult all = good_run(scenario, options);
  REQUIRE(!seen.empty());
  CHECK(std::ranges::is_sorted(seen));
  CHECK(seen.back() > 0.5);
  CHECK(seen.back() <= 1);
  CHECK_FALSE(notes(all, "sensitivity table"));
  const std::size_t rows = all.sensitivity.size();
  CHECK(rows >= 5);

  // Stopped in the first run of the table, as by a limit of time.
  std::atomic<bool> stop{false};
  options.limits.interrupted = &stop;
  options.limits.progress = [&](double share) { stop = stop || share > 0.3; };
  const RunResult stopped = run_of(scenario, options);
  CHECK(stopped.outcome == sim::EventQueue::Outcome::drained);
  CHECK(stopped.sensitivity.size() < rows);
  CHECK(notes(stopped, "warning: a limit stopped the sensitivity table after "));
}

// Rows that are not run again must be what a run would have given.
TEST_CASE("sensitivity: links that held nothing back change nothing when they are faster") {
  RunOptions options;
  options.sensitivity = true;
  const Scenario scenario = shipped_scenario("bert-large-ddp-dgx-a100.yaml", {"ddp.iterations=2"});
  const RunResult base = good_run(scenario, options);
  std::size_t unchanged = 0;
  for (const SensitivityRow& row : base.sensitivity) {
    const auto entry = std::ranges::find_if(
        sim::EnumTable<sim::LinkClass>::entries,
        [&](const auto& each) { return row.what == std::string(each.name) + " bandwidth"; });
    if (entry == sim::EnumTable<sim::LinkClass>::entries.end()) continue;
    Scenario faster = scenario;
    faster.parameters.links[static_cast<std::size_t>(entry->value)].efficiency *= 1.1;
    CAPTURE(row.what);
    CHECK(row.varied == objective_time(good_run(faster)));
    unchanged += row.varied == row.base ? 1 : 0;
  }
  CHECK(unchanged > 0);
}

}  // namespace
}  // namespace railyard::scenarios
