// The grid of a scenario's `explore:` block.
//
//   for (const ExplorePoint& point : explore_points(scenario)) {
//     RAILYARD_ASSIGN(const Scenario one, scenario_at(scenario, point));
//     ...
//   }
//
// All combinations of the axes' values, the first axis slowest. A point is decoded like any other
// scenario, so it is checked as strictly and has a resolved text of its own.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace railyard::scenarios {

inline constexpr std::size_t kMaxExplorePoints = 100'000;

struct Setting {
  std::string path;
  std::string value;  // as YAML on one line; what --set path=value would take
  Node node;
  Mark mark;  // of the axis
};
using ExplorePoint = std::vector<Setting>;  // one per axis

std::vector<ExplorePoint> explore_points(const Scenario& scenario);

// The scenario of one point; it has no `explore:` block.
Result<Scenario> scenario_at(const Scenario& scenario, const ExplorePoint& point);

}  // namespace railyard::scenarios
