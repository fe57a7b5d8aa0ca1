// Transports: how two ranks exchange data once the channels say that they do. Inside a node P2P if
// allowed, else shared memory, else the network; between nodes always the network, with GPUDirect
// RDMA or through host memory, from the rank's own GPU or through another one's (PXN).
//
// Collectives use the network devices of their channel graph. Send and receive choose: receiving,
// the rank's own device of that channel; sending, by default (NCCL_P2P_PXN_LEVEL=2) the device of
// the GPU with the peer's number, through that GPU, so that rails do not mix.
//
// GPUs and devices are indices of the node. Source: facts 2.9, 3.4; NCCL 2.30.7
// src/transport/{p2p,shm,net}.cc, src/graph/search.cc.
//
//   const Connection c = connection(node, 0, 1);    // dgx_h100: p2p, cumem, written
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/nccl/node_topology.h"
#include "sim/channel_graph.h"
#include "sim/enum_table.h"

namespace railyard::algorithms::nccl {

enum class TransportKind { p2p, shm, net };
// direct: same process; cumem, ipc: mapped from another; indirect: through the GPU in between.
enum class P2pKind { direct, cumem, ipc, indirect };

}  // namespace railyard::algorithms::nccl

namespace railyard::sim {
template <>
struct EnumTable<algorithms::nccl::TransportKind> {
  using T = algorithms::nccl::TransportKind;
  static constexpr std::string_view kind = "transport";
  static constexpr std::array entries{EnumEntry{T::p2p, "P2P"}, EnumEntry{T::shm, "SHM"},
                                      EnumEntry{T::net, "NET"}};
};
template <>
struct EnumTable<algorithms::nccl::P2pKind> {
  using T = algorithms::nccl::P2pKind;
  static constexpr std::string_view kind = "P2P kind";
  static constexpr std::array entries{EnumEntry{T::direct, "direct pointer"},
                                      EnumEntry{T::cumem, "CUMEM"}, EnumEntry{T::ipc, "IPC"},
                                      EnumEntry{T::indirect, "indirect"}};
};
}  // namespace railyard::sim

namespace railyard::algorithms::nccl {

// Between two GPUs of a node.
struct Connection {
  TransportKind transport = TransportKind::net;
  P2pKind p2p = P2pKind::cumem;
  bool read = false;         // P2P: the receiver fetches the data (Simple only)
  bool copy_engine = false;  // P2P: the sender's copy engine moves it
  std::int32_t via = -1;     // P2P, indirect: the GPU in between
};
Connection connection(const NodeTopology& node, std::int32_t from, std::int32_t to);

// One end of a connection to another node.
struct NetEndpoint {
  std::int32_t net = -1;    // network device; -1: there is none
  std::int32_t proxy = -1;  // GPU at whose device the data leaves; another one's: PXN
  GdrMode gdr = GdrMode::off;
  bool flush = false;  // receiving: data is made visible by an extra read
};

// Of a collective; `graph` is one of find_graphs' for this node.
NetEndpoint graph_send(const NodeTopology& node, std::int32_t gpu, const sim::ChannelGraph& graph,
                       std::int32_t channel);
NetEndpoint graph_receive(const NodeTopology& node, std::int32_t gpu,
                          const sim::ChannelGraph& graph, std::int32_t channel);
// Of send and receive; `peer_dev` is the other GPU's number on its host.
NetEndpoint p2p_send(const NodeTopology& node, std::int32_t gpu, std::int32_t peer_dev,
                     std::int32_t channel);
NetEndpoint p2p_receive(const NodeTopology& node, std::int32_t gpu, std::int32_t channel);

// Every pair of GPUs can use P2P without another GPU in between.
bool all_direct_p2p(const NodeTopology& node);
// All pairs are joined by NVLink or C2C, perhaps through a GPU.
bool all_nvlink(const NodeTopology& node);

// What the node does without, and why: a line for a person each.
std::vector<std::string> lost_transports(const NodeTopology& node);

}  // namespace railyard::algorithms::nccl
