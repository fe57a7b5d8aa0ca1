#include "tools/cli/explore_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

#include "tools/cli/exit_status.h"
#include "tools/cli/explore_report.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/journal.h"
#include "tools/cli/output_directory.h"
#include "tools/cli/progress.h"
#include "tools/cli/study.h"
#include "tools/cli/table.h"

namespace railyard::cli {
namespace {

using scenarios::Scenario;
using sim::Result;

constexpr std::string_view kJournalName = "journal.jsonl";

OutputKind explore_files() {
  return {"explore.json", kExploreMarker, {"explore.json", "explore.csv", "recommended.yaml"}};
}

// Letters, digits, '-', '_' and '.' of the name, so that it is one directory.
std::string directory_name(const std::string& name) {
  std::string out = name;
  for (char& c : out) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (!plain) c = '_';
  }
  return out.empty() || out.front() == '.' ? "scenario" + out : out;
}

std::string directory_of(const ExploreArguments& arguments, const Scenario& scenario) {
  return arguments.common.directory.value_or("railyard-explore/" + directory_name(scenario.name));
}

// As many at a time as processors, and as fit into the memory that is allowed.
std::size_t jobs_for(const ExploreArguments& arguments, const Scenario& scenario) {
  std::size_t jobs = arguments.jobs > 0 ? arguments.jobs : std::thread::hardware_concurrency();
  jobs = std::max<std::size_t>(jobs, 1);
  const auto estimate =
      scenarios::estimate(scenario, static_cast<double>(arguments.common.max_memory.raw()));
  if (!estimate.ok() || estimate.value().memory_bytes <= 0) return jobs;
  const double fit =
      static_cast<double>(arguments.common.max_memory.raw()) / estimate.value().memory_bytes;
  return fit >= static_cast<double>(jobs) ? jobs
                                          : std::max<std::size_t>(1, static_cast<std::size_t>(fit));
}

Result<std::unique_ptr<Journal>> open_journal(const ExploreArguments& arguments,
                                              const std::string& directory) {
  const std::string path = directory + "/" + std::string(kJournalName);
  RAILYARD_ASSIGN(std::unique_ptr<Journal> journal, Journal::open(path));
  if (!arguments.restart) return journal;
  journal.reset();
  std::error_code failed;
  std::filesystem::remove(path, failed);
  if (failed) return sim::Error{sim::ErrorCode::io, failed.message(), path};
  return Journal::open(path);
}

struct Concluded {
  Ranking ranking;
  PointResult detail;
};

Result<Concluded> conclude(const Study& study, Journal& journal,
                           const scenarios::RunLimits& limits) {
  Concluded out;
  out.ranking = rank(study.points, study.objective);
  if (out.ranking.recommended) {
    RAILYARD_ASSIGN(out.detail, sensitivity_of(study, *out.ranking.recommended, journal, limits));
  }
  return out;
}

Result<std::vector<OutputFile>> files_of(const ExploreReport& report) {
  std::vector<OutputFile> files{{"explore.json", explore_json(report)},
                                {"explore.csv", explore_csv(report.study, report.ranking)}};
  if (report.ranking.recommended) {
    RAILYARD_ASSIGN(const Scenario chosen, scenario_of(report.study, *report.ranking.recommended));
    files.push_back({"recommended.yaml", scenarios::resolved_yaml(chosen)});
  }
  return files;
}

std::string text_of(const ExploreArguments& arguments, const ExploreReport& report,
                    const std::string& directory) {
  if (arguments.common.json) return explore_json(report);
  if (arguments.common.quiet) return "";
  const bool bold = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  const std::string files =
      fmt::format("Files in {}: explore.json explore.csv{} {}", directory,
                  report.ranking.recommended ? " recommended.yaml" : "", kJournalName);
  return explore_text(report, {.bold = bold, .full = arguments.full}) + "\n" +
         wrap(files, kWidth, "  ") + "\n";
}

Result<int> explore_scenario(const ExploreArguments& arguments) {
  RAILYARD_ASSIGN(Scenario scenario, read(arguments.common));
  RAILYARD_ASSIGN(Study study, prepare_study(std::move(scenario)));
  RAILYARD_ASSIGN(const OutputDirectory directory,
                  OutputDirectory::open(directory_of(arguments, study.scenario), explore_files()));
  RAILYARD_ASSIGN(const std::unique_ptr<Journal> journal,
                  open_journal(arguments, directory.path()));
  ProgressLine progress(fmt::format("exploring {} settings", study.points.size()),
                        arguments.common.quiet);
  StudyOptions options;
  options.jobs = jobs_for(arguments, study.scenario);
  options.limits.max_events = arguments.common.max_events;
  options.limits.max_memory_bytes = static_cast<double>(arguments.common.max_memory.raw());
  options.limits.interrupted = &interrupted();
  options.finished = [&progress](std::size_t done, std::size_t total) {
    progress.update(static_cast<double>(done) / static_cast<double>(total));
  };
  RAILYARD_TRY(run_study(study, *journal, options));
  RAILYARD_ASSIGN(const Concluded concluded, conclude(study, *journal, options.limits));
  progress.clear();
  const ExploreReport report{study, concluded.ranking, concluded.detail};
  RAILYARD_ASSIGN(const std::vector<OutputFile> files, files_of(report));
  RAILYARD_TRY(directory.write(files));
  const std::string text = text_of(arguments, report, directory.path());
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (concluded.ranking.recommended) return kDone;
  complain("no setting gave a result");
  return kBadInput;
}

}  // namespace

int explore_command(const ExploreArguments& arguments) {
  catch_interrupts();
  const Result<int> status = explore_scenario(arguments);
  if (status.ok()) return finish_output(status.value());
  if (status.error().code == sim::ErrorCode::interrupted) {
    complain("interrupted; the same command goes on where it was, --restart begins anew");
    return kInterrupted;
  }
  return fail(status.error());
}

}  // namespace railyard::cli
