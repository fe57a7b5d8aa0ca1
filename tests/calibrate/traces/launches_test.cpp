// Runs of launches as one, against a host and a stream that are played through one by one.
#include "calibrate/traces/launches.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace railyard::calibrate;  // NOLINT: a test's own names

namespace {

struct State {
  std::int64_t host = 0, stream = 0;
};

void launch(State& state, std::int64_t host_ns, std::int64_t kernel_ns) {
  state.host += host_ns;
  state.stream = std::max(state.stream, state.host) + kernel_ns;
}

}  // namespace

TEST_CASE("a run of launches: the same end of host and stream as one by one, whoever is behind") {
  std::mt19937 random(7);
  const auto draw = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const std::int64_t host_most = draw(1) == 0 ? 10 : 1000;
    RunMerger merger;
    std::vector<std::pair<std::int64_t, std::int64_t>> launches;
    for (std::int64_t i = 0; i <= draw(20); ++i) launches.emplace_back(draw(host_most), draw(300));
    for (const auto& each : launches) merger.add(each.first, each.second);
    const std::int64_t tail = draw(50);
    merger.add_host(tail);
    const MeasuredRun run = merger.run();
    CHECK(run.count == launches.size());
    CHECK(run.before_ns >= 0);
    CHECK(run.after_ns >= 0);
    for (const std::int64_t ahead : {-5000, -300, 0, 300, 5000}) {
      State each{10'000, 10'000 + ahead};
      State merged = each;
      for (const auto& [host, kernel] : launches) launch(each, host, kernel);
      each.host += tail;
      launch(merged, run.before_ns, run.kernel_ns);
      merged.host += run.after_ns;
      CHECK(merged.host == each.host);
      CHECK(merged.stream == each.stream);
    }
  }
}

TEST_CASE("a run without a launch is host time alone") {
  RunMerger merger;
  CHECK(merger.empty());
  merger.add_host(40);
  CHECK_FALSE(merger.empty());
  const MeasuredRun run = merger.take();
  CHECK(run.before_ns == 40);
  CHECK(run.kernel_ns == 0);
  CHECK(run.count == 0);
  CHECK(merger.empty());
}
