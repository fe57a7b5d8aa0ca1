#include "algorithms/nccl/channel_counts.h"

#include <algorithm>

#include "algorithms/nccl/comm.h"
#include "algorithms/nccl/constants.h"
#include "algorithms/nccl/nets.h"
#include "algorithms/shape.h"

namespace railyard::algorithms::nccl {
namespace {

constexpr std::int64_t kUnset = -2;  // NCCL's "not given" for these variables
constexpr std::int32_t kEnoughChannels = 16;
constexpr std::int64_t kKi = 1024;

std::int32_t clamp_to_int(std::int64_t value) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, INT32_MIN, INT32_MAX));
}

std::int64_t newer_of(const Environment& env, std::string_view name, std::string_view old_name) {
  return env.integer(name, env.integer(old_name, kUnset));
}

std::int32_t fewest_channels(const Environment& env) {
  const std::int64_t asked = newer_of(env, "NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS");
  return clamp_to_int(std::clamp<std::int64_t>(asked, 0, kMaxChannels));
}

std::int32_t most_channels(const Environment& env) {
  const std::int64_t asked = newer_of(env, "NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS");
  if (asked == kUnset) return kMaxChannels;
  return clamp_to_int(std::clamp<std::int64_t>(asked, 1, kMaxChannels));
}

// Grows to `count` channels by repeating the present ones from the first; never shrinks.
void repeat_channels(std::int32_t count, std::vector<std::int32_t>& source) {
  const std::size_t present = source.size();
  for (std::size_t c = present; c < static_cast<std::size_t>(std::max(count, 0)); ++c)
    source.push_back(source[c - present]);
}

void count_collective(const CommInfo& info, const Environment& env,
                      std::vector<std::int32_t>& source) {
  const std::int32_t doubled = std::min(kMaxChannels, 2 * info.search_channels);
  for (std::int32_t c = 0; c < doubled; ++c) source.push_back(c);
  const auto count = [&] { return static_cast<std::int32_t>(source.size()); };
  if (info.collnet && info.collnet_chain.bw_intra > info.collnet_chain.bw_inter &&
      info.ranks > info.nodes)
    repeat_channels(std::min(kMaxChannels, count() + count() / 2), source);
  const bool between_nodes = info.nodes > 1;
  if (info.min_capability >= 90 && between_nodes && info.ring.bw_intra > 45.0F &&
      count() < kEnoughChannels)
    repeat_channels(2 * count(), source);
  if (!info.host_network && between_nodes && count() < kEnoughChannels &&
      env.integer("NCCL_UNPACK_DOUBLE_NCHANNELS", 1) != 0)
    repeat_channels(2 * count(), source);
  const CtaLimits ctas = cta_limits(env);
  const std::int32_t most = std::min({most_channels(env), count(), ctas.max});
  source.resize(static_cast<std::size_t>(most));
  repeat_channels(std::max(fewest_channels(env), ctas.min), source);
}

struct NvlsTuning {
  std::int32_t channels = 16;
  std::int64_t chunk = 0;  // 0 = not decided
  std::int64_t tree_max_chunk = 0;
};

// Blackwell between nodes, by NIC speed and ranks per node.
void tune_nvls_blackwell(const CommInfo& info, NvlsTuning& tuning) {
  const std::int32_t per_node = info.min_local_ranks;
  const float nic = info.min_net_bandwidth;
  const bool near_nic = info.nvls.type_inter <= sim::PathType::pxb;
  tuning.chunk = 128 * kKi;
  if (info.nodes == 2 && nic >= 48.0F) {
    tuning.channels = 32;
    tuning.tree_max_chunk = 128 * kKi;
    if (per_node <= 4)
      tuning.chunk = tuning.tree_max_chunk = 256 * kKi;
    else if (per_node >= 16 || (per_node <= 8 && near_nic && nic < 96.0F))
      tuning.tree_max_chunk = 64 * kKi;
  } else if (nic >= 96.0F && per_node <= 8) {
    tuning.channels = 24;
    tuning.chunk = tuning.tree_max_chunk = 256 * kKi;
  } else if (nic >= 96.0F) {
    tuning.channels = 32;
    tuning.tree_max_chunk = (per_node < 32 ? 128 : 64) * kKi;
  } else if (nic >= 48.0F) {
    tuning.channels = 24;
    tuning.tree_max_chunk = (near_nic ? 64 : 128) * kKi;
  }
}

void count_nvls(const CommInputs& inputs, const Environment& env, CommInfo& info) {
  if (!info.nvls_support) return;
  NvlsTuning tuning;
  const NodeKind& first = inputs.kinds[inputs.nodes.front().kind];
  if (first.compute_capabilities.front() >= 100) tuning.channels = info.nodes > 1 ? 32 : 24;
  if (info.min_capability >= 100 && info.nodes > 1) tune_nvls_blackwell(info, tuning);
  const std::int64_t asked = env.integer("NCCL_NVLS_NCHANNELS", 0);
  if (asked > 0) tuning.channels = clamp_to_int(asked);
  if (env.has("NCCL_NVLS_CHUNKSIZE") || tuning.chunk == 0)
    tuning.chunk = env.integer("NCCL_NVLS_CHUNKSIZE", 128 * kKi);
  const std::int64_t tree_chunk = env.integer("NCCL_NVLSTREE_MAX_CHUNKSIZE", kUnset);
  if (tree_chunk != kUnset)
    tuning.tree_max_chunk = tree_chunk;
  else if (tuning.tree_max_chunk == 0)
    tuning.tree_max_chunk = info.nodes >= 4 ? 64 * kKi : tuning.chunk;
  const CtaLimits ctas = cta_limits(env);
  info.nvls_channels = std::max(ctas.min, std::min(ctas.max, tuning.channels));
  info.nvls_chunk = clamp_to_int(tuning.chunk);
  info.nvls_tree_max_chunk = clamp_to_int(tuning.tree_max_chunk);
}

void size_buffers(const Environment& env, CommInfo& info) {
  constexpr std::array<std::string_view, kProtocols> kNames{"NCCL_LL_BUFFSIZE",
                                                            "NCCL_LL128_BUFFSIZE", "NCCL_BUFFSIZE"};
  constexpr FifoBytes kFifos;
  constexpr std::array<std::int64_t, kProtocols> kDefaults{kFifos.ll, kFifos.ll128, kFifos.simple};
  for (std::size_t p = 0; p < kProtocols; ++p) {
    const std::int64_t asked = env.integer(kNames[p], kUnset);
    info.buffers[p] = asked == kUnset ? kDefaults[p] : clamp_to_int(asked);
  }
  const bool grace = info.cpu_arch == CpuArch::arm && info.min_capability >= 100;
  std::int64_t chunk = env.integer("NCCL_P2P_PCI_CHUNKSIZE", 128 * kKi);
  if (info.nodes > 1)
    chunk = (grace ? 2 : 1) * env.integer("NCCL_P2P_NET_CHUNKSIZE", 128 * kKi);
  else if (info.all_nvlink)
    chunk = env.integer("NCCL_P2P_NVL_CHUNKSIZE", 512 * kKi);
  const std::int64_t step = info.buffers[index_of(Protocol::simple)] / kSteps;
  info.p2p_chunk =
      clamp_to_int(chunk * kSteps > info.buffers[index_of(Protocol::simple)] ? step : chunk);
}

bool net_peer_channels_given(const Environment& env) {
  return env.integer("NCCL_NCHANNELS_PER_NET_PEER", 0) > 0;
}

std::int32_t fewest_peer_channels(const CommInputs& inputs) {
  std::int32_t fewest = kMaxChannels;
  for (const CommNode& node : inputs.nodes)
    fewest = std::min(fewest, inputs.kinds[node.kind].p2p_channels_per_peer);
  return fewest;
}

std::int32_t to_power_of_two(std::int32_t n) {
  return static_cast<std::int32_t>(power_of_two_up(static_cast<std::uint32_t>(std::max(n, 1))));
}

// Before 2.29: the least over peers, with `channels` of sends and receives in all.
std::int32_t older_peer_channels(const CommInputs& inputs, const Environment& env,
                                 const CommInfo& info, std::int32_t channels) {
  std::int32_t inside = kMaxChannels;
  std::int32_t nets = kMaxChannels;
  for (const CommNode& node : inputs.nodes) {
    const NodeKind& kind = inputs.kinds[node.kind];
    const std::int32_t told = kind.older_channels_inside;
    inside = std::min(inside, told > 0 ? told : kind.p2p_channels_per_peer);
    nets = std::min(nets, kind.older_net_count);
  }
  const std::int32_t local = std::min(inside, channels);
  if (info.nodes == 1) return local;
  if (net_peer_channels_given(env))
    return std::min(local, clamp_to_int(env.integer("NCCL_NCHANNELS_PER_NET_PEER", 0)));
  std::int64_t network = 2;
  if (launch_rules(inputs.version).peer_channels == PeerChannels::by_ranks) {
    while (network > 1 && network * info.ranks > std::int64_t{4} * channels) network /= 2;
    network = std::max<std::int64_t>(network, nets);
  }
  return std::min(local, clamp_to_int(network));
}

void count_p2p(const CommInputs& inputs, const Environment& env, CommInfo& info) {
  const auto most = env.integer("NCCL_MAX_P2P_NCHANNELS", kMaxChannels);
  const auto least = env.integer("NCCL_MIN_P2P_NCHANNELS", 1);
  const std::int64_t asked = std::max(std::min<std::int64_t>(info.channels, most), least);
  info.p2p_channels =
      std::min(kMaxChannels, to_power_of_two(clamp_to_int(std::min<std::int64_t>(asked, 1 << 20))));
  if (launch_rules(inputs.version).peer_channels != PeerChannels::by_bandwidth) {
    const auto channels = static_cast<std::int32_t>(std::min<std::int64_t>(asked, kMaxChannels));
    info.p2p_channels_per_peer = std::min(
        to_power_of_two(older_peer_channels(inputs, env, info, channels)), info.p2p_channels);
    return;
  }
  std::int32_t per_peer = to_power_of_two(fewest_peer_channels(inputs));
  if (info.nodes > 1 && !net_peer_channels_given(env)) {
    const auto batches = static_cast<std::int32_t>(div_up(
        std::min<std::int64_t>(
            info.ranks, std::max<std::int64_t>(1, env.integer("NCCL_MAX_P2P_PEERS", info.ranks))),
        kP2pWorksPerBatch));
    while (per_peer * batches > info.p2p_channels && per_peer > 1) per_peer /= 2;
  } else {
    per_peer = std::min(per_peer, info.p2p_channels);
  }
  info.p2p_channels_per_peer = per_peer;
}

}  // namespace

CtaLimits cta_limits(const Environment& env) {
  CtaLimits limits;
  const std::int64_t least = env.integer("NCCL_MIN_CTAS", 0);
  const std::int64_t most = env.integer("NCCL_MAX_CTAS", 0);
  if (least > 0) limits.min = clamp_to_int(std::min<std::int64_t>(least, kMaxChannels));
  if (most > 0) limits.max = clamp_to_int(std::min<std::int64_t>(most, kMaxChannels));
  limits.min = std::min(limits.min, limits.max);
  return limits;
}

void count_channels(const CommInputs& inputs, const Environment& env, CommInfo& info) {
  count_collective(info, env, info.source);
  info.channels = static_cast<std::int32_t>(info.source.size());
  count_nvls(inputs, env, info);
  if (info.nvls_heads == 0) info.nvls_channels = 0;
  size_buffers(env, info);
  count_p2p(inputs, env, info);
}

}  // namespace railyard::algorithms::nccl
