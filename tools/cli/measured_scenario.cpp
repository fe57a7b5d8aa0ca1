// The scenario of a measured run.
#include <fmt/format.h>

#include <map>

#include "tools/cli/validation.h"

namespace railyard::cli {

using calibrate::MeasuredRun;
using scenarios::Scenario;
using sim::Result;

Result<Scenario> scenario_of(const MeasuredRun& run, const std::vector<std::string>& sets) {
  static const std::map<std::string, std::string> machines{{"hgx-a100", "dgx-a100"}, {"gh200-quad", "gh200-4"}};
  const auto& p = run.platform;
  const auto known = machines.find(p.machine);
  std::string text = "railyard: 1\ncluster:\n";
  if (!p.nodes || !p.gpus_per_node) return sim::bad_input("no nodes");
  text += fmt::format("  machine: {}\n  nodes: {}\n  gpus_per_node: {}\n", known == machines.end() ? p.machine : known->second, *p.nodes, *p.gpus_per_node);
  if (p.nics_per_node && *p.nics_per_node > 0) text += fmt::format("  nics_per_node: {}\n", *p.nics_per_node);
  if (*p.nodes > 1) text += "  fabric: {kind: switch}\n";
  std::string version = p.nccl_used.empty() ? "" : ", version: " + p.nccl_used;
  text += fmt::format("nccl: {{choice: auto{}}}\n", version);
  text += "env:\n  NCCL_DEBUG: \"\"\n";
  for (const auto& [name, value] : run.env)
    if (name.starts_with("NCCL_") && name != "NCCL_TUNER_PLUGIN") text += fmt::format("  {}: \"{}\"\n", name, value);
  std::string dtype = "fp32";
  if (run.datatype.starts_with("half")) dtype = "fp16";
  if (run.datatype.starts_with("double")) dtype = "fp64";
  text += fmt::format("collectives:\n  - collective: {}\n    dtype: {}\n    sizes: [", run.collective, dtype);
  for (const auto& row : scored_rows(run)) text += fmt::format("{}B, ", row.size.raw());
  text += "]\nengine: {trace: none}\n";
  return scenarios::scenario_from_text(text, run.id, {.sets = sets});
}

}  // namespace railyard::cli
