#include "tools/cli/explore_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/cli/csv.h"
#include "tools/cli/format.h"
#include "tools/cli/table.h"

namespace railyard::cli {
namespace {

using scenarios::Objective;

constexpr std::size_t kLongTable = 64;
constexpr std::size_t kShownRows = 40;
constexpr std::size_t kShownFailures = 10;

std::string_view objective_name(Objective objective) {
  switch (objective) {
    case Objective::step_time: return "step time";
    case Objective::time: return "time";
    case Objective::busbw: return "bus bandwidth";
    case Objective::exposed_communication: return "exposed communication";
  }
  return "?";
}

std::string value_text(const PointResult& result, Objective objective) {
  if (objective == Objective::busbw) return digits(result.busbw) + " GB/s";
  if (objective == Objective::exposed_communication)
    return human(result.exposed.value_or(sim::Duration{}));
  return human(result.time);
}

std::string settings_text(const std::vector<std::string>& axes,
                          const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < axes.size(); ++i)
    text += fmt::format("{}{} = {}", i == 0 ? "" : ", ", axes[i], values[i]);
  return text;
}

std::string optional_time(const std::optional<sim::Duration>& time) {
  return time ? human(*time) : "";
}

// "8.3 % shorter than", "no different from": `a` beside `b`, in the objective's own words.
std::string compared(const PointResult& a, const PointResult& b, Objective objective) {
  const double ours = objective_value(a, objective);
  const double theirs = objective_value(b, objective);
  const double best = larger_is_better(objective) ? std::max(ours, theirs) : std::min(ours, theirs);
  const double worst =
      larger_is_better(objective) ? std::min(ours, theirs) : std::max(ours, theirs);
  const double apart = shortfall(worst, best, objective);
  if (apart < kNoDifference) return fmt::format("no different ({} apart) from", percent(apart));
  const double part = theirs == 0 ? 0 : std::abs(ours / theirs - 1);
  const bool more = ours > theirs;
  const std::string_view word = larger_is_better(objective)
                                    ? (more ? "higher than" : "lower than")
                                    : (more ? "longer than" : "shorter than");
  return fmt::format("{} {}", percent(part), word);
}

std::string own_sentence(const Study& study, const PointResult& chosen) {
  if (!study.own.error.empty())
    return fmt::format(" The scenario's own setting ({}) does not run: {}.",
                       settings_text(study.axes, study.own_values), study.own.error);
  return fmt::format(" That is {} the scenario's own setting ({}: {}).",
                     compared(chosen, study.own, study.objective),
                     settings_text(study.axes, study.own_values),
                     value_text(study.own, study.objective));
}

// The next point after the recommended one.
std::optional<std::size_t> second_of(const Ranking& ranking) {
  for (std::size_t i = 0; i < ranking.ran; ++i)
    if (ranking.order[i] != *ranking.recommended) return ranking.order[i];
  return std::nullopt;
}

void add_row(const Study& study, const std::string& rank, const StudyPoint& point,
             const PointResult& best, Table& table) {
  std::vector<std::string> cells{rank};
  cells.insert(cells.end(), point.values.begin(), point.values.end());
  const double behind = shortfall(objective_value(point.result, study.objective),
                                  objective_value(best, study.objective), study.objective);
  cells.push_back(value_text(point.result, study.objective));
  cells.push_back(
      behind == 0
          ? ""
          : fmt::format("{:+.1f} %", behind * 100 * (larger_is_better(study.objective) ? -1 : 1)));
  if (trains(study.scenario) && study.objective != Objective::exposed_communication)
    cells.push_back(optional_time(point.result.exposed));
  if (trains(study.scenario)) cells.push_back(point.result.bound_by);
  cells.emplace_back(point.changed == 0 ? "the scenario's own" : "");
  table.add(std::move(cells));
}

std::string ranked_table(const Study& study, const Ranking& ranking, const SummaryStyle& style) {
  if (ranking.ran == 0) return "";
  std::vector<Column> columns{{"rank"}};
  for (const std::string& axis : study.axes) columns.push_back({axis});
  columns.push_back({std::string(objective_name(study.objective))});
  columns.push_back({"vs best"});
  if (trains(study.scenario) && study.objective != Objective::exposed_communication)
    columns.push_back({"exposed"});
  if (trains(study.scenario)) columns.push_back({"bound by", Align::left});
  columns.push_back({"", Align::left});
  Table table(std::move(columns));
  const std::size_t shown = style.full || ranking.ran <= kLongTable ? ranking.ran : kShownRows;
  const PointResult& best = study.points[ranking.order.front()].result;
  for (std::size_t i = 0; i < shown; ++i)
    add_row(study, std::to_string(i + 1), study.points[ranking.order[i]], best, table);
  std::string text =
      heading(fmt::format("Settings by {}", objective_name(study.objective)), style) + table.text();
  if (shown < ranking.ran)
    text += fmt::format("  ... and {} more: --full shows all\n", ranking.ran - shown);
  return text;
}

std::string failures(const Study& study, const Ranking& ranking, const SummaryStyle& style) {
  const std::size_t failed = study.points.size() - ranking.ran;
  if (failed == 0) return "";
  std::string text =
      heading(fmt::format("{} of {} settings gave no result", failed, study.points.size()), style);
  for (std::size_t i = 0; i < std::min(failed, style.full ? failed : kShownFailures); ++i) {
    const StudyPoint& point = study.points[ranking.order[ranking.ran + i]];
    text +=
        wrap(fmt::format("  {}: {}", settings_text(study.axes, point.values), point.result.error),
             kWidth, "    ") +
        "\n";
  }
  if (failed > kShownFailures && !style.full)
    text += fmt::format("  ... and {} more: --full shows all\n", failed - kShownFailures);
  return text;
}

std::string bounds(const ExploreReport& report, const SummaryStyle& style) {
  std::string text;
  if (!report.detail.bound_by.empty())
    text = wrap(fmt::format("With it the step is bound by {}: {} compute, {} communication, of "
                            "which {} exposed.",
                            report.detail.bound_by, optional_time(report.detail.compute),
                            optional_time(report.detail.communication),
                            optional_time(report.detail.exposed)),
                kWidth, "") +
           "\n";
  return text + summary_sensitivity(report.study.scenario, report.detail.sensitivity, style);
}

// Settings are YAML; numbers are numbers in a CSV too.
std::vector<std::string> csv_cells(const Study& study, const std::string& rank,
                                   const StudyPoint& point, const PointResult& best) {
  std::vector<std::string> cells{rank};
  cells.insert(cells.end(), point.values.begin(), point.values.end());
  if (!point.result.error.empty()) {
    cells.insert(cells.end(), 7, "");
    cells.push_back(point.result.error);
    return cells;
  }
  const auto us = [](const std::optional<sim::Duration>& time) {
    return time ? fmt::format("{}", exact_us(*time)) : std::string();
  };
  const double behind = shortfall(objective_value(point.result, study.objective),
                                  objective_value(best, study.objective), study.objective);
  cells.push_back(us(point.result.time));
  cells.push_back(fmt::format("{:.4f}", behind * 100));
  cells.push_back(us(point.result.exposed));
  cells.push_back(us(point.result.compute));
  cells.push_back(us(point.result.communication));
  cells.push_back(fmt::format("{}", point.result.busbw));
  cells.push_back(point.result.bound_by);
  cells.emplace_back();
  return cells;
}

}  // namespace

std::string recommendation(const Study& study, const Ranking& ranking) {
  if (!ranking.recommended) return "No setting gave a result, so none can be recommended.";
  const StudyPoint& chosen = study.points[*ranking.recommended];
  const StudyPoint& best = study.points[ranking.order.front()];
  const std::string setting = settings_text(study.axes, chosen.values);
  const std::string value = fmt::format("{} {}", objective_name(study.objective),
                                        value_text(chosen.result, study.objective));
  std::string text;
  if (chosen.changed == 0) {
    text = fmt::format("Keep the scenario's own setting, {}: {}.", setting, value);
    text += &chosen == &best
                ? " Nothing that was tried is better."
                : fmt::format(
                      " The best ({}) is no different: {} apart, and differences below {:.0f} "
                      "% are not counted.",
                      settings_text(study.axes, best.values),
                      percent(shortfall(objective_value(chosen.result, study.objective),
                                        objective_value(best.result, study.objective),
                                        study.objective)),
                      kNoDifference * 100);
  } else {
    text = fmt::format("Use {}: {}.", setting, value) + own_sentence(study, chosen.result);
    if (&chosen != &best)
      text += fmt::format(" The best ({}: {}) changes more and is no different.",
                          settings_text(study.axes, best.values),
                          value_text(best.result, study.objective));
  }
  const auto second = second_of(ranking);
  if (second && &study.points[*second] != &best)
    text += fmt::format(" It is {} the second best ({}: {}).",
                        compared(chosen.result, study.points[*second].result, study.objective),
                        settings_text(study.axes, study.points[*second].values),
                        value_text(study.points[*second].result, study.objective));
  if (ranking.equivalent > 2)
    text += fmt::format(" {} of the {} settings are within {:.0f} % of the best.",
                        ranking.equivalent, study.points.size(), kNoDifference * 100);
  return text;
}

std::string explore_text(const ExploreReport& report, const SummaryStyle& style) {
  const Study& study = report.study;
  std::string text =
      wrap(fmt::format("{}: {} settings", study.scenario.name, study.points.size()), kWidth, "  ") +
      "\n";
  text += ranked_table(study, report.ranking, style);
  text += failures(study, report.ranking, style);
  text += heading("Recommendation", style);
  text += wrap(recommendation(study, report.ranking), kWidth, "") + "\n";
  return text + bounds(report, style);
}

std::string explore_csv(const Study& study, const Ranking& ranking) {
  std::vector<std::string> titles{"rank"};
  titles.insert(titles.end(), study.axes.begin(), study.axes.end());
  for (const char* title : {"time_us", "difference_to_best_percent", "exposed_us", "compute_us",
                            "communication_us", "busbw_gb_per_s", "bound_by", "error"})
    titles.emplace_back(title);
  std::string text = csv_line(titles);
  for (std::size_t i = 0; i < ranking.order.size(); ++i)
    text += csv_line(csv_cells(study, i < ranking.ran ? std::to_string(i + 1) : "",
                               study.points[ranking.order[i]],
                               study.points[ranking.order.front()].result));
  return text;
}

}  // namespace railyard::cli
