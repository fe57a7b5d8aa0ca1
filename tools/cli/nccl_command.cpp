#include "tools/cli/nccl_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "scenarios/nccl_cluster.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/nccl_inputs.h"
#include "tools/cli/run_command.h"
#include "topologies/cluster.h"
#include "topologies/placement.h"

namespace railyard::cli {
namespace {

using sim::Result;

Result<NcclPlan> plan_topology(const NcclPlanArguments& arguments) {
  UniformHosts hosts;
  hosts.topology = arguments.topology;
  hosts.hosts = arguments.nodes.value_or(1);
  hosts.hosts_per_domain = arguments.hosts_per_domain;
  hosts.version = arguments.version;
  for (const std::string& pair : arguments.env) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos)
      return sim::bad_input(fmt::format("--env {}: NAME=VALUE is expected", pair));
    hosts.env[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return plan_uniform(hosts);
}

Result<NcclPlan> plan_scenario(const NcclPlanArguments& arguments) {
  SimulationArguments simulation;
  simulation.scenario = arguments.scenario;
  simulation.sets = arguments.sets;
  RAILYARD_ASSIGN(const scenarios::Scenario scenario, read(simulation));
  RAILYARD_ASSIGN(const sim::Topology topology, topologies::build(scenario.cluster));
  RAILYARD_ASSIGN(const sim::Group group, scenarios::group_of(scenario, topology, arguments.group));
  RAILYARD_ASSIGN(auto planned, scenarios::plan_group(scenario, topology, group));
  NcclPlan plan;
  plan.title = fmt::format("{}: {} x {}, group {}, {} ranks", scenario.name, scenario.cluster.nodes,
                           scenario.cluster.machine, arguments.group, group.size());
  plan.env = planned->env;
  plan.cluster = planned->cluster;
  plan.warnings = planned->warnings;
  return plan;
}

Result<NcclPlan> plan_of(const NcclPlanArguments& arguments) {
  if (!arguments.inputs.empty()) {
    RAILYARD_ASSIGN(const UniformHosts hosts, read_inputs(arguments.inputs));
    return plan_uniform(hosts);
  }
  if (!arguments.topology.empty()) return plan_topology(arguments);
  return plan_scenario(arguments);
}

}  // namespace

Result<std::string> nccl_plan_text(const NcclPlanArguments& arguments) {
  RAILYARD_ASSIGN(const NcclPlan plan, plan_of(arguments));
  if (arguments.exported != PlanExport::none) return plan_export(plan, arguments.exported);
  if (arguments.json) return plan_json(plan).dump() + "\n";
  return plan_text(plan);
}

int nccl_plan_command(const NcclPlanArguments& arguments) {
  const int sources = (arguments.scenario.empty() ? 0 : 1) + (arguments.topology.empty() ? 0 : 1) +
                      (arguments.inputs.empty() ? 0 : 1);
  if (sources != 1) {
    complain("one of SCENARIO, --topo and --inputs is expected");
    return kUsage;
  }
  const Result<std::string> text = nccl_plan_text(arguments);
  if (!text.ok()) return fail(text.error());
  std::fwrite(text.value().data(), 1, text.value().size(), stdout);
  return finish_output(kDone);
}

}  // namespace railyard::cli
