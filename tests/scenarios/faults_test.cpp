// Faults and host habits in a job whose healthy times are known: what each costs, who is named, and
// that nothing changes where there are none.
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

const std::string kJob =
    "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch}}\nranks: {count: "
    "16}\n"
    "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
    "ddp: {model: resnet50, batch_per_gpu: 64, precision: amp-bf16, optimizer: sgd, iterations: "
    "4}\n";

double seconds(sim::Duration time) { return sim::to_seconds(time); }

TEST_CASE("faults: a slow GPU holds everybody back, and is named") {
  const RunResult healthy = good_run(full_scenario(kJob));
  CHECK(healthy.late_ranks.empty());
  const RunResult slow =
      good_run(full_scenario(kJob + "faults: {slow_gpus: [{ranks: [5], factor: 1.5}]}\n"));
  const double ratio = seconds(slow.ddp->step_time) / seconds(healthy.ddp->step_time);
  CHECK(ratio > 1.4);
  CHECK(ratio < 1.52);
  REQUIRE(slow.late_ranks.size() == 1);
  CHECK(slow.late_ranks[0].rank == 5);
  CHECK(slow.late_ranks[0].last_in * 3 >
        slow.late_ranks[0].calls * 2);  // broadcasts are late elsewhere
  CHECK(slow.late_ranks[0].cause == "slow GPU (kernels take up to 1.5 times as long)");
}

TEST_CASE("faults: a pace of 1 is no fault, and steps begin when they say") {
  const RunResult healthy = good_run(full_scenario(kJob));
  const RunResult same =
      good_run(full_scenario(kJob + "faults: {slow_gpus: [{ranks: all, factor: 1}]}\n"));
  CHECK(same.ddp->iterations == healthy.ddp->iterations);
  CHECK(same.trace_hash == healthy.trace_hash);
  // From a time after the second iteration on.
  const sim::Duration two = healthy.ddp->iterations[0] + healthy.ddp->iterations[1];
  const RunResult late = good_run(
      full_scenario(kJob + "faults: {slow_gpus: [{ranks: [0], steps: [{at: 0s, factor: 1}, {at: " +
                    std::to_string(two.count() / 1'000'000 + 1000) + "us, factor: 2}]}]}\n"));
  CHECK(late.ddp->iterations[0] == healthy.ddp->iterations[0]);
  CHECK(late.ddp->iterations[1] == healthy.ddp->iterations[1]);
  CHECK(seconds(late.ddp->iterations[3]) > 1.8 * seconds(healthy.ddp->iterations[3]));
}

TEST_CASE("faults: constant jitter of all ranks adds itself to a step that waits for the host") {
  const std::string sync = kJob + "host: {synchronize_every: 1}\n";
  const RunResult healthy = good_run(full_scenario(sync));
  const RunResult later = good_run(full_scenario(
      sync + "faults: {jitter: [{ranks: all, distribution: constant, mean: 3ms}]}\n"));
  CHECK(later.ddp->step_time - healthy.ddp->step_time == sim::microseconds(3000));
  CHECK(later.late_ranks.empty());
}

TEST_CASE("faults: equal seeds give equal runs, others do not") {
  const auto with_seed = [](const char* seed) {
    return good_run(full_scenario(
        kJob + "faults: {seed: " + seed +
        ", jitter: [{ranks: all, distribution: lognormal, median: 500us, sigma: 1}]}\n"
        "host: {synchronize_every: 1}\n"));
  };
  const RunResult one = with_seed("1");
  CHECK(one.trace_hash == with_seed("1").trace_hash);
  CHECK(one.trace_hash != with_seed("2").trace_hash);
}

// Two GPUs' rails at 48 GB/s: a link at a tenth makes the ring of that channel ten times slower.
TEST_CASE("faults: a slow link slows what passes it, as cluster.slow does") {
  const std::string sweep =
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch}%}\nranks: "
      "{count: 16}\n"
      "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
      "collectives: [{collective: AllReduce, sizes: [256MiB]}]\n";
  const auto text = [&](const std::string& more) {
    std::string out = sweep;
    return out.replace(out.find('%'), 1, more);
  };
  const RunResult always =
      good_run(full_scenario(text(", slow: [{link: \"node0/nic3\", speed: 0.1}]")));
  const RunResult fault = good_run(
      full_scenario(text("") + "faults: {links: [{link: \"node0/nic3\", at: 0s, speed: 0.1}]}\n"));
  const RunResult healthy = good_run(full_scenario(text("")));
  CHECK(seconds(fault.collectives[0].time) ==
        doctest::Approx(seconds(always.collectives[0].time)).epsilon(0.001));
  CHECK(seconds(fault.collectives[0].time) > 3 * seconds(healthy.collectives[0].time));
  // Of an outage of 2 ms in the middle, at least that is lost.
  const RunResult flap = good_run(full_scenario(
      text("") + "faults: {links: [{link: \"node0/nic3\", at: 1ms, for: 2ms, speed: 0}]}\n"));
  CHECK(flap.collectives[0].time - healthy.collectives[0].time > sim::microseconds(1900));
  CHECK(flap.collectives[0].time - healthy.collectives[0].time < sim::microseconds(2500));
  CHECK(flap.duration - healthy.duration < sim::microseconds(2500));  // nor does the run go on
}

TEST_CASE("faults: a dead link ends the job with who waits for whom") {
  const RunResult result = run_of(full_scenario(
      kJob + "faults: {links: [{link: \"node0/nic3\", at: 1ms, speed: 0}], give_up: 2s}\n"));
  REQUIRE(result.unfinished.size() > 2);
  CHECK(result.unfinished[0].starts_with("link node0/nic3->"));
  CHECK(result.unfinished[0].find("has been down for 2s") != std::string::npos);
  CHECK(std::ranges::any_of(result.unfinished, [](const std::string& line) {
    return line.find("waits for") != std::string::npos;
  }));
  CHECK_FALSE(result.ddp);
}

TEST_CASE("faults: a neighbour takes its share of the links, and ends with the job") {
  const RunResult healthy = good_run(full_scenario(kJob));
  const RunResult noisy = good_run(full_scenario(
      kJob +
      "faults: {neighbours: [{from: 0, to: 8, size: 64MiB}, {from: 8, to: 0, size: 64MiB}]}\n"));
  CHECK(noisy.ddp->step_time > healthy.ddp->step_time);
  CHECK(noisy.replays == 0);
  CHECK(noisy.duration < healthy.duration * 3);
}

TEST_CASE("faults: a link that flaps for ever does not keep a run of mere traffic going") {
  const RunResult result = good_run(full_scenario(
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch}}\n"
      "traffic: [{from: 0, to: 8, size: 1GiB}]\n"
      "faults: {links: [{link: \"node0/nic0\", at: 1ms, for: 1ms, every: 4ms, speed: 0}]}\n"));
  // 1 GiB at 48 GB/s takes 22.37 ms: 1 ms before the first outage, 3 behind each, 0.37 behind the
  // eighth, which ends at 30 ms.
  REQUIRE(result.flows.size() == 1);
  CHECK(seconds(result.flows[0].end) == doctest::Approx(0.0304).epsilon(0.02));
  CHECK(result.duration == result.flows[0].end);
}

TEST_CASE("host: a data loader that is too slow sets the pace") {
  // Two workers at 200 ms a batch make one every 100 ms.
  const RunResult result = good_run(full_scenario(
      kJob + "host: {synchronize_every: 1, data_loader: {batch_time: 200ms, workers: 2}}\n"));
  const sim::Duration two = result.ddp->iterations[2] + result.ddp->iterations[3];
  CHECK(seconds(two) == doctest::Approx(0.2).epsilon(0.02));
}

TEST_CASE("faults: what is refused") {
  const auto error = [](const std::string& faults) {
    return tests::error_of(
        tests::with("nccl: auto\nddp: {model: resnet50, batch_per_gpu: 1, "
                    "precision: fp32, optimizer: sgd}\nfaults: " +
                    faults + "\n"));
  };
  CHECK(error("{slow_gpus: [{ranks: [1]}]}") ==
        "s.yaml:6:22: faults.slow_gpus[0]: one of 'factor' and 'steps' is expected");
  CHECK(error("{slow_gpus: [{ranks: some, factor: 2}]}") ==
        "s.yaml:6:30: faults.slow_gpus[0].ranks: a list of ranks or 'all' is expected");
  CHECK(error("{links: [{link: x, at: 0s, every: 1s, speed: 0}]}") ==
        "s.yaml:6:18: faults.links[0]: a link that flaps needs 'for', shorter than 'every'");
  CHECK(error("{neighbours: [{from: 1, to: 1, size: 1MB}]}") ==
        "s.yaml:6:23: faults.neighbours[0]: 'from' and 'to' are the same GPU");
  CHECK(error("{jitter: [{ranks: all, distribution: pareto, mean: 1ms}]}").find("distribution") !=
        std::string::npos);
  const auto run_error = [](const std::string& faults) {
    return tests::error_of_run(full_scenario(kJob + "faults: " + faults + "\n"));
  };
  CHECK(run_error("{slow_gpus: [{ranks: [16], factor: 2}]}")
            .find("there is no rank 16: the job has 16") != std::string::npos);
  CHECK(run_error("{links: [{link: \"node9/nic0\", at: 0s, speed: 0}]}")
            .find("no device is called 'node9/nic0'") != std::string::npos);
}

}  // namespace
}  // namespace railyard::scenarios
