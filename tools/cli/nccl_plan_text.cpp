#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "algorithms/nccl/plan.h"
#include "tools/cli/format.h"
#include "tools/cli/nccl_plan.h"
#include "tools/cli/table.h"

namespace railyard::cli {
namespace {

using algorithms::nccl::Algorithm;
using algorithms::nccl::Cluster;
using algorithms::nccl::CommInfo;
using algorithms::nccl::Function;
using algorithms::nccl::index_of;
using algorithms::nccl::NodeTopology;
using algorithms::nccl::VertexKind;

// NCCL's name of a network device: host-number.
std::string net_name(std::int64_t id) {
  constexpr int kHostShift = 56;
  return fmt::format("NET/{}-{}", id >> kHostShift, id & ((std::int64_t{1} << kHostShift) - 1));
}

void graph_lines(const sim::ChannelGraph& graph, const std::vector<std::int32_t>& ranks,
                 std::string& out) {
  fmt::format_to(
      std::back_inserter(out),
      "Pattern {}, crossNic {}, nChannels {}, bw {:f}/{:f}, type {}/{}, sameChannels {}\n",
      static_cast<int>(graph.pattern), graph.cross_nic, graph.channels.size(), graph.bw_intra,
      graph.bw_inter, sim::to_text(graph.type_intra), sim::to_text(graph.type_inter),
      graph.same_channels ? 1 : 0);
  for (std::size_t c = 0; c < graph.channels.size(); ++c) {
    const sim::ChannelGraph::Channel& channel = graph.channels[c];
    fmt::format_to(std::back_inserter(out), "{:2d} :", c);
    if (channel.nets[0] >= 0) out += " " + net_name(channel.nets[0]);
    for (const std::int32_t gpu : channel.gpus)
      fmt::format_to(std::back_inserter(out), " GPU/{}", ranks[static_cast<std::size_t>(gpu)]);
    if (channel.nets[1] >= 0) out += " " + net_name(channel.nets[1]);
    out += "\n";
  }
}

void node_lines(const NcclPlan& plan, std::string& out) {
  const Cluster& cluster = plan.cluster;
  std::vector<bool> shown(cluster.comm.inputs.kinds.size());
  for (const auto& node : cluster.comm.inputs.nodes) {
    if (shown[node.kind]) continue;
    shown[node.kind] = true;
    const NodeTopology& topology = cluster.topologies[node.kind];
    fmt::format_to(std::back_inserter(out), "=== System : maxBw {:.1f} totalBw {:.1f} ===\n",
                   topology.max_bandwidth(), topology.total_bandwidth());
    const auto& kind = cluster.comm.inputs.kinds[node.kind];
    for (const sim::ChannelGraph* graph :
         {&kind.ring, &kind.tree, &kind.collnet_chain, &kind.collnet_direct, &kind.nvls})
      if (!graph->channels.empty()) graph_lines(*graph, node.ranks, out);
  }
}

void channel_lines(const NcclPlan& plan, std::string& out) {
  const CommInfo& info = plan.cluster.comm.info;
  const sim::Channels channels = algorithms::nccl::to_channels(info, plan.cluster.comm.connections);
  constexpr std::size_t kRanksShown = 64;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const std::span<const std::uint32_t> ring(channels[c].ring);
    const bool cut = ring.size() > kRanksShown;
    fmt::format_to(std::back_inserter(out), "Channel {:02d}/{:02d} : {}{}\n", c, channels.size(),
                   fmt::join(cut ? ring.first(kRanksShown) : ring, " "),
                   cut ? fmt::format(" ... ({} ranks)", ring.size()) : std::string());
  }
  out += "Trees";
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const sim::TreeEdges& edges = channels[c].tree.front();
    fmt::format_to(std::back_inserter(out), " [{}] {}->0->{}", c, fmt::join(edges.down, "/"),
                   edges.up);
  }
  out += "\n";
  if (info.nvls_support)
    fmt::format_to(std::back_inserter(out),
                   "NVLS tuning: nChannels {} chunkSize {} treeMaxChunkSize {}\n",
                   info.nvls_channels, info.nvls_chunk, info.nvls_tree_max_chunk);
  fmt::format_to(std::back_inserter(out),
                 "{} coll channels, {} collnet channels, {} nvls channels, {} p2p channels, {} p2p "
                 "channels per peer\n",
                 info.channels, info.channels, info.nvls_channels, info.p2p_channels,
                 info.p2p_channels_per_peer);
}

// One block of NCCL's table: three algorithms side by side.
void table_block(const algorithms::nccl::Tuning& tuning, std::span<const Algorithm> algorithms,
                 std::string& out) {
  const auto row = [&out](std::string_view head, const auto& cell) {
    fmt::format_to(std::back_inserter(out), "{:>13} |", head);
    cell();
    out += "\n";
  };
  row("Algorithm  ", [&] {
    for (const Algorithm a : algorithms)
      fmt::format_to(std::back_inserter(out), " {:>30} {:>19}|", sim::to_text(a), "");
  });
  row("Protocol   ", [&] {
    for (std::size_t i = 0; i < algorithms.size(); ++i)
      for (const sim::Protocol p : algorithms::nccl::kAllProtocols)
        fmt::format_to(std::back_inserter(out), " {:>14} |", sim::to_text(p));
  });
  row("Max NThreads ", [&] {
    for (const Algorithm a : algorithms)
      for (const sim::Protocol p : algorithms::nccl::kAllProtocols)
        fmt::format_to(std::back_inserter(out), " {:>14} |",
                       tuning.max_threads[index_of(a)][index_of(p)]);
  });
  for (const Function f : algorithms::nccl::kAllFunctions)
    row(sim::to_text(f), [&] {
      for (const Algorithm a : algorithms)
        for (const sim::Protocol p : algorithms::nccl::kAllProtocols)
          fmt::format_to(std::back_inserter(out), "{:8.1f}/{:6.1f} |",
                         tuning.latency[index_of(f)][index_of(a)][index_of(p)],
                         tuning.bandwidth[index_of(f)][index_of(a)][index_of(p)]);
    });
}

void choice_lines(const NcclPlan& plan, std::string& out) {
  Table table({{"collective", Align::left},
               {"from"},
               {"to"},
               {"algorithm", Align::left},
               {"protocol", Align::left},
               {"channels"},
               {"threads"},
               {"model us"}});
  for (const ChoiceRange& range : choice_ranges(plan)) {
    std::vector<std::string> row{std::string(sim::to_text(range.function)),
                                 human(sim::bytes(range.first)), human(sim::bytes(range.last))};
    if (range.choice) {
      row.insert(row.end(), {std::string(sim::to_text(range.choice->algorithm)),
                             std::string(sim::to_text(range.choice->protocol)),
                             fmt::format("{}", range.choice->max_channels),
                             fmt::format("{}", range.choice->threads),
                             fmt::format("{:.1f}", range.choice->time_us)});
    } else {
      row.insert(row.end(), {"none: " + range.error, "", "", "", ""});
    }
    table.add(std::move(row));
  }
  out +=
      "\nChoice by size (nccl-tests' sizes). The time is NCCL's own model at the first size: it "
      "chooses, it does not predict.\n";
  out += table.text();
}

}  // namespace

std::string plan_text(const NcclPlan& plan) {
  std::string out = plan.title + "\n";
  for (const std::string& warning : plan.warnings) out += "warning: " + warning + "\n";
  for (const std::string& note : plan.cluster.comm.notes) out += "note: " + note + "\n";
  const CommInfo& info = plan.cluster.comm.info;
  fmt::format_to(std::back_inserter(out), "nRanks {} nNodes {} localRanks {} MNNVL {}\n",
                 info.ranks, info.nodes, info.local_ranks.front(), info.mnnvl ? 1 : 0);
  node_lines(plan, out);
  channel_lines(plan, out);
  const std::span<const Algorithm> all(algorithms::nccl::kAllAlgorithms);
  constexpr std::size_t kPerBlock = 3;
  for (std::size_t first = 0; first < all.size(); first += kPerBlock)
    table_block(plan.cluster.comm.tuning,
                all.subspan(first, std::min(kPerBlock, all.size() - first)), out);
  choice_lines(plan, out);
  return out;
}

}  // namespace railyard::cli
