#include "tools/cli/ranking.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace railyard::cli {

using scenarios::Objective;

bool larger_is_better(Objective objective) { return objective == Objective::busbw; }

double objective_value(const PointResult& result, Objective objective) {
  switch (objective) {
    case Objective::step_time:
    case Objective::time: return sim::to_seconds(result.time);
    case Objective::busbw: return result.busbw;
    case Objective::exposed_communication:
      return sim::to_seconds(result.exposed.value_or(sim::Duration{}));
  }
  return 0;
}

double shortfall(double value, double best, Objective objective) {
  if (value == best) return 0;
  if (best == 0) return std::numeric_limits<double>::infinity();
  return larger_is_better(objective) ? 1 - value / best : value / best - 1;
}

Ranking rank(const std::vector<StudyPoint>& points, Objective objective) {
  Ranking out;
  out.order.resize(points.size());
  std::iota(out.order.begin(), out.order.end(), std::size_t{0});
  const auto value = [&](std::size_t i) { return objective_value(points[i].result, objective); };
  std::stable_sort(out.order.begin(), out.order.end(), [&](std::size_t a, std::size_t b) {
    const bool failed_a = !points[a].result.error.empty();
    const bool failed_b = !points[b].result.error.empty();
    if (failed_a || failed_b) return !failed_a && failed_b;
    return larger_is_better(objective) ? value(a) > value(b) : value(a) < value(b);
  });
  for (const std::size_t i : out.order) {
    if (!points[i].result.error.empty()) break;
    ++out.ran;
    if (shortfall(value(i), value(out.order.front()), objective) >= kNoDifference) continue;
    ++out.equivalent;
    if (!out.recommended || points[i].changed < points[*out.recommended].changed)
      out.recommended = i;
  }
  return out;
}

}  // namespace railyard::cli
