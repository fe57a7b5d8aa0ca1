// A communicator as NCCL sees it when the searches are done: what every kind of node found
// (CommInputs, the input of make_comm_plan in plan.h), and what follows for all ranks together
// (CommInfo): minima and maxima over ranks, NVLS and CollNet support, channel counts, buffer sizes.
//
// A "node" is what NCCL counts as one: the ranks that share a topology - a host, an NVLink domain
// of hosts, or a part of a host whose GPUs cannot reach the others. Nodes of equal hardware and
// search results share a NodeKind.
//
// Source: NCCL 2.30.7 init.cc (initTransportsRank, computeBuffSizes), graph/paths.cc (channels for
// send and receive), transport/nvls.cc (ncclNvlsTuning).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/nccl/environment.h"
#include "algorithms/nccl/names.h"
#include "algorithms/nccl/system.h"
#include "algorithms/nccl/tuner_file.h"
#include "sim/channel_graph.h"
#include "sim/result.h"

namespace railyard::algorithms::nccl {

inline constexpr std::int32_t kSteps = 8;             // of a FIFO
inline constexpr std::int32_t kNvlsArity = 32;        // heads, and ranks for AllGather by NVLS
inline constexpr std::int32_t kDirectArity = 7;       // CollNet: at most one rank more per node
inline constexpr std::int32_t kP2pWorksPerBatch = 8;  // sends and receives at once on a channel

struct NodeKind {
  // Channels' `gpus` are local indices 0 .. ranks - 1 (as in a graph file's node); the nets are
  // NCCL's net ids. A graph that was not searched (no NVLS, no CollNet) has no channels.
  sim::ChannelGraph ring;
  sim::ChannelGraph tree;
  sim::ChannelGraph collnet_chain;
  sim::ChannelGraph collnet_direct;
  sim::ChannelGraph nvls;
  std::vector<std::int32_t> compute_capabilities;  // by local index; 90 = Hopper
  CpuArch cpu_arch = CpuArch::x86;
  CpuVendor cpu_vendor = CpuVendor::intel;
  std::int32_t nvswitches = 0;   // NVSwitch nodes of the topology
  double min_net_bandwidth = 0;  // GB/s, lowest over the GPUs to their NICs
  bool all_nvlink = false;       // between any two GPUs NVLink, perhaps by way of a third
  // Fewest over GPUs and peers, before rounding (p2p_channels_per_peer in nets.h).
  std::int32_t p2p_channels_per_peer = 0;
  // Before NCCL 2.29: over the peers inside the node (0: not told, the above counts), and the NICs
  // that fill a GPU's own link to its CPU (older_net_count in nets.h).
  std::int32_t older_channels_inside = 0;
  std::int32_t older_net_count = 0;
};

struct CommNode {
  std::size_t kind = 0;
  std::vector<std::int32_t> ranks;  // by local index
};

struct CollNetPlugin {
  bool present = false;
  bool enabled = false;  // by ncclConfig; NCCL_COLLNET_ENABLE overrides
  bool all_gather = false;
  bool reduce_scatter = false;
};

struct CommInputs {
  std::vector<NodeKind> kinds;
  std::vector<CommNode> nodes;  // in order of their lowest rank
  bool multicast = false;       // the driver offers NVLS
  bool mnnvl = false;
  bool host_network = true;  // false: a network that unpacks on the device
  CollNetPlugin collnet;
  Version version;
  std::optional<TunerFile> tuner;  // NCCL_TUNER_CONFIG_FILE, with NCCL's example plugin
};

// What the cost model uses of a graph: minima over ranks (types, crossNic: maxima).
struct GraphSummary {
  std::int32_t channels = 0;
  bool same_channels = true;
  float bw_intra = 0;
  float bw_inter = 0;
  float latency_inter = 0;
  sim::PathType type_intra = sim::PathType::loc;
  sim::PathType type_inter = sim::PathType::loc;
  std::int32_t cross_nic = 0;
};

struct CommInfo {
  std::int32_t ranks = 1;
  std::int32_t nodes = 1;
  std::vector<std::int32_t> node_of;      // by rank
  std::vector<std::int32_t> local_ranks;  // by node
  std::int32_t min_local_ranks = 1;
  std::int32_t max_local_ranks = 1;
  std::int32_t min_capability = 0;
  std::int32_t max_capability = 0;
  CpuArch cpu_arch = CpuArch::undefined;
  CpuVendor cpu_vendor = CpuVendor::undefined;
  std::int32_t nvswitches = 0;
  bool mnnvl = false;
  bool all_nvlink = false;
  bool host_network = true;
  float min_net_bandwidth = 0;
  sim::GraphPattern max_tree_pattern = sim::GraphPattern::balanced_tree;
  GraphSummary ring, tree, collnet_chain, collnet_direct, nvls;

  bool nvls_support = false;
  bool collnet = false;
  CollNetPlugin collnet_plugin;
  bool collnet_chain_support = false;  // its heads are among CollNet's
  std::int32_t collnet_heads = 0;
  std::int32_t direct_heads = 0;  // of CollNetDirect
  bool direct_is_alone = false;   // it has one head and one rank: depth 1
  std::int32_t nvls_heads = 0;

  std::int32_t search_channels = 0;  // min(ring, tree)
  std::int32_t channels = 0;         // of collectives
  // Channel c repeats channel source[c] of the first 2 x search_channels (the doubled search's).
  std::vector<std::int32_t> source;
  std::int32_t nvls_channels = 0;
  std::int32_t nvls_chunk = 0;
  std::int32_t nvls_tree_max_chunk = 0;
  std::int32_t p2p_channels = 0;
  std::int32_t p2p_channels_per_peer = 0;
  std::int32_t p2p_chunk = 0;
  std::array<std::int64_t, kProtocols> buffers{};  // FIFO bytes by protocol

  [[nodiscard]] const GraphSummary& graph(Algorithm algorithm) const;
};

// Everything of CommInfo. Errors, with `nodes[i]` or `kinds[i]` as the place: no ranks; ranks that
// are not 0 .. n-1 each once; nodes out of order; an index beyond the kinds; graphs whose channels
// do not list the node's GPUs; too many local ranks.
sim::Result<CommInfo> merge_nodes(const CommInputs& inputs, const Environment& env);

// Unique first GPUs of the graph's channels, as local indices, in channel order.
std::vector<std::int32_t> graph_heads(const sim::ChannelGraph& graph);

}  // namespace railyard::algorithms::nccl
