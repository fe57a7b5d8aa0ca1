#include <doctest/doctest.h>

#include "algorithms/nccl/node_kind.h"
#include "algorithms/nccl/search.h"
#include "tests/decisions/decision_json.h"

namespace railyard::tests {
namespace {

namespace nccl = algorithms::nccl;
using nlohmann::json;
using sim::ChannelGraph;
using sim::PathType;

PathType path_type(const json& text) {
  const auto type = sim::parse_enum<PathType>(text.get<std::string>());
  REQUIRE(type.ok());
  return type.value();
}

ChannelGraph to_graph(const json& graph) {
  ChannelGraph result;
  const auto pattern = sim::parse_enum<sim::GraphPattern>(graph.at("pattern").get<std::string>());
  REQUIRE(pattern.ok());
  result.kind = static_cast<sim::GraphKind>(graph.at("id").get<int>());
  result.pattern = pattern.value();
  result.cross_nic = graph.at("crossNic");
  result.same_channels = graph.at("sameChannels").get<int>() != 0;
  result.bw_intra = graph.at("bwIntra");
  result.bw_inter = graph.at("bwInter");
  result.latency_inter = graph.at("latencyInter");
  result.type_intra = path_type(graph.at("typeIntra"));
  result.type_inter = path_type(graph.at("typeInter"));
  for (const json& channel : graph.at("channels")) {
    result.channels.emplace_back();
    result.channels.back().gpus = channel.at("gpus").get<std::vector<std::int32_t>>();
    result.channels.back().nets = {channel.at("nets")[0], channel.at("nets")[1]};
  }
  return result;
}

}  // namespace

std::vector<ChannelGraph> graphs_of(const DecisionFile& file) {
  std::vector<ChannelGraph> graphs;
  for (const json& graph : file.json.at("graphs")) graphs.push_back(to_graph(graph));
  return graphs;
}

std::vector<ChannelGraph> searched_graphs(const DecisionFile& file,
                                          const nccl::NodeTopology& node) {
  const auto graphs = nccl::find_graphs(
      node,
      {.collnet = file.capabilities.collnet, .nvls = nccl::nvls_available(node, file.environment)});
  REQUIRE_MESSAGE(graphs.ok(), graphs.error().text());
  return graphs.value();
}

nccl::NodeTopology first_node_of(const DecisionFile& file) {
  auto node = nccl::NodeTopology::build(file.first_node(), file.environment, file.capabilities);
  REQUIRE_MESSAGE(node.ok(), node.error().text());
  return std::move(node).value();
}

nccl::CommInputs comm_inputs(const DecisionFile& file, const nccl::NodeTopology& node,
                             const std::vector<ChannelGraph>& graphs) {
  nccl::CommInputs inputs;
  inputs.kinds.push_back(nccl::node_kind(node, graphs));
  const std::int32_t ranks = file.json.at("inputs").at("nRanks");
  const std::int32_t local = node.gpus();
  for (std::int32_t first = 0; first < ranks; first += local) {
    nccl::CommNode& next = inputs.nodes.emplace_back();
    for (std::int32_t i = 0; i < local; ++i) next.ranks.push_back(first + i);
  }
  inputs.multicast = file.capabilities.multicast;
  inputs.mnnvl = file.json.at("inputs").at("hostsPerNvlinkDomain").get<int>() > 1;
  inputs.collnet = {.present = file.capabilities.collnet,
                    .enabled = file.capabilities.collnet,
                    .all_gather = true,
                    .reduce_scatter = true};
  return inputs;
}

}  // namespace railyard::tests
