// Any bytes as the output of ibnetdiscover or a topology.conf, with forwarding tables behind a line
// "%%": a graph whose cables have two ends, a cluster whose routes arrive, findings and a node's
// NICs among its adapters, or one-line errors.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/cluster.h"
#include "topologies/fabric_check.h"
#include "topologies/fabric_match.h"
#include "topologies/fabric_source.h"

namespace {

namespace topologies = railyard::topologies;

void require(bool condition) {
  if (!condition) std::abort();
}

constexpr std::size_t kMostNodes = 2'000;

void require_one_line(const std::string& text) {
  require(!text.empty() && text.find('\n') == std::string::npos);
}

void check_graph(const topologies::FabricGraph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const topologies::GraphPort& port : graph.nodes[i].ports) {
      require(port.peer < graph.nodes.size());
      const topologies::GraphPort* back = graph.nodes[port.peer].port(port.peer_port);
      require(back != nullptr && back->peer == i && back->peer_port == port.number);
    }
  for (const std::string& note : graph.notes) require_one_line(note);
  require_one_line(topologies::summary(graph));
}

void check_match(const topologies::FabricSource& source) {
  for (const topologies::Finding& finding : topologies::check_fabric(source.graph))
    require_one_line(finding.where + ": " + finding.what);
  topologies::MachineSpec machine = topologies::find_machine("hgx-h100").value();
  topologies::spread_nics(machine, 2);
  machine.nic_names = {"mlx5_0", "mlx5_1"};
  const auto match = topologies::match_fabric(source, machine, {});
  if (!match.ok()) return require_one_line(match.error().text());
  require(!match.value().hosts.empty() && !match.value().nics.empty());
  for (const auto* list : {&match.value().left_out, &match.value().not_of_node,
                           &match.value().not_cabled, &match.value().notes})
    for (const std::string& line : *list) require_one_line(line);
}

void check_routes(const railyard::sim::Topology& topology) {
  for (const auto& a : topology.nodes)
    for (const auto& b : topology.nodes) {
      railyard::sim::Route route;
      if (!topology.routing->append_route(a.gpus[0], b.gpus[0], 7, route)) {
        require(route.empty());
        continue;
      }
      railyard::sim::DeviceId at = a.gpus[0];
      for (const auto link : route) {
        require(topology.links[link.index()].from == at);
        at = topology.links[link.index()].to;
      }
      require(at == b.gpus[0]);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find("\n%%\n");
  std::vector<topologies::NamedText> tables;
  if (cut != std::string_view::npos) tables.emplace_back("tables", text.substr(cut + 4));
  const auto source =
      topologies::parse_fabric_source({"graph", std::string(text.substr(0, cut))}, tables);
  if (!source.ok()) {
    require_one_line(source.error().text());
    return 0;
  }
  check_graph(source.value()->graph);
  // A short hostlist can name a quarter of a million hosts; what follows goes over them a dozen
  // times.
  if (source.value()->graph.nodes.size() > kMostNodes) return 0;
  check_match(*source.value());
  for (const std::string& note : source.value()->tables.notes) require_one_line(note);
  topologies::ClusterSpec spec;
  spec.machine = "flat";
  spec.overrides.gpus_per_node = 1;
  spec.fabric.kind = topologies::FabricKind::imported;
  spec.fabric.source = source.value();
  for (std::uint32_t nodes = 1; nodes <= 4; ++nodes) {
    spec.nodes = nodes;
    const auto topology = topologies::build(spec);
    if (!topology.ok()) {
      require_one_line(topology.error().text());
      break;
    }
    check_routes(topology.value());
  }
  return 0;
}
