#include "tools/cli/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/run.h"
#include "tools/cli/journal.h"

namespace railyard::cli {

using calibrate::MeasuredRow;
using scenarios::Scenario;
using sim::Result;

double PredictedRow::error() const { return std::abs(predicted_us / time_us - 1); }

namespace {

void add_rows(const std::vector<JournalRow>& predicted, Prediction& out) {
  const std::vector<MeasuredRow>& measured = scored_rows(out.run);
  for (std::size_t i = 0; i < measured.size() && i < predicted.size(); ++i) {
    const JournalRow& row = predicted[i];
    out.rows.push_back({measured[i].size, measured[i].time_us, sim::to_seconds(row.time) * 1e6,
                        row.algorithm, row.protocol, row.channels, false});
  }
  for (const std::size_t spike : spike_rows(out.run))
    if (spike < out.rows.size()) out.rows[spike].spike = true;
}

Result<std::vector<JournalRow>> simulate(const Scenario& scenario, const PredictOptions& options) {
  scenarios::RunOptions run_options;
  run_options.limits.interrupted = options.interrupted;
  run_options.limits.timeout_seconds = options.timeout_seconds;
  RAILYARD_ASSIGN(const scenarios::RunResult result, scenarios::run(scenario, run_options));
  if (result.outcome != sim::EventQueue::Outcome::drained)
    return sim::bad_input("stopped by a limit before the last size");
  std::vector<JournalRow> rows;
  for (const scenarios::CollectiveRow& row : result.collectives)
    rows.push_back({row.size, row.time, row.algorithm, row.protocol, row.channels});
  return rows;
}

}  // namespace

Result<Prediction> predict(MeasuredRun run, const PredictOptions& options) {
  const Result<Scenario> scenario = scenario_of(run, options.sets);
  return predict(std::move(run), scenario, options);
}

Result<Prediction> predict(MeasuredRun run, const Result<Scenario>& scenario,
                           const PredictOptions& options) {
  Prediction out;
  out.run = std::move(run);
  out.not_scored = set_apart(out.run);
  if (!scenario.ok()) {
    out.failed = scenario.error().text();
    return out;
  }
  out.profile = scenario.value().profile;
  const std::vector<std::string>& fitted = scenario.value().parameters.fitted_runs;
  out.fitted = std::ranges::find(fitted, out.run.id) != fitted.end();
  const std::string key = options.journal == nullptr ? "" : point_key(scenario.value());
  std::optional<std::vector<JournalRow>> rows;
  if (options.journal != nullptr) rows = options.journal->find(key);
  if (!rows) {
    Result<std::vector<JournalRow>> simulated = simulate(scenario.value(), options);
    if (options.interrupted != nullptr && options.interrupted->load())
      return sim::Error{sim::ErrorCode::interrupted, "interrupted", ""};
    if (!simulated.ok()) {
      out.failed = simulated.error().text();
      return out;
    }
    rows = std::move(simulated).value();
    if (options.journal != nullptr) RAILYARD_TRY(options.journal->append(key, *rows));
  }
  add_rows(*rows, out);
  return out;
}

}  // namespace railyard::cli
