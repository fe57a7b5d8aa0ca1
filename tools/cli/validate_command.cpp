#include "tools/cli/validate_command.h"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "tools/cli/exit_status.h"
#include "tools/cli/fit_inputs.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/measured_run.h"
#include "tools/cli/progress.h"
#include "tools/cli/validation.h"
#include "tools/cli/validation_report.h"

namespace railyard::cli {
namespace {

namespace fs = std::filesystem;
using sim::Result;

// Given, named by the environment, or beside the working directory as a checkout has it.
Result<std::string> reference_folder(const ValidateArguments& arguments) {
  if (!arguments.reference.empty()) return arguments.reference;
  std::vector<std::string> places{"../shared/reference/measured"};
  if (const char* named = std::getenv("RAILYARD_REFERENCE")) places.insert(places.begin(), named);
  for (const std::string& place : places)
    if (fs::is_directory(place)) return place;
  return sim::bad_input("no measurements found: name their folder with --reference DIR");
}

Result<std::vector<MeasuredRun>> runs_of(const ValidateArguments& arguments) {
  RAILYARD_ASSIGN(const std::string folder, reference_folder(arguments));
  RAILYARD_ASSIGN(const std::vector<std::string> files, measured_run_files(folder, arguments.runs));
  if (files.empty())
    return sim::bad_input(fmt::format("no run matches '{}'", arguments.runs), folder);
  std::vector<MeasuredRun> runs;
  for (const std::string& file : files) {
    RAILYARD_ASSIGN(MeasuredRun run, read_measured_run(file));
    runs.push_back(std::move(run));
  }
  return runs;
}

// Runs with many ranks first, so that the last worker does not end long after the others.
std::vector<std::size_t> longest_first(const std::vector<MeasuredRun>& runs) {
  std::vector<std::size_t> order(runs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const auto ranks = [](const MeasuredRun& run) {
      return run.platform.nodes.value_or(0) * run.platform.gpus_per_node.value_or(0);
    };
    return ranks(runs[a]) > ranks(runs[b]);
  });
  return order;
}

Result<std::vector<Prediction>> predict_all(std::vector<MeasuredRun> runs,
                                            const ValidateArguments& arguments,
                                            const PredictOptions& options) {
  const std::size_t jobs =
      arguments.jobs == 0 ? std::max(1U, std::thread::hardware_concurrency()) : arguments.jobs;
  ProgressLine progress(fmt::format("predicting {} runs", runs.size()), arguments.json);
  const std::vector<std::size_t> order = longest_first(runs);
  std::vector<Prediction> predictions(runs.size());
  std::optional<sim::Error> failed;
  std::mutex mutex;
  std::size_t done = 0;
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, jobs);
  tbb::task_arena arena(static_cast<int>(jobs));
  arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, order.size(), 1),
        [&](const tbb::blocked_range<std::size_t>& range) {
          for (std::size_t k = range.begin(); k != range.end(); ++k) {
            Result<Prediction> made = predict(std::move(runs[order[k]]), options);
            const std::lock_guard lock(mutex);
            if (!made.ok()) {
              failed = made.error();
              continue;
            }
            predictions[order[k]] = std::move(made).value();
            progress.update(static_cast<double>(++done) / static_cast<double>(order.size()));
          }
        },
        tbb::simple_partitioner());
  });
  if (failed) return *failed;
  return predictions;
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) return sim::bad_input("cannot be written", path);
  return {};
}

// A user's own log on the scenario of its platform.
Result<std::vector<Prediction>> predict_log(const ValidateArguments& arguments,
                                            const PredictOptions& options) {
  if (arguments.scenario.empty())
    return sim::bad_input("--log needs the scenario that the log was measured on");
  std::string device;
  RAILYARD_ASSIGN(std::vector<LogInput> inputs,
                  log_inputs({arguments.log, arguments.scenario, arguments.sets}, device));
  std::vector<Prediction> predictions;
  for (LogInput& each : inputs) {
    RAILYARD_ASSIGN(Prediction made, predict(std::move(each.run), each.input.scenario, options));
    made.not_scored.clear();  // the scenario says what the platform is
    predictions.push_back(std::move(made));
  }
  return predictions;
}

Result<std::vector<Prediction>> predict_reference(const ValidateArguments& arguments,
                                                  const PredictOptions& options) {
  RAILYARD_ASSIGN(std::vector<MeasuredRun> runs, runs_of(arguments));
  return predict_all(std::move(runs), arguments, options);
}

Result<int> validate(const ValidateArguments& arguments) {
  ValidationJournal journal;
  if (!arguments.journal.empty()) RAILYARD_TRY(journal.open(arguments.journal));
  PredictOptions options;
  options.interrupted = &interrupted();
  options.timeout_seconds = arguments.timeout_seconds;
  options.sets = arguments.sets;
  options.journal = arguments.journal.empty() ? nullptr : &journal;
  RAILYARD_ASSIGN(const std::vector<Prediction> predictions,
                  arguments.log.empty() ? predict_reference(arguments, options)
                                        : predict_log(arguments, options));
  if (!arguments.html.empty())
    RAILYARD_TRY(write_file(arguments.html, validation_html(predictions)));
  const std::string text =
      arguments.json ? validation_json(predictions) : validation_text(predictions, arguments.rows);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::ranges::any_of(predictions,
                             [](const Prediction& each) { return each.failed.empty(); })
             ? kDone
             : kBadInput;
}

}  // namespace

int validate_command(const ValidateArguments& arguments) {
  catch_interrupts();
  const Result<int> status = validate(arguments);
  if (status.ok()) return finish_output(status.value());
  if (status.error().code == sim::ErrorCode::interrupted) {
    complain(arguments.journal.empty() ? "interrupted; with --journal FILE it could go on"
                                       : "interrupted; the same command goes on where it was");
    return kInterrupted;
  }
  return fail(status.error());
}

}  // namespace railyard::cli
