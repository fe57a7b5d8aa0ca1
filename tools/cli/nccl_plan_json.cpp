#include <fmt/format.h>

#include <cstdlib>

#include "algorithms/nccl/nets.h"
#include "algorithms/nccl/plan.h"
#include "algorithms/nccl/transport.h"
#include "tools/cli/nccl_plan.h"

namespace railyard::cli {
namespace {

using algorithms::nccl::Algorithm;
using algorithms::nccl::Choice;
using algorithms::nccl::Cluster;
using algorithms::nccl::CommInfo;
using algorithms::nccl::Function;
using algorithms::nccl::index_of;
using algorithms::nccl::NodeTopology;
using algorithms::nccl::Path;
using algorithms::nccl::PathEnd;
using algorithms::nccl::VertexKind;
using nlohmann::ordered_json;

// Seven significant digits, as NCCL's floats are printed; a whole number without a point.
ordered_json number(double value) {
  const double rounded = std::strtod(fmt::format("{:.7g}", value).c_str(), nullptr);
  if (rounded == static_cast<double>(static_cast<std::int64_t>(rounded)))
    return static_cast<std::int64_t>(rounded);
  return rounded;
}

template <typename E>
std::string name(E value) {
  return std::string(sim::to_text(value));
}

ordered_json comm_json(const NcclPlan& plan) {
  const CommInfo& info = plan.cluster.comm.info;
  bool direct = true;
  for (const NodeTopology& node : plan.cluster.topologies)
    direct = direct && algorithms::nccl::all_direct_p2p(node);
  ordered_json out;
  out["nRanks"] = info.ranks;
  out["nNodes"] = info.nodes;
  out["localRanks"] = info.local_ranks.front();
  out["nChannels"] = info.channels;
  out["collChannels"] = info.channels;
  out["nvlsChannels"] = info.nvls_channels;
  out["nvlsSupport"] = info.nvls_support ? 1 : 0;
  out["nvlsChunkSize"] = info.nvls_chunk;
  out["nvlsTreeMaxChunkSize"] = info.nvls_tree_max_chunk;
  out["p2pnChannels"] = info.p2p_channels;
  out["p2pnChannelsPerPeer"] = info.p2p_channels_per_peer;
  out["p2pChunkSize"] = info.p2p_chunk;
  out["buffSizes"] = info.buffers;
  out["minCompCap"] = info.min_capability;
  out["maxCompCap"] = info.max_capability;
  out["cpuArch"] = static_cast<int>(info.cpu_arch);
  out["cpuVendor"] = static_cast<int>(info.cpu_vendor);
  out["MNNVL"] = info.mnnvl ? 1 : 0;
  out["cliqueSize"] = info.mnnvl ? info.local_ranks.front() : 0;
  out["isAllNvlink"] = info.all_nvlink ? 1 : 0;
  out["isAllDirectP2p"] = direct ? 1 : 0;
  out["minNetBw"] = number(info.min_net_bandwidth);
  out["maxTreePattern"] = static_cast<int>(info.max_tree_pattern);
  out["collnetEnable"] = info.collnet ? 1 : 0;
  return out;
}

// [type, GB/s, hops] for every end of a kind.
ordered_json path_row(const NodeTopology& node, PathEnd from, VertexKind to) {
  ordered_json row = ordered_json::array();
  for (std::int32_t i = 0; i < node.system().count(to); ++i) {
    const Path& path = node.path(from, {to, i});
    row.push_back({name(path.type), number(path.bandwidth), path.hops()});
  }
  return row;
}

ordered_json path_rows(const NodeTopology& node, VertexKind from, VertexKind to) {
  ordered_json rows = ordered_json::array();
  for (std::int32_t i = 0; i < node.system().count(from); ++i)
    rows.push_back(path_row(node, {from, i}, to));
  return rows;
}

ordered_json local_nets_json(const NodeTopology& node) {
  ordered_json out = ordered_json::array();
  for (std::int32_t g = 0; g < node.gpus(); ++g) {
    ordered_json row = ordered_json::array();
    for (const std::int32_t net : algorithms::nccl::local_nets(node, g))
      row.push_back(node.net(net).dev);
    out.push_back(std::move(row));
  }
  return out;
}

// The host is in a net id's upper byte.
constexpr std::int64_t kDeviceBits = (std::int64_t{1} << 56) - 1;

ordered_json graph_json(const sim::ChannelGraph& graph, const std::vector<std::int32_t>& ranks) {
  ordered_json out;
  out["id"] = static_cast<int>(graph.kind);
  out["name"] = name(graph.kind);
  out["pattern"] = name(graph.pattern);
  out["nChannels"] = graph.channels.size();
  out["sameChannels"] = graph.same_channels ? 1 : 0;
  out["bwIntra"] = number(graph.bw_intra);
  out["bwInter"] = number(graph.bw_inter);
  out["latencyInter"] = number(graph.latency_inter);
  out["typeIntra"] = name(graph.type_intra);
  out["typeInter"] = name(graph.type_inter);
  out["crossNic"] = graph.cross_nic;
  out["channels"] = ordered_json::array();
  for (const sim::ChannelGraph::Channel& channel : graph.channels) {
    ordered_json gpus = ordered_json::array();
    for (const std::int32_t gpu : channel.gpus)
      gpus.push_back(ranks[static_cast<std::size_t>(gpu)]);
    ordered_json nets = ordered_json::array();
    for (const std::int64_t id : channel.nets) nets.push_back(id < 0 ? id : id & kDeviceBits);
    out["channels"].push_back({{"gpus", std::move(gpus)}, {"nets", std::move(nets)}});
  }
  return out;
}

ordered_json graphs_json(const Cluster& cluster) {
  const auto& node = cluster.comm.inputs.nodes.front();
  const auto& kind = cluster.comm.inputs.kinds[node.kind];
  ordered_json out = ordered_json::array();
  for (const sim::ChannelGraph* graph :
       {&kind.ring, &kind.tree, &kind.collnet_chain, &kind.collnet_direct, &kind.nvls})
    if (!graph->channels.empty()) out.push_back(graph_json(*graph, node.ranks));
  return out;
}

std::int32_t ranks_shown(const Cluster& cluster) {
  constexpr std::int32_t kMostHosts = 4;
  std::int32_t last = 0;
  for (const algorithms::nccl::RankPlace& place : cluster.ranks) last = std::max(last, place.host);
  return last < kMostHosts ? cluster.comm.info.ranks : 1;
}

ordered_json rings_json(const sim::Channels& channels) {
  ordered_json out = ordered_json::array();
  for (const sim::Channel& channel : channels) out.push_back(channel.ring);
  return out;
}

ordered_json trees_json(const Cluster& cluster, const sim::Channels& channels) {
  ordered_json out = ordered_json::array();
  for (std::int32_t rank = 0; rank < ranks_shown(cluster); ++rank) {
    ordered_json rows = ordered_json::array();
    for (const sim::Channel& channel : channels) {
      const sim::TreeEdges& edges = channel.tree[static_cast<std::size_t>(rank)];
      rows.push_back({{"up", edges.up}, {"down", edges.down}});
    }
    out.push_back({{"rank", rank}, {"channels", std::move(rows)}});
  }
  return out;
}

ordered_json nvls_json(const Cluster& cluster) {
  const algorithms::nccl::CommPlan& comm = cluster.comm;
  ordered_json out = ordered_json::array();
  if (!comm.info.nvls_support) return out;
  for (std::int32_t rank = 0; rank < ranks_shown(cluster); ++rank) {
    ordered_json rows = ordered_json::array();
    std::int32_t head = -1;
    for (std::int32_t c = 0; c < comm.info.nvls_channels; ++c) {
      const auto edges = algorithms::nccl::nvls_edges(comm.info, comm.connections, rank, c);
      head = edges.head;
      // NCCL's own way to write the node's switch: as a rank beyond all ranks, and the first child.
      const std::int32_t own = comm.info.nodes == 1 ? -1 : comm.info.ranks + 1 + head;
      rows.push_back({{"treeUp", edges.up}, {"treeDown", {own, edges.down[0], edges.down[1]}}});
    }
    out.push_back({{"rank", rank},
                   {"nHeads", comm.info.nvls_heads},
                   {"headRank", head},
                   {"channels", std::move(rows)}});
  }
  return out;
}

ordered_json tuning_json(const algorithms::nccl::Tuning& tuning) {
  ordered_json out;
  for (const Algorithm a : algorithms::nccl::kAllAlgorithms) {
    out["maxThreads"][name(a)] = tuning.max_threads[index_of(a)];
    out["threadThresholds"][name(a)] = tuning.thread_thresholds[index_of(a)];
  }
  out["table"] = ordered_json::array();
  for (const Function f : algorithms::nccl::kAllFunctions)
    for (const Algorithm a : algorithms::nccl::kAllAlgorithms)
      for (const sim::Protocol p : algorithms::nccl::kAllProtocols) {
        const float bandwidth = tuning.bandwidth[index_of(f)][index_of(a)][index_of(p)];
        if (bandwidth <= 0) continue;
        ordered_json row;
        row["coll"] = name(f);
        row["algo"] = name(a);
        row["proto"] = name(p);
        row["latencyUs"] = number(tuning.latency[index_of(f)][index_of(a)][index_of(p)]);
        row["bwGBs"] = number(bandwidth);
        out["table"].push_back(std::move(row));
      }
  return out;
}

ordered_json choice_json(std::int64_t size, std::int64_t bytes, const Choice& choice) {
  constexpr std::int32_t kWarp = 32;
  ordered_json out;
  out["size"] = size;
  out["nBytes"] = bytes;
  out["algo"] = name(choice.algorithm);
  out["proto"] = name(choice.protocol);
  out["timeUs"] = number(choice.time_us);
  out["nMaxChannels"] = choice.max_channels;
  out["nWarps"] = choice.threads / kWarp;
  out["nThreads"] = choice.threads;
  out["channelsUsed"] = choice.channels;
  out["channelLo"] = choice.first_channel;
  if (choice.interleaved) {
    out["chunk"] = choice.lo.chunk;
  } else {
    out["bytesLoMidHi"] = {choice.lo.bytes, choice.mid.bytes, choice.hi.bytes};
    out["chunkLoMidHi"] = {choice.lo.chunk, choice.mid.chunk, choice.hi.chunk};
  }
  out["candidates"] = ordered_json::object();
  for (const Algorithm a : algorithms::nccl::kAllAlgorithms)
    for (const sim::Protocol p : algorithms::nccl::kAllProtocols)
      if (const float cost = choice.costs[index_of(a)][index_of(p)]; cost >= 0)
        out["candidates"][fmt::format("{}/{}", name(a), name(p))] = number(cost);
  return out;
}

// NCCL's harness writes a refused call this way.
ordered_json no_choice_json(std::int64_t size, std::int64_t bytes) {
  ordered_json out = choice_json(size, bytes, Choice{});
  for (const char* key : {"timeUs", "nMaxChannels", "nWarps", "nThreads", "channelsUsed"})
    out[key] = 0;
  out["algo"] = "none";
  out["proto"] = "none";
  out["candidates"] = ordered_json::object();
  return out;
}

ordered_json selection_json(const NcclPlan& plan) {
  constexpr Function kOrder[] = {Function::all_reduce, Function::all_gather,
                                 Function::reduce_scatter, Function::broadcast, Function::reduce};
  ordered_json out;
  for (const Function function : kOrder) {
    ordered_json rows = ordered_json::array();
    for (const std::int64_t size : plan_sizes()) {
      const algorithms::nccl::Call call = call_of_size(plan, function, size);
      const std::int64_t bytes = model_bytes(call, plan.cluster.comm.info.ranks);
      const auto choice = choose(plan.cluster.comm, call);
      rows.push_back(choice.ok() ? choice_json(size, bytes, choice.value())
                                 : no_choice_json(size, bytes));
    }
    out[name(function)] = std::move(rows);
  }
  return out;
}

}  // namespace

ordered_json paths_json(const NodeTopology& node) {
  ordered_json out;
  out["gpuRanks"] = ordered_json::array();
  for (std::int32_t g = 0; g < node.gpus(); ++g) out["gpuRanks"].push_back(node.gpu(g).rank);
  out["nets"] = ordered_json::array();
  for (std::int32_t n = 0; n < node.nets(); ++n) {
    const auto& net = node.net(n);
    const std::int32_t gpu = node.local_gpu(n);
    out["nets"].push_back({{"dev", net.dev},
                           {"bw", number(net.bandwidth)},
                           {"latency", number(net.latency)},
                           {"gdr", net.gdr ? 1 : 0},
                           {"localGpu", gpu < 0 ? -1 : node.gpu(gpu).rank}});
  }
  out["gpu_gpu"] = path_rows(node, VertexKind::gpu, VertexKind::gpu);
  out["gpu_net"] = path_rows(node, VertexKind::gpu, VertexKind::net);
  out["net_gpu"] = path_rows(node, VertexKind::net, VertexKind::gpu);
  out["gpu_cpu"] = path_rows(node, VertexKind::gpu, VertexKind::cpu);
  return out;
}

ordered_json plan_json(const NcclPlan& plan) {
  const Cluster& cluster = plan.cluster;
  const NodeTopology& node = cluster.topologies[cluster.comm.inputs.nodes.front().kind];
  const sim::Channels channels =
      algorithms::nccl::to_channels(cluster.comm.info, cluster.comm.connections);
  ordered_json out;
  out["comm"] = comm_json(plan);
  out["system"] = {{"maxBw", number(node.max_bandwidth())},
                   {"totalBw", number(node.total_bandwidth())},
                   {"inter", node.inter() ? 1 : 0}};
  out["paths"] = paths_json(node);
  out["localNets"] = local_nets_json(node);
  out["graphs"] = graphs_json(cluster);
  out["rings"] = rings_json(channels);
  out["trees"] = trees_json(cluster, channels);
  out["nvls"] = nvls_json(cluster);
  out["tuning"] = tuning_json(cluster.comm.tuning);
  out["selection"] = selection_json(plan);
  if (!plan.warnings.empty()) out["warnings"] = plan.warnings;
  return out;
}

}  // namespace railyard::cli
