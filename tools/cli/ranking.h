// What an exploration concludes: the order of its points and the setting to use.
//
// Points are ordered by the objective (best first; equal ones in grid order), points without a
// result come last. Differences below kNoDifference of the best are called no difference: among the
// points within it, the recommended one changes the fewest settings of the scenario as it is, then
// has the better objective. So the scenario's own setting is kept wherever nothing beats it, and no
// setting is changed that brings nothing.
//
// Cost: O(points log points).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario.h"
#include "tools/cli/journal.h"

namespace railyard::cli {

inline constexpr double kNoDifference = 0.01;

struct StudyPoint {
  std::vector<std::string> values;  // one per axis
  std::size_t changed = 0;          // how many of them differ from the scenario's own
  PointResult result;
};

struct Ranking {
  std::vector<std::size_t> order;          // indices of points, best first, failed ones last
  std::size_t ran = 0;                     // points with a result
  std::size_t equivalent = 0;              // of them, within kNoDifference of the best
  std::optional<std::size_t> recommended;  // nothing if no point has a result
};

// The number that a study compares, in the objective's unit: seconds or GB/s.
double objective_value(const PointResult& result, scenarios::Objective objective);
bool larger_is_better(scenarios::Objective objective);

// How much worse `value` is than `best`, as a share: 0.25 = takes 25 % longer, or has 25 % less.
double shortfall(double value, double best, scenarios::Objective objective);

Ranking rank(const std::vector<StudyPoint>& points, scenarios::Objective objective);

}  // namespace railyard::cli
