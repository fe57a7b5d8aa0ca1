// What DDP's hooks, SyncBatchNorm, join() and the optimizer in backward put on the wire and on the
// streams. The network is two convolutions with batch norms and a wide matrix; all sizes divide by
// 8. Bytes are those of every message of the run: a ring of n ranks moves 2 (n-1) S for AllReduce
// of S, (n-1) S for a broadcast, n (n-1) S for an AllGather of S from each.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/run.h"
#include "tests/scenarios/run_helpers.h"
#include "tests/scenarios/toy_network.h"

namespace railyard::scenarios {
namespace {

using tests::full_scenario;
using tests::good_run;

constexpr std::int64_t kConv = 64 * 32 * 9;  // weights of one convolution
constexpr std::int64_t kChannels = 64;       // of its batch norm
constexpr std::int64_t kWide = 1024 * 2048;  // the matrix, and its bias
constexpr std::int64_t kBias = 1024;
constexpr std::int64_t kBuffers = 2 * 2 * kChannels;  // fp32: running means and variances
constexpr std::int64_t kTracked = 2;                  // int64
constexpr std::int64_t kParameters = 2 * (kConv + 2 * kChannels) + kWide + kBias;

const char* const kModel =
    "  model:\n    parameters:\n"
    "      - {name: conv1, shape: [64, 32, 3, 3]}\n"
    "      - {name: bn1.weight, shape: [64]}\n      - {name: bn1.bias, shape: [64]}\n"
    "      - {name: conv2, shape: [64, 32, 3, 3]}\n"
    "      - {name: bn2.weight, shape: [64]}\n      - {name: bn2.bias, shape: [64]}\n"
    "      - {name: wide.weight, shape: [1024, 2048]}\n"
    "      - {name: wide.bias, shape: [1024]}\n"
    "    buffers: {fp32_elements: 256, int64_elements: 2}\n    layers:\n"
    "      - {name: conv1, kind: conv, has_dgrad: false, parameters: [conv1], "
    "forward_flops: 1e9, input_elements: 100000, output_elements: 100000}\n"
    "      - {name: bn1, kind: norm, parameters: [bn1.weight, bn1.bias], "
    "input_elements: 100000, output_elements: 100000}\n"
    "      - {name: conv2, kind: conv, parameters: [conv2], forward_flops: 1e9, "
    "input_elements: 100000, output_elements: 100000}\n"
    "      - {name: bn2, kind: norm, parameters: [bn2.weight, bn2.bias], "
    "input_elements: 100000, output_elements: 100000}\n"
    "      - {name: wide, kind: gemm, parameters: [wide.weight, wide.bias], "
    "forward_flops: 1e9, input_elements: 2048, output_elements: 1024}\n";

std::string job(std::int64_t ranks, const std::string& more = "") {
  return fmt::format(
      "railyard: 1\ncluster: {{machine: hgx-h100, nodes: 1}}\nranks: {{count: {}}}\n"
      "nccl: {{algorithm: Ring, protocol: Simple, channels: 2}}\nddp:\n  batch_per_gpu: 8\n"
      "  precision: fp32\n  optimizer: sgd\n  iterations: 5\n{}{}",
      ranks, more, kModel);
}

std::int64_t moved_per_step(std::int64_t ranks, const std::vector<std::string>& sets) {
  return tests::bytes_of_iteration(job(ranks), "ddp", 5, sets);
}

std::int64_t buffers(std::int64_t n) { return (n - 1) * (kBuffers * 4 + kTracked * 8); }

std::int64_t count(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::count(names, name);
}

// At rank r: each convolution is 64 x 288, (64 + 288) r x 2 < 18,432 up to r = 26; the wide matrix
// is 1024 x 2048. The vectors stay whole: 4 x 64 + 1024.
TEST_CASE("ddp powerSGD: bytes of a step are U + P + Q of every bucket") {
  for (const std::int64_t n : {2, 4, 8})
    for (const std::int64_t r : {1, 2, 4}) {
      CAPTURE(n);
      CAPTURE(r);
      const std::int64_t whole = 4 * kChannels + kBias;
      const std::int64_t p = (64 + 64 + 1024) * r;
      const std::int64_t q = (288 + 288 + 2048) * r;
      CHECK(moved_per_step(n, {"ddp.comm_hook=powerSGD", "ddp.start_powerSGD_iter=2",
                               fmt::format("ddp.matrix_approximation_rank={}", r)}) ==
            2 * (n - 1) * (whole + p + q) * 4 + buffers(n));
    }
}

TEST_CASE(
    "ddp powerSGD: plain until it starts, then three AllReduces a bucket, one after another") {
  const std::vector<std::string> sets{"ddp.comm_hook=powerSGD", "ddp.start_powerSGD_iter=3"};
  const RunResult result = tests::traced_run(job(2), sets);
  // Buckets: one in iteration 1, then [wide], [the rest] as wide's 8.4 MB passes the first MiB.
  REQUIRE(result.ddp->buckets.size() == 2);
  const auto names = tests::names_on(result, 0, "communication");
  // The second bucket has both kinds; so has the first: its bias is whole.
  CHECK(count(names, "AllReduce bucket") == 1 + 2 + 2 + 6 + 6);
  CHECK(result.ddp->buckets[0].size.raw() == (kWide + kBias) * 4);
  CHECK(result.ddp->buckets[0].sent.raw() == (kBias + 1024 + 2048) * 4);
  CHECK(result.ddp->buckets[1].sent.raw() == (4 * kChannels + 2 * (64 + 288)) * 4);
  const auto callback = tests::names_on(result, 0, "hook callback");
  // Iterations 4 and 5; per bucket unpack, compute q, decompress.
  CHECK(count(callback, "compute q") == 2 * 3);
  CHECK(count(callback, "decompress") == 2 * 3);
  CHECK(count(callback, "unpack uncompressed") == 2 * 5);
  CHECK(count(callback, "keep error") == 2 * 2);
  // Rank 1: two kernels for each Q on the compute stream and each P in the callback.
  const auto compute = tests::names_on(result, 0, "compute");
  CHECK(count(compute, "gram-schmidt") == 2 * 2 * 3);
  CHECK(count(callback, "gram-schmidt") == 2 * 2 * 3);
  CHECK(count(compute, "zero error") == 2);  // iteration 4
  CHECK(count(compute, "add error") == 2);   // iteration 5
  CHECK(count(compute, "copy random q") == 3);
  CHECK(
      count(tests::names_on(tests::traced_run(job(2, "  warm_start: false\n"), sets), 0, "compute"),
            "copy random q") == 6);
}

TEST_CASE("ddp batched_powerSGD: two AllReduces of the side of a square") {
  // ceil(sqrt(2,098,176)) = 1449, ceil(sqrt(37,120)) = 193.
  const std::int64_t sides = 1449 + 193;
  for (const std::int64_t n : {2, 4})
    CHECK(moved_per_step(n, {"ddp.comm_hook=batched_powerSGD", "ddp.start_powerSGD_iter=2",
                             "ddp.matrix_approximation_rank=4"}) ==
          2 * (n - 1) * 2 * sides * 4 * 4 + buffers(n));
}

TEST_CASE("ddp powerSGD: the host waits in every bucket, and a run too short says so") {
  const RunResult plain = tests::traced_run(job(2), {"ddp.comm_hook=powerSGD"});
  CHECK(std::ranges::any_of(plain.notes, [](const std::string& note) {
    return note.starts_with("PowerSGD compresses from iteration 1001 on");
  }));
  // torch.cuda.synchronize: what backward launches after a bucket's hook runs after its decompress.
  const RunResult result =
      tests::traced_run(job(2), {"ddp.comm_hook=powerSGD", "ddp.start_powerSGD_iter=2"});
  sim::Time decompressed{};
  int checked = 0;
  std::vector<sim::Span> spans = result.spans;
  std::ranges::stable_sort(spans, {}, &sim::Span::start);
  for (const sim::Span& span : spans) {
    if (span.rank != 0) continue;
    const std::string& name = result.span_names[span.name];
    if (name == "decompress") decompressed = span.end;
    if (name != "dgrad bn2" || decompressed == sim::Time{}) continue;
    CHECK(span.start >= decompressed);
    ++checked;
  }
  CHECK(checked == 3);  // iterations 3 to 5
}

TEST_CASE("ddp SyncBatchNorm: an AllGather of 2C + 1 forward, an AllReduce of 2C backward") {
  const std::vector<std::string> sync{"ddp.convert_sync_batchnorm=true"};
  for (const std::int64_t n : {2, 4, 8})
    CHECK(moved_per_step(n, sync) ==
          2 * (n - 1) * kParameters * 4 + buffers(n) +
              2 * (n * (n - 1) * (2 * kChannels + 1) * 4 + 2 * (n - 1) * 2 * kChannels * 4));
  const RunResult result = tests::traced_run(job(2), sync);
  // Iteration 5 on the communication stream: buffers of both types, two norms forward; backward the
  // wide matrix's bucket goes before both norms, the rest after them.
  const auto names = tests::names_on(result, 0, "communication");
  const std::vector<std::string> last(names.end() - 8, names.end());
  CHECK(last == std::vector<std::string>{"Broadcast buffers", "Broadcast buffers",
                                         "SyncBatchNorm statistics", "SyncBatchNorm statistics",
                                         "AllReduce bucket", "SyncBatchNorm statistics",
                                         "SyncBatchNorm statistics", "AllReduce bucket"});
  const auto compute = tests::names_on(result, 0, "compute");
  CHECK(count(compute, "statistics bn1") == 5);
  CHECK(count(compute, "bn1") == 5);
  CHECK(count(compute, "sums bn1") == 5);
  CHECK(count(compute, "dgrad bn1") == 5);
  CHECK(count(compute, "wgrad bn1") == 0);
}

TEST_CASE("ddp SyncBatchNorm: every norm waits for the bucket that was launched before it") {
  const RunResult result = tests::traced_run(job(2), {"ddp.convert_sync_batchnorm=true"});
  std::vector<sim::Span> spans = result.spans;
  std::ranges::stable_sort(spans, {}, &sim::Span::start);
  sim::Time bucket{};
  int checked = 0;
  for (const sim::Span& span : spans) {
    if (span.rank != 0) continue;
    const std::string& name = result.span_names[span.name];
    if (name == "AllReduce bucket") bucket = span.end;
    if (name != "dgrad bn2") continue;
    CHECK(span.start >= bucket);
    ++checked;
  }
  CHECK(checked == 5);
}

// Three small AllReduces in each of five iterations, two at the end; the model is broadcast then.
TEST_CASE("ddp join: the same calls on every rank, and what they carry") {
  const std::string some = "  join: [{rank: 1, iterations: 2}, {rank: 2, iterations: 4}]\n";
  const std::string none = "  join: [{rank: 1, iterations: 5}]\n";
  const RunResult result = tests::traced_run(job(4, some));
  const auto names = tests::names_on(result, 0, "communication");
  CHECK(count(names, "AllReduce join") == 5 * 3 + 2);
  CHECK(count(names, "AllReduce bucket") == 1 + 4 * 2);
  CHECK(count(names, "Broadcast buffers") == 10);
  CHECK(count(names, "Broadcast final model") == 3);  // parameters, buffers of both types
  for (const std::uint32_t rank : {1U, 2U, 3U})
    CHECK(tests::names_on(result, rank, "communication") == names);
  // A joined rank computes nothing: one kernel of zeros for each bucket.
  const auto joined = tests::names_on(result, 1, "compute");
  CHECK(count(joined, "zero bucket") == 3 * 2);
  CHECK(count(joined, "conv1") == 2);
  CHECK(count(joined, "optimizer") == 2);
  CHECK(count(tests::names_on(result, 0, "compute"), "zero bucket") == 0);
  // Whoever joins when, the wire carries the same.
  CHECK(tests::bytes_moved(result) == tests::bytes_moved(tests::traced_run(job(4, none))));
  CHECK(tests::bytes_moved(result) - tests::bytes_moved(tests::traced_run(job(4))) ==
        5 * 2 * 3 * (4 + 8 + 4) + 2 * 3 * (4 + 8) + 3 * kParameters * 4 + buffers(4));
  // Two of the four had samples in the last iteration.
  CHECK(result.ddp->samples_per_second * sim::to_seconds(result.ddp->step_time) ==
        doctest::Approx(2 * 8));
}

TEST_CASE("ddp join: micro-batches without reduction exchange two AllReduces each") {
  const RunResult result = tests::traced_run(job(2, "  join: [{rank: 1, iterations: 3}]\n"),
                                             {"ddp.gradient_accumulation=3"});
  const auto names = tests::names_on(result, 0, "communication");
  CHECK(count(names, "AllReduce join") == 5 * (3 + 2 + 2) + 2);
  CHECK(tests::names_on(result, 1, "communication") == names);
}

TEST_CASE("ddp: the optimizer in backward steps behind each bucket") {
  const RunResult plain = tests::traced_run(job(2));
  const RunResult result = tests::traced_run(job(2), {"ddp.apply_optimizer_in_backward=true"});
  CHECK(tests::bytes_moved(result) == tests::bytes_moved(plain));
  const auto stream = tests::names_on(result, 0, "optimizer in backward");
  CHECK(count(stream, "optimizer") == 5 * 8);  // one a parameter
  CHECK(count(stream, "divide bucket") == 1 + 4 * 2);
  const auto compute = tests::names_on(result, 0, "compute");
  CHECK(count(compute, "optimizer") == 0);
  CHECK(count(compute, "copy gradient out of bucket") == 0);
  CHECK(count(compute, "copy gradient into bucket") == 5 * 8);
  // The first bucket's step does not wait for the last bucket's AllReduce.
  const std::vector<std::string> last(stream.end() - 10, stream.end());
  CHECK(last[0] == "divide bucket");
  CHECK(last[3] == "divide bucket");
}

TEST_CASE("ddp: what hooks, norms and join refuse") {
  const auto read = [](const std::string& more, const std::string& set = "name=x") {
    const auto scenario = scenario_from_text(job(4, more), "s.yaml", {.sets = {set}});
    return scenario.ok() ? tests::error_of_run(scenario.value()) : scenario.error().text();
  };
  CHECK(read("") == "no error");
  const auto says = [&](const std::string& more, const char* what) {
    CAPTURE(more);
    const std::string text = read(more);
    CHECK(text.find(what) != std::string::npos);
    CHECK_MESSAGE(text.find("s.yaml:10:") == 0, text);
  };
  says("  warm_start: false\n", "warm_start: belongs to comm_hook: powerSGD");
  CHECK(read("  warm_start: false\n  comm_hook: none\n") == "no error");
  says("  start_powerSGD_iter: 1\n  comm_hook: powerSGD\n",
       "start_powerSGD_iter must be above 1, not 1");
  says("  matrix_approximation_rank: 0\n  comm_hook: powerSGD\n", "0 is out of range");
  says("  apply_optimizer_in_backward: true\n  comm_hook: fp16_compress\n",
       "DDP takes one communication hook");
  says("  join: [{rank: 4, iterations: 1}]\n", "join names rank 4 of a job of 4 ranks (0 to 3)");
  says("  join: [{rank: 1, iterations: 6}]\n", "inputs for 6 iterations of 5");
  says("  join: [{rank: 1, iterations: 1}, {rank: 1, iterations: 2}]\n", "rank 1 is named twice");
  says("  join: [{rank: 1, iterations: 1}]\n  convert_sync_batchnorm: true\n",
       "cannot join ranks whose network has SyncBatchNorm");
  CHECK(
      read("  join: [{rank: 0, iterations: 1}, {rank: 1, iterations: 1}, {rank: 2, iterations: 1},"
           " {rank: 3, iterations: 1}]\n")
          .find("at least one for all") != std::string::npos);
  const auto no_norms = scenario_from_text(
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {count: 2}\nnccl: auto\n"
      "ddp: {model: gpt2, batch_per_gpu: 1, precision: fp32, optimizer: sgd, "
      "convert_sync_batchnorm: true}\n",
      "s.yaml");
  REQUIRE(no_norms.ok());
  CHECK(tests::error_of_run(no_norms.value()).find("has no batch norms") != std::string::npos);
}

}  // namespace
}  // namespace railyard::scenarios
