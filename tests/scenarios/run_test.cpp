// A run as a whole: what it predicts for the first scenario of the documentation, that it is
// reproducible bit for bit, and how it stops before its end.
#include "scenarios/run.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using sim::bytes;
using tests::full_scenario;
using tests::good_run;
using tests::run_of;
using tests::shipped_scenario;
using Outcome = sim::EventQueue::Outcome;

// PyTorch's own buckets of ResNet-50, as a Kineto trace of two A100 shows them.
TEST_CASE("ResNet-50 on two GPUs: one bucket at first, then PyTorch's five") {
  const RunResult result = good_run(shipped_scenario("resnet50-ddp-2gpu.yaml"));
  REQUIRE(result.ddp);
  const DdpResult& ddp = *result.ddp;
  REQUIRE(ddp.bucket_bytes.size() == 3);
  CHECK(ddp.bucket_bytes[0] == std::vector{bytes(102'228'128)});
  const std::vector five{bytes(8'196'000), bytes(31'502'336), bytes(26'255'360), bytes(26'550'272),
                         bytes(9'724'160)};
  CHECK(ddp.bucket_bytes[1] == five);
  CHECK(ddp.bucket_bytes[2] == five);
  CHECK(ddp.rebuild_before_iteration == 2);
  REQUIRE(ddp.buckets.size() == 5);
  for (std::size_t b = 0; b < 5; ++b) {
    CHECK(ddp.buckets[b].size == five[b]);
    CHECK(ddp.buckets[b].end > ddp.buckets[b].start);
    if (b > 0) CHECK(ddp.buckets[b].start >= ddp.buckets[b - 1].end);  // one stream
  }
}

TEST_CASE("the parts of a step add up") {
  const RunResult result = good_run(shipped_scenario("resnet50-ddp-2gpu.yaml"));
  const DdpResult& ddp = *result.ddp;
  sim::Duration sum{};
  for (const sim::Duration each : ddp.iterations) sum += each;
  CHECK(sum <= result.duration);
  CHECK(ddp.step_time == ddp.iterations.back());
  CHECK(ddp.iterations[0] > ddp.step_time);  // nothing overlaps in iteration 1
  CHECK(ddp.compute >= ddp.compute_alone);   // a collective slows kernels, never speeds them up
  CHECK(ddp.exposed <= ddp.communication);
  CHECK(ddp.compute + ddp.exposed <= ddp.step_time);
  CHECK(ddp.bound_by == "compute");
  // 2 x 256 images per step.
  CHECK(ddp.samples_per_second == doctest::Approx(512 / sim::to_seconds(ddp.step_time)));
  CHECK(ddp.model_parameters == 25'557'032);
  CHECK(result.ranks == 2);
}

// `plain` slows no kernel, so what ran is exactly the sum of the kernels' own times; with a
// parameter that no layer uses, too, which is neither copied nor updated.
TEST_CASE("compute is the sum of the kernels when nothing slows them") {
  const std::string head =
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\n"
      "nccl: {algorithm: Ring, protocol: plain, channels: 8}\n"
      "ddp: {batch_per_gpu: 8, precision: amp-fp16, optimizer: adamw, model: ";
  const std::string custom =
      "{parameters: [{name: w, elements: 1000000}, {name: u, elements: 1000000}], "
      "layers: [{name: a, kind: gemm, parameters: [w], forward_flops: 1e9, input_elements: 1000}]}";
  for (const std::string& model : {std::string("resnet18"), custom}) {
    const RunResult result =
        good_run(full_scenario(head + model + ", find_unused_parameters: true}\n"));
    CHECK(result.ddp->compute == result.ddp->compute_alone);
  }
}

// Every parameter that matters is stated, so that a better profile does not change the hash; a
// change of the models or of NCCL's algorithms does, and then the constant is to be renewed.
constexpr std::string_view kPinned = R"(
railyard: 1
cluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch, link_rate: 400Gb/s}}
ranks: {gpus_per_node: 2}
parameters:
  gpu: {sms: 132, peak_fp16: 1000TFLOP/s, peak_fp32: 64TFLOP/s, hbm_bandwidth: 3000GB/s,
        conv_efficiency: 0.25, gemm_efficiency: 0.5, memory_efficiency: 0.75, kernel_gap: 1us,
        min_kernel_time: 1.5us, comm_hbm_factor: 2.5}
  host: {op_launch: 5us, collective_launch: 4us, launch_latency: 10us, collective_start: 5us,
         grad_hook: 10us}
  network: {proxy_send: 700ns, proxy_recv: 800ns, flush: 100ns}
  links:
    nvlink: {efficiency: 0.86, latency: 250ns}
    pcie: {efficiency: 0.88, latency: 270ns}
    smp: {efficiency: 0.2, latency: 100ns}
    nic: {efficiency: 0.96, latency: 500ns}
    fabric: {efficiency: 0.97, latency: 150ns}
  protocols:
    LL: {channel_rate: 16.5GB/s, local_rate: 25GB/s, op_overhead: 0ns, hop_latency: 290ns,
         net_hop_latency: 1us, wire_efficiency: 1}
    LL128: {channel_rate: 37GB/s, local_rate: 25GB/s, op_overhead: 0ns, hop_latency: 1.6us,
            net_hop_latency: 2.3us, wire_efficiency: 0.9}
    Simple: {channel_rate: 25GB/s, local_rate: 25GB/s, op_overhead: 2.4us, hop_latency: 500ns,
             net_hop_latency: 8us, wire_efficiency: 1}
nccl:
  - {up_to: 1MiB, algorithm: Tree, protocol: LL, channels: 2}
  - {up_to: 16MiB, algorithm: Ring, protocol: LL128, channels: 4}
  - {algorithm: Ring, protocol: Simple, channels: 4}
ddp: {model: resnet18, batch_per_gpu: 32, precision: amp-fp16, optimizer: sgd-momentum}
)";
constexpr std::uint64_t kPinnedHash = 414'935'765'291'481'769U;

TEST_CASE("the golden hash: every compiler computes the same run") {
  const RunResult result = good_run(full_scenario(kPinned));
  CHECK(result.trace_hash == kPinnedHash);
}

TEST_CASE("the hash tells runs apart") {
  const std::uint64_t base = good_run(full_scenario(kPinned)).trace_hash;
  for (const char* change :
       {"parameters.links.nvlink.latency=251ns", "parameters.host.op_launch=5.1us",
        "nccl.2.channels=2", "ddp.batch_per_gpu=33", "ddp.bucket_cap_mb=24"}) {
    CAPTURE(change);
    CHECK(good_run(full_scenario(kPinned, {change})).trace_hash != base);
  }
}

TEST_CASE("the same scenario gives the same run, alone or beside others in other threads") {
  std::vector<Scenario> scenarios;
  scenarios.push_back(full_scenario(kPinned));
  scenarios.push_back(shipped_scenario("resnet50-ddp-2gpu.yaml", {"engine.replay=false"}));
  scenarios.push_back(full_scenario(
      "railyard: 1\ncluster: {machine: flat, nodes: 16, fabric: {kind: switch}}\nseed: 7\n"
      "traffic: {pattern: uniform, count: 400, size: 1MiB, spread: 0.5}\n"));
  std::vector<std::uint64_t> expected;
  for (const Scenario& scenario : scenarios) expected.push_back(good_run(scenario).trace_hash);
  for (const std::size_t count : {1U, 2U, 4U}) {
    std::vector<std::vector<std::uint64_t>> hashes(count);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < count; ++t)
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < scenarios.size(); ++i) {  // each thread in another order
          const auto result = run(scenarios[(i + t) % scenarios.size()], {});
          hashes[t].push_back(result.ok() ? result.value().trace_hash : 0);
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t t = 0; t < count; ++t)
      for (std::size_t i = 0; i < scenarios.size(); ++i)
        CHECK(hashes[t][i] == expected[(i + t) % scenarios.size()]);
  }
}

TEST_CASE("the seed is what is drawn from, and nothing else") {
  const std::string text =
      "railyard: 1\ncluster: {machine: flat, nodes: 8, fabric: {kind: switch}}\n"
      "traffic: {pattern: uniform, count: 50, size: 1MiB}\nseed: ";
  CHECK(good_run(full_scenario(text + "1")).trace_hash !=
        good_run(full_scenario(text + "2")).trace_hash);
  CHECK(good_run(full_scenario(kPinned, {"seed=2"})).trace_hash ==
        good_run(full_scenario(kPinned)).trace_hash);
}

TEST_CASE("kept spans and messages do not change the run") {
  RunOptions options;
  options.trace_ranks = 2;
  options.message_limit = 10;
  const Scenario scenario = full_scenario(kPinned);
  const RunResult kept = good_run(scenario, options);
  const RunResult plain = good_run(scenario);
  CHECK(kept.trace_hash == plain.trace_hash);
  CHECK(kept.duration == plain.duration);
  CHECK(kept.kept_messages.size() == 10);
  CHECK(plain.spans.empty());
  CHECK(std::ranges::any_of(kept.spans, [](const sim::Span& span) { return span.rank == 1; }));
  CHECK(std::ranges::none_of(kept.spans, [](const sim::Span& span) { return span.rank > 1; }));
  for (const KeptMessage& message : kept.kept_messages) CHECK(message.arrival > message.start);
}

// 256 ranks on one switch: over three million events when every call is simulated, and the limits
// are looked at every million.
Scenario long_run() {
  return full_scenario(
      "railyard: 1\ncluster: {machine: flat, nodes: 256, fabric: {kind: switch}}\n"
      "nccl: {algorithm: Ring, protocol: plain, channels: 1}\nengine: {replay: false}\n"
      "collectives: [{collective: AllReduce, sizes: {from: 16MiB, to: 26MiB, step: 1MiB}}]\n");
}

TEST_CASE("limits end a run with outcome limit and without results of its unfinished part") {
  RunOptions options;
  options.limits.max_events = 0;
  const RunResult few = run_of(long_run(), options);
  CHECK(few.outcome == Outcome::limit);
  CHECK(few.collectives.size() < 11);
  CHECK(few.events > 0);
  CHECK(few.events < 1'000'000);

  options.limits.max_events = 1e18;
  options.limits.timeout_seconds = 1e-9;
  const RunResult late = run_of(long_run(), options);
  CHECK(late.outcome == Outcome::limit);
  CHECK(late.events < 1'000'000);

  options.limits.timeout_seconds = 1'000;
  CHECK(run_of(long_run(), options).outcome == Outcome::drained);
}

TEST_CASE("an interrupt ends a run") {
  const std::atomic<bool> interrupted{true};
  RunOptions options;
  options.limits.interrupted = &interrupted;
  for (const Scenario& scenario :
       {long_run(), full_scenario(kPinned),
        full_scenario("railyard: 1\ncluster: {machine: flat, nodes: 4, fabric: {kind: switch}}\n"
                      "traffic: {pattern: all-to-all, size: 1MiB}\n")}) {
    const RunResult result = run_of(scenario, options);
    CHECK(result.outcome == Outcome::interrupted);
    CHECK_FALSE(result.ddp);
    CHECK(result.collectives.empty());
  }
  const std::atomic<bool> quiet{false};
  options.limits.interrupted = &quiet;
  CHECK(run_of(full_scenario(kPinned), options).outcome == Outcome::drained);
}

TEST_CASE("progress grows from run to end") {
  RunOptions options;
  std::vector<double> seen;
  options.limits.progress = [&](double share) { seen.push_back(share); };
  options.limits.expected_events = estimate(long_run()).value().events;
  CHECK(run_of(long_run(), options).outcome == Outcome::drained);
  REQUIRE(seen.size() >= 2);
  CHECK(std::ranges::is_sorted(seen));
  CHECK(seen.front() > 0);
  CHECK(seen.back() <= 1);
}

// Within a factor of two, without replay.
TEST_CASE("the estimate is near what the run does") {
  for (const Scenario& scenario :
       {long_run(), shipped_scenario("resnet50-ddp-2gpu.yaml", {"engine.replay=false"}),
        shipped_scenario("collective-sweep-h100.yaml", {"engine.replay=false"})}) {
    CAPTURE(scenario.name);
    const auto expected = estimate(scenario);
    REQUIRE(expected.ok());
    const auto events = static_cast<double>(good_run(scenario).events);
    CHECK(expected.value().events < 2 * events);
    CHECK(expected.value().events > events / 2);
  }
}

}  // namespace
}  // namespace railyard::scenarios
