#include "tools/cli/ranking.h"

#include <doctest/doctest.h>

#include "tests/tools/helpers.h"
#include "tools/cli/explore_report.h"

namespace railyard::cli {
namespace {

using scenarios::Objective;

StudyPoint point(std::int64_t time_us, std::size_t changed, std::string value = "v") {
  StudyPoint out;
  out.values = {std::move(value)};
  out.changed = changed;
  out.result.time = sim::microseconds(time_us);
  out.result.busbw = 1000.0 / static_cast<double>(time_us);
  return out;
}

StudyPoint failed(std::string why) {
  StudyPoint out;
  out.values = {"bad"};
  out.changed = 1;
  out.result.error = std::move(why);
  return out;
}

Study study_of(std::vector<StudyPoint> points) {
  Study study;
  study.scenario.name = "s";
  study.axes = {"nccl.channels"};
  study.own_values = {"own"};
  study.points = std::move(points);
  for (const StudyPoint& each : study.points)
    if (each.changed == 0) study.own = each.result;
  return study;
}

std::string advice(const std::vector<StudyPoint>& points) {
  const Study study = study_of(points);
  return recommendation(study, rank(study.points, study.objective));
}

}  // namespace

TEST_CASE("ranking: best first, ties in grid order, failures last") {
  const std::vector<StudyPoint> points{point(30, 1), failed("x"), point(10, 1), point(30, 1),
                                       point(20, 0)};
  const Ranking ranking = rank(points, Objective::time);
  CHECK(ranking.order == std::vector<std::size_t>{2, 4, 0, 3, 1});
  CHECK(ranking.ran == 4);
  CHECK(ranking.equivalent == 1);
  CHECK(ranking.recommended == 2);
  // Bandwidth: the same order, since it is 1000 / time.
  CHECK(rank(points, Objective::busbw).order == ranking.order);
}

TEST_CASE("ranking: below one per cent there is no difference") {
  // 1009 is within 1 % of 1000, 1010 is not.
  CHECK(rank({point(1000, 1), point(1009, 0)}, Objective::time).recommended == 1);
  CHECK(rank({point(1000, 1), point(1010, 0)}, Objective::time).recommended == 0);
  // Of several equivalent ones the fewest changes, then the better, then grid order.
  CHECK(rank({point(1000, 2), point(1005, 1), point(1002, 1)}, Objective::time).recommended == 2);
  CHECK(rank({point(1000, 1), point(1000, 1)}, Objective::time).recommended == 0);
}

TEST_CASE("ranking: nothing ran") {
  const Ranking ranking = rank({failed("a"), failed("b")}, Objective::time);
  CHECK(ranking.ran == 0);
  CHECK_FALSE(ranking.recommended.has_value());
  CHECK(rank({}, Objective::time).order.empty());
}

TEST_CASE("ranking: how far behind") {
  CHECK(shortfall(125, 100, Objective::time) == doctest::Approx(0.25));
  CHECK(shortfall(75, 100, Objective::busbw) == doctest::Approx(0.25));
  CHECK(shortfall(0, 0, Objective::exposed_communication) == 0);
  CHECK(shortfall(1, 0, Objective::exposed_communication) > 1e300);
}

TEST_CASE("recommendation: a better setting, against the scenario's own and the second best") {
  // 100 / 200 = 50 % shorter than the scenario's own; 100 / 125 = 20 % shorter than the second.
  CHECK(
      advice({point(100, 1, "a"), point(125, 1, "b"), point(200, 0, "own")}) ==
      "Use nccl.channels = a: time 100 us. That is 50.0 % shorter than the scenario's own setting "
      "(nccl.channels = own: 200 us). It is 20.0 % shorter than the second best (nccl.channels = "
      "b: 125 us).");
}

TEST_CASE("recommendation: the scenario's own setting is kept where nothing beats it") {
  CHECK(
      tests::contains(advice({point(100, 0, "own"), point(125, 1, "b")}),
                      "Keep the scenario's own setting, nccl.channels = own: time 100 us. Nothing "
                      "that was tried is better."));
  CHECK(tests::contains(advice({point(1005, 0, "own"), point(1000, 1, "b")}),
                        "Keep the scenario's own setting, nccl.channels = own: time 1.005 ms. The "
                        "best (nccl.channels = b) is no different: 0.5 % apart, and differences "
                        "below 1 % are not counted."));
}

TEST_CASE("recommendation: where nothing ran, or the scenario itself does not") {
  CHECK(advice({failed("x")}) == "No setting gave a result, so none can be recommended.");
  Study study = study_of({point(100, 1, "a")});
  study.own.error = "too big";
  CHECK(recommendation(study, rank(study.points, study.objective)) ==
        "Use nccl.channels = a: time 100 us. The scenario's own setting (nccl.channels = own) does "
        "not run: too big.");
}

TEST_CASE("exploration: table, failures and CSV") {
  const Study study =
      study_of({point(125, 1, "[1, 2]"), failed("s.yaml:1:2: no"), point(100, 0, "own")});
  const Ranking ranking = rank(study.points, study.objective);
  const std::string text = explore_text({study, ranking, study.points[2].result}, {});
  CHECK(tests::contains(text,
                        "  rank  nccl.channels    time  vs best\n"
                        "     1            own  100 us           the scenario's own\n"
                        "     2         [1, 2]  125 us  +25.0 %\n"));
  CHECK(tests::contains(text,
                        "1 of 3 settings gave no result\n  nccl.channels = bad: s.yaml:1:2: "
                        "no\n"));
  CHECK(explore_csv(study, ranking) ==
        "rank,nccl.channels,time_us,difference_to_best_percent,exposed_us,compute_us,"
        "communication_us,busbw_gb_per_s,bound_by,error\n"
        "1,own,100,0.0000,,,,10,,\n"
        "2,\"[1, 2]\",125,25.0000,,,,8,,\n"
        ",bad,,,,,,,,s.yaml:1:2: no\n");
}

}  // namespace railyard::cli
