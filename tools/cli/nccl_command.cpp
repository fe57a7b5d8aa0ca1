#include "tools/cli/nccl_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "calibrate/readers/nccl_log.h"
#include "scenarios/nccl_cluster.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/nccl_compare.h"
#include "tools/cli/nccl_inputs.h"
#include "tools/cli/nccl_prediction.h"
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

// Without the nodes' topologies where their numbers are not the communicator's ranks.
NodeTopologies nodes_of(const algorithms::nccl::Cluster& cluster) {
  std::vector<std::shared_ptr<const algorithms::nccl::NodeTopology>> kinds(
      cluster.topologies.size());
  NodeTopologies nodes;
  for (std::size_t n = 0; n < cluster.comm.inputs.nodes.size(); ++n) {
    const algorithms::nccl::CommNode& node = cluster.comm.inputs.nodes[n];
    if (!kinds[node.kind]) {
      if (cluster.search_ranks[n] != node.ranks) return {};
      kinds[node.kind] =
          std::make_shared<const algorithms::nccl::NodeTopology>(cluster.topologies[node.kind]);
    }
    nodes.push_back(kinds[node.kind]);
  }
  return nodes;
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

int nccl_compare_command(const NcclCompareArguments& arguments) {
  NcclPlanArguments asked;
  asked.scenario = arguments.scenario;
  asked.sets = arguments.sets;
  asked.group = arguments.group;
  const Result<NcclPlan> plan = plan_of(asked);
  if (!plan.ok()) return fail(plan.error());
  const auto log = calibrate::nccl_log::read_file(arguments.log);
  if (!log.ok()) return fail(log.error());
  const NcclPrediction prediction =
      predict(plan.value().cluster.comm, plan.value().env, nodes_of(plan.value().cluster));
  const Comparison comparison = compare(prediction, log.value(), main_communicator(log.value()));
  const std::string text = plan.value().title + "\n" + to_text(comparison);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return finish_output(comparison.agrees() ? kDone : kWouldHang);
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
