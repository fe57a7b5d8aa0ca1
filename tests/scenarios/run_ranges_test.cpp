// Numbers at the edge of what can be written: refused with their line, or run without overflow.
#include <doctest/doctest.h>

#include <algorithm>

#include "scenarios/run.h"
#include "tests/scenarios/helpers.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using tests::full_scenario;
using tests::good_run;
using tests::run_of;
using Outcome = sim::EventQueue::Outcome;

const std::string kHead =
    "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\n"
    "nccl: {algorithm: Ring, protocol: LL128, channels: 2}\n"
    "collectives: [{collective: AllReduce, sizes: [1MiB]}]\n";

std::string error_of_parameters(const std::string& text) {
  return tests::error_of(scenario_from_text(kHead + "parameters: {" + text + "}\n", "s.yaml"));
}

TEST_CASE("parameters: ranges are said in the units of the value") {
  CHECK(error_of_parameters("protocols: {LL128: {channel_rate: 2kB/s}}") ==
        "s.yaml:5:48: parameters.protocols.LL128.channel_rate: must be 1 MB/s to 100 TB/s, or 0 "
        "for no limit (payload rate of one channel to a peer)");
  CHECK(error_of_parameters("gpu: {peak_fp32: 1e-300FLOP/s}") ==
        "s.yaml:5:31: parameters.gpu.peak_fp32: must be 1 GFLOP/s to 1,000 PFLOP/s (dense FP32 "
        "peak)");
  CHECK(error_of_parameters("gpu: {peak_tf32: 1FLOP/s}") ==
        "s.yaml:5:31: parameters.gpu.peak_tf32: must be 1 GFLOP/s to 1,000 PFLOP/s, or 0 for none "
        "(dense TF32 peak, 0 if there is none)");
  CHECK(error_of_parameters("gpu: {gemm_efficiency: 1e-16}") ==
        "s.yaml:5:37: parameters.gpu.gemm_efficiency: must be 0.001 to 1 (share of the peak that "
        "GEMMs reach)");
  CHECK(error_of_parameters("links: {nvlink: {efficiency: 1e-16}}")
            .starts_with("s.yaml:5:43: parameters.links.nvlink.efficiency: must be 0.001 to 1 ("));
  CHECK(
      error_of_parameters("gpu: {hbm_bandwidth: 1MB/s}")
          .starts_with("s.yaml:5:35: parameters.gpu.hbm_bandwidth: must be 1 GB/s to 100 TB/s ("));
  CHECK(error_of_parameters("gpu: {comm_hbm_factor: 101}")
            .starts_with("s.yaml:5:37: parameters.gpu.comm_hbm_factor: must be 0 to 100 ("));
  CHECK(error_of_parameters("protocols: {LL128: {local_rate: 140TB/s}}") ==
        "s.yaml:5:46: parameters.protocols.LL128.local_rate: is above 100TB/s");
  CHECK(error_of_parameters("gpu: {peak_tf32: 0FLOP/s}") == "no error");
  CHECK(error_of_parameters("protocols: {LL128: {local_rate: 0B/s}}") == "no error");
}

// The slowest of everything that may be stated: absurd, but no overflow anywhere.
TEST_CASE("parameters: all at their floors still run, or end at the clock's end") {
  const std::string slow =
      "parameters: {gpu: {peak_fp32: 1GFLOP/s, peak_tf32: 1GFLOP/s, peak_fp16: 1GFLOP/s,\n"
      "  gemm_efficiency: 0.001, conv_efficiency: 0.001, hbm_bandwidth: 1GB/s,\n"
      "  memory_efficiency: 0.001, kernel_gap: 10s, min_kernel_time: 10s}, host: {op_launch: "
      "10s},\n"
      "  links: {nvlink: {efficiency: 0.001, latency: 10s}}, protocols: {LL128: {channel_rate: "
      "1MB/s,\n  local_rate: 1MB/s, op_overhead: 10s, hop_latency: 10s, wire_efficiency: "
      "0.001}}}\n";
  CHECK(good_run(full_scenario(kHead + slow)).collectives[0].time > sim::microseconds(10'000'000));
  const std::string job =
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\n"
      "nccl: {algorithm: Ring, protocol: LL128, channels: 2}\n"
      "ddp: {model: gpt2-xl, batch_per_gpu: 1000, precision: fp32, optimizer: sgd}\n";
  const RunResult never = run_of(full_scenario(job + slow));
  CHECK(never.outcome == Outcome::limit);
  CHECK(std::ranges::any_of(never.notes, [](const std::string& note) {
    return note == "something would take longer than the 53 days that can be simulated";
  }));
}

TEST_CASE("traffic: a start beyond a day is refused, one at the limit ends after it") {
  const std::string flat =
      "railyard: 1\ncluster: {machine: flat, nodes: 2, fabric: {kind: switch}}\ntraffic: {from: 0, "
      "to: 1, size: 1MB, start: ";
  for (const char* late : {"9223372036854775807ps", "25h"})
    CHECK(tests::error_of(scenario_from_text(flat + late + "}\n", "s.yaml")) ==
          "s.yaml:3:45: traffic.start: is longer than 24h");
  const RunResult result = good_run(full_scenario(flat + "24h}\n"));
  REQUIRE(result.flows.size() == 1);
  CHECK(result.flows[0].end > result.flows[0].start);
}

// 1 kB/s divided among seven: 8 PiB take longer than the clock runs.
TEST_CASE("traffic: what would never end is no overflow") {
  const RunResult result = run_of(full_scenario(
      "railyard: 1\ncluster: {machine: flat, nodes: 8, fabric: {kind: switch, link_rate: 1kB/s},\n"
      "  slow: [{link: switch/0, speed: 0.000001}]}\n"
      "traffic: {pattern: incast, to: 0, size: 9007199254740992B}\n"));
  CHECK(result.outcome == Outcome::limit);
}

}  // namespace
}  // namespace railyard::scenarios
