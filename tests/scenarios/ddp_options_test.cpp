// Gradient accumulation and communication hooks of DDP: payloads, calls and extra kernels.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/run.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using tests::full_scenario;
using tests::good_run;

RunResult run_with(std::vector<std::string> sets) {
  RunOptions options;
  options.trace_ranks = 2;
  return good_run(
      full_scenario("railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {count: 2}\n"
                    "nccl: {algorithm: Ring, protocol: Simple, channels: 4}\n"
                    "ddp: {model: resnet50, batch_per_gpu: 16, precision: fp32, optimizer: sgd, "
                    "iterations: 4}\n",
                    std::move(sets)),
      options);
}

std::size_t spans_of(const RunResult& result, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(result.spans, [&](const sim::Span& span) {
    return span.rank == 0 && result.span_names[span.name] == name;
  }));
}

// ResNet-50 has 161 parameters in 5 buckets; the first iteration has one bucket.
TEST_CASE("ddp: accumulation reduces once per step, whatever the number of micro-batches") {
  const RunResult one = run_with({});
  const RunResult four = run_with({"ddp.gradient_accumulation=4"});
  CHECK(spans_of(one, "AllReduce bucket") == spans_of(four, "AllReduce bucket"));
  CHECK(spans_of(one, "scale gradient into bucket") ==
        spans_of(four, "scale gradient into bucket"));
  CHECK(spans_of(one, "Broadcast buffers") == spans_of(four, "Broadcast buffers"));
  // The first micro-batch leaves its gradients, the other three add to them.
  CHECK(spans_of(one, "accumulate gradient") == 0);
  CHECK(spans_of(four, "accumulate gradient") == 4 * 3 * 161);
  CHECK(four.ddp->bucket_bytes == one.ddp->bucket_bytes);
  const double ratio = sim::to_seconds(four.ddp->step_time) / sim::to_seconds(one.ddp->step_time);
  CHECK(ratio > 3);
  CHECK(ratio < 4.2);
  CHECK(four.ddp->samples_per_second > one.ddp->samples_per_second * 0.95);
}

TEST_CASE("ddp: a compressing hook halves what is sent, and casts twice per bucket") {
  const RunResult plain = run_with({});
  const RunResult half = run_with({"ddp.comm_hook=fp16_compress"});
  CHECK(half.ddp->bucket_bytes == plain.ddp->bucket_bytes);  // buckets are assigned as before
  // One bucket in iterations 1 and 2 each until the rebuild, then five.
  const std::size_t reductions = spans_of(plain, "AllReduce bucket");
  CHECK(spans_of(half, "AllReduce bucket") == reductions);
  CHECK(spans_of(half, "compress bucket") == reductions);
  CHECK(spans_of(half, "decompress bucket") == reductions);
  CHECK(spans_of(half, "scale gradient into bucket") == 0);
  CHECK(spans_of(half, "copy gradient into bucket") == 4 * 161);
  CHECK(half.stream_names.back() == "hook callback");
  // fp32 gradients of 25,557,032 parameters by a ring of two: each rank sends them once.
  const auto carried = [](const RunResult& result) {
    std::int64_t most = 0;
    for (const LinkRow& link : result.busiest_links) most = std::max(most, link.bytes.raw());
    return static_cast<double>(most);
  };
  CHECK(carried(half) < carried(plain) * 0.51 + 1e6);
  CHECK(carried(half) > carried(plain) * 0.49);
  // Gradients that have two bytes already are sent as they are.
  const RunResult small = run_with({"ddp.comm_hook=bf16_compress", "ddp.precision=bf16"});
  const RunResult bf16 = run_with({"ddp.precision=bf16"});
  CHECK(carried(small) == carried(bf16));
}

TEST_CASE("a fall-back's price is the same job with nothing missing") {
  const std::string text =
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch}}\nnccl: auto\n"
      "collectives: [{collective: AllReduce, sizes: [64MiB]}]\n";
  RunOptions options;
  options.sensitivity = true;
  const auto notes = [&](std::vector<std::string> sets) {
    std::string found;
    for (const std::string& note : good_run(full_scenario(text, std::move(sets)), options).notes)
      if (note.starts_with("the fall-back's price")) found += note;
    return found;
  };
  CHECK(notes({}).empty());
  const double fast = sim::to_seconds(objective_time(good_run(full_scenario(text))));
  for (const char* set : {"env={NCCL_IB_DISABLE: 1}", "nccl={choice: auto, infiniband: false}"}) {
    const std::string note = notes({set});
    CHECK(note.find("without InfiniBand") != std::string::npos);
    const double slow = sim::to_seconds(objective_time(good_run(full_scenario(text, {set}))));
    CHECK(slow > 2 * fast);
    CHECK(note.find(fmt::format("{:.2f} times as long", slow / fast)) != std::string::npos);
  }
}

}  // namespace
}  // namespace railyard::scenarios
