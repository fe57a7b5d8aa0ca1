#include "algorithms/nccl/node_settings.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/text.h"

namespace railyard::algorithms::nccl {
namespace {

constexpr std::int64_t kMaxQueuePairs = 128;  // of a connection, NCCL_IB_MAX_QPS

// NCCL's switches: unset is automatic.
std::optional<bool> automatic(const Environment& env, std::string_view name) {
  constexpr std::int64_t kUnset = -2;
  const std::int64_t value = env.integer(name, kUnset);
  if (value < 0) return std::nullopt;
  return value != 0;
}

// AUTO, ALL or MAX:n; anything else is AUTO.
void read_policy(const Environment& env, NodeSettings& settings) {
  constexpr std::string_view kMax = "MAX:";
  const std::string text = env.text("NCCL_NETDEVS_POLICY").value_or("");
  if (sim::equal_ignoring_case(text, "ALL")) settings.net_policy = NetDevicePolicy::all;
  if (!sim::equal_ignoring_case(std::string_view(text).substr(0, kMax.size()), kMax)) return;
  const int number = std::atoi(text.c_str() + kMax.size());
  if (number <= 0) return;
  settings.net_policy = NetDevicePolicy::at_most;
  settings.net_policy_max = number;
}

}  // namespace

NodeSettings node_settings(const Environment& env) {
  NodeSettings settings;
  settings.through_devices = env.integer("NCCL_NVB_DISABLE", 0) == 0;
  settings.p2p_level = env.level("NCCL_P2P_LEVEL");
  if (env.integer("NCCL_P2P_DISABLE", 0) == 1) settings.p2p_level = sim::PathType::loc;
  settings.ignore_disabled_p2p = env.integer("NCCL_IGNORE_DISABLED_P2P", 0);
  settings.p2p_copy_engine = env.integer("NCCL_P2P_USE_CUDA_MEMCPY", 0) != 0;
  settings.p2p_direct = env.integer("NCCL_P2P_DIRECT_DISABLE", 0) == 0;
  settings.p2p_read = automatic(env, "NCCL_P2P_READ_ENABLE");
  settings.shared_memory = env.integer("NCCL_SHM_DISABLE", 0) != 1;
  settings.net_inside_host = env.integer("NCCL_NET_DISABLE_INTRA", 0) != 1;
  settings.gdr_level = env.level("NCCL_NET_GDR_LEVEL");
  settings.gdr_read = automatic(env, "NCCL_NET_GDR_READ");
  settings.gdr_over_c2c = env.integer("NCCL_NET_GDR_C2C", 1) != 0;
  settings.force_flush = env.integer("NCCL_NET_FORCE_FLUSH", 0) != 0;
  settings.sockets = env.integer("NCCL_IB_DISABLE", 0) != 0 ||
                     sim::equal_ignoring_case(env.text("NCCL_NET").value_or(""), "Socket");
  settings.socket_threads = std::max<std::int64_t>(0, env.integer("NCCL_SOCKET_NTHREADS", 0));
  settings.sockets_per_thread = std::max<std::int64_t>(0, env.integer("NCCL_NSOCKS_PERTHREAD", 1));
  settings.queue_pairs = static_cast<std::uint8_t>(
      std::clamp<std::int64_t>(env.integer("NCCL_IB_QPS_PER_CONNECTION", 1), 1, kMaxQueuePairs));
  settings.split_on_queue_pairs = env.integer("NCCL_IB_SPLIT_DATA_ON_QPS", 0) != 0;
  settings.pxn = env.integer("NCCL_PXN_DISABLE", 0) != 1;
  settings.pxn_over_c2c = env.integer("NCCL_PXN_C2C", 1) != 0;
  settings.p2p_pxn_level = env.integer("NCCL_P2P_PXN_LEVEL", 2);
  settings.cross_nic = env.integer("NCCL_CROSS_NIC", 2);
  settings.scatter_nets = env.integer("NCCL_MNNVL_SCATTER_NETS_ENABLE", 1) != 0;
  settings.rail_per_host = env.integer("NCCL_MNNVL_RAIL_PER_HOST", 0) != 0;
  read_policy(env, settings);
  if (const std::int64_t per_peer = env.integer("NCCL_NCHANNELS_PER_NET_PEER", 0); per_peer > 0)
    settings.channels_per_net_peer = per_peer;
  settings.p2p_channel_net_bandwidth =
      std::max<std::int64_t>(1, env.integer("NCCL_P2P_PER_CHANNEL_NET_BW", 14));
  return settings;
}

std::int64_t socket_streams(const NodeSettings& settings) {
  constexpr std::int64_t kMaxThreads = 16;
  constexpr std::int64_t kMaxStreams = 64;
  const std::int64_t threads = std::min(settings.socket_threads, kMaxThreads);
  if (threads == 0) return 0;
  return threads * std::min(settings.sockets_per_thread, kMaxStreams / threads);
}

}  // namespace railyard::algorithms::nccl
