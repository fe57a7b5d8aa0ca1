// A study: the points of an exploration, run in parallel with a journal.
//
//   RAILYARD_ASSIGN(Study study, prepare_study(scenario));
//   RAILYARD_TRY(run_study(study, journal, options));
//   const Ranking ranking = rank(study.points, study.objective);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenarios/explore.h"
#include "scenarios/run.h"
#include "scenarios/scenario.h"
#include "tools/cli/journal.h"
#include "tools/cli/ranking.h"

namespace railyard::cli {

struct Study {
  scenarios::Scenario scenario;  // with its `explore:` block
  scenarios::Objective objective = scenarios::Objective::time;
  std::vector<std::string> axes;        // dotted paths
  std::vector<std::string> own_values;  // of the scenario itself; "default" where it states none
  std::vector<scenarios::ExplorePoint> settings;
  std::vector<StudyPoint> points;        // as `settings`
  PointResult own;                       // the scenario as it is
  std::optional<std::size_t> own_point;  // where it is one of the points
};

struct StudyOptions {
  std::size_t jobs = 1;
  scenarios::RunLimits limits;  // of one simulation; `progress` is not used
  std::function<void(std::size_t done, std::size_t total)> finished;
};

// Names the points; nothing is run. An error: the scenario has no `explore:` block, or asks for an
// objective that it does not have.
sim::Result<Study> prepare_study(scenarios::Scenario scenario);

// Runs what the journal does not hold: every point, and the scenario as it is. A point whose
// scenario or run is refused gets its error and the rest goes on. Fails only where the study cannot
// go on: interrupted, or the journal cannot be written.
sim::Result<void> run_study(Study& study, Journal& journal, const StudyOptions& options);

// The same point with its sensitivity, from the journal or run now.
sim::Result<PointResult> sensitivity_of(const Study& study, std::size_t point, Journal& journal,
                                        const scenarios::RunLimits& limits);

// The scenario of one point.
sim::Result<scenarios::Scenario> scenario_of(const Study& study, std::size_t point);

}  // namespace railyard::cli
