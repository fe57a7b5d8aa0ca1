// Traces through the command line: what is shown, and imports that are run and compared with the
// trace they came from.
#include "tools/cli/trace_command.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "calibrate/traces/steps.h"
#include "scenarios/run.h"
#include "scenarios/training_result.h"
#include "tests/calibrate/traces/made_trace.h"
#include "tests/paths.h"
#include "tests/skip.h"
#include "tests/tools/helpers.h"
#include "tools/cli/trace_yaml.h"

namespace railyard::tests {
namespace {

using nlohmann::json;
using traces::MadeTrace;

const std::string kTraces = std::string(RAILYARD_SHARED_DIR) + "/samples/traces/";
const std::string kResnet = kTraces + "hta_resnet50_ddp_2xA100_rank0.json.gz";
bool has_traces() { return std::filesystem::exists(kResnet); }

cli::AnyTrace loaded(const std::string& path) {
  auto trace = cli::load_trace(path);
  REQUIRE_MESSAGE(trace.ok(), (trace.ok() ? std::string() : trace.error().text()));
  return std::move(trace).value();
}

cli::ImportedScenario imported(const cli::AnyTrace& trace, cli::TraceImportArguments arguments) {
  auto scenario = cli::scenario_of(trace, arguments);
  REQUIRE_MESSAGE(scenario.ok(), (scenario.ok() ? std::string() : scenario.error().text()));
  return std::move(scenario).value();
}

scenarios::RunResult run_text(const std::string& yaml, std::vector<std::string> sets = {}) {
  const auto scenario = scenarios::scenario_from_text(yaml, "i.yaml", {.sets = std::move(sets)});
  REQUIRE_MESSAGE(scenario.ok(), (scenario.ok() ? std::string() : scenario.error().text()));
  auto result = scenarios::run(scenario.value(), {});
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? std::string() : result.error().text()));
  return std::move(result).value();
}

double ms(sim::Duration time) { return sim::to_seconds(time) * 1e3; }

// The typical step of the sample (tests/calibrate/traces/steps_test.cpp).
constexpr double kStepMs = 222.503, kComputeMs = 39.392, kExposedMs = 10.047;
const std::vector<sim::Bytes> kBuckets{sim::bytes(8196000), sim::bytes(31502336),
                                       sim::bytes(26255360), sim::bytes(26550272),
                                       sim::bytes(9724160)};

TEST_CASE("ResNet-50's trace imported as DDP runs as long as the trace did") {
  if (!has_traces()) RAILYARD_SKIP("no samples");
  const auto scenario = imported(loaded(kResnet), {.file = kResnet});
  const scenarios::RunResult result = run_text(scenario.yaml);
  REQUIRE(result.ddp);
  CHECK(result.ddp->bucket_bytes.back() == kBuckets);
  CHECK(result.ranks == 2);
  const double step = ms(result.ddp->step_time), exposed = ms(result.ddp->exposed);
  MESSAGE("step " << step << " ms (trace " << kStepMs << "), compute " << ms(result.ddp->compute)
                  << " (" << kComputeMs << "), exposed " << exposed << " (" << kExposedMs << ")");
  CHECK(std::abs(step / kStepMs - 1) < 0.01);
  CHECK(std::abs(ms(result.ddp->compute) / kComputeMs - 1) < 0.1);
  // One rank's trace holds its waiting for the other one: 1.3 to 2.6 ms in each of seven calls.
  // What is left without that is the wire's own time, more than its line rate and less than the
  // trace.
  CHECK(exposed < kExposedMs);
  CHECK(exposed > 102.4 / 300);  // 102.4 MB over NVLink at 300 GB/s
  CHECK(result.ddp->bound_by == "host launches");
}

TEST_CASE("the imported DDP step can be asked for other buckets and another network") {
  if (!has_traces()) RAILYARD_SKIP("no samples");
  const auto scenario = imported(loaded(kResnet), {.file = kResnet});
  const auto base = run_text(scenario.yaml);
  const auto larger = run_text(scenario.yaml, {"ddp.bucket_cap_mb=200"});
  REQUIRE(larger.ddp->bucket_bytes.back().size() == 1);
  CHECK(larger.ddp->bucket_bytes.back()[0] == sim::bytes(102'228'128));
  const auto apart = run_text(scenario.yaml, {"cluster.nodes=2", "cluster.fabric={kind: switch}",
                                              "ranks.count=16", "ddp.iterations=3"});
  CHECK(apart.ddp->exposed > base.ddp->exposed);
}

TEST_CASE("the same step as a replay") {
  if (!has_traces()) RAILYARD_SKIP("no samples");
  const auto scenario =
      imported(loaded(kResnet), {.file = kResnet, .form = cli::TraceForm::replay});
  const scenarios::RunResult result = run_text(scenario.yaml);
  REQUIRE(result.training);
  const scenarios::TrainingResult& step = *result.training;
  MESSAGE("replay: step " << ms(step.step_time) << " ms, compute " << ms(step.compute)
                          << ", exposed " << ms(step.exposed));
  CHECK(std::abs(ms(step.step_time) / kStepMs - 1) < 0.005);
  CHECK(std::abs(ms(step.compute) / kComputeMs - 1) < 0.02);
  CHECK(ms(step.exposed) < kExposedMs);
  std::int64_t calls = 0;
  for (const scenarios::CallRow& row : step.calls) calls += row.count;
  CHECK(calls == 7);
}

TEST_CASE("an execution trace becomes a replay of its collectives") {
  const std::string path = kTraces + "param_resnet50_2gpu_et.json.gz";
  if (!has_traces()) RAILYARD_SKIP("no samples");
  const cli::AnyTrace trace = loaded(path);
  const auto refused = cli::scenario_of(trace, {.file = "e.json"});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().text() ==
        "e.json: no machine of the catalogue is known for the GPUs of the trace: --machine NAME");
  const auto scenario = imported(trace, {.file = path, .machine = "dgx-a100"});
  const scenarios::RunResult result = run_text(scenario.yaml);
  REQUIRE(result.training->calls.size() == 7);
  CHECK(result.training->calls[2].size == kBuckets[0]);
  CHECK(contains(scenario.yaml, "an execution trace holds no times"));
}

TEST_CASE("a sampled trace is shown, and not imported") {
  if (!has_traces()) RAILYARD_SKIP("no samples");
  const std::string path = kTraces + "hta_128rank_sampled_rank-0.json.gz";
  const cli::AnyTrace trace = loaded(path);
  CHECK(contains(cli::trace_text(trace), "not complete, so it cannot be imported"));
  const auto refused = cli::scenario_of(trace, {.file = "s.json"});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().text() ==
        "s.json: the trace is not complete, and what is left out cannot be replayed: 43 of 314 "
        "calls of autograd's engine lack the function they called");
}

MadeTrace small() {
  MadeTrace made;
  made.range(0, 100, "ProfilerStep#1").range(100, 100, "ProfilerStep#2");
  for (const double at : {0., 100.}) {
    made.kernel(at + 10, at + 15, 20, "gemm");
    made.collective(at + 20, at + 40, 30, "allreduce", 4096);
  }
  return made;
}

cli::AnyTrace parsed(const std::string& text) {
  auto trace = cli::parse_trace(text, "t.json");
  REQUIRE_MESSAGE(trace.ok(), (trace.ok() ? std::string() : trace.error().text()));
  return std::move(trace).value();
}

TEST_CASE("trace show: figures as text and as JSON") {
  const cli::AnyTrace trace = parsed(small().text());
  const std::string text = cli::trace_text(trace);
  CHECK(contains(text, "t.json: a trace of the PyTorch profiler, rank 0 of 2, NVIDIA A100"));
  CHECK(contains(text, "Steps (by ProfilerStep)"));
  CHECK(contains(text, "ProfilerStep#1        0.100    0.020          0.030    0.000    0.030"));
  const json out = json::parse(cli::trace_json({trace})).at(0);
  CHECK(out["complete"] == true);
  CHECK(out["steps"].size() == 2);
  CHECK(out["steps"][1]["exposed_us"] == 30.0);
  CHECK(out["steps"][1]["idle_us"] == 45.0 + 5.0);
  CHECK(out["collectives"][0]["bytes"] == 16384);
  CHECK(out["collectives"][0]["calls"] == 2);
}

TEST_CASE("trace import: steps by name, ranks, machines, forms") {
  const cli::AnyTrace trace = parsed(small().text());
  const auto scenario = imported(trace, {.file = "dir/my run.json.gz", .step = "ProfilerStep#2"});
  CHECK(contains(scenario.yaml, "# my run.json.gz, ProfilerStep#2: a step of "));
  CHECK(contains(scenario.yaml, "name: \"my-run\"\n"));
  CHECK(contains(scenario.yaml, "cluster: {machine: dgx-a100, nodes: 1}\nranks:\n  count: 2\n"));
  CHECK(contains(imported(trace, {.file = "t", .machine = "hgx-h100", .ranks = 32}).yaml,
                 "cluster: {machine: hgx-h100, nodes: 4}\nnccl: auto"));
  const auto error = [&](const cli::TraceImportArguments& arguments) {
    const auto result = cli::scenario_of(trace, arguments);
    return result.ok() ? std::string("no error") : result.error().text();
  };
  CHECK(error({.file = "t", .step = "ProfilerStep#3"}) ==
        "t.json: there is no step 'ProfilerStep#3' (one of: ProfilerStep#1, ProfilerStep#2)");
  CHECK(contains(error({.file = "t", .machine = "dgx-a10"}), "dgx-a100"));
  CHECK(error({.file = "t", .form = cli::TraceForm::ddp}) ==
        "t.json: ProfilerStep#1 cannot be read as a DDP step: no gradient was accumulated in this "
        "step");
}

TEST_CASE("trace import: groups as divisions of the ranks, or as lists") {
  const auto groups = cli::name_groups({{"", "", 16},
                                        {"1", "[0, 1, 2, 3]", 4},
                                        {"2", "[1, 5, 9, 13]", 4},
                                        {"3", "[0, 1, 5]", 3},
                                        {"4", "", 8},
                                        {"5", "[0, 1, 2]", 7}},
                                       16);
  CHECK(groups.names ==
        std::vector<std::string>{"world", "group 1", "group 2", "group 3", "group 4", "group 5"});
  CHECK(groups.yaml ==
        "    group 1: {size: 4, stride: 1}\n    group 2: {size: 4, stride: 4}\n"
        "    group 3: [0, 1, 5]\n    group 4: {size: 8}\n    group 5: [0, 1, 2]\n");
  CHECK(groups.notes.size() == 3);
  const auto beyond = cli::name_groups({{"9", "[14, 99]", 3}}, 16);
  CHECK(beyond.names == std::vector<std::string>{"world"});
}

TEST_CASE("trace import: texts of the trace cannot break the scenario") {
  CHECK(cli::yaml_quoted("a\"b\\\n") == "\"a\\\"b\\\\?\"");
  CHECK(cli::yaml_comment("a\nrailyard: 2") == "# a?railyard: 2\n");
  CHECK(cli::yaml_time(0) == "0us");
  CHECK(cli::yaml_time(12'345) == "12.345us");
  CHECK(cli::yaml_time(1'200'000) == "1.2ms");
  CHECK(cli::yaml_time(500) == "0.5us");
  CHECK(cli::yaml_time(20'000'000) == "20ms");
}

TEST_CASE("railyard trace: the program") {
  const TemporaryDirectory directory;
  directory.write("t.json", small().text());
  directory.write("cut.json", small().text().substr(0, 900));
  directory.write("bin.et", std::string("\x08\x00\x12", 3));
  Outcome outcome = run_program(directory, {"trace", "show", "t.json"});
  CHECK(outcome.status == 0);
  CHECK(contains(outcome.out, "ProfilerStep#2"));
  outcome = run_program(directory, {"trace", "import", "t.json", "-o", "s.yaml"});
  CHECK(outcome.status == 0);
  CHECK(contains(outcome.out, "s.yaml: a step of "));
  CHECK(contains(outcome.out, "railyard run s.yaml"));
  outcome = run_program(directory, {"run", "s.yaml", "--no-sensitivity"});
  CHECK(outcome.status == 0);
  CHECK(contains(outcome.out, "Replay: t ProfilerStep#1"));
  outcome = run_program(directory, {"trace", "show", "cut.json"});
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.err, "the trace ends in the middle of its JSON: cut off?"));
  outcome = run_program(directory, {"trace", "import", "bin.et"});
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.err, "bin.et: a binary file"));
  CHECK(run_program(directory, {"trace"}).status == 2);
}

}  // namespace
}  // namespace railyard::tests
