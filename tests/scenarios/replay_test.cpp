// replay: recorded steps whose timelines are drawn above each case; collectives against the same
// ones run alone; every way to write one wrongly. Launch latencies and gaps are zero here, so that
// times are those of the items.
#include <doctest/doctest.h>

#include "scenarios/run.h"
#include "scenarios/training_result.h"
#include "tests/scenarios/helpers.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using sim::microseconds;
using tests::full_scenario;
using tests::good_run;

std::string head(const std::string& ranks = "count: 2") {
  return "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {" + ranks +
         "}\nnccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
         "parameters: {host: {launch_latency: 0us, collective_start: 0us, op_launch: 77us, "
         "collective_launch: 99us}, gpu: {kernel_gap: 0us}}\n";
}
std::string job(const std::string& items, const std::string& ranks = "count: 2") {
  return head(ranks) + "replay:\n  iterations: 3\n" + items;
}

std::vector<sim::Duration> steps_of(const std::string& items) {
  return good_run(full_scenario(job(items))).training->iterations;
}

TEST_CASE("replay: bound by the host, a step is the host's time") {
  // host  0 .. 100 launches, .. 120 | .. 220 launches, .. 240     kernel  100 .. 110 | 220 .. 230
  const auto steps = steps_of("  forward:\n    - {before: 100us, kernel: 10us, after: 20us}\n");
  CHECK(steps == std::vector<sim::Duration>(3, microseconds(120)));
}

TEST_CASE("replay: bound by the GPU, a step is the kernels' time") {
  const auto steps = steps_of("  forward:\n    - {before: 10us, kernel: 100us}\n");
  CHECK(steps == std::vector{microseconds(110), microseconds(100), microseconds(100)});
}

TEST_CASE("replay: a host that waits for the GPU") {
  // host 0..10, kernel 10..110, host goes on at 110, ..115
  const auto steps = steps_of(
      "  backward:\n    - {before: 10us, kernel: 100us}\n    - {synchronize: true}\n"
      "    - {before: 5us}\n");
  CHECK(steps == std::vector<sim::Duration>(3, microseconds(115)));
}

TEST_CASE("replay: what waits for a call starts behind it, what does not runs beside it") {
  // call 10..60, kernel 10..40, then behind the call 60..80; the next call waits for the compute
  // stream: 80..130, 80..110, 130..150
  const auto steps = steps_of(
      "  forward:\n    - {before: 10us, call: exchange, time: 50us}\n    - {kernel: 30us}\n"
      "    - {wait: 1}\n  after_backward:\n    - {kernel: 20us}\n");
  CHECK(steps == std::vector{microseconds(80), microseconds(70), microseconds(70)});
  // Without the wait the second kernel follows the first: 10..40..60; the next call at 60, beside
  // which the kernels run again.
  const auto free = steps_of(
      "  forward:\n    - {before: 10us, call: exchange, time: 50us}\n    - {kernel: 30us}\n"
      "    - {kernel: 20us}\n");
  CHECK(free == std::vector{microseconds(60), microseconds(50), microseconds(50)});
}

TEST_CASE("replay: a stream of its own runs beside the compute stream") {
  const auto steps = steps_of(
      "  forward:\n    - {before: 10us, kernel: 100us, stream: copies}\n"
      "    - {kernel: 40us, bound: compute}\n    - {synchronize: true}\n");
  // The compute stream alone is waited for: 10..50, 60..100, ...
  CHECK(steps == std::vector<sim::Duration>(3, microseconds(50)));
}

TEST_CASE("replay: phases end where their last kernel does") {
  const RunResult result = good_run(
      full_scenario(job("  forward:\n    - {kernel: 30us}\n  backward:\n    - {kernel: 60us}\n"
                        "  after_backward:\n    - {kernel: 7us}\n")));
  const TrainingResult& step = *result.training;
  CHECK(step.scheme == "Replay");
  CHECK(step.forward == microseconds(30));
  CHECK(step.backward == microseconds(60));
  CHECK(step.after_backward == microseconds(7));
  CHECK(step.compute == microseconds(97));
  CHECK(step.exposed == microseconds(0));
  CHECK(step.model_parameters == 0);
}

TEST_CASE("replay: collectives are those of a run of collectives, of the same size and group") {
  for (const std::string name : {"AllReduce", "AllGather", "ReduceScatter", "Broadcast"}) {
    CAPTURE(name);
    const std::string ranks = "count: 4, groups: {pair: {size: 2}}";
    for (const std::string group : {"world", "pair"}) {
      const RunResult replayed = good_run(full_scenario(
          job("  forward:\n    - {call: " + name + ", size: 8MiB, dtype: fp16, group: " + group +
                  "}\n    - {wait: 1}\n    - {synchronize: true}\n",
              ranks)));
      const RunResult alone =
          good_run(full_scenario(head(ranks) + "collectives:\n  - {collective: " + name +
                                 ", sizes: [8MiB], dtype: fp16, "
                                 "group: " +
                                 group + "}\n"));
      REQUIRE(replayed.training->calls.size() == 1);
      const CallRow& row = replayed.training->calls.front();
      CHECK(row.size == sim::bytes(8 << 20));
      CHECK(row.ranks == (group == "pair" ? 2 : 4));
      const double time = sim::to_seconds(row.time);
      const double expected =
          static_cast<double>(8 << 20) / (alone.collectives.front().algbw * 1e9);
      CHECK(time == doctest::Approx(expected).epsilon(0.02));
      CHECK(replayed.training->communication == row.time);
      CHECK(replayed.training->exposed == row.time);
    }
  }
}

TEST_CASE("replay: ranks outside of a listed group take no part in its calls") {
  const RunResult result = good_run(
      full_scenario(job("  forward:\n    - {before: 5us, call: AllReduce, size: 1MiB, group: two}\n"
                        "    - {wait: 1}\n    - {kernel: 10us}\n",
                        "count: 3, groups: {two: [0, 2]}")));
  REQUIRE(result.training->calls.size() == 1);
  CHECK(result.training->calls.front().ranks == 2);
}

bool holds(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE(text);
  return false;
}
std::string error(const std::string& items) { return tests::error_of(job(items)); }

TEST_CASE("replay: every mistake has its line") {
  const std::string first = "s.yaml:9:7: replay.forward[0]";
  CHECK(error("  name: x\n") ==
        "s.yaml:7:3: replay: one of forward, backward and after_backward must have items");
  CHECK(error("  forward:\n    - {name: nothing}\n") ==
        first + ": one of kernel, before, after, call, wait and synchronize is expected");
  CHECK(error("  forward:\n    - {wait: 1}\n") ==
        first + ": it waits for call 1 of the step, but only 0 came before");
  CHECK(holds(error("  forward:\n    - {call: AllRedcue, size: 1MiB}\n"),
              "did you mean 'AllReduce'?"));
  CHECK(holds(error("  forward:\n    - {call: AllReduce}\n"), "'size'"));
  CHECK(
      holds(error("  forward:\n    - {call: AllReduce, size: 0B}\n"), "a call carries something"));
  CHECK(holds(error("  forward:\n    - {synchronize: false}\n"), "'true' is what it can be"));
  CHECK(holds(error("  forward:\n    - {kernel: 1us, bound: disk}\n"), "bound of a kernel"));
  CHECK(holds(error("  forward:\n    - {kernel: 40h}\n"), "is longer than 24h"));
}

TEST_CASE("replay: what only the built cluster shows") {
  CHECK(tests::error_of_run(
            full_scenario(job("  forward:\n    - {call: AllGather, size: 4B, dtype: fp32}\n"))) ==
        "s.yaml:7:3: replay: AllGather of 4 bytes is less than an element for each of 2 ranks");
  CHECK(tests::error_of_run(
            full_scenario(job("  forward:\n    - {call: Broadcast, size: 4KiB, root: 2}\n"))) ==
        "s.yaml:7:3: replay: Broadcast has root 2, but its group 2 ranks");
}

}  // namespace
}  // namespace railyard::scenarios
