#include "algorithms/nccl/transport.h"

#include <fmt/format.h>

#include <map>

#include "algorithms/nccl/nets.h"

namespace railyard::algorithms::nccl {
namespace {

using sim::PathType;

constexpr std::int32_t kA100 = 80;
constexpr std::int32_t kHopper = 90;

// A100s fetch over NVLink what other generations are sent.
bool reads(const NodeTopology& node, std::int32_t from, std::int32_t to) {
  if (node.settings().p2p_copy_engine) return false;
  if (node.settings().p2p_read) return *node.settings().p2p_read;
  return node.gpu_path(from, to).type == PathType::nvl && node.gpu(from).sm == kA100 &&
         node.gpu(to).sm == kA100;
}

P2pKind p2p_kind(const NodeTopology& node, const Connection& connection, bool same_host) {
  if (connection.via >= 0) return P2pKind::indirect;
  if (same_host && node.capabilities().same_process && node.settings().p2p_direct &&
      !node.settings().p2p_copy_engine)
    return P2pKind::direct;
  return node.capabilities().cumem ? P2pKind::cumem : P2pKind::ipc;
}

bool on_c2c(const NodeTopology& node, std::int32_t gpu) {
  const std::int32_t cpu = node.local_cpu(gpu);
  return cpu >= 0 &&
         node.path({VertexKind::gpu, gpu}, {VertexKind::cpu, cpu}).type == PathType::c2c;
}

// Completions of a NIC may overtake its data before Hopper, and where data comes over PCI but
// completions over C2C.
bool needs_flush(const NodeTopology& node, std::int32_t gpu, std::int32_t net) {
  if (node.settings().force_flush || node.gpu(gpu).sm < kHopper) return true;
  return node.net_path(gpu, net).type <= PathType::pxb && on_c2c(node, gpu);
}

NetEndpoint sender(const NodeTopology& node, std::int32_t gpu, std::int32_t net,
                   std::int32_t proxy) {
  NetEndpoint end{net, proxy, GdrMode::off, false};
  if (net >= 0) end.gdr = node.check_gdr(gpu, net, true);
  return end;
}

NetEndpoint receiver(const NodeTopology& node, std::int32_t gpu, std::int32_t net) {
  NetEndpoint end{net, gpu, GdrMode::off, false};
  if (net < 0) return end;
  end.gdr = node.check_gdr(gpu, net, false);
  end.flush = end.gdr != GdrMode::off && needs_flush(node, gpu, net);
  return end;
}

std::int32_t graph_net(const NodeTopology& node, std::int32_t gpu, const sim::ChannelGraph& graph,
                       std::int32_t channel) {
  if (graph.channels.empty()) return -1;
  const std::int32_t rank = node.gpu(gpu).rank;
  const auto count = graph.channels.size();
  if (graph.pattern != sim::GraphPattern::nvls) {
    const auto& used = graph.channels[static_cast<std::size_t>(channel) % count];
    return node.system().net_of_id(used.nets[used.gpus.front() == rank ? 0 : 1]);
  }
  // NVLS channels go round the devices that this GPU is the head of.
  std::vector<std::int64_t> own;
  for (const auto& head : graph.channels)
    if (head.gpus.front() == rank) own.push_back(head.nets[0]);
  if (own.empty()) return -1;
  return node.system().net_of_id(own[static_cast<std::size_t>(channel) % own.size()]);
}

// The GPU of this host with a number; -1: it takes no part.
std::int32_t gpu_numbered(const NodeTopology& node, std::int32_t host, std::int32_t dev) {
  for (std::int32_t g = 0; g < node.gpus(); ++g)
    if (node.gpu(g).host == host && node.gpu(g).dev == dev) return g;
  return -1;
}

// Whether `gpu` may send through the GPU that `net` belongs to.
bool relays(const NodeTopology& node, std::int32_t gpu, std::int32_t owner, std::int32_t net) {
  const PathType worst = node.settings().pxn_over_c2c ? PathType::p2c : PathType::pxb;
  return owner >= 0 && node.gpu_path(owner, gpu).type <= PathType::nvl &&
         node.net_path(owner, net).type <= worst &&
         node.check_gdr(owner, net, false) != GdrMode::off;
}

std::string why_no_p2p(const NodeTopology& node, std::int32_t from, std::int32_t to) {
  if (node.net_is_better(from, to)) return "the network is faster than the path between them";
  if (!node.check_p2p(from, to).allowed) {
    const bool over_pcie = node.gpu_path(from, to).type > PathType::nvb;
    if (over_pcie && !(node.gpu(from).pcie_p2p && node.gpu(to).pcie_p2p))
      return "these GPUs have no P2P over PCIe";
    if (!node.capabilities().p2p_status_ok) return "the driver reports P2P as not working";
    return fmt::format("path type {} is farther than P2P goes",
                       sim::to_text(node.gpu_path(from, to).type));
  }
  return "CUDA cannot map the peer's memory";
}

void note_pairs(const NodeTopology& node, std::vector<std::string>& lost) {
  std::map<std::string, std::int32_t> reasons;
  std::int32_t pairs = 0;
  for (std::int32_t a = 0; a < node.gpus(); ++a)
    for (std::int32_t b = 0; b < node.gpus(); ++b) {
      if (a == b) continue;
      ++pairs;
      const TransportKind transport = connection(node, a, b).transport;
      if (transport == TransportKind::p2p) continue;
      ++reasons[fmt::format("use {}: {}", sim::to_text(transport), why_no_p2p(node, a, b))];
    }
  for (const auto& [reason, count] : reasons)
    lost.push_back(fmt::format("{} of {} directed GPU pairs {}", count, pairs, reason));
}

void note_gdr(const NodeTopology& node, std::vector<std::string>& lost) {
  std::map<std::string, std::int32_t> reasons;
  for (std::int32_t g = 0; g < node.gpus(); ++g) {
    const std::int32_t net = local_net(node, g, 0);
    if (net < 0 || node.check_gdr(g, net, false) != GdrMode::off) continue;
    if (node.sockets()) {
      ++reasons["sockets"];
      continue;
    }
    const bool able = node.net(net).gdr && node.gpu(g).gdr && node.capabilities().gpu_direct;
    ++reasons[able ? fmt::format("path type {} to the NIC is farther than it goes",
                                 sim::to_text(node.net_path(g, net).type))
                   : std::string("NIC or GPU does not support it")];
  }
  for (const auto& [reason, count] : reasons)
    lost.push_back(fmt::format("{} of {} GPUs receive without GPUDirect RDMA: {}", count,
                               node.gpus(), reason));
}

}  // namespace

Connection connection(const NodeTopology& node, std::int32_t from, std::int32_t to) {
  Connection made;
  if (node.p2p_connects(from, to)) {
    made.transport = TransportKind::p2p;
    made.via = node.check_p2p(from, to).via;
    made.p2p = p2p_kind(node, made, node.gpu(from).host == node.gpu(to).host);
    made.read = reads(node, from, to);
    made.copy_engine = node.settings().p2p_copy_engine;
  } else if (node.shm_connects(from, to)) {
    made.transport = TransportKind::shm;
  }
  return made;
}

NetEndpoint graph_send(const NodeTopology& node, std::int32_t gpu, const sim::ChannelGraph& graph,
                       std::int32_t channel) {
  const std::int32_t net = graph_net(node, gpu, graph, channel);
  return sender(node, gpu, net, net < 0 ? gpu : node.relay_gpu(gpu, net));
}

NetEndpoint graph_receive(const NodeTopology& node, std::int32_t gpu,
                          const sim::ChannelGraph& graph, std::int32_t channel) {
  return receiver(node, gpu, graph_net(node, gpu, graph, channel));
}

NetEndpoint p2p_send(const NodeTopology& node, std::int32_t gpu, std::int32_t peer_dev,
                     std::int32_t channel) {
  std::int32_t net = local_net(node, gpu, channel);
  std::int32_t proxy = gpu;
  const NodeSettings& settings = node.settings();
  const std::int64_t level = settings.pxn ? settings.p2p_pxn_level : 0;
  const std::int32_t twin = gpu_numbered(node, node.gpu(gpu).host, peer_dev);
  if (net < 0 || twin < 0 || (settings.cross_nic != 0 && level == 0))
    return sender(node, gpu, net, proxy);

  const std::int32_t wanted = local_net(node, twin, channel);
  if (wanted < 0) return sender(node, gpu, net, proxy);
  if (settings.cross_nic == 0) net = wanted;
  if (level == 1 && node.net_path(gpu, wanted).type <= PathType::pxn) {
    net = wanted;
    proxy = node.relay_gpu(gpu, wanted);
  }
  const std::int32_t owner = find_local_gpu(node, wanted);
  if (level == 2 && relays(node, gpu, owner, wanted)) {
    net = wanted;
    proxy = owner;
  }
  return sender(node, gpu, net, proxy);
}

NetEndpoint p2p_receive(const NodeTopology& node, std::int32_t gpu, std::int32_t channel) {
  return receiver(node, gpu, local_net(node, gpu, channel));
}

bool all_direct_p2p(const NodeTopology& node) {
  for (std::int32_t a = 0; a < node.gpus(); ++a)
    for (std::int32_t b = 0; b < node.gpus(); ++b) {
      const NodeTopology::P2pCheck check = node.check_p2p(a, b);
      if (a != b && (!check.allowed || check.via >= 0)) return false;
    }
  return true;
}

bool all_nvlink(const NodeTopology& node) { return node.max_type(VertexKind::gpu) < PathType::pix; }

std::vector<std::string> lost_transports(const NodeTopology& node) {
  std::vector<std::string> lost;
  note_pairs(node, lost);
  note_gdr(node, lost);
  const bool switches = node.system().count(VertexKind::nvs) > 0;
  if (switches && node.system().min_sm() >= kHopper && !node.capabilities().multicast)
    lost.push_back("no NVLS: the NVLinks do not multicast");
  return lost;
}

}  // namespace railyard::algorithms::nccl
