#include "tools/cli/nccl_prediction.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "algorithms/nccl/node_kind.h"
#include "algorithms/nccl/selection.h"
#include "sim/check.h"

namespace railyard::cli {
namespace {

namespace log = calibrate::nccl_log;
namespace nccl = algorithms::nccl;

// A node's searches, with ranks for local indices.
std::vector<sim::ChannelGraph> searches_of(const nccl::NodeKind& kind,
                                           const std::vector<std::int32_t>& ranks) {
  std::vector<sim::ChannelGraph> graphs{kind.ring, kind.tree, kind.collnet_chain,
                                        kind.collnet_direct, kind.nvls};
  std::erase_if(graphs, [](const sim::ChannelGraph& graph) { return graph.channels.empty(); });
  for (sim::ChannelGraph& graph : graphs)
    for (sim::ChannelGraph::Channel& channel : graph.channels)
      for (std::int32_t& gpu : channel.gpus) gpu = ranks[static_cast<std::size_t>(gpu)];
  return graphs;
}

void add_searches(const nccl::CommPlan& plan, NcclPrediction& prediction) {
  prediction.node_of.assign(plan.info.node_of.begin(), plan.info.node_of.end());
  for (const nccl::CommNode& node : plan.inputs.nodes)
    prediction.searches.push_back(searches_of(plan.inputs.kinds[node.kind], node.ranks));
}

void add_channels(const nccl::CommPlan& plan, NcclPrediction& prediction) {
  const nccl::CommInfo& info = plan.info;
  prediction.channels = info.channels;
  prediction.nvls_channels = info.nvls_channels;
  prediction.p2p_channels = info.p2p_channels;
  prediction.p2p_channels_per_peer = info.p2p_channels_per_peer;
  prediction.p2p_chunk = info.p2p_chunk;
  for (const std::int32_t source : info.source) {
    prediction.rings.push_back(plan.connections.rings[static_cast<std::size_t>(source)]);
    prediction.trees.push_back(plan.connections.trees[static_cast<std::size_t>(source)]);
  }
  prediction.nvls_heads = plan.connections.nvls_heads;
}

log::Tuning tuning_of(const nccl::Tuning& planned) {
  log::Tuning tuning;
  for (const nccl::Algorithm algorithm : nccl::kAllAlgorithms) {
    for (const nccl::Protocol protocol : nccl::kAllProtocols) {
      const std::size_t a = nccl::index_of(algorithm), p = nccl::index_of(protocol);
      tuning.max_threads[a][p] = planned.max_threads[a][p];
      for (const nccl::Function function : nccl::kAllFunctions) {
        const std::size_t f = nccl::index_of(function);
        tuning.cells[f][a][p] = {planned.latency[f][a][p], planned.bandwidth[f][a][p]};
      }
    }
  }
  return tuning;
}

// Network devices by (channel, from, to): those of the sender and of the receiver.
using Devices = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>,
                         std::pair<std::int64_t, std::int64_t>>;

Devices network_devices(const nccl::CommPlan& plan) {
  Devices devices;
  const auto add = [&](std::int64_t channel, const nccl::NetHop& hop, bool both) {
    devices.try_emplace({channel, hop.from, hop.to}, hop.net_out, hop.net_in);
    if (both) devices.try_emplace({channel, hop.to, hop.from}, hop.net_in, hop.net_out);
  };
  const auto add_all = [&](nccl::Algorithm algorithm, std::int32_t channels) {
    for (std::int32_t channel = 0; channel < channels; ++channel)
      for (const nccl::NetHop& hop :
           nccl::net_hops(plan.inputs, plan.info, plan.connections, algorithm, channel))
        add(channel, hop, algorithm != nccl::Algorithm::ring);
  };
  add_all(nccl::Algorithm::ring, plan.info.channels);
  add_all(nccl::Algorithm::tree, plan.info.channels);
  if (plan.info.nvls_support) add_all(nccl::Algorithm::nvls_tree, plan.info.nvls_channels);
  return devices;
}

// Transports of a plan's connections.
class Transports {
 public:
  Transports(const nccl::CommPlan& plan, NodeTopologies nodes)
      : node_of_(plan.info.node_of), nodes_(std::move(nodes)), devices_(network_devices(plan)) {
    RAILYARD_CHECK(nodes_.empty() || nodes_.size() == plan.inputs.nodes.size(),
                   "topologies of other nodes than the plan's");
    for (const nccl::CommNode& node : plan.inputs.nodes) ranks_.push_back(node.ranks);
  }

  std::optional<NcclPrediction::Transport> operator()(const log::Edge& edge) const {
    const auto ranks = static_cast<std::int64_t>(node_of_.size());
    if (edge.connection == 1 || edge.from < 0 || edge.from >= ranks || edge.to < 0 ||
        edge.to >= ranks)
      return std::nullopt;
    return node(edge.from) == node(edge.to) ? inside(edge) : between(edge);
  }

 private:
  [[nodiscard]] std::size_t node(std::int64_t rank) const {
    return static_cast<std::size_t>(node_of_[static_cast<std::size_t>(rank)]);
  }
  // Where a rank's GPU is among those of its node's topology.
  [[nodiscard]] std::int32_t gpu(std::int64_t rank) const {
    const std::vector<std::int32_t>& ranks = ranks_[node(rank)];
    const auto local = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    const nccl::NodeTopology& topology = *nodes_[node(rank)];
    return topology.system().gpu_of_rank(
        nccl::node_ranks(topology)[static_cast<std::size_t>(local)]);
  }

  [[nodiscard]] std::optional<NcclPrediction::Transport> inside(const log::Edge& edge) const {
    if (nodes_.empty()) return std::nullopt;
    const nccl::NodeTopology& topology = *nodes_[node(edge.from)];
    const std::int32_t from = gpu(edge.from), to = gpu(edge.to);
    NcclPrediction::Transport transport{.kind = log::Transport::net};
    if (topology.p2p_connects(from, to)) {
      transport.kind = log::Transport::p2p;
    } else if (topology.shm_connects(from, to)) {
      transport.kind = log::Transport::shm;
    }
    return transport;
  }

  [[nodiscard]] std::optional<NcclPrediction::Transport> between(const log::Edge& edge) const {
    const auto found = devices_.find({edge.channel, edge.from, edge.to});
    if (found == devices_.end()) return std::nullopt;
    const bool receives = edge.direction == log::Direction::receive;
    const std::int64_t id = receives ? found->second.second : found->second.first;
    NcclPrediction::Transport transport{.kind = log::Transport::net};
    if (id == nccl::kNone) return transport;
    constexpr std::int64_t kDeviceBits = 0xffffffff;  // above is the host
    transport.device = id & kDeviceBits;
    if (nodes_.empty()) return transport;
    const std::int64_t own = receives ? edge.to : edge.from;
    const nccl::NodeTopology& topology = *nodes_[node(own)];
    const std::int32_t net = topology.system().net_of_id(id);
    if (net < 0) return transport;
    transport.gpu_direct = topology.check_gdr(gpu(own), net, !receives) != nccl::GdrMode::off;
    transport.proxy = -1;
    const std::int32_t relay = receives ? gpu(own) : topology.relay_gpu(gpu(own), net);
    if (relay != gpu(own)) transport.proxy = rank_of(relay, node(own));
    return transport;
  }

  [[nodiscard]] std::int64_t rank_of(std::int32_t gpu, std::size_t node) const {
    const std::vector<std::int32_t> known = nccl::node_ranks(*nodes_[node]);
    const auto local =
        std::find(known.begin(), known.end(), nodes_[node]->gpu(gpu).rank) - known.begin();
    return ranks_[node][static_cast<std::size_t>(local)];
  }

  std::vector<std::int32_t> node_of_;
  NodeTopologies nodes_;
  std::vector<std::vector<std::int32_t>> ranks_;  // by node and local index
  Devices devices_;
};

sim::Result<NcclPrediction::Choice> choose(const nccl::CommPlan& plan,
                                           const NcclPrediction::Call& asked) {
  constexpr std::int64_t kTypes = 12, kReductions = 5;  // above: made by ncclRedOpCreatePreMulSum
  if (asked.datatype < 0 || asked.datatype >= kTypes)
    return sim::bad_input("unknown data type " + std::to_string(asked.datatype));
  nccl::Call call;
  call.function = static_cast<nccl::Function>(asked.function);
  call.count = asked.count;
  call.type = static_cast<nccl::DataType>(asked.datatype);
  call.reduction = asked.op >= 0 && asked.op < kReductions ? static_cast<nccl::Reduction>(asked.op)
                                                           : nccl::Reduction::premul_sum;
  call.root = static_cast<std::int32_t>(asked.root);
  RAILYARD_ASSIGN(const nccl::Choice chosen, nccl::choose(plan, call));
  return NcclPrediction::Choice{chosen.algorithm, chosen.protocol,
                                static_cast<double>(chosen.time_us), chosen.first_channel,
                                chosen.first_channel + chosen.channels - 1};
}

}  // namespace

NcclPrediction predict(const nccl::CommPlan& plan, const nccl::Environment& environment,
                       const NodeTopologies& nodes) {
  NcclPrediction prediction;
  prediction.version = nccl::to_text(plan.inputs.version);
  prediction.variables.insert(environment.variables().begin(), environment.variables().end());
  prediction.ranks = plan.info.ranks;
  prediction.nodes = plan.info.nodes;
  add_searches(plan, prediction);
  add_channels(plan, prediction);
  prediction.tuning = tuning_of(plan.tuning);
  const auto kept = std::make_shared<const nccl::CommPlan>(plan);
  prediction.choose = [kept](const NcclPrediction::Call& call) { return choose(*kept, call); };
  prediction.transport = Transports(plan, nodes);
  return prediction;
}

}  // namespace railyard::cli
