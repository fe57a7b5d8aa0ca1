#include "tools/cli/run_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "tools/cli/csv.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/nccl_tests.h"
#include "tools/cli/output_directory.h"
#include "tools/cli/progress.h"
#include "tools/cli/result_json.h"
#include "tools/cli/result_kv.h"
#include "tools/cli/summary.h"
#include "tools/cli/table.h"
#include "tools/cli/timeline.h"

namespace railyard::cli {
namespace {

using scenarios::Estimate;
using scenarios::RunResult;
using scenarios::Scenario;
using scenarios::TraceDetail;
using sim::Result;

constexpr double kMostMessagesInTimeline = 1e6;

OutputKind result_files() {
  return {"result.json",
          kResultMarker,
          {"result.json", "resolved.yaml", "timeline.json", "buckets.csv", "collectives.csv",
           "links.csv", "flows.csv", "requests.csv"}};
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// Messages are kept only where every one of them is simulated (none replayed) and they are few; a
// training step has far too many.
bool keep_messages(const Scenario& scenario, const Estimate& estimate) {
  if (scenario.engine.trace == TraceDetail::messages) return true;
  return scenario.engine.trace == TraceDetail::automatic && !scenario.ddp && !scenario.workload &&
         estimate.messages <= kMostMessagesInTimeline;
}

scenarios::RunOptions options_for(const RunArguments& arguments, const Scenario& scenario,
                                  const Estimate& estimate) {
  scenarios::RunOptions options;
  options.limits.max_events = arguments.common.max_events;
  options.limits.max_memory_bytes = static_cast<double>(arguments.common.max_memory.raw());
  options.limits.timeout_seconds = arguments.timeout_seconds;
  options.limits.interrupted = &interrupted();
  options.limits.expected_events = estimate.events;
  options.sensitivity = arguments.sensitivity;
  if (arguments.common.directory && scenario.engine.trace != TraceDetail::none) {
    options.trace_ranks = arguments.ranks;
    if (keep_messages(scenario, estimate))
      options.message_limit = static_cast<std::size_t>(kMostMessagesInTimeline);
  }
  return options;
}

Result<RunResult> simulate(const RunArguments& arguments, const Scenario& scenario,
                           scenarios::RunOptions options) {
  ProgressLine progress("simulating", arguments.common.quiet);
  options.limits.progress = [&progress](double share) { progress.update(share); };
  return scenarios::run(scenario, options);
}

std::vector<OutputFile> files_of(const RunArguments& arguments, const Scenario& scenario,
                                 const RunResult& result) {
  std::vector<OutputFile> files{{"result.json", result_json(scenario, result)},
                                {"resolved.yaml", scenarios::resolved_yaml(scenario)}};
  if (scenario.engine.trace != TraceDetail::none)
    files.push_back({"timeline.json", timeline_json(result, arguments.ranks)});
  if (result.ddp) files.push_back({"buckets.csv", buckets_csv(*result.ddp)});
  if (result.kv) files.push_back({"requests.csv", requests_csv(*result.kv)});
  if (!result.collectives.empty())
    files.push_back({"collectives.csv", collectives_csv(result.collectives)});
  if (!result.flows.empty()) files.push_back({"flows.csv", flows_csv(result.flows)});
  files.push_back({"links.csv", links_csv(result.busiest_links)});
  return files;
}

std::string files_text(const std::string& directory, const std::vector<OutputFile>& files) {
  std::string text = fmt::format("Files in {}:", directory);
  for (const OutputFile& file : files) text += " " + file.name;
  text = "\n" + wrap(text, kWidth, "  ") + "\n";
  for (const OutputFile& file : files)
    if (file.name == "timeline.json")
      text += "  (timeline.json opens in https://ui.perfetto.dev)\n";
  return text;
}

// Why a run that did not come to its end stopped, and how far it was.
std::string stop_text(const RunArguments& arguments, const RunResult& result,
                      const Estimate& estimate) {
  const bool user = interrupted().load();
  std::string why = user ? "interrupted" : "stopped by a limit (--max-events or --timeout)";
  if (!user && arguments.timeout_seconds > 0)
    why = fmt::format("stopped by --timeout after {} s", digits(arguments.timeout_seconds));
  std::string text =
      fmt::format("{}: {} simulated, {} events, {}; nothing was written", why,
                  human(result.duration), count(static_cast<std::int64_t>(result.events)),
                  share_text(static_cast<double>(result.events), estimate.events));
  for (const std::string& note : result.notes) text += "\n  " + note;
  return text;
}

Result<std::string> text_of(const RunArguments& arguments, const Scenario& scenario,
                            const RunResult& result) {
  if (arguments.common.json) return result_json(scenario, result);
  if (arguments.format == TextFormat::nccl_tests) {
    RAILYARD_ASSIGN(const auto devices, device_lines(scenario));
    return nccl_tests_text(result.collectives, devices);
  }
  if (arguments.common.quiet) return std::string();
  const bool bold = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  return summary(scenario, result, {.bold = bold, .full = arguments.full});
}

// The end of a run that ended: files, text, status.
Result<int> report(const RunArguments& arguments, const Scenario& scenario, const RunResult& result,
                   const std::optional<OutputDirectory>& directory) {
  RAILYARD_ASSIGN(std::string text, text_of(arguments, scenario, result));
  if (directory) {
    const std::vector<OutputFile> files = files_of(arguments, scenario, result);
    RAILYARD_TRY(directory->write(files));
    const bool told =
        !arguments.common.json && !arguments.common.quiet && arguments.format == TextFormat::table;
    if (told) text += files_text(directory->path(), files);
  }
  print(text);
  if (result.unfinished.empty()) return kDone;
  std::string hang = summary_hang(result);
  hang.pop_back();
  complain(hang);
  return kWouldHang;
}

Result<int> run_scenario(const RunArguments& arguments) {
  std::vector<std::string> sets;
  if (!arguments.replay) sets.emplace_back("engine.replay=false");
  RAILYARD_ASSIGN(const Scenario scenario, read(arguments.common, sets));
  if (arguments.format == TextFormat::nccl_tests && scenario.collectives.empty())
    return sim::bad_input("--format nccl-tests prints collectives, and this scenario runs none",
                          arguments.common.scenario);
  RAILYARD_ASSIGN(
      const Estimate estimate,
      scenarios::estimate(scenario, static_cast<double>(arguments.common.max_memory.raw())));
  RAILYARD_TRY(check_estimate(estimate, arguments.common));
  std::optional<OutputDirectory> directory;
  if (arguments.common.directory) {
    RAILYARD_ASSIGN(directory, OutputDirectory::open(*arguments.common.directory, result_files()));
  }
  RAILYARD_ASSIGN(const RunResult result,
                  simulate(arguments, scenario, options_for(arguments, scenario, estimate)));
  if (result.outcome == sim::EventQueue::Outcome::drained && !interrupted().load())
    return report(arguments, scenario, result, directory);
  complain(stop_text(arguments, result, estimate));
  return interrupted().load() ? kInterrupted : kBadInput;
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

std::string find_scenario(const std::string& argument) {
  if (is_file(argument) || argument.find('/') != std::string::npos) return argument;
  for (const std::string_view suffix : {"", ".yaml"}) {
    const std::string shipped =
        fmt::format("{}/scenarios/{}{}", scenarios::data_directory(), argument, suffix);
    if (is_file(shipped)) return shipped;
  }
  return argument;
}

Result<Scenario> read(const SimulationArguments& arguments,
                      const std::vector<std::string>& more_sets) {
  scenarios::ReadOptions options{.sets = arguments.sets};
  options.sets.insert(options.sets.end(), more_sets.begin(), more_sets.end());
  return scenarios::read_scenario(find_scenario(arguments.scenario), options);
}

Result<void> check_estimate(const Estimate& estimate, const SimulationArguments& arguments) {
  constexpr std::string_view kAdvice =
      "raise it if the machine and your patience allow, or simulate less (fewer nodes, channels, "
      "sizes or iterations)";
  if (estimate.memory_bytes > static_cast<double>(arguments.max_memory.raw()))
    return sim::bad_input(
        fmt::format("this run needs about {} of memory, more than --max-memory {}; {}",
                    human_bytes(estimate.memory_bytes),
                    human_bytes(static_cast<double>(arguments.max_memory.raw())), kAdvice),
        arguments.scenario);
  if (estimate.events > arguments.max_events)
    return sim::bad_input(fmt::format("this run takes about {:.2g} events, more than --max-events "
                                      "{:.2g}; {}",
                                      estimate.events, arguments.max_events, kAdvice),
                          arguments.scenario);
  return {};
}

int run_command(const RunArguments& arguments) {
  catch_interrupts();
  const Result<int> status = run_scenario(arguments);
  if (status.ok()) return finish_output(status.value());
  if (status.error().code == sim::ErrorCode::interrupted) {
    complain("interrupted; nothing was written");
    return kInterrupted;
  }
  return fail(status.error());
}

}  // namespace railyard::cli
