// `railyard nccl plan`: what NCCL would decide, without running anything; `railyard nccl compare`:
// the same against what a log says NCCL did. Comparison that finds a difference: status 3.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/result.h"
#include "tools/cli/nccl_plan.h"

namespace railyard::cli {

struct NcclPlanArguments {
  // One of the three.
  std::string scenario;
  std::string topology;  // --topo
  std::string inputs;    // --inputs

  std::vector<std::string> sets;      // of a scenario
  std::string group = "world";        // of a scenario
  std::optional<std::int32_t> nodes;  // with --topo
  std::int32_t hosts_per_domain = 1;  // with --topo
  std::vector<std::string> env;       // NAME=VALUE, with --topo
  std::string version;                // with --topo
  bool json = false;
  PlanExport exported = PlanExport::none;
};

sim::Result<std::string> nccl_plan_text(const NcclPlanArguments& arguments);
int nccl_plan_command(const NcclPlanArguments& arguments);

struct NcclCompareArguments {
  std::string scenario;
  std::string log;
  std::vector<std::string> sets;
  std::string group = "world";
};
int nccl_compare_command(const NcclCompareArguments& arguments);

}  // namespace railyard::cli
