#include "tools/cli/validation.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "scenarios/profile.h"
#include "sim/parameter_groups.h"
#include "tests/tools/helpers.h"
#include "tools/cli/fit_inputs.h"
#include "tools/cli/fit_runs.h"
#include "tools/cli/validation_journal.h"
#include "tools/cli/validation_report.h"

namespace railyard::tests {
namespace {

using cli::MeasuredRun;
using cli::Prediction;
using nlohmann::json;

// Two GPUs of an H100 node; the times are made up.
std::string run_yaml(const std::string& id, const std::string& platform = "made-up",
                     const std::string& more = "status: healthy\n") {
  return "id: " + id +
         "\n"
         "platform:\n"
         "  name: " +
         platform +
         "\n"
         "  machine: hgx-h100\n"
         "  nodes: 1\n"
         "  gpus_per_node: 2\n"
         "  processes: per-gpu\n"
         "  intra: nvswitch\n"
         "  nics_per_node: 0\n"
         "  fabric: none\n"
         "  transport: none\n"
         "  nccl_used: \"2.29.2\"\n"
         "  library: nccl\n"
         "  predictable: true\n"
         "collective: AllReduce\n"
         "datatype: float\n" +
         more +
         "rows: [[1024, 6.0, null, null], [1048576, 15.0, null, null], [33554432, 140, null, "
         "null]]\n"
         "rows_in_place: [[1024, 6.3, null, null]]\n";
}

MeasuredRun read(const TemporaryDirectory& directory, const std::string& name,
                 const std::string& text) {
  auto run = cli::read_measured_run(directory.write(name, text));
  REQUIRE_MESSAGE(run.ok(), (run.ok() ? "" : run.error().text()));
  return std::move(run).value();
}

Prediction predicted(const MeasuredRun& run, const cli::PredictOptions& options = {}) {
  auto made = cli::predict(run, options);
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().text()));
  CHECK(made.value().failed == "");
  return std::move(made).value();
}

}  // namespace

TEST_CASE("validate: every row of a run gets a prediction that its own time does not touch") {
  const TemporaryDirectory directory;
  const MeasuredRun run = read(directory, "a.yaml", run_yaml("a"));
  const Prediction first = predicted(run);
  REQUIRE(first.rows.size() == 3);
  CHECK(first.rows[0].protocol == sim::Protocol::ll);
  CHECK(first.rows[2].protocol == sim::Protocol::simple);
  CHECK(first.rows[0].predicted_us < first.rows[2].predicted_us);
  CHECK(first.rows[0].error() == doctest::Approx(std::abs(first.rows[0].predicted_us / 6.0 - 1)));
  MeasuredRun slower = run;
  for (calibrate::MeasuredRow& row : slower.rows) row.time_us *= 10;
  const Prediction second = predicted(slower);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(first.rows[i].predicted_us == second.rows[i].predicted_us);
}

TEST_CASE("validate: why a run is tabled apart") {
  const TemporaryDirectory directory;
  MeasuredRun run = read(directory, "a.yaml", run_yaml("a"));
  CHECK(cli::set_apart(run) == "");
  run.platform.nccl_used.clear();
  CHECK(cli::set_apart(run) == "version not stated");
  run.status = "fault";
  CHECK(cli::set_apart(run) == "status fault");
  run.platform.predictable = false;
  run.platform.why_not = "nics";
  CHECK(cli::set_apart(run) == "not predictable: nics");
}

TEST_CASE("validate: a journal gives the same rows without a simulation") {
  const TemporaryDirectory directory;
  const MeasuredRun run = read(directory, "a.yaml", run_yaml("a"));
  cli::ValidationJournal journal;
  REQUIRE(journal.open(directory.path("j")).ok());
  const Prediction made = predicted(run, {.journal = &journal});
  const std::string line = directory.read("j");
  CHECK(line.starts_with("{\"key\":"));
  CHECK(std::count(line.begin(), line.end(), '\n') == 1);

  // The second journal also holds a torn line, which is passed over.
  directory.write("k", line + "{\"key\": \"torn");
  cli::ValidationJournal again;
  REQUIRE(again.open(directory.path("k")).ok());
  const Prediction known = predicted(run, {.journal = &again});
  REQUIRE(known.rows.size() == made.rows.size());
  for (std::size_t i = 0; i < made.rows.size(); ++i) {
    CHECK(known.rows[i].predicted_us == made.rows[i].predicted_us);
    CHECK(known.rows[i].algorithm == made.rows[i].algorithm);
  }
  CHECK(directory.read("k") == line + "{\"key\": \"torn\n");  // nothing was simulated or added
  CHECK_FALSE(cli::ValidationJournal().open(directory.path("no/such/place")).ok());
}

TEST_CASE("validate: text, JSON and page") {
  const TemporaryDirectory directory;
  std::vector<Prediction> all;
  all.push_back(predicted(read(directory, "a.yaml", run_yaml("a"))));
  all.push_back(predicted(read(directory, "b.yaml", run_yaml("b", "odd-one", "status: odd\n"))));
  const std::string text = cli::validation_text(all, true);
  CHECK(text.find("made-up  unfitted") != std::string::npos);
  CHECK(text.find("odd-one  unfitted") == std::string::npos);  // apart
  CHECK(text.find("status odd") != std::string::npos);
  CHECK(text.find("2 runs, 2 of them predicted, 0 spikes left out") != std::string::npos);
  const json out = json::parse(cli::validation_json(all));
  REQUIRE(out["rows"].size() == 6);
  for (const char* key : {"run", "collective", "bytes", "time_us", "predicted_us", "algorithm",
                          "protocol", "fitted", "band"})
    CHECK(out["rows"][0].contains(key));
  CHECK(out["rows"][3]["apart"] == "status odd");
  const std::string page = cli::validation_html(all);
  CHECK(page.find("<b>a</b>") != std::string::npos);
  CHECK(page.find("class='predicted'") != std::string::npos);
}

TEST_CASE("calibrate fit: the simulator's own times give its parameters back") {
  const TemporaryDirectory directory;
  const MeasuredRun run = read(directory, "a.yaml", run_yaml("a"));
  auto input = cli::fit_input(run, {});
  REQUIRE(input.ok());
  // Times of a profile that is 30 % slower to start and has 40 % longer hops.
  const Prediction truth = predicted(run, {.sets = {"parameters.host.collective_start=6.032us",
                                                    "parameters.protocols.LL.hop_latency=378ns"}});
  for (std::size_t i = 0; i < truth.rows.size(); ++i)
    input.value().rows[i].time_us = truth.rows[i].predicted_us;
  // More rows than one run has: the same one four times.
  cli::FitRuns job;
  job.inputs.assign(4, input.value());
  job.parameters = {"host.collective_start", "protocols.LL.hop_latency"};
  const auto fitted = cli::fit_runs(job);
  REQUIRE_MESSAGE(fitted.ok(), (fitted.ok() ? "" : fitted.error().text()));
  CHECK(sim::to_seconds(fitted.value().parameters.host.collective_start) ==
        doctest::Approx(6.03e-6).epsilon(0.03));
  CHECK(fitted.value().fit.cost < 0.1 * fitted.value().fit.cost_before);
  CHECK(fitted.value().parameters.fitted_runs.back() == "a");
  CHECK(fitted.value().parameters.fitted_runs.size() > 4);  // the class's own are kept
  CHECK(fitted.value().runs == std::vector<std::string>(4, "a"));
  CHECK(fitted.value().parameters.validated.empty());
  const auto written =
      scenarios::profile_from_text(scenarios::write_profile(fitted.value().parameters), "p.yaml");
  REQUIRE(written.ok());
  CHECK(written.value().fitted_runs == fitted.value().parameters.fitted_runs);
  CHECK(written.value().host.collective_start == fitted.value().parameters.host.collective_start);
  const std::string part =
      scenarios::write_profile_part(fitted.value().parameters, {"host.collective_start"}, "");
  CHECK(part.find("partial: true") != std::string::npos);
  CHECK(part.find("collective_start") != std::string::npos);
  CHECK(part.find("hop_latency:") == std::string::npos);
}

TEST_CASE("calibrate fit: refusals") {
  const TemporaryDirectory directory;
  auto input = cli::fit_input(read(directory, "a.yaml", run_yaml("a")), {});
  REQUIRE(input.ok());
  CHECK(cli::fit_runs({}).error().message == "no measurements to fit to");
  cli::FitRuns job;
  job.inputs = {input.value()};
  job.parameters = {"host.no_such"};
  CHECK(cli::fit_runs(job).error().message.starts_with("no parameter 'host.no_such'"));
  job.parameters = {"host.collective_start", "protocols.LL.hop_latency"};
  CHECK(cli::fit_runs(job).error().message ==
        "3 measurements are too few for 2 parameters: 1 more are needed");
  job.most_parameters = 1;
  CHECK(cli::fit_runs(job).error().message ==
        "2 parameters are more than the 1 that one platform may fit");
  job.inputs.push_back(input.value());
  job.inputs.back().name = "other";
  job.inputs.back().scenario.profile = "a100-dgx";
  CHECK(cli::fit_runs(job).error().message.find("one profile serves one platform") !=
        std::string::npos);
}

TEST_CASE("calibrate fit: nccl-tests logs on a scenario") {
  const TemporaryDirectory directory;
  const std::string table =
      "# nThread 1 nGpus 2 minBytes 1024 maxBytes 1048576 step: 1024(factor) warmup iters: 5 "
      "iters: 20 agg iters: 1 validation: 1 graph: 0\n"
      "# Collective test starting: all_reduce_perf\n"
      "#  Rank  0 Group  0 Pid  10 on  hosta device  0 [0000:17:00] NVIDIA H100\n"
      "#  Rank  1 Group  0 Pid  10 on  hosta device  1 [0000:18:00] NVIDIA H100\n"
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
      " 1024 256 float sum -1 6.00 0.17 0.17 0 6.00 0.17 0.17 0\n"
      " 1048576 262144 float sum -1 15.0 69.9 69.9 0 15.0 69.9 69.9 0\n";
  const std::string log = directory.write("a.log", table);
  const std::string scenario =
      directory.write("s.yaml",
                      "railyard: 1\ncluster: {machine: hgx-h100}\nnccl: auto\n"
                      "collectives: [{collective: Broadcast, sizes: [8B]}]\n");
  std::string device;
  const auto inputs = cli::log_inputs({log, scenario}, device);
  REQUIRE_MESSAGE(inputs.ok(), (inputs.ok() ? "" : inputs.error().text()));
  REQUIRE(inputs.value().size() == 1);
  CHECK(device == "NVIDIA H100");
  const scenarios::Scenario& made = inputs.value()[0].input.scenario;
  CHECK(made.collectives[0].collective == sim::Collective::all_reduce);
  CHECK(made.collectives[0].sizes.size() == 2);
  CHECK(made.ranks.gpus_per_node == 2);
  CHECK(made.ranks.gpus_per_process == 2);
  CHECK_FALSE(made.ranks.thread_per_gpu);
  std::string other = "NVIDIA A100";
  const auto refused = cli::log_inputs({log, scenario}, other);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message ==
        "measured on 'NVIDIA H100', the others on 'NVIDIA A100': one profile serves one platform");
  CHECK(cli::is_scenario(scenario).value());
  CHECK_FALSE(cli::is_scenario(directory.write("r.yaml", run_yaml("r"))).value());
}

}  // namespace railyard::tests
