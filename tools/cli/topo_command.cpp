#include "tools/cli/topo_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "tools/cli/exit_status.h"
#include "tools/cli/run_command.h"
#include "topologies/cluster.h"
#include "topologies/show.h"

namespace railyard::cli {
namespace {

using sim::Result;
using topologies::ClusterSpec;

bool is_machine(const std::string& name) { return topologies::find_machine(name).ok(); }

// Several nodes of a machine that do not share NVLink need a fabric to be one cluster.
ClusterSpec cluster_of_machine(const TopologyArguments& arguments) {
  ClusterSpec spec;
  spec.machine = arguments.what;
  spec.nodes = arguments.nodes.value_or(1);
  if (spec.nodes > 1) spec.fabric.kind = topologies::FabricKind::one_switch;
  return spec;
}

Result<ClusterSpec> cluster_of(const TopologyArguments& arguments) {
  if (is_machine(arguments.what)) {
    if (arguments.sets.empty()) return cluster_of_machine(arguments);
    return sim::bad_input("--set changes a scenario, and this is a machine of the catalogue",
                          arguments.what);
  }
  const std::string path = find_scenario(arguments.what);
  std::error_code ignored;
  if (arguments.what.find_first_of("./") == std::string::npos &&
      !std::filesystem::exists(path, ignored)) {
    const auto names = topologies::machine_names();
    return sim::bad_input("no scenario file and no machine has this name" +
                              sim::did_you_mean(arguments.what, names) +
                              "; `railyard help machines` lists the machines",
                          arguments.what);
  }
  SimulationArguments simulation;
  simulation.scenario = arguments.what;
  simulation.sets = arguments.sets;
  std::vector<std::string> nodes;
  if (arguments.nodes) nodes.push_back(fmt::format("cluster.nodes={}", *arguments.nodes));
  RAILYARD_ASSIGN(const scenarios::Scenario scenario, read(simulation, nodes));
  return scenario.cluster;
}

}  // namespace

Result<std::string> topology_text(const TopologyArguments& arguments) {
  RAILYARD_ASSIGN(const ClusterSpec spec, cluster_of(arguments));
  RAILYARD_ASSIGN(const sim::Topology topology, topologies::build(spec));
  switch (arguments.format) {
    case TopologyFormat::text:
      return topologies::show_tree(topology) +
             fmt::format("\nPaths inside {}, as nvidia-smi topo -m shows them:\n\n{}",
                         topology.nodes.front().name, topologies::show_matrix(topology, 0));
    case TopologyFormat::tree: return topologies::show_tree(topology);
    case TopologyFormat::matrix: return topologies::show_matrix(topology, 0);
    case TopologyFormat::dot: return topologies::to_dot(topology);
  }
  return std::string();
}

int topology_command(const TopologyArguments& arguments) {
  const Result<std::string> text = topology_text(arguments);
  if (!text.ok()) return fail(text.error());
  std::fwrite(text.value().data(), 1, text.value().size(), stdout);
  return finish_output(kDone);
}

}  // namespace railyard::cli
