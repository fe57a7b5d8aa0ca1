#include "tools/cli/calibrate_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <thread>

#include "scenarios/profile.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/fit_inputs.h"
#include "tools/cli/fit_runs.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/measured_run.h"

namespace railyard::cli {
namespace {

using sim::Result;

Result<std::vector<FitInput>> inputs_of_logs(const FitArguments& arguments) {
  std::vector<FitInput> inputs;
  std::string device;
  if (arguments.files.size() < 2)
    return sim::bad_input("no log: expected SCENARIO LOG...", arguments.files.front());
  for (auto log = arguments.files.begin() + 1; log != arguments.files.end(); ++log) {
    RAILYARD_ASSIGN(
        std::vector<LogInput> made,
        log_inputs({*log, arguments.files.front(), arguments.sets, arguments.largest}, device));
    for (LogInput& each : made) inputs.push_back(std::move(each.input));
  }
  return inputs;
}

Result<std::vector<FitInput>> inputs_of(const FitArguments& arguments) {
  RAILYARD_ASSIGN(const bool logs, is_scenario(arguments.files.front()));
  if (logs) return inputs_of_logs(arguments);
  std::vector<FitInput> inputs;
  for (const std::string& log : arguments.files) {
    RAILYARD_ASSIGN(MeasuredRun run, read_measured_run(log));
    for (auto* rows : {&run.rows, &run.rows_in_place})
      if (arguments.largest > 0)
        std::erase_if(*rows, [&](const calibrate::MeasuredRow& row) {
          return row.size.raw() > arguments.largest;
        });
    RAILYARD_ASSIGN(FitInput input, fit_input(run, arguments.sets));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::vector<std::string> determined(const FittedProfile& fitted) {
  std::vector<std::string> names;
  for (const calibrate::FittedParameter& each : fitted.fit.parameters)
    if (each.determined) names.push_back(each.name);
  return names;
}

Result<void> write_profile_file(const FittedProfile& fitted, const FitArguments& arguments) {
  const std::string& path = arguments.out;
  sim::Parameters part = fitted.parameters;
  part.fitted_runs = fitted.runs;  // the profiles below name theirs
  const std::string text = arguments.part
                               ? scenarios::write_profile_part(part, determined(fitted), "")
                               : scenarios::write_profile(fitted.parameters);
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) return sim::bad_input("cannot be written", path);
  return {};
}

Result<int> fit(const FitArguments& arguments) {
  FitRuns job;
  RAILYARD_ASSIGN(job.inputs, inputs_of(arguments));
  job.parameters = arguments.parameters;
  job.jobs =
      arguments.jobs == 0 ? std::max(1U, std::thread::hardware_concurrency()) : arguments.jobs;
  job.most_parameters = arguments.most_parameters;
  job.interrupted = &interrupted();
  job.progress = [](int iteration, double cost) {
    fmt::print(stderr, "iteration {}: cost {:.2f}\n", iteration, cost);
  };
  RAILYARD_ASSIGN(FittedProfile fitted, fit_runs(job));
  if (!arguments.name.empty()) fitted.parameters.name = arguments.name;
  const std::string text = fit_text(fitted);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!arguments.out.empty()) RAILYARD_TRY(write_profile_file(fitted, arguments));
  return kDone;
}

}  // namespace

int calibrate_fit_command(const FitArguments& arguments) {
  catch_interrupts();
  const Result<int> status = fit(arguments);
  return status.ok() ? finish_output(status.value()) : fail(status.error());
}

}  // namespace railyard::cli
