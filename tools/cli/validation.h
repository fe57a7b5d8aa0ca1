// Predictions for measured runs: each run's platform becomes a scenario, the event engine runs it,
// and every row of the measurement gets its prediction.
//
//   RAILYARD_ASSIGN(const Prediction prediction, predict(run, {}));
//   prediction.rows[0].predicted_us
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario.h"
#include "sim/collective.h"
#include "sim/result.h"
#include "tools/cli/measured_run.h"
#include "tools/cli/validation_journal.h"

namespace railyard::cli {

struct PredictedRow {
  sim::Bytes size{};
  double time_us = 0;  // out of place, or in place where the source has only that
  double predicted_us = 0;
  sim::Algorithm algorithm = sim::Algorithm::ring;
  sim::Protocol protocol = sim::Protocol::simple;
  std::uint32_t channels = 0;
  bool spike = false;  // by the rule of score.h

  [[nodiscard]] double error() const;  // |predicted / measured - 1|
};

struct Prediction {
  MeasuredRun run;
  std::string profile;
  bool fitted = false;     // the profile's parameters were fitted on this very run
  std::string not_scored;  // why the run counts apart: not predictable, not healthy, no version
  std::string failed;      // why there is no prediction at all
  std::vector<PredictedRow> rows;
};

struct PredictOptions {
  ValidationJournal* journal = nullptr;
  const std::atomic<bool>* interrupted = nullptr;
  double timeout_seconds = 0;     // of one run; 0 = none
  std::vector<std::string> sets;  // applied to every scenario
};

// Never reads a run's times but to put them beside the prediction.
sim::Result<Prediction> predict(MeasuredRun run, const PredictOptions& options);

// The same on a scenario of one's own, or the error of making it.
sim::Result<Prediction> predict(MeasuredRun run, const sim::Result<scenarios::Scenario>& scenario,
                                const PredictOptions& options);

}  // namespace railyard::cli
