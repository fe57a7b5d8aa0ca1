#include "tools/cli/app.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>

#include "sim/check.h"
#include "sim/text.h"
#include "sim/version.h"
#include "tools/cli/calibrate_command.h"
#include "tools/cli/calibrate_fit.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/explore_command.h"
#include "tools/cli/format.h"
#include "tools/cli/help_formatter.h"
#include "tools/cli/help_topics.h"
#include "tools/cli/nccl_command.h"
#include "tools/cli/run_command.h"
#include "tools/cli/schedule_command.h"
#include "tools/cli/topo_command.h"
#include "tools/cli/topo_import.h"
#include "tools/cli/trace_command.h"
#include "tools/cli/validate_command.h"

namespace railyard::cli {
namespace {

struct Arguments {
  RunArguments run;
  ExploreArguments explore;
  TopologyArguments topology;
  ImportArguments import;
  std::vector<std::string> check;
  NcclPlanArguments nccl_plan;
  NcclCompareArguments nccl_compare;
  ScheduleArguments schedule;
  CalibrateReadArguments calibrate_read;
  ValidateArguments validate;
  FitArguments fit;
  TraceShowArguments trace_show;
  TraceImportArguments trace_import;
  std::string help_on;
};

// An option whose value one of our own parsers reads; its error becomes a usage error.
template <typename T>
CLI::Option* add_parsed(CLI::App& app, const std::string& names,
                        std::function<sim::Result<T>(const std::string&)> parse, T& out) {
  return app.add_option_function<std::string>(
      names, [parse = std::move(parse), &out, names](const std::string& text) {
        const sim::Result<T> value = parse(text);
        if (!value.ok()) throw CLI::ValidationError(names, value.error().text());
        out = value.value();
      });
}

template <typename Enum>
CLI::Option* add_enum(CLI::App& app, const std::string& names, Enum& out) {
  return add_parsed<Enum>(
      app, names, [](const std::string& text) { return sim::parse_enum<Enum>(text); }, out);
}

// Above 0 and at most a thousand million million. CLI::PositiveNumber lets "nan" and "inf" through.
std::string positive(const std::string& text) {
  constexpr double kMost = 1e15;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, value);
  if (failed == std::errc() && stop == end && value > 0 && value <= kMost) return {};
  return fmt::format("a number above 0 and at most 1e15 is expected, not '{}'", text);
}

void add_scenario(CLI::App& app, SimulationArguments& out) {
  app.add_option("SCENARIO", out.scenario,
                 "A scenario file, or the name of a shipped one (railyard help scenarios)")
      ->required();
  app.add_option("--set", out.sets, "Change a value of the scenario: --set cluster.nodes=8")
      ->type_name("PATH=VALUE")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
}

void add_common(CLI::App& app, SimulationArguments& out) {
  add_scenario(app, out);
  app.add_flag("--json", out.json, "Print the result as JSON, and nothing else");
  app.add_flag("-q,--quiet", out.quiet, "No summary and no progress line");
  add_parsed<sim::Bytes>(
      app, "--max-memory", [](const std::string& text) { return sim::parse_bytes(text); },
      out.max_memory)
      ->type_name("SIZE")
      ->description("Refuse what would need more memory (default 16GB)");
  app.add_option("--max-events", out.max_events, "Refuse what would take more events (default 5e9)")
      ->type_name("N")
      ->check(positive);
}

void add_run(CLI::App& app, RunArguments& out) {
  CLI::App& run = *app.add_subcommand("run", "Simulate a scenario; summary here, files with -o");
  add_common(run, out.common);
  run.add_option("-o,--output", out.common.directory,
                 "Write result.json, timeline.json and CSV files into DIR; files of an earlier run "
                 "there are replaced, anything else is left alone")
      ->type_name("DIR");
  add_enum(run, "--format", out.format)
      ->type_name("FORMAT")
      ->description("table, or nccl-tests: what nccl-tests itself would print (default table)");
  run.add_flag("--full", out.full, "Show every row of long tables");
  run.add_flag_callback(
      "--no-sensitivity", [&out] { out.sensitivity = false; },
      "Do not run again with each cost changed by 10 %");
  run.add_flag_callback(
      "--no-replay", [&out] { out.replay = false; },
      "Simulate every collective, also where an equal one was simulated before; the "
      "result is the same");
  run.add_option("--ranks", out.ranks, "Ranks to keep in timeline.json: the first N (default 8)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  run.add_option("--timeout", out.timeout_seconds, "Stop after so much time and say how far it was")
      ->type_name("SECONDS")
      ->check(positive);
  run.footer("Example: railyard run gpt2-xl-ddp-4x8-h100 --set ddp.bucket_cap_mb=100 -o out");
}

void add_explore(CLI::App& app, ExploreArguments& out) {
  CLI::App& explore = *app.add_subcommand(
      "explore", "Run every combination of the scenario's `explore:` block; rank and recommend");
  add_common(explore, out.common);
  explore
      .add_option("-o,--output", out.common.directory,
                  "Where the journal and the results go (default railyard-explore/NAME); the same "
                  "command goes on where an interrupted one was")
      ->type_name("DIR");
  explore.add_option("--jobs", out.jobs, "Simulations at a time (default: one per processor)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  explore.add_flag("--restart", out.restart, "Forget what an earlier call has run");
  explore.add_flag("--full", out.full, "Show every row of long tables");
  explore.footer("Example: railyard explore explore-bucket-size");
}

void add_import(CLI::App& topo, ImportArguments& out, std::vector<std::string>& check) {
  CLI::App& import = *topo.add_subcommand("import", "Read machines from other tools' files");
  import
      .add_option(
          "FILE", out.files,
          "NCCL topology or graph XML, nvidia-smi topo -m, ibnetdiscover, forwarding tables, "
          "SLURM topology.conf or .yaml; told apart by their content. A node, a fabric and its "
          "tables together are one cluster")
      ->required()
      ->type_name("FILE...");
  import
      .add_option("-o,--output", out.output,
                  "Write node and fabric as a `cluster:` block that a scenario can include")
      ->type_name("CLUSTER.yaml");
  import
      .add_option("--adapters", out.adapters,
                  "Which adapters of the fabric a host's NICs are, where they are not called as in "
                  "the node's file: a YAML map {HOST: [mlx5_3, mlx5_2]}, '*' for every other host")
      ->type_name("MAP.yaml");
  import
      .add_option("--like", out.like,
                  "Machine of the catalogue that supplies what a file does not say (default: the "
                  "nearest)")
      ->type_name("MACHINE");
  import.add_flag("--json", out.json, "Print what was found as JSON");
  import.footer("Example: railyard topo import topo.xml fabric.ibnet opensm.fdbs -o cluster.yaml");
  CLI::App& checking = *topo.add_subcommand("check", "Look for faults in topology files");
  checking
      .add_option("FILE", check,
                  "NCCL topology XML, nvidia-smi topo -m, ibnetdiscover: links trained low, failed "
                  "NVLinks, far NICs, missing rails")
      ->required()
      ->type_name("FILE...");
  checking.footer("Example: railyard topo check topo.xml");
}

void add_topology(CLI::App& topo, TopologyArguments& out) {
  CLI::App& show = *topo.add_subcommand("show", "Print a topology");
  show.add_option("WHAT", out.what,
                  "A scenario (file or name) or a machine (railyard help machines)")
      ->required()
      ->type_name("SCENARIO|MACHINE");
  show.add_option("--set", out.sets, "Change a value of the scenario first")
      ->type_name("PATH=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  show.add_option("--nodes", out.nodes, "Another number of nodes")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  add_enum(show, "--format", out.format)
      ->type_name("FORMAT")
      ->description(
          "tree, matrix (as nvidia-smi topo -m), dot (for graphviz); default tree and "
          "matrix");
  show.footer("Example: railyard topo show dgx-a100 --format dot | dot -Tsvg -o dgx-a100.svg");
}

void add_compare(CLI::App& nccl, NcclCompareArguments& out) {
  CLI::App& compare = *nccl.add_subcommand("compare", "A log of NCCL_DEBUG=INFO against the plan");
  compare.add_option("SCENARIO", out.scenario, "The cluster that wrote the log")->required();
  compare.add_option("LOG", out.log, "Of one rank or of all, in any order")->required();
  compare.add_option("--set", out.sets, "Change a value of the scenario first")
      ->type_name("PATH=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  compare.add_option("--group", out.group, "The group of the scenario (default world)")
      ->type_name("NAME");
  compare.footer("Exit status 3 where they differ.");
}

void add_nccl(CLI::App& app, NcclPlanArguments& out, NcclCompareArguments& compared) {
  CLI::App& nccl =
      *app.add_subcommand("nccl", "What NCCL would decide, and what a log says it did");
  nccl.require_subcommand(1);
  CLI::App& plan = *nccl.add_subcommand(
      "plan", "Channels, rings, trees, NCCL's cost table and its choice by size");
  plan.add_option("SCENARIO", out.scenario, "A scenario file, or the name of a shipped one");
  plan.add_option("--topo", out.topology, "A topology XML of NCCL instead, of one host")
      ->type_name("FILE");
  plan.add_option("--inputs", out.inputs, "A JSON file whose `inputs` block asks the question")
      ->type_name("FILE");
  plan.add_option("--nodes", out.nodes, "With --topo: so many equal hosts (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  plan.add_option("--hosts-per-domain", out.hosts_per_domain,
                  "With --topo: hosts that share NVLink (default 1)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  plan.add_option("--env", out.env, "With --topo: a variable, --env NCCL_ALGO=Ring")
      ->type_name("NAME=VALUE")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  plan.add_option("--nccl-version", out.version, "With --topo: constants of that version")
      ->type_name("X.Y.Z");
  plan.add_option("--set", out.sets, "Change a value of the scenario first")
      ->type_name("PATH=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  plan.add_option("--group", out.group, "Of the scenario: plan for this group (default world)")
      ->type_name("NAME");
  plan.add_flag("--json", out.json, "Print everything as JSON, and nothing else");
  add_enum(plan, "--export", out.exported)
      ->type_name("FORMAT")
      ->description("tuner-csv (NCCL's example tuner plugin) or env (NCCL_* lines)");
  plan.footer("Example: railyard nccl plan --topo dgx.xml --nodes 4");
  add_compare(nccl, compared);
}

void add_fit(CLI::App& app, FitArguments& out) {
  CLI::App& fit = *app.add_subcommand("fit", "Fit a platform's parameters to measurements of it");
  fit.add_option("FILE", out.files,
                 "A scenario (machine, version, environment) and logs of nccl-tests on it; or "
                 "measured runs (.yaml), which state their own platform")
      ->required()
      ->type_name("SCENARIO LOG... | RUN.yaml...");
  fit.footer("Example: railyard calibrate fit my-node.yaml all_reduce.log -o my-node-profile.yaml");
  fit.add_option("--parameter,-p", out.parameters, "Dotted path of a parameter to fit; repeatable")
      ->delimiter(',');
  fit.add_option("--set", out.sets, "KEY=VALUE for the scenarios");
  fit.add_option("--most", out.most_parameters,
                 "Most parameters to fit (default: 8, a platform's)");
  fit.add_option("-o,--output", out.out, "Profile to write");
  fit.add_option("--largest", out.largest, "Leave out longer messages, in bytes");
  fit.add_option("--name", out.name, "Name of the profile");
  fit.add_flag(
      "--part", out.part,
      "Write only what was fitted: a part to be named behind the profiles it was fitted on");
  fit.add_option("--jobs,-j", out.jobs, "Simulations at a time (default: all processors)")
      ->check(CLI::Range(0, 1024));
}

void add_validate(CLI::App& app, ValidateArguments& out) {
  CLI::App& validate = *app.add_subcommand(
      "validate", "Predict measured runs and say how far off the predictions are");
  validate.add_option("--reference", out.reference,
                      "Folder of measured runs (default: $RAILYARD_REFERENCE or the one beside the "
                      "checkout)");
  validate.add_option("--runs", out.runs, "Only runs whose id matches, with * and ?");
  validate.add_option("--set", out.sets, "KEY=VALUE for every scenario");
  validate.add_option("--log", out.log, "A log of nccl-tests of one's own, with SCENARIO");
  validate.add_option("SCENARIO", out.scenario, "The platform that --log was measured on");
  validate.add_option("--html", out.html, "Write a page with measured and predicted curves");
  validate.add_option("--journal", out.journal,
                      "File of finished runs: an interrupted validation goes on where it was");
  validate.add_option("--jobs,-j", out.jobs, "Simulations at a time (default: all processors)")
      ->check(CLI::Range(0, 1024));
  validate.add_option("--timeout", out.timeout_seconds, "Seconds for one run; 0 = none");
  validate.add_flag("--rows", out.rows, "Print every row");
  validate.add_flag("--json", out.json, "Every row as JSON");
  validate.footer("Example: railyard validate --runs 'h100-*' --html h100.html");
}

void add_schedule(CLI::App& app, ScheduleArguments& out) {
  CLI::App& schedule = *app.add_subcommand("schedule", "Prove schedules that users wrote");
  schedule.require_subcommand(1);
  CLI::App& check = *schedule.add_subcommand("check", "Prove a schedule, or say what is wrong");
  check.add_option("FILE", out.file, "A schedule: our text form or MSCCL's XML")->required();
  check.footer("Example: railyard schedule check my-allreduce.xml");
}

void add_calibrate(CLI::App& app, CalibrateReadArguments& out, FitArguments& fit) {
  CLI::App& calibrate = *app.add_subcommand("calibrate", "Read measurements, fit parameters");
  calibrate.require_subcommand(1);
  add_fit(calibrate, fit);
  CLI::App& read = *calibrate.add_subcommand("read", "What measurement logs hold");
  read.add_option("FILE", out.files,
                  "nccl-tests, perftest, nvbandwidth, p2pBandwidthLatencyTest, OSU, PyTorch "
                  "profiler traces (one per rank); told apart by their content")
      ->required()
      ->type_name("FILE...");
  read.add_flag("--json", out.json, "Print everything as JSON, every measurement included");
  read.footer("Example: railyard calibrate read all_reduce.log ib_write_bw.txt");
}

void add_trace(CLI::App& app, TraceShowArguments& shown, TraceImportArguments& out) {
  CLI::App& trace = *app.add_subcommand("trace", "Profiler traces: what happened; as a scenario");
  trace.require_subcommand(1);
  CLI::App& show =
      *trace.add_subcommand("show", "Steps, overlap, exposed communication, collectives");
  show.add_option("FILE", shown.files,
                  "A trace of the PyTorch profiler or an execution trace; .gz as it is")
      ->required()
      ->type_name("FILE...");
  show.add_flag("--json", shown.json, "Print everything as JSON");
  CLI::App& import = *trace.add_subcommand("import", "The typical step of a trace as a scenario");
  import.add_option("FILE", out.file, "The trace of one rank")->required();
  import.add_option("-o,--output", out.output, "Scenario to write (default: standard output)")
      ->type_name("FILE");
  import
      .add_option("--machine", out.machine,
                  "Machine of the catalogue (default: guessed by the GPU's name)")
      ->type_name("NAME");
  import.add_option("--ranks", out.ranks, "How many ranks (default: what the trace says)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  import.add_option("--step", out.step, "Which step (default: the one of median duration)")
      ->type_name("NAME");
  add_enum(import, "--as", out.form)
      ->type_name("FORM")
      ->description("ddp, replay or auto: ddp where the trace is of DDP (default auto)");
  import.footer("Example: railyard trace import rank0.json.gz -o mine.yaml --machine hgx-h100");
}

void add_help(CLI::App& app, Arguments& out) {
  CLI::App& help = *app.add_subcommand("help", "Help on a command or a topic");
  help.add_option("TOPIC", out.help_on, "A command, or one of the topics below");
  help.footer(help_topics_footer());
}

// The command of a name; null if there is none.
CLI::App* find_command(CLI::App& app, const std::string& name) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App* /*any*/) { return true; }))
    if (command->get_name() == name) return command;
  return nullptr;
}

int help_command(CLI::App& app, const std::string& on) {
  CLI::App* command = on == "help" ? nullptr : find_command(app, on);
  std::string text;
  if (on.empty() || on == "help") {
    text = app.help();
  } else if (command != nullptr) {
    text = command->help("railyard");
    // The subcommands of topo are what there is to know about it.
    for (const CLI::App* each :
         command->get_subcommands([](const CLI::App* /*any*/) { return true; }))
      text += "\n" + each->help("railyard topo");
  } else {
    const sim::Result<std::string> topic = help_topic(on);
    if (!topic.ok()) {
      complain(topic.error().text());
      return kUsage;
    }
    text = topic.value();
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return finish_output(kDone);
}

void describe(CLI::App& app, Arguments& arguments) {
  app.description("Simulates communication and training steps on GPU clusters.");
  app.set_version_flag("--version", "railyard " + std::string(sim::kVersion));
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  add_run(app, arguments.run);
  add_explore(app, arguments.explore);
  CLI::App& topo = *app.add_subcommand("topo", "Look at machines and clusters; import, check");
  topo.require_subcommand(1);
  add_topology(topo, arguments.topology);
  add_import(topo, arguments.import, arguments.check);
  add_nccl(app, arguments.nccl_plan, arguments.nccl_compare);
  add_schedule(app, arguments.schedule);
  add_validate(app, arguments.validate);
  add_calibrate(app, arguments.calibrate_read, arguments.fit);
  add_trace(app, arguments.trace_show, arguments.trace_import);
  add_help(app, arguments);
  app.footer(help_topics_footer());
}

// A first word that is no command. The library would ask for a command instead of naming it.
int unknown_command(CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App* /*any*/) { return true; }))
    names.push_back(each->get_name());
  const std::vector<std::string_view> views(names.begin(), names.end());
  complain(fmt::format("there is no command '{}'{} (one of: {})", word,
                       sim::did_you_mean(word, views), fmt::join(names, ", ")));
  complain("try `railyard --help`");
  return kUsage;
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return finish_output(app.exit(error));  // --help, --version
  std::string command = "railyard";
  for (const CLI::App* at = &app; at != nullptr;) {
    const auto parsed = at->get_subcommands();
    at = parsed.empty() ? nullptr : parsed.front();
    if (at != nullptr) command += " " + at->get_name();
  }
  complain(error.what());
  complain(fmt::format("try `{} --help`", command));
  return kUsage;
}

int dispatch(CLI::App& app, const Arguments& arguments) {
  if (app.got_subcommand("run")) return run_command(arguments.run);
  if (app.got_subcommand("explore")) return explore_command(arguments.explore);
  if (const CLI::App* topo = app.get_subcommand("topo"); topo->parsed()) {
    if (topo->got_subcommand("import")) return import_command(arguments.import);
    if (topo->got_subcommand("check")) return check_command(arguments.check);
    return topology_command(arguments.topology);
  }
  if (const CLI::App* nccl = app.get_subcommand("nccl"); nccl->parsed())
    return nccl->got_subcommand("plan") ? nccl_plan_command(arguments.nccl_plan)
                                        : nccl_compare_command(arguments.nccl_compare);
  if (app.got_subcommand("schedule")) return schedule_command(arguments.schedule);
  if (const CLI::App* calibrate = app.get_subcommand("calibrate"); calibrate->parsed())
    return calibrate->got_subcommand("fit") ? calibrate_fit_command(arguments.fit)
                                            : calibrate_read_command(arguments.calibrate_read);
  if (const CLI::App* trace = app.get_subcommand("trace"); trace->parsed())
    return trace->got_subcommand("show") ? trace_show_command(arguments.trace_show)
                                         : trace_import_command(arguments.trace_import);
  if (app.got_subcommand("validate")) return validate_command(arguments.validate);
  return help_command(app, arguments.help_on);
}

}  // namespace

int run_app(int argc, const char* const* argv) {
  try {
    Arguments arguments;
    CLI::App app("", "railyard");
    describe(app, arguments);
    if (argc < 2) {
      std::fputs(app.help().c_str(), stderr);
      return kUsage;
    }
    const std::string first = argv[1];
    if (!first.starts_with('-') && find_command(app, first) == nullptr)
      return unknown_command(app, first);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return usage_error(app, error);
    }
    return dispatch(app, arguments);
  } catch (const std::bad_alloc&) {
    complain("out of memory; --max-memory refuses such runs before they begin");
    return kBadInput;
  } catch (const std::exception& error) {
    return fail_internal(error.what());
  }
}

}  // namespace railyard::cli
