// explore.json: the study, its ranking and its recommendation.
#include <cmath>

#include "tools/cli/explore_report.h"
#include "tools/cli/format.h"
#include "tools/cli/json_parts.h"

namespace railyard::cli {
namespace {

// Numbers as numbers, everything else as the YAML text.
Json value_json(const std::string& yaml) {
  Json parsed = Json::parse(yaml, nullptr, false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : Json(yaml);
}

Json settings_json(const std::vector<std::string>& axes, const std::vector<std::string>& values) {
  Json out = Json::object();
  for (std::size_t i = 0; i < axes.size(); ++i) out[axes[i]] = value_json(values[i]);
  return out;
}

void add_time(Json& out, const char* key, const std::optional<sim::Duration>& time) {
  if (time) out[key] = exact_us(*time);
}

void add_result(Json& out, const PointResult& result) {
  if (!result.error.empty()) {
    out["error"] = result.error;
    return;
  }
  out["time_us"] = exact_us(result.time);
  add_time(out, "exposed_communication_us", result.exposed);
  add_time(out, "compute_us", result.compute);
  add_time(out, "communication_us", result.communication);
  out["busbw_gb_per_s"] = result.busbw;
  if (!result.bound_by.empty()) out["bound_by"] = result.bound_by;
  out["trace_hash"] = hex(result.trace_hash);
}

Json point_json(const Study& study, const Ranking& ranking, std::size_t place) {
  const StudyPoint& point = study.points[ranking.order[place]];
  Json out;
  out["rank"] = place < ranking.ran ? Json(place + 1) : Json();
  out["settings"] = settings_json(study.axes, point.values);
  out["changed_settings"] = point.changed;
  add_result(out, point.result);
  if (place < ranking.ran) {
    const PointResult& best = study.points[ranking.order.front()].result;
    const double behind = shortfall(objective_value(point.result, study.objective),
                                    objective_value(best, study.objective), study.objective);
    out["difference_to_best"] = std::isfinite(behind) ? Json(behind) : Json();
  }
  return out;
}

}  // namespace

std::string explore_json(const ExploreReport& report) {
  const Study& study = report.study;
  const Ranking& ranking = report.ranking;
  Json out;
  out["railyard_explore"] = kExploreVersion;
  add_origin(out, study.scenario);
  out["objective"] = sim::to_text(study.objective);
  out["axes"] = study.axes;
  out["own"] = {{"settings", settings_json(study.axes, study.own_values)}};
  add_result(out["own"], study.own);
  if (ranking.recommended) {
    out["best"] = point_json(study, ranking, 0);
    std::size_t place = 0;
    while (ranking.order[place] != *ranking.recommended) ++place;
    out["recommended"] = point_json(study, ranking, place);
    out["recommended"]["sensitivity"] = sensitivity_json(report.detail.sensitivity);
  }
  out["no_difference_below"] = kNoDifference;
  out["within_no_difference"] = ranking.equivalent;
  out["recommendation"] = recommendation(study, ranking);
  out["points"] = Json::array();
  for (std::size_t i = 0; i < ranking.order.size(); ++i)
    out["points"].push_back(point_json(study, ranking, i));
  return dump(out);
}

}  // namespace railyard::cli
