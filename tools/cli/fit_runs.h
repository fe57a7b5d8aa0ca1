// Fits parameters of a profile to measured runs, through the simulator itself: every evaluation of
// the model is a simulation of every run by the event engine.
//
//   FitRuns job{.inputs = inputs, .parameters = {"protocols.LL.hop_latency"}};
//   RAILYARD_ASSIGN(const FittedProfile fitted, fit_runs(job));
//   write_profile(fitted.parameters)
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/fit/least_squares.h"
#include "scenarios/scenario.h"
#include "sim/parameters.h"
#include "sim/result.h"
#include "tools/cli/measured_run.h"

namespace railyard::cli {

// One sweep: a scenario whose collectives are the measured rows, in their order.
struct FitInput {
  std::string name;  // of the run or log
  scenarios::Scenario scenario;
  std::vector<calibrate::MeasuredRow> rows;
};

struct FitRuns {
  std::vector<FitInput> inputs;
  std::vector<std::string> parameters;  // dotted paths; empty: those that usually differ
  std::size_t jobs = 1;
  std::size_t most_parameters = 8;
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(int iteration, double cost)> progress;
};

struct FittedProfile {
  sim::Parameters parameters;  // of the first input, the fitted ones replaced, provenance added
  calibrate::FitResult fit;
  std::vector<std::string> runs;       // what was fitted to, now
  std::vector<std::string> row_names;  // of the measurements, as in fit.outliers
};

// A run of the reference set as an input; spikes are left out.
sim::Result<FitInput> fit_input(const MeasuredRun& run, const std::vector<std::string>& sets);

// Errors: inputs of different profiles; unknown parameters; those of fit_parameters().
sim::Result<FittedProfile> fit_runs(const FitRuns& job);

// Parameters that a platform's runs usually determine: those of what the inputs use (NVLS only
// where it is chosen, the network only across nodes).
std::vector<std::string> usual_parameters(const std::vector<FitInput>& inputs);

std::string fit_text(const FittedProfile& fitted);

}  // namespace railyard::cli
