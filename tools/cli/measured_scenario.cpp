// The scenario of a measured run, and what its file says of the platform.
#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "scenarios/document.h"
#include "scenarios/platform.h"
#include "tools/cli/validation.h"

namespace railyard::cli {

using calibrate::MeasuredRun;
using scenarios::Scenario;
using sim::Result;

namespace {

// The platform block is read by the code that reads it in scenarios; rows and record by calibrate/.
Result<scenarios::Platform> platform_of(const MeasuredRun& run) {
  std::ifstream in(run.path, std::ios::binary);
  if (!in) return sim::bad_input("cannot be read", run.path);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  RAILYARD_ASSIGN(const scenarios::Node root, scenarios::parse_yaml(text, run.path));
  const scenarios::Node* block = root.find("platform");
  if (block == nullptr) return sim::bad_input("no platform: block", run.path);
  return scenarios::read_platform(scenarios::Place{block, "platform"});
}

models::Dtype dtype_of(const MeasuredRun& run) {
  if (run.datatype.starts_with("half")) return models::Dtype::fp16;
  if (run.datatype.starts_with("double")) return models::Dtype::fp64;
  if (run.datatype.starts_with("bfloat")) return models::Dtype::bf16;
  return models::Dtype::fp32;  // nccl-tests' default
}

}  // namespace

Result<scenarios::PlatformScenario> platform_scenario(const MeasuredRun& run) {
  RAILYARD_ASSIGN(const scenarios::Platform platform, platform_of(run));
  scenarios::PlatformCall call;
  const auto collective = sim::parse_enum<sim::Collective>(run.collective);
  if (!collective.ok())
    return sim::bad_input("no such collective: " + run.collective, run.path + ": collective");
  call.collective = collective.value();
  call.dtype = dtype_of(run);
  for (const auto& [name, value] : run.env) call.env.insert_or_assign(name, value);
  for (const calibrate::MeasuredRow& row : scored_rows(run)) call.sizes.push_back(row.size);
  if (call.sizes.empty()) return sim::bad_input("no row has a time or a bandwidth", run.path);
  return scenarios::scenario_of(platform, call);
}

Result<Scenario> scenario_of(const MeasuredRun& run, const std::vector<std::string>& sets) {
  RAILYARD_ASSIGN(scenarios::PlatformScenario made, platform_scenario(run));
  if (sets.empty()) return std::move(made.scenario);
  return scenarios::scenario_from_text(made.text, run.id, {.sets = sets});
}

}  // namespace railyard::cli
