#include "tests/algorithms/nccl/machines.h"

#include <doctest/doctest.h>

namespace railyard::algorithms::nccl {
namespace {

using sim::ChannelGraph;
using sim::GraphKind;
using sim::GraphPattern;

ChannelGraph graph_of(const MachineSpec& spec, GraphKind kind, const SearchResult& result) {
  ChannelGraph graph;
  graph.kind = kind;
  graph.pattern = result.pattern;
  graph.cross_nic = kind == GraphKind::ring ? spec.cross_nic : 0;
  graph.same_channels = spec.same_channels;
  graph.bw_intra = result.bw_intra;
  graph.bw_inter = result.bw_inter;
  graph.type_intra = spec.intra;
  graph.type_inter = spec.inter;
  for (std::int32_t c = 0; c < result.channels; ++c) {
    ChannelGraph::Channel channel;
    const std::int32_t count = kind == GraphKind::nvls ? 1 : spec.gpus;
    for (std::int32_t i = 0; i < count; ++i) channel.gpus.push_back((c + i) % spec.gpus);
    channel.nets = {channel.gpus.front(), channel.gpus.back()};
    graph.channels.push_back(channel);
  }
  return graph;
}

}  // namespace

CommInputs machine(const MachineSpec& spec) {
  CommInputs inputs;
  NodeKind& kind = inputs.kinds.emplace_back();
  kind.ring = graph_of(spec, GraphKind::ring, spec.ring);
  kind.ring.pattern = GraphPattern::ring;
  kind.tree = graph_of(spec, GraphKind::tree, spec.tree);
  kind.nvls = graph_of(spec, GraphKind::nvls, spec.nvls);
  kind.nvls.pattern = GraphPattern::nvls;
  kind.compute_capabilities.assign(static_cast<std::size_t>(spec.gpus), spec.capability);
  kind.cpu_arch = spec.arch;
  kind.cpu_vendor = spec.vendor;
  kind.nvswitches = 1;
  kind.min_net_bandwidth = 48;
  kind.all_nvlink = spec.intra < sim::PathType::pix;
  // 18 NVLinks, two channels each; a 400 Gb/s NIC at 14 GB/s per channel.
  kind.p2p_channels_per_peer = spec.nodes > 1 ? 4 : 36;
  kind.older_channels_inside = 36;
  for (std::int32_t n = 0; n < spec.nodes; ++n) {
    CommNode& node = inputs.nodes.emplace_back();
    for (std::int32_t g = 0; g < spec.gpus; ++g) node.ranks.push_back(n * spec.gpus + g);
  }
  inputs.multicast = spec.nvls.channels > 0;
  return inputs;
}

Environment variables(const std::map<std::string, std::string>& values) {
  const auto env = Environment::parse(values);
  REQUIRE(env.ok());
  return env.value();
}

CommPlan plan_of(const CommInputs& inputs, const std::map<std::string, std::string>& values) {
  const auto plan = make_comm_plan(inputs, variables(values));
  REQUIRE_MESSAGE(plan.ok(), (plan.ok() ? "" : plan.error().text()));
  return plan.value();
}

MachineSpec h100(std::int32_t nodes) {
  MachineSpec spec;
  spec.nodes = nodes;
  if (nodes == 1) {
    spec.ring = {12, 30, 30};
    spec.tree = {12, 30, 30, GraphPattern::balanced_tree};
    spec.nvls = {8, 40, 60};
  } else {
    spec.ring = {8, 48, 48};
    spec.tree = {8, 48, 48, GraphPattern::tree};
    spec.nvls = {8, 40, 48};
    spec.same_channels = false;
  }
  return spec;
}

}  // namespace railyard::algorithms::nccl
