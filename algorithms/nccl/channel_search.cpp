#include "algorithms/nccl/channel_search.h"

#include <algorithm>

#include "algorithms/nccl/nets.h"

namespace railyard::algorithms::nccl {

using sim::GraphPattern;
using sim::PathType;

namespace {

constexpr std::int32_t kPciOrderBudget = 1 << 10;

PathEnd gpu_end(std::int32_t index) { return {VertexKind::gpu, index}; }
PathEnd net_end(std::int32_t index) { return {VertexKind::net, index}; }

// Patterns of which only heads are searched: which NIC feeds which GPU.
bool heads_only(GraphPattern pattern) {
  return pattern == GraphPattern::nvls || pattern == GraphPattern::collnet_direct;
}

// The PCI link of a GPU's device and the first one back.
std::pair<std::int32_t, std::int32_t> pci_links(const NodeTopology& node, std::int32_t gpu) {
  const System& system = node.system();
  const std::int32_t device = node.gpu(gpu).device;
  for (const SystemLink& up : system.at(device).links) {
    if (up.type != PathType::pix) continue;
    for (const SystemLink& down : system.at(up.to).links)
      if (down.to == device)
        return {node.paths().find_link(device, up.to, up.type),
                node.paths().find_link(up.to, device, down.type)};
  }
  return {-1, -1};
}

}  // namespace

ChannelSearch::ChannelSearch(const NodeTopology& node)
    : node_(node),
      net_choice_(node),
      gpus_(node.gpus()),
      nvswitch_(node.system().count(VertexKind::nvs) > 0),
      used_(static_cast<std::size_t>(node.gpus()), 0) {
  constexpr std::int32_t kAmpere = 80;
  for (const PathTable::Link& link : node.paths().links()) {
    left_.push_back(link.bandwidth);
    const Vertex& to = node.system().at(link.to);
    // Before Ampere a GPU answers what a NIC or CPU writes; POWER's NVLinks to CPUs are shared.
    const bool answered = to.kind == VertexKind::device && to.sm < kAmpere;
    const bool shared =
        to.kind == VertexKind::cpu && to.arch == CpuArch::power && link.type == PathType::nvl;
    reverse_.push_back(answered || shared ? node.paths().find_link(link.to, link.from, link.type)
                                          : -1);
  }
  for (std::int32_t g = 0; g < gpus_; ++g) pci_links_.push_back(pci_links(node, g));
  for (std::int32_t n = 0; n < node.nets(); ++n) {
    net_left_.push_back(node.net(n).bandwidth);
    net_gpus_.push_back(local_ends(node, net_end(n), VertexKind::gpu));
    sharing_.emplace_back();
    for (std::int32_t other = 0; other < node.nets(); ++other)
      if (node.net(other).asic == node.net(n).asic && node.net(other).port == node.net(n).port)
        sharing_.back().push_back(other);
  }
}

bool ChannelSearch::run(SearchGraph& wanted, SearchGraph& best, std::int32_t& budget) {
  wanted_ = &wanted;
  best_ = &best;
  improved_ = false;
  next_channel(budget);
  return improved_;
}

void ChannelSearch::next_channel(std::int32_t& budget) {
  Walk walk;
  const GraphPattern pattern = wanted_->pattern;
  if (node_.inter()) {
    walk.leave_at = pattern == GraphPattern::ring         ? gpus_ - 1
                    : pattern == GraphPattern::split_tree ? 1
                                                          : 0;
    start_from_nets(walk, budget);
    return;
  }
  if (pattern == GraphPattern::ring) walk.close_at = gpus_ - 1;
  start_inside(walk, budget);
}

void ChannelSearch::start_inside(const Walk& walk, std::int32_t& budget) {
  if (wanted_->pattern == GraphPattern::nvls) {
    enter({}, wanted_->channels, walk, budget);
    return;
  }
  Walk first = walk;
  const bool none_yet = wanted_->channels == 0;
  first.order = none_yet ? Order::pci : Order::replay;
  enter({}, none_yet ? 0 : replayed(-1), first, budget);
  if (wanted_->same_channels && !none_yet) return;
  for (std::int32_t g = 0; g < gpus_; ++g) enter({}, g, walk, budget);
}

void ChannelSearch::start_from_nets(const Walk& walk, std::int32_t& budget) {
  const auto bandwidth = static_cast<std::int32_t>(wanted_->inter_bandwidth);
  const bool heads = heads_only(wanted_->pattern);
  const std::vector<std::int32_t>& order =
      net_choice_.order(kAnyGpu, static_cast<std::int32_t>(wanted_->inter_type));
  const std::int32_t channel = wanted_->channels;
  const bool mirror_last =
      wanted_->pattern == GraphPattern::ring && wanted_->cross_nic == 2 && channel % 2 == 1;
  bool found = false;
  for (std::size_t i = 0; i < order.size() && !(heads && found); ++i) {
    const std::int32_t n = order[(static_cast<std::size_t>(channel) + i) % order.size()];
    const Vertex& net = node_.net(n);
    if (wanted_->collnet && !net.collnet) continue;
    if (net_left_[static_cast<std::size_t>(n)] < static_cast<float>(bandwidth)) continue;
    if (mirror_last && net.id != wanted_->net(channel - 1, 1)) continue;

    wanted_->net(channel, 0) = net.id;
    entered_[static_cast<std::size_t>(channel)] = n;
    wanted_->inter_latency = net.latency;
    change_net(n, -bandwidth);
    if (heads)
      found = start_head(n, order.size(), walk, budget) || found;
    else
      start_from_net(n, walk, budget);
    change_net(n, bandwidth);
  }
}

// One head per GPU.
bool ChannelSearch::start_head(std::int32_t net, std::size_t candidates, const Walk& walk,
                               std::int32_t& budget) {
  const std::int32_t gpu = node_.local_gpu(net);
  if (gpu < 0 || static_cast<std::size_t>(wanted_->channels) >= candidates) return false;
  for (std::int32_t c = 0; c < wanted_->channels; ++c)
    if (wanted_->gpus[static_cast<std::size_t>(c * gpus_)] == node_.gpu(gpu).rank) return false;
  enter({true, net_end(net)}, gpu, walk, budget);
  return true;
}

void ChannelSearch::start_from_net(std::int32_t net, const Walk& walk, std::int32_t& budget) {
  const Start start{true, net_end(net)};
  if (wanted_->channels > 0 && wanted_->same_channels) {
    Walk replay = walk;
    replay.order = Order::replay;
    enter(start, replayed(-1), replay, budget);
    return;
  }
  if (wanted_->channels == 0 && !nvswitch_) {
    // The order of the file first, as something to compare with, on a budget of its own.
    std::int32_t own = kPciOrderBudget;
    Walk pci = walk;
    pci.order = Order::pci;
    enter(start, 0, pci, own);
    if (own == kPerfect) budget = kPerfect;
  }
  const std::int32_t nearest = node_.local_gpu(net);
  if (nearest >= 0) enter(start, nearest, walk, budget);
  const LocalEnds& local = net_gpus_[static_cast<std::size_t>(net)];
  if (local.type == PathType::dis) return;
  for (const std::int32_t gpu : local.indices)
    if (gpu != nearest) enter(start, gpu, walk, budget);
}

void ChannelSearch::enter(const Start& start, std::int32_t gpu, const Walk& walk,
                          std::int32_t& budget) {
  const std::uint64_t channel = std::uint64_t{1} << wanted_->channels;
  if (start.from_net || walk.step > 0)
    if (!reserve(start.end, gpu_end(gpu), 1)) return;
  used_[static_cast<std::size_t>(gpu)] ^= channel;
  visit(gpu, walk, budget);
  used_[static_cast<std::size_t>(gpu)] ^= channel;
  if (start.from_net || walk.step > 0) reserve(start.end, gpu_end(gpu), -1);
}

void ChannelSearch::visit(std::int32_t gpu, const Walk& walk, std::int32_t& budget) {
  if (budget <= 0) return;
  --budget;
  if (walk.step == gpus_) {
    complete(budget);
    return;
  }
  wanted_->gpus[slot(walk.step)] = node_.gpu(gpu).rank;
  if (walk.step == walk.leave_at) {
    leave(gpu, walk, budget);
  } else if (wanted_->pattern == GraphPattern::nvls) {
    try_nvls(gpu, budget);
  } else if (wanted_->pattern == GraphPattern::collnet_direct) {
    try_collnet_direct(gpu, budget);
  } else if (walk.step < gpus_ - 1) {
    go_on(gpu, walk, budget);
  } else if (walk.step == walk.close_at) {
    close_ring(gpu, walk, budget);
  } else {
    visit(gpu, {gpus_, -1, -1, walk.order}, budget);
  }
}

void ChannelSearch::complete(std::int32_t& budget) {
  ++wanted_->channels;
  if (better()) {
    *best_ = *wanted_;
    improved_ = true;
    if (wanted_->channels == wanted_->max_channels) budget = kPerfect;
  }
  if (wanted_->channels < wanted_->max_channels) next_channel(budget);
  --wanted_->channels;
}

bool ChannelSearch::better() const {
  const SearchGraph& graph = *wanted_;
  const SearchGraph& best = *best_;
  const auto channels = static_cast<float>(graph.channels);
  const auto best_channels = static_cast<float>(best.channels);
  if (graph.channels < graph.min_channels) return false;
  if (graph.pattern == GraphPattern::nvls)
    return (graph.channels > best.channels && graph.channels <= gpus_) ||
           channels * graph.inter_bandwidth > best_channels * best.inter_bandwidth;
  const float total = channels * graph.intra_bandwidth;
  const float best_total = best_channels * best.intra_bandwidth;
  if (total != best_total) return total > best_total;
  return graph.pattern == best.pattern && graph.cross_nic == best.cross_nic &&
         graph.hops < best.hops;
}

void ChannelSearch::leave(std::int32_t gpu, const Walk& walk, std::int32_t& budget) {
  if (!node_.inter()) return;
  const std::int32_t channel = wanted_->channels;
  const std::int32_t entered = entered_[static_cast<std::size_t>(channel)];
  // A balanced tree leaves from its first two GPUs, each with half the traffic.
  const bool halves = wanted_->pattern == GraphPattern::balanced_tree;
  const float whole = wanted_->inter_bandwidth;
  Walk after = walk;
  after.leave_at = halves && walk.step == 0 ? 1 : -1;
  const std::vector<std::int32_t>& order =
      net_choice_.order(gpu, static_cast<std::int32_t>(wanted_->inter_type));
  for (const std::int32_t n : order) {
    if (!may_leave_by(n, entered, walk.step)) continue;
    if (halves) wanted_->inter_bandwidth /= 2;
    const bool fits = reserve(gpu_end(gpu), net_end(n), 1);
    wanted_->inter_bandwidth = whole;
    if (!fits) continue;
    wanted_->net(channel, 1) = node_.net(n).id;
    visit(gpu, after, budget);
    if (halves) wanted_->inter_bandwidth /= 2;
    reserve(gpu_end(gpu), net_end(n), -1);
    wanted_->inter_bandwidth = whole;
  }
}

bool ChannelSearch::may_leave_by(std::int32_t index, std::int32_t entered,
                                 std::int32_t step) const {
  const Vertex& net = node_.net(index);
  const Vertex& start = node_.net(entered);
  const GraphPattern pattern = wanted_->pattern;
  const std::int32_t channel = wanted_->channels;
  if (net.plane >= 0 && start.plane >= 0 && net.plane != start.plane) return false;
  if (pattern == GraphPattern::tree && net.id != start.id) return false;
  if (pattern == GraphPattern::ring && wanted_->cross_nic == 2) {
    if (channel % 2 == 1 && net.id != wanted_->net(channel - 1, 0)) return false;
  } else if (wanted_->cross_nic == 0) {
    if (net.rail >= 0 && start.rail >= 0) {
      if (net.rail != start.rail) return false;
    } else if (node_.settings().rail_per_host && net.host != start.host) {
      if (net.bus_id != start.bus_id || net.port != start.port) return false;
    } else if (net.asic != start.asic || net.port != start.port) {
      return false;
    }
  }
  return pattern != GraphPattern::balanced_tree || step == 0 || net.id == wanted_->net(channel, 1);
}

void ChannelSearch::go_on(std::int32_t gpu, const Walk& walk, std::int32_t& budget) {
  const std::size_t first = candidates_.size();
  if (walk.order == Order::pci) {
    candidates_.push_back(walk.step + 1);
  } else if (walk.order == Order::replay) {
    candidates_.push_back(replayed(walk.step));
  } else {
    const std::int32_t sort_net = walk.leave_at == -1 ? 0 : walk.leave_at == walk.step + 1 ? 1 : -1;
    add_next_gpus(gpu, sort_net);
  }
  Walk onwards = walk;
  ++onwards.step;
  const std::size_t end = candidates_.size();
  for (std::size_t i = first; i < end; ++i)
    enter({false, gpu_end(gpu)}, candidates_[i], onwards, budget);
  candidates_.resize(first);
}

void ChannelSearch::close_ring(std::int32_t gpu, const Walk& walk, std::int32_t& budget) {
  const std::int32_t first = node_.system().gpu_of_rank(wanted_->gpus[slot(0)]);
  if (!reserve(gpu_end(gpu), gpu_end(first), 1)) return;
  visit(first, {walk.step + 1, walk.leave_at, -1, walk.order}, budget);
  reserve(gpu_end(gpu), gpu_end(first), -1);
}

// Everyone sends to the switches and receives from them, the head twice.
void ChannelSearch::try_nvls(std::int32_t head, std::int32_t& budget) {
  const PathEnd nvs{VertexKind::nvs, 0};
  const auto share = [&](std::int32_t g) { return g == head ? 2.0F : 1.0F; };
  std::int32_t down = 0;
  while (down < gpus_ && reserve(nvs, gpu_end(down), share(down))) ++down;
  if (down == gpus_) {
    std::int32_t up = 0;
    while (up < gpus_ && reserve(gpu_end(up), nvs, share(up))) ++up;
    if (up == gpus_) visit(head, {gpus_, -1, -1, Order::free}, budget);
    while (up-- > 0) reserve(gpu_end(up), nvs, -share(up));
  }
  while (down-- > 0) reserve(nvs, gpu_end(down), -share(down));
}

// The head exchanges an equal share with every other GPU.
void ChannelSearch::try_collnet_direct(std::int32_t head, std::int32_t& budget) {
  const auto share = static_cast<float>(1.0 / static_cast<double>(gpus_ - 1));
  std::int32_t out = 0;
  while (out < gpus_ && reserve(gpu_end(head), gpu_end(out), share)) ++out;
  if (out == gpus_) {
    std::int32_t in = 0;
    while (in < gpus_ && reserve(gpu_end(in), gpu_end(head), share)) ++in;
    if (in == gpus_) visit(head, {gpus_, -1, -1, Order::free}, budget);
    while (in-- > 0) reserve(gpu_end(in), gpu_end(head), -share);
  }
  while (out-- > 0) reserve(gpu_end(head), gpu_end(out), -share);
}

// The GPU that the previous channel has after `step`.
std::int32_t ChannelSearch::replayed(std::int32_t step) const {
  const std::int32_t at = (wanted_->channels - 1) * gpus_ + step + 1;
  return node_.system().gpu_of_rank(wanted_->gpus[static_cast<std::size_t>(at)]);
}

}  // namespace railyard::algorithms::nccl
