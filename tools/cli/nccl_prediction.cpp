#include "tools/cli/nccl_prediction.h"

#include <memory>
#include <tuple>

#include "algorithms/nccl/selection.h"

namespace railyard::cli {
namespace {

namespace log = calibrate::nccl_log;
namespace nccl = algorithms::nccl;

// The searches of every node, with ranks for local indices.
void add_searches(const nccl::CommPlan& plan, NcclPrediction& prediction) {
  prediction.node_of.assign(plan.info.node_of.begin(), plan.info.node_of.end());
  for (const nccl::CommNode& node : plan.inputs.nodes) {
    const nccl::NodeKind& kind = plan.inputs.kinds[node.kind];
    std::vector<sim::ChannelGraph> graphs;
    for (const sim::ChannelGraph* graph :
         {&kind.ring, &kind.tree, &kind.collnet_chain, &kind.collnet_direct, &kind.nvls}) {
      if (graph->channels.empty()) continue;
      sim::ChannelGraph by_rank = *graph;
      for (auto& channel : by_rank.channels)
        for (std::int32_t& gpu : channel.gpus) gpu = node.ranks[static_cast<std::size_t>(gpu)];
      graphs.push_back(std::move(by_rank));
    }
    prediction.searches.push_back(std::move(graphs));
  }
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

std::optional<NcclPrediction::Transport> network(const Devices& devices, const log::Edge& edge) {
  if (edge.connection == 1) return std::nullopt;  // send and receive choose their own
  const auto found = devices.find({edge.channel, edge.from, edge.to});
  if (found == devices.end()) return std::nullopt;
  const std::int64_t net =
      edge.direction == log::Direction::receive ? found->second.second : found->second.first;
  NcclPrediction::Transport transport{.kind = log::Transport::net};
  constexpr std::int64_t kDeviceBits = 0xffffffff;  // the upper half is the host
  if (net != nccl::kNone) transport.device = net & kDeviceBits;
  return transport;
}

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

NcclPrediction predict(const nccl::CommPlan& plan, const nccl::Environment& environment) {
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
  prediction.transport = [devices = network_devices(plan)](const log::Edge& edge) {
    return network(devices, edge);
  };
  return prediction;
}

}  // namespace railyard::cli
