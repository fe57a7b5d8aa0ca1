// What `railyard calibrate fit` and `validate --log` compare with: nccl-tests logs run on the
// platform of a scenario, or measured runs, which state their own.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.h"
#include "sim/result.h"
#include "tools/cli/fit_runs.h"
#include "tools/cli/measured_run.h"

namespace railyard::cli {

// A table of an nccl-tests log on the platform of `scenario`: its collective, sizes, ranks and
// launch mode replace the scenario's (its collective counts where the log tells none); machine,
// version and environment stay. A log's GPUs must all be of one model: `device` is the first one
// seen, filled if empty; another is refused by name. The run as measured comes with it.
struct LogInput {
  FitInput input;
  MeasuredRun run;
};
struct LogRequest {
  std::string log;
  std::string scenario;
  std::vector<std::string> sets{};
  std::int64_t largest = 0;  // bytes: longer messages are left out; 0 = none
};
sim::Result<std::vector<LogInput>> log_inputs(const LogRequest& request, std::string& device);

// Whether a YAML file is a scenario (has `railyard:`) and not a measured run.
sim::Result<bool> is_scenario(const std::string& path);

}  // namespace railyard::cli
