// ChannelSearch: in which order GPUs are tried, and what a channel takes from the links.
#include <algorithm>

#include "algorithms/nccl/channel_search.h"

namespace railyard::algorithms::nccl {

using sim::GraphPattern;
using sim::PathType;

namespace {

// NCCL compares whole numbers, 16 bits of which are plenty: GB/s and hops. More bandwidth first.
std::uint64_t descending(float value) {
  constexpr std::uint64_t kMost = 0xffff;
  const auto whole = static_cast<std::uint64_t>(static_cast<std::int64_t>(value) + 1);
  return kMost - std::min(whole, kMost);
}

bool is_tree(GraphPattern pattern) {
  return pattern == GraphPattern::balanced_tree || pattern == GraphPattern::split_tree ||
         pattern == GraphPattern::tree;
}

// Keeps sums of bandwidths free of rounding noise: three decimals, halves away from zero (exact in
// double for every bandwidth there is).
void subtract(float& left, float bandwidth) {
  const auto scaled = static_cast<double>((left - bandwidth) * 1000);
  const auto whole = static_cast<std::int64_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  left = static_cast<float>(whole) / 1000;
}

}  // namespace

// `sort_net`: 1: the channel leaves after the next GPU, which should be near the NIC it entered
// by; -1: it leaves later; 0: it has left, or never does.
void ChannelSearch::add_next_gpus(std::int32_t gpu, std::int32_t sort_net) {
  if (nvswitch_) {
    add_neighbours(gpu);
    return;
  }
  const std::int32_t net =
      sort_net != 0 ? entered_[static_cast<std::size_t>(wanted_->channels)] : -1;
  scores_.clear();
  for (std::int32_t i = 1; i < gpus_; ++i) {
    const std::int32_t g = (gpu + i) % gpus_;
    if (!is_free(gpu, g)) continue;
    const Path& path = node_.gpu_path(gpu, g);
    Score score{g, 0, 0};
    score.inside = descending(path.bandwidth) << 32 |
                   static_cast<std::uint64_t>(path.hops()) << 16 | static_cast<std::uint64_t>(i);
    if (net >= 0) {
      const Path& from_net = node_.path({VertexKind::net, net}, {VertexKind::gpu, g});
      score.net = descending(from_net.bandwidth) << 32 | descending(gpu_pci_bandwidth(g)) << 16 |
                  static_cast<std::uint64_t>(from_net.hops());
    }
    scores_.push_back(score);
  }
  std::sort(scores_.begin(), scores_.end(), [](const Score& a, const Score& b) {
    return a.net != b.net ? a.net < b.net : a.inside < b.inside;
  });
  const bool alike = std::all_of(scores_.begin(), scores_.end(), [&](const Score& score) {
    return score.inside >> 16 == scores_.front().inside >> 16;
  });
  if (sort_net == -1 && alike) std::reverse(scores_.begin(), scores_.end());
  for (const Score& score : scores_) candidates_.push_back(score.gpu);
}

bool ChannelSearch::is_free(std::int32_t from, std::int32_t gpu) const {
  const std::uint64_t channel = std::uint64_t{1} << wanted_->channels;
  return node_.gpu_path(from, gpu).hops() > 0 &&
         (used_[static_cast<std::size_t>(gpu)] & channel) == 0;
}

// NVSwitches like few peers: only the GPUs next in index order are tried, rings backwards first.
void ChannelSearch::add_neighbours(std::int32_t gpu) {
  const std::int32_t before = (gpu - 1 + gpus_) % gpus_;
  const std::int32_t after = (gpu + 1) % gpus_;
  const auto add = [&](std::int32_t g) {
    if (is_free(gpu, g)) candidates_.push_back(g);
  };
  const GraphPattern pattern = wanted_->pattern;
  const bool ring = pattern == GraphPattern::ring;
  const bool two_exits =
      pattern == GraphPattern::split_tree || pattern == GraphPattern::balanced_tree;
  if (ring && before != after) add(before);
  add(after);
  if (two_exits && before != after) add(before);
}

// What other channels have taken counts.
float ChannelSearch::gpu_pci_bandwidth(std::int32_t gpu) const {
  const auto [there, back] = pci_links_[static_cast<std::size_t>(gpu)];
  if (there < 0 || back < 0) return -1;
  return std::min(left_[static_cast<std::size_t>(there)], left_[static_cast<std::size_t>(back)]);
}

bool ChannelSearch::reserve(PathEnd from, PathEnd to, float times) {
  const auto inside = [](VertexKind kind) {
    return kind == VertexKind::gpu || kind == VertexKind::nvs;
  };
  const bool intra = inside(from.kind) && inside(to.kind);
  const PathType worst = intra ? wanted_->intra_type : wanted_->inter_type;
  const float bandwidth = (intra ? wanted_->intra_bandwidth : wanted_->inter_bandwidth) * times;
  const Path& path = node_.path(from, to);
  if (path.type >= PathType::dis) return false;
  if (times == 1 && path.type > worst) return false;
  // Trees carry traffic both ways.
  if (times == 1 && is_tree(wanted_->pattern) && node_.path(to, from).type > worst) return false;

  const std::size_t steps = take(path, from.kind, path.links.size(), bandwidth);
  if (steps < path.links.size()) {
    take(path, from.kind, steps, -bandwidth);
    return false;
  }
  wanted_->hops = static_cast<std::int32_t>(static_cast<float>(wanted_->hops) +
                                            times * static_cast<float>(path.hops()));
  return true;
}

// Takes bandwidth from link after link and returns how many had enough.
std::size_t ChannelSearch::take(const Path& path, VertexKind start, std::size_t steps,
                                float bandwidth) {
  // Intel's host bridge splits what GPUs send each other: a fifth more PCI traffic.
  const float pci = crosses_intel_bridge(path, start) ? bandwidth * 6 / 5 : bandwidth;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::int32_t number = path.links[step];
    const PathTable::Link& link = node_.paths().link_of(number);
    float& left = left_[static_cast<std::size_t>(number)];
    const float forward = link.type == PathType::pix ? pci : bandwidth;
    std::int32_t reverse = reverse_[static_cast<std::size_t>(number)];
    float backward = 0;
    if (reverse >= 0) {
      if (node_.system().at(link.to).kind == VertexKind::cpu)
        backward = forward;
      else if (start != VertexKind::gpu)
        backward = forward / 8;
      else
        reverse = -1;
    }
    if (left < forward) return step;
    if (reverse >= 0 && left_[static_cast<std::size_t>(reverse)] < backward) return step;
    subtract(left, forward);
    if (reverse >= 0) subtract(left_[static_cast<std::size_t>(reverse)], backward);
  }
  return steps;
}

bool ChannelSearch::crosses_intel_bridge(const Path& path, VertexKind start) const {
  if (path.type != PathType::phb || start != VertexKind::gpu) return false;
  for (const std::int32_t number : path.links) {
    const Vertex& vertex = node_.system().at(node_.paths().link_of(number).to);
    if (vertex.kind == VertexKind::cpu && vertex.arch == CpuArch::x86 &&
        vertex.vendor == CpuVendor::intel)
      return true;
  }
  return false;
}

// Ports of one ASIC share what it has.
void ChannelSearch::change_net(std::int32_t net, std::int32_t bandwidth) {
  for (const std::int32_t n : sharing_[static_cast<std::size_t>(net)])
    net_left_[static_cast<std::size_t>(n)] += static_cast<float>(bandwidth);
}

}  // namespace railyard::algorithms::nccl
