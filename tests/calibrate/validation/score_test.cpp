#include "calibrate/validation/score.h"

#include <doctest/doctest.h>

using namespace railyard;
using namespace railyard::calibrate;
using sim::bytes;

TEST_CASE("score: quantiles between order statistics") {
  // 1, 2, 3, 4: the median lies half-way between 2 and 3, p90 at 2.7 steps of 3.
  CHECK(quantile({4, 1, 3, 2}, 0.5) == doctest::Approx(2.5));
  CHECK(quantile({4, 1, 3, 2}, 0.9) == doctest::Approx(3.7));
  CHECK(quantile({7}, 0.9) == 7);
  CHECK(quantile({}, 0.5) == 0);
  const ErrorSummary summary = summarize({0.1, 0.3, 0.2});
  CHECK(summary.count == 3);
  CHECK(summary.median == doctest::Approx(0.2));
  CHECK(summary.worst == doctest::Approx(0.3));
}

TEST_CASE("score: a spike is above its neighbours and above the other column") {
  const std::vector<MeasuredRow> flat{{bytes(8), 10}, {bytes(16), 10}, {bytes(32), 10}};
  std::vector<MeasuredRow> spiked = flat;
  spiked[1].time_us = 14;
  CHECK(spikes(spiked, flat) == std::vector<std::size_t>{1});
  CHECK(spikes(spiked, spiked).empty());  // both columns have it: not a spike
  CHECK(spikes(spiked, {}).empty());      // nothing to compare with
  spiked[1].time_us = 12.9;               // less than 1.3 x its neighbours
  CHECK(spikes(spiked, flat).empty());
  std::vector<MeasuredRow> step = flat;  // a step up is no spike: the next size is as slow
  step[1].time_us = step[2].time_us = 14;
  CHECK(spikes(step, {{bytes(8), 10}, {bytes(16), 10}, {bytes(32), 14}}).empty());
}

TEST_CASE("score: noise is in place against out of place, spikes left out") {
  const std::vector<MeasuredRow> out{
      {bytes(8), 10}, {bytes(16), 20}, {bytes(32), 10}, {bytes(64), 10}};
  const std::vector<MeasuredRow> in{{bytes(8), 11}, {bytes(16), 10}, {bytes(32), 9}};
  const auto noise = column_noise(out, in);
  REQUIRE(noise.size() == 2);
  CHECK(noise[0].second == doctest::Approx(0.1));
  CHECK(noise[1].first == bytes(32));
  CHECK(noise[1].second == doctest::Approx(0.1));
}
