#include "algorithms/nccl/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "algorithms/nccl/channel_search.h"
#include "algorithms/nccl/nets.h"
#include "algorithms/nccl/search_memory.h"

namespace railyard::algorithms::nccl {
namespace {

using sim::GraphKind;
using sim::GraphPattern;
using sim::PathType;

// Candidate bandwidths per channel, GB/s, by generation: inside one node, and between nodes.
constexpr std::array kIntra{40.0F, 30.0F, 20.0F, 18.0F, 15.0F, 12.0F, 10.0F,
                            9.0F,  7.0F,  6.0F,  5.0F,  4.0F,  3.0F};
constexpr std::array kInter{48.0F, 30.0F, 28.0F, 24.0F, 20.0F, 18.0F, 15.0F, 12.0F, 10.0F, 9.0F,
                            7.0F,  6.0F,  5.0F,  4.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kHopperIntra{60.0F, 50.0F, 40.0F, 30.0F, 24.0F, 20.0F,
                                  15.0F, 12.0F, 11.0F, 6.0F,  3.0F};
constexpr std::array kHopperInter{48.0F, 45.0F, 42.0F, 40.0F, 30.0F, 24.0F, 22.0F, 20.0F, 17.5F,
                                  15.0F, 12.0F, 6.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kBlackwellIntra{90.0F, 80.0F, 70.0F, 60.0F, 50.0F, 45.0F,
                                     40.0F, 30.0F, 24.0F, 20.0F, 19.0F, 18.0F};
constexpr std::array kBlackwellInter{96.0F, 86.0F, 80.0F, 48.0F, 45.1F, 42.0F, 40.0F,
                                     30.0F, 24.0F, 22.0F, 20.0F, 17.5F, 15.0F, 12.0F,
                                     6.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};

constexpr std::int32_t kHopper = 90;
constexpr std::int32_t kBlackwell = 100;
constexpr std::int64_t kAllBudget = 1 << 19;
constexpr std::int32_t kBudget = 1 << 14;
constexpr std::int32_t kSameChannelsBudget = 1 << 8;
constexpr std::int32_t kMaxNvlsHeads = 32;
constexpr std::int32_t kMaxDirectHeads = 8;
constexpr float kLastResort = 0.1F;

std::span<const float> speeds(std::int32_t sm, bool inter) {
  if (sm >= kBlackwell) {
    if (inter) return kBlackwellInter;
    return kBlackwellIntra;
  }
  if (sm >= kHopper) {
    if (inter) return kHopperInter;
    return kHopperIntra;
  }
  if (inter) return kInter;
  return kIntra;
}

PathType next_type(PathType type) {
  return static_cast<PathType>(static_cast<std::int32_t>(type) + 1);
}

// All demands of one pattern, from the strictest on.
class GraphFinder {
 public:
  GraphFinder(const NodeTopology& node, SearchGraph graph)
      : node_(node),
        search_(node),
        memory_(node),
        best_(std::move(graph)),
        sm_(node.system().min_sm()),
        speeds_(speeds(sm_, node.inter())) {}

  SearchGraph run() {
    set_limits();
    const bool nvls = best_.pattern == GraphPattern::nvls;
    if (nvls && (node_.system().count(VertexKind::nvs) == 0 || sm_ < kHopper)) return best_;
    set_channels();
    wanted_ = best_;
    start_speed();
    do search(kFirstPass);
    while (!finished() && relax());
    double_channels();
    start_second_pass();
    std::int32_t budget = kPerfect;
    while (raise(budget)) budget = search(kSecondPass);
    if (best_.channels == 0 && !best_.collnet && best_.pattern != GraphPattern::nvls) fall_back();
    return best_;
  }

 private:
  static constexpr bool kFirstPass = true;
  static constexpr bool kSecondPass = false;

  void set_limits() {
    const bool crossing = best_.pattern == GraphPattern::ring ||
                          best_.pattern == GraphPattern::balanced_tree ||
                          best_.pattern == GraphPattern::split_tree;
    cross_nic_ =
        node_.nets() > 1 && crossing ? static_cast<std::int32_t>(node_.settings().cross_nic) : 0;
    best_.cross_nic = cross_nic_ == 1 ? 1 : 0;
    if (node_.gpus() > 1) {
      min_intra_ = node_.min_type(VertexKind::gpu);
      max_intra_ = node_.max_type(VertexKind::gpu);
    }
    if (node_.inter()) {
      min_inter_ = node_.min_type(VertexKind::net);
      max_inter_ = node_.max_type(VertexKind::net);
      max_intra_ = max_inter_;
    }
    // Balanced trees of Ampere may have to come back by far NICs.
    if (sm_ < kHopper) max_inter_ = PathType::sys;
    best_.intra_type = min_intra_;
    best_.inter_type = min_inter_;
    same_first_ = best_.pattern != GraphPattern::nvls;
    best_.same_channels = same_first_;
    const std::size_t gpus = static_cast<std::size_t>(node_.gpus());
    best_.gpus.assign(static_cast<std::size_t>(kMaxChannels) * gpus, -1);
    best_.nets.assign(static_cast<std::size_t>(kMaxChannels) * 2, -1);
  }

  void set_channels() {
    if (best_.pattern == GraphPattern::nvls)
      best_.max_channels = std::min(kMaxNvlsHeads, node_.gpus());
    if (best_.pattern == GraphPattern::collnet_direct)
      best_.max_channels = std::min(kMaxDirectHeads, node_.gpus());
    if (node_.gpus() == 1 && best_.pattern != GraphPattern::ring)
      best_.pattern = GraphPattern::tree;
    // Within one node NVLS draws evenly from all GPUs.
    if (!node_.inter() && best_.pattern == GraphPattern::nvls)
      best_.min_channels = best_.max_channels;
    // Two NVLink islands: the tree will want two channels, so the ring must have them.
    if (best_.pattern == GraphPattern::ring && node_.split_nvlink() && best_.max_channels >= 2 &&
        best_.min_channels == 1)
      best_.min_channels = 2;
  }

  void start_speed() {
    float total = node_.total_bandwidth();
    const std::int32_t devices = node_.system().count(VertexKind::device);
    // Only rings need the way back to where they began.
    if (devices > 1 && best_.pattern != GraphPattern::ring)
      total = static_cast<float>(static_cast<double>(total) * (devices * 1.0 / (devices - 1)));
    const auto least = static_cast<float>(best_.min_channels);
    while ((speeds_[speed_] > node_.max_bandwidth() || speeds_[speed_] * least > total) &&
           !slowest())
      ++speed_;
    set_speed();
  }

  [[nodiscard]] bool slowest() const { return speed_ + 1 >= speeds_.size(); }
  void set_speed() { wanted_.intra_bandwidth = wanted_.inter_bandwidth = speeds_[speed_]; }

  std::int32_t search(bool first_pass) {
    std::int32_t budget = wanted_.same_channels ? kSameChannelsBudget : kBudget;
    wanted_.channels = 0;
    all_budget_ -= budget;
    if (const auto left = memory_.fruitless(wanted_)) {
      budget = *left;
    } else {
      const bool improved = search_.run(wanted_, best_, budget);
      memory_.note(wanted_, improved, budget);
    }
    if (first_pass) left_ = budget;
    return budget;
  }

  [[nodiscard]] bool finished() const {
    return left_ == kPerfect ||
           static_cast<float>(best_.channels) * best_.inter_bandwidth >= node_.total_bandwidth();
  }

  // Gives up one demand; false: there is none left.
  bool relax() {
    if (wanted_.same_channels && !across_amd_sockets()) {
      wanted_.same_channels = false;
      return true;
    }
    wanted_.same_channels = same_first_;
    all_budget_ += left_;
    if (all_budget_ < 0 && best_.channels > 0) return false;
    if (sm_ >= kHopper && wanted_.pattern == GraphPattern::balanced_tree) {
      wanted_.pattern = GraphPattern::tree;
      return true;
    }
    wanted_.pattern = best_.pattern;
    return relax_types() || relax_nics() || slow_down();
  }

  [[nodiscard]] bool across_amd_sockets() const {
    const Vertex& cpu = node_.system().at(VertexKind::cpu, 0);
    return cpu.arch == CpuArch::x86 && cpu.vendor == CpuVendor::amd &&
           wanted_.intra_type == PathType::sys;
  }

  bool relax_types() {
    const bool none = best_.channels == 0;
    const PathType most = node_.inter() ? wanted_.inter_type : max_intra_;
    if (wanted_.intra_type < most && (none || wanted_.intra_type < best_.intra_type)) {
      wanted_.intra_type = next_type(wanted_.intra_type);
      if (wanted_.intra_type < PathType::dis) return true;
    }
    wanted_.intra_type = min_intra_;
    if (node_.inter() && wanted_.inter_type < max_inter_ &&
        (none || wanted_.inter_type < best_.inter_type || wanted_.inter_type < PathType::pxn)) {
      wanted_.inter_type = next_type(wanted_.inter_type);
      if (wanted_.inter_type < PathType::dis) return true;
    }
    wanted_.inter_type = min_inter_;
    return false;
  }

  bool relax_nics() {
    const bool pattern =
        best_.pattern == GraphPattern::ring || best_.pattern == GraphPattern::balanced_tree;
    if (cross_nic_ == 2 && wanted_.cross_nic == 0 && pattern) {
      wanted_.cross_nic = 2;
      return true;
    }
    wanted_.cross_nic = cross_nic_ == 1 ? 1 : 0;
    return false;
  }

  // Slower, as long as there is nothing, or nothing better than twice as slow.
  bool slow_down() {
    if (slowest()) return false;
    if (best_.channels > 0 &&
        !(static_cast<double>(speeds_[speed_ + 1] / best_.inter_bandwidth) > .49))
      return false;
    ++speed_;
    set_speed();
    return true;
  }

  // Fast channels are more than one CTA can fill.
  void double_channels() {
    if (best_.channels == 0 || best_.pattern == GraphPattern::nvls) return;
    if (best_.intra_bandwidth < 25.0F) return;
    if (sm_ > 80 && best_.intra_bandwidth < 50.0F && best_.channels > 4) return;
    const std::int32_t doubled = std::min(best_.channels * 2, best_.max_channels);
    const auto gpus = static_cast<std::size_t>(node_.gpus());
    const auto channels = static_cast<std::size_t>(best_.channels);
    const auto extra = static_cast<std::size_t>(doubled - best_.channels);
    std::copy_n(best_.gpus.begin(), extra * gpus,
                best_.gpus.begin() + static_cast<std::ptrdiff_t>(channels * gpus));
    std::copy_n(best_.nets.begin(), extra * 2,
                best_.nets.begin() + static_cast<std::ptrdiff_t>(channels * 2));
    const auto factor = static_cast<float>((doubled + best_.channels - 1) / best_.channels);
    best_.intra_bandwidth /= factor;
    best_.inter_bandwidth /= factor;
    best_.channels = doubled;
  }

  void start_second_pass() {
    wanted_ = best_;
    speed_ = 0;
    while (speeds_[speed_] > best_.inter_bandwidth && !slowest()) ++speed_;
    set_speed();
    wanted_.min_channels = best_.channels;
  }

  // Asks for more bandwidth at as many channels; `budget`: what the last search left.
  bool raise(std::int32_t budget) {
    if (budget == 0 || speed_ == 0) return false;
    if (best_.pattern == GraphPattern::ring) {
      --speed_;
      set_speed();
      return true;
    }
    if (best_.pattern == GraphPattern::nvls && wanted_.inter_bandwidth == best_.inter_bandwidth &&
        wanted_.inter_bandwidth < wanted_.intra_bandwidth * 2) {
      wanted_.min_channels = wanted_.max_channels = best_.channels;
      wanted_.inter_bandwidth = speeds_[--speed_];
      return true;
    }
    if (wanted_.intra_bandwidth == best_.intra_bandwidth &&
        wanted_.intra_bandwidth < wanted_.inter_bandwidth * 2) {
      wanted_.intra_bandwidth = speeds_[--speed_];
      return true;
    }
    return false;
  }

  // One channel in the order of the file, so that something works.
  void fall_back() {
    for (std::int32_t g = 0; g < node_.gpus(); ++g)
      best_.gpus[static_cast<std::size_t>(g)] = node_.gpu(g).rank;
    best_.intra_bandwidth = kLastResort;
    best_.intra_type = PathType::sys;
    const auto& in = search_.nets().order(0, kPreferredOnly);
    const auto& out = search_.nets().order(node_.gpus() - 1, kPreferredOnly);
    const bool reached = !in.empty() && !out.empty();
    best_.net(0, 0) = reached ? node_.net(in.front()).id : -1;
    best_.net(0, 1) = reached ? node_.net(out.front()).id : -1;
    best_.inter_bandwidth = reached ? kLastResort : 0;
    best_.inter_type = reached ? PathType::sys : PathType::dis;
    best_.channels = 1;
  }

  const NodeTopology& node_;
  ChannelSearch search_;
  SearchMemory memory_;
  SearchGraph best_;
  SearchGraph wanted_;
  std::int32_t sm_;
  std::span<const float> speeds_;
  std::size_t speed_ = 0;
  std::int64_t all_budget_ = kAllBudget;
  std::int32_t left_ = 0;
  std::int32_t cross_nic_ = 0;
  bool same_first_ = true;
  PathType min_intra_ = PathType::loc;
  PathType max_intra_ = PathType::sys;
  PathType min_inter_ = PathType::pix;
  PathType max_inter_ = PathType::sys;
};

SearchGraph demand(GraphKind kind, GraphPattern pattern, bool collnet, std::int32_t least,
                   std::int32_t most) {
  SearchGraph graph;
  graph.kind = kind;
  graph.pattern = pattern;
  graph.collnet = collnet;
  graph.min_channels = least;
  graph.max_channels = most;
  return graph;
}

bool heads_only(GraphKind kind) {
  return kind == GraphKind::nvls || kind == GraphKind::collnet_direct;
}

sim::ChannelGraph finished_graph(const NodeTopology& node, const SearchGraph& graph) {
  sim::ChannelGraph done;
  done.kind = graph.kind;
  done.pattern = graph.pattern;
  done.cross_nic = graph.cross_nic;
  done.same_channels = graph.same_channels;
  done.bw_intra = graph.intra_bandwidth;
  done.bw_inter = graph.inter_bandwidth;
  done.latency_inter = graph.inter_latency;
  done.type_intra = graph.intra_type;
  done.type_inter = graph.inter_type;
  const std::int32_t shown = heads_only(graph.kind) ? 1 : node.gpus();
  for (std::int32_t c = 0; c < graph.channels; ++c) {
    sim::ChannelGraph::Channel channel;
    const auto first = graph.gpus.begin() + static_cast<std::ptrdiff_t>(c) * node.gpus();
    channel.gpus.assign(first, first + shown);
    if (node.inter()) channel.nets = {graph.net(c, 0), graph.net(c, 1)};
    done.channels.push_back(std::move(channel));
  }
  return done;
}

// The GPU that a file's number means; -1: none.
std::int32_t numbered(const NodeTopology& node, std::int32_t number, bool is_rank) {
  if (is_rank) return node.system().gpu_of_rank(number);
  for (std::int32_t g = 0; g < node.gpus(); ++g)
    if (node.gpu(g).dev == number) return g;
  return -1;
}

// Device numbers of a file become ranks.
sim::Result<sim::ChannelGraph> graph_of_file(const NodeTopology& node, sim::ChannelGraph graph,
                                             bool has_ranks) {
  for (sim::ChannelGraph::Channel& channel : graph.channels)
    for (std::int32_t& gpu : channel.gpus) {
      const std::int32_t found = numbered(node, gpu, has_ranks);
      if (found < 0)
        return sim::bad_input(fmt::format("graph file: {} has {} {}, which is not in the node",
                                          sim::to_text(graph.kind), has_ranks ? "rank" : "GPU",
                                          gpu));
      gpu = node.gpu(found).rank;
    }
  return graph;
}

sim::Result<sim::ChannelGraph> find_graph(const NodeTopology& node, const GraphOptions& options,
                                          SearchGraph wanted) {
  if (options.file != nullptr)
    for (const sim::ChannelGraph& graph : *options.file) {
      if (graph.kind != wanted.kind || graph.channels.empty()) continue;
      if (node.settings().cross_nic == 0 && graph.cross_nic == 1) continue;
      return graph_of_file(node, graph, options.file_has_ranks);
    }
  return finished_graph(node, GraphFinder(node, std::move(wanted)).run());
}

}  // namespace

sim::Result<std::vector<sim::ChannelGraph>> find_graphs(const NodeTopology& node,
                                                        const GraphOptions& options) {
  for (std::int32_t g = 0; g < node.gpus() && node.inter(); ++g)
    if (local_net(node, g, 0) < 0)
      return sim::bad_input(
          fmt::format("GPU {} (rank {}) reaches no network device, but the "
                      "communicator has ranks in other nodes",
                      node.gpu(g).dev, node.gpu(g).rank));
  std::vector<sim::ChannelGraph> graphs;
  const auto add = [&](SearchGraph wanted) -> sim::Result<void> {
    RAILYARD_ASSIGN(sim::ChannelGraph found, find_graph(node, options, std::move(wanted)));
    graphs.push_back(std::move(found));
    return {};
  };
  RAILYARD_TRY(add(demand(GraphKind::ring, GraphPattern::ring, false, 1, kMaxChannels / 2)));
  const auto channels = static_cast<std::int32_t>(graphs.front().channels.size());
  RAILYARD_TRY(
      add(demand(GraphKind::tree, GraphPattern::balanced_tree, false, channels, channels)));
  if (options.collnet) {
    RAILYARD_TRY(
        add(demand(GraphKind::collnet_chain, GraphPattern::tree, true, channels, channels)));
    RAILYARD_TRY(add(
        demand(GraphKind::collnet_direct, GraphPattern::collnet_direct, true, 1, kMaxChannels)));
  }
  if (options.nvls)
    RAILYARD_TRY(add(demand(GraphKind::nvls, GraphPattern::nvls, false, 1, kMaxChannels)));
  return graphs;
}

bool nvls_available(const NodeTopology& node, const Environment& environment) {
  constexpr std::int64_t kAutomatic = 2;
  const std::int64_t wanted = environment.integer("NCCL_NVLS_ENABLE", kAutomatic);
  const bool able = wanted == kAutomatic ? node.capabilities().multicast : wanted != 0;
  return able && node.gpus() >= 2;
}

}  // namespace railyard::algorithms::nccl
