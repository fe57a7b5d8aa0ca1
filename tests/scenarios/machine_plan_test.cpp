// NCCL's plan on every machine of the catalogue, alone and with a second node.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "algorithms/nccl/transport.h"
#include "scenarios/nccl_cluster.h"
#include "topologies/cluster.h"
#include "topologies/placement.h"

namespace railyard::scenarios {
namespace {

namespace nccl = algorithms::nccl;

struct Planned {
  sim::Topology topology;
  sim::Group world;
  std::shared_ptr<const GroupPlan> plan;
};

Planned plan_of(const std::string& cluster) {
  const std::string text = fmt::format(
      "railyard: 1\ncluster: {{{}}}\nnccl: auto\n"
      "collectives: [{{collective: AllReduce, sizes: [1MiB]}}]\n",
      cluster);
  CAPTURE(text);
  const auto read = scenario_from_text(text, "plan.yaml");
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().text()));
  Planned out;
  auto topology = topologies::build(read.value().cluster);
  REQUIRE_MESSAGE(topology.ok(), (topology.ok() ? "" : topology.error().text()));
  out.topology = std::move(topology).value();
  out.world = topologies::place_world(out.topology, {}).value();
  auto plan = plan_group(read.value(), out.topology, out.world);
  REQUIRE_MESSAGE(plan.ok(), (plan.ok() ? "" : plan.error().text()));
  out.plan = std::move(plan).value();
  return out;
}

std::set<std::string> transports(const Planned& planned) {
  std::set<std::string> names;
  const nccl::NodeTopology& node = planned.plan->cluster.topologies.front();
  for (std::int32_t a = 0; a < node.gpus(); ++a)
    for (std::int32_t b = 0; b < node.gpus(); ++b)
      if (a != b) names.emplace(sim::to_text(nccl::connection(node, a, b).transport));
  return names;
}

// Every channel's ring visits every rank once.
void check_rings(const Planned& planned) {
  const sim::Channels channels =
      planned_communicator(planned.plan, planned.topology, planned.world).channels;
  REQUIRE(!channels.empty());
  for (const sim::Channel& channel : channels) {
    std::set<std::uint32_t> ring(channel.ring.begin(), channel.ring.end());
    CHECK(channel.ring.size() == planned.world.size());
    CHECK(ring.size() == planned.world.size());
  }
}

TEST_CASE("NCCL plans every machine, on one node and on two") {
  for (const std::string_view name : topologies::machine_names()) {
    CAPTURE(std::string(name));
    const topologies::MachineSpec machine = topologies::find_machine(name).value();
    if (machine.flat || machine.processors_only) continue;
    if (machine.gpus.size() > 1) check_rings(plan_of(fmt::format("machine: {}, nodes: 1", name)));
    const Planned two =
        plan_of(fmt::format("machine: {}, nodes: 2, fabric: {{kind: switch}}", name));
    check_rings(two);
    const bool nvls = machine.nvswitch && machine.compute_capability >= 90;
    CHECK(two.plan->cluster.comm.info.nvls_support == nvls);
    const std::int32_t nodes = machine.nodes_per_nvlink_domain > 1 ? 1 : 2;
    CHECK(two.plan->cluster.comm.info.nodes == nodes);
  }
}

TEST_CASE("what a machine's GPUs exchange data by") {
  using Names = std::set<std::string>;
  const auto of = [](const std::string& cluster) { return transports(plan_of(cluster)); };
  for (const char* joined : {"hgx-a100", "hgx-h20", "dgx-2", "a100-quad-nvlink", "v100-quad",
                             "h100-quad", "gh200-quad", "dgx-1p"})
    CHECK(of(fmt::format("machine: {}, nodes: 1", joined)) == Names{"P2P"});
  for (const char* geforce : {"rtx4090-pcie", "rtx5090-pcie", "rtx3090-pcie", "rtx2080ti-pcie"})
    CHECK(of(fmt::format("machine: {}, nodes: 1", geforce)) == Names{"SHM"});
  CHECK(of("machine: rtx3090-pcie, nodes: 1, gpus_per_node: 2, nvlink: bridges") == Names{"P2P"});
  CHECK(of("machine: rtx2080ti-pcie, nodes: 1, nvlink: bridges") == Names{"P2P", "SHM"});
  // Two cards on a switch, the others through the CPU: farther than P2P goes on many GPUs.
  CHECK(of("machine: a100-pcie, nodes: 1, nics_per_node: 0") == Names{"P2P", "SHM"});
  CHECK(of("machine: l40s-pcie, nodes: 1") == Names{"SHM"});
  // NCCL lets a pair of GPUs on AMD hosts do it.
  CHECK(of("machine: l40s-pcie, nodes: 1, gpus_per_node: 2") == Names{"P2P"});
}

}  // namespace
}  // namespace railyard::scenarios
