// Links that come back late, strangers' traffic, PCIe below its best.
#include <doctest/doctest.h>

#include <string>

#include "scenarios/run.h"
#include "tests/scenarios/helpers.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using sim::microseconds;
using tests::full_scenario;
using tests::good_run;
using tests::run_of;

// The first two nodes of four.
const std::string kSweep =
    "railyard: 1\ncluster: {machine: hgx-h100, nodes: 4, fabric: {kind: switch}}\n"
    "ranks: {count: 16}\nnccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
    "collectives: [{collective: AllReduce, sizes: [256MiB]}]\n";

sim::Duration time_of(const std::string& text) {
  return good_run(full_scenario(text)).collectives.front().time;
}

// An outage of 2 ms from the first millisecond on: without timers that much is lost. With rounds of
// 5 ms nobody tries before 6 ms, with rounds of 0.8 ms at 3.4 ms.
TEST_CASE("faults: traffic goes on when a sender tries again, not when the link is back") {
  const sim::Duration healthy = time_of(kSweep);
  const auto lost = [&](const std::string& retry) {
    return time_of(kSweep +
                   "faults: {links: [{link: \"node0/nic3\", at: 1ms, for: 2ms, speed: 0}]" + retry +
                   "}\n") -
           healthy;
  };
  const sim::Duration without = lost("");
  CHECK(lost(", retry_timeout: 5ms") - without == microseconds(3000));
  CHECK(lost(", retry_timeout: 800us") - without == microseconds(400));
  CHECK(lost(", retry_timeout: 1ms") == without);
}

TEST_CASE("faults: a dead link is given up after seven rounds") {
  const RunResult result = run_of(full_scenario(
      kSweep +
      "faults: {links: [{link: \"node0/nic3\", at: 1ms, speed: 0}], retry_timeout: 100ms}\n"));
  REQUIRE_FALSE(result.unfinished.empty());
  CHECK(result.unfinished.front().find("has been down for 700ms") != std::string::npos);
  CHECK(result.duration == microseconds(701'000));
}

// Nodes 2 and 3 are not the job's: on a switch without blocking nothing is shared, and what is
// simulated beside a stranger is what is replayed alone. Into node 0 a stranger shares a NIC with
// two of 16 channels: two thirds of it are left for what filled five sixths.
TEST_CASE("faults: strangers cost the job what they share with it") {
  const std::string sweep =
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 4, fabric: {kind: switch}}\n"
      "ranks: {count: 16}\nnccl: {algorithm: Ring, protocol: Simple, channels: 16}\n"
      "collectives: [{collective: AllReduce, sizes: [256MiB]}]\n";
  const sim::Duration healthy = time_of(sweep);
  const auto beside = [&](const std::string& from, const std::string& to) {
    return time_of(sweep + "faults: {neighbours: [{from: " + from + ", to: " + to +
                   ", size: 64MiB}]}\n");
  };
  CHECK(beside("node2/gpu0", "node3/gpu0") == healthy);
  CHECK(beside("node2/gpu0", "node0/gpu0") > healthy * 7 / 6);
  CHECK(beside("node2/gpu0", "node0/gpu0") < healthy * 8 / 5);
  CHECK(beside("node2/gpu0", "0") == beside("node2/gpu0", "node0/gpu0"));
}

// GPU 0 to 1 and 1 to 0, below one switch. Each has its own way down, so both get the rate of a
// link; through the root complex they share the way up and the way down of the switch: half of it.
TEST_CASE("faults: ACS halves what two GPUs below one switch send each other") {
  const auto end = [](const std::string& acs) {
    const RunResult result = good_run(
        full_scenario("railyard: 1\ncluster: {machine: pcie-8, nodes: 1, acs: " + acs +
                      "}\nranks: {count: 2}\n"
                      "traffic: [{from: 0, to: 1, size: 4GB}, {from: 1, to: 0, size: 4GB}]\n"));
    return sim::to_seconds(result.flows.front().end - result.flows.front().start);
  };
  CHECK(end("true") / end("false") == doctest::Approx(2).epsilon(0.001));
}

// Gen 4 x 16 is 31.508 GB/s, gen 3 x 8 a quarter of it.
TEST_CASE("faults: a PCIe link that trained low takes four times as long") {
  const auto run = [](const std::string& more) {
    return good_run(
        full_scenario("railyard: 1\ncluster: {machine: pcie-8, nodes: 1" + more +
                      "}\nranks: {count: 2}\ntraffic: [{from: 0, to: 1, size: 4GB}]\n"));
  };
  const auto end = [](const RunResult& result) {
    return sim::to_seconds(result.flows.front().end);
  };
  const RunResult low = run(", slow: [{link: \"node0/gpu1\", pcie: {generation: 3, lanes: 8}}]");
  CHECK(end(low) / end(run("")) == doctest::Approx(4).epsilon(0.001));
}

TEST_CASE(
    "faults: NCCL's plan of a machine with a slow PCIe link says that it is the healthy one's") {
  const auto noted = [](const std::string& slow) {
    const RunResult result =
        good_run(full_scenario("railyard: 1\ncluster: {machine: pcie-8, nodes: 1" + slow +
                               "}\nranks: {count: 8}\nnccl: auto\n"
                               "collectives: [{collective: AllReduce, sizes: [1MiB]}]\n"));
    for (const std::string& note : result.notes)
      if (note.find("trained") != std::string::npos) return true;
    return false;
  };
  CHECK(noted(", slow: [{link: \"node0/gpu1\", pcie: {generation: 3, lanes: 8}}]"));
  CHECK_FALSE(noted(""));
}

TEST_CASE("faults: retries, strangers and PCIe that are refused") {
  const auto error = [](const std::string& text) { return tests::error_of(text); };
  const auto faults = [&](const std::string& text) {
    return error(
        tests::with("nccl: auto\nddp: {model: resnet50, batch_per_gpu: 1, precision: fp32, "
                    "optimizer: sgd}\nfaults: " +
                    text + "\n"));
  };
  CHECK(
      faults(
          "{links: [{link: x, at: 0s, for: 1ms, every: 10ms, speed: 0}], retry_timeout: 10ms}") ==
      "s.yaml:6:9: faults: link 'x' goes down again within a retry_timeout of 10ms: nothing would "
      "ever pass");
  CHECK(faults("{neighbours: [{from: node0/gpu1, to: node0/gpu1, size: 1MB}]}") ==
        "s.yaml:6:23: faults.neighbours[0]: 'from' and 'to' are the same GPU");
  const auto slow = [&](const std::string& text) {
    return error("railyard: 1\ncluster: {machine: hgx-h100, nodes: 1, slow: [{link: node0/gpu0, " +
                 text + "}]}\nnccl: auto\ncollectives: [{collective: AllReduce, sizes: [1MB]}]\n");
  };
  CHECK(slow("pcie: {generation: 7, lanes: 8}").find("generation") != std::string::npos);
  CHECK(slow("pcie: {generation: 3, lanes: 8}") == "no error");
  const auto run_error = [](const std::string& text) {
    return tests::error_of_run(full_scenario(kSweep + "faults: {neighbours: [" + text + "]}\n"));
  };
  CHECK(run_error("{from: node9/gpu0, to: 1, size: 1MB}")
            .find("faults.neighbours[0].from: no GPU is called 'node9/gpu0'; names look like "
                  "'node0/gpu0'") != std::string::npos);
  CHECK(run_error("{from: 16, to: 1, size: 1MB}").find("there is no rank 16: the job has 16") !=
        std::string::npos);
  CHECK(
      run_error("{from: 1, to: node0/gpu1, size: 1MB}").find("'from' and 'to' are the same GPU") !=
      std::string::npos);
}

}  // namespace
}  // namespace railyard::scenarios
