// What a node's decisions depend on besides its hardware: the NCCL_* variables read there, and what
// the real NCCL would ask the driver.
//
// Source: facts 3.4, 4.2; defaults are NCCL 2.30.7's.
#pragma once

#include <cstdint>
#include <optional>

#include "algorithms/nccl/environment.h"
#include "sim/channel_graph.h"

namespace railyard::algorithms::nccl {

// Answers of CUDA, NVML and the network plugin. The defaults are a healthy data-centre machine.
struct Capabilities {
  bool peer_access = true;    // CUDA maps another GPU's memory (cudaDeviceCanAccessPeer)
  bool p2p_status_ok = true;  // NVML reports P2P reads and writes as working
  bool shared_memory = true;  // the ranks of a host share /dev/shm
  bool same_process = false;  // the ranks of a host are one process
  bool cumem = true;          // cuMem handles instead of legacy CUDA IPC
  bool sockets = false;       // no InfiniBand verbs: sockets over the same NICs
  bool gpu_direct = true;     // false: no GPUDirect RDMA, whatever the file says
  bool multicast = false;     // NVLink multicast (NVLS)
  bool collnet = false;       // a collective network plugin (SHARP)
};

enum class NetDevicePolicy { automatic, all, at_most };

struct NodeSettings {
  bool through_devices = true;                              // NCCL_NVB_DISABLE
  std::optional<sim::PathType> p2p_level;                   // NCCL_P2P_DISABLE, NCCL_P2P_LEVEL
  std::int64_t ignore_disabled_p2p = 0;                     // NCCL_IGNORE_DISABLED_P2P
  bool p2p_copy_engine = false;                             // NCCL_P2P_USE_CUDA_MEMCPY
  bool p2p_direct = true;                                   // NCCL_P2P_DIRECT_DISABLE
  std::optional<bool> p2p_read;                             // NCCL_P2P_READ_ENABLE
  bool shared_memory = true;                                // NCCL_SHM_DISABLE
  bool net_inside_host = true;                              // NCCL_NET_DISABLE_INTRA
  std::optional<sim::PathType> gdr_level;                   // NCCL_NET_GDR_LEVEL
  std::optional<bool> gdr_read;                             // NCCL_NET_GDR_READ
  bool gdr_over_c2c = true;                                 // NCCL_NET_GDR_C2C
  bool force_flush = false;                                 // NCCL_NET_FORCE_FLUSH
  bool sockets = false;                                     // NCCL_IB_DISABLE, NCCL_NET=Socket
  bool pxn = true;                                          // NCCL_PXN_DISABLE
  bool pxn_over_c2c = true;                                 // NCCL_PXN_C2C
  std::int64_t p2p_pxn_level = 2;                           // NCCL_P2P_PXN_LEVEL
  std::int64_t cross_nic = 2;                               // NCCL_CROSS_NIC
  bool scatter_nets = true;                                 // NCCL_MNNVL_SCATTER_NETS_ENABLE
  bool rail_per_host = false;                               // NCCL_MNNVL_RAIL_PER_HOST
  NetDevicePolicy net_policy = NetDevicePolicy::automatic;  // NCCL_NETDEVS_POLICY
  std::int32_t net_policy_max = 0;
  std::int64_t socket_threads = 0;                    // NCCL_SOCKET_NTHREADS
  std::int64_t sockets_per_thread = 1;                // NCCL_NSOCKS_PERTHREAD
  std::uint8_t queue_pairs = 1;                       // NCCL_IB_QPS_PER_CONNECTION, 1..128
  bool split_on_queue_pairs = false;                  // NCCL_IB_SPLIT_DATA_ON_QPS
  std::optional<std::int64_t> channels_per_net_peer;  // NCCL_NCHANNELS_PER_NET_PEER
  std::int64_t p2p_channel_net_bandwidth = 14;        // NCCL_P2P_PER_CHANNEL_NET_BW, GB/s
};

NodeSettings node_settings(const Environment& environment);

// TCP streams that helper threads serve for a connection: threads x sockets, at most 16 threads and
// 64 streams; 0 without threads, where the proxies move the data themselves. On AWS and Google's
// clouds NCCL's own defaults are 2 x 8 and 4 x 1: name them there.
std::int64_t socket_streams(const NodeSettings& settings);

}  // namespace railyard::algorithms::nccl
