#include "algorithms/nccl/node_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "algorithms/nccl/net_selection.h"
#include "algorithms/nccl/path_rules.h"

namespace railyard::algorithms::nccl {
namespace {

using sim::PathType;

constexpr std::int32_t kAmpere = 80;

// Path types that the search may meet: worse ones are no paths.
constexpr PathType kWorstType = PathType::sys;

}  // namespace

sim::Result<NodeTopology> NodeTopology::build(const NodeRequest& request, const Environment& env,
                                              const Capabilities& capabilities) {
  RAILYARD_ASSIGN(NodeTopology node, of_all_ranks(request.inputs, env, capabilities));
  if (node.system_.gpu_of_rank(request.rank) < 0)
    return sim::bad_input(fmt::format("rank {} is not in the node", request.rank));
  node.trim(request.rank);
  PathRules(node).run();
  node.inter_ = node.gpus() != request.comm_ranks;
  node.find_bandwidths();
  return node;
}

sim::Result<NodeTopology> NodeTopology::of_all_ranks(const NodeInputs& inputs,
                                                     const Environment& env,
                                                     const Capabilities& capabilities) {
  NodeTopology node;
  NetSelection selection(env);
  RAILYARD_ASSIGN(node.system_, build_system(selection.apply(inputs)));
  node.settings_ = node_settings(env);
  node.capabilities_ = capabilities;
  PathRules(node).run();
  return node;
}

// The lowest GPU that each can reach, directly or through lower ones.
std::vector<std::int32_t> NodeTopology::domains() const {
  std::vector<std::int32_t> domain;
  for (std::int32_t g = 0; g < gpus(); ++g) {
    domain.push_back(g);
    for (std::int32_t p = 0; p < g; ++p)
      if (gpu_path(g, p).type < PathType::net)
        domain.back() = std::min(domain.back(), domain[static_cast<std::size_t>(p)]);
  }
  return domain;
}

// Devices, switches and NICs of the other parts stay, as in NCCL: they count as hardware.
void NodeTopology::trim(std::int32_t rank) {
  const std::vector<std::int32_t> domain = domains();
  const std::int32_t own = domain[static_cast<std::size_t>(system_.gpu_of_rank(rank))];
  std::vector<std::int32_t> others;
  for (std::int32_t g = 0; g < gpus(); ++g)
    if (domain[static_cast<std::size_t>(g)] != own)
      others.push_back(system_.vertex_of(VertexKind::gpu, g));
  for (const std::int32_t vertex : others) remove_vertex(system_, vertex);
}

void NodeTopology::find_bandwidths() {
  if (!inter_ && gpus() == 1) {
    max_bandwidth_ = total_bandwidth_ = kLocalBandwidth;
    return;
  }
  const VertexKind goal = inter_ ? VertexKind::net : VertexKind::device;
  for (std::int32_t d = 0; d < system_.count(VertexKind::device); ++d) {
    for (std::int32_t to = 0; to < system_.count(goal); ++to) {
      const Path& way = path({VertexKind::device, d}, {goal, to});
      if (way.hops() > 0) max_bandwidth_ = std::max(max_bandwidth_, way.bandwidth);
    }
    float nvlinks = 0;
    float pci = 0;
    for (const SystemLink& link : system_.at(VertexKind::device, d).links) {
      if (link.type == PathType::nvl) nvlinks += link.bandwidth;
      if (link.type == PathType::pix) pci = link.bandwidth;
    }
    total_bandwidth_ = std::max({total_bandwidth_, nvlinks, pci});
  }
}

NodeTopology::P2pCheck NodeTopology::check_p2p(std::int32_t from, std::int32_t to) const {
  P2pCheck check;
  const Vertex& a = gpu(from);
  const Vertex& b = gpu(to);
  if (a.host == b.host && !capabilities_.shared_memory && from != to) return check;

  const Path& way = gpu_path(from, to);
  constexpr std::int32_t kHopsThroughDevice = 4;  // GPU, device, device, device, GPU
  if (way.hops() == kHopsThroughDevice) {
    const Vertex& middle = system_.at(paths_.vertex_after(way, 1));
    for (std::int32_t g = 0; g < gpus() && middle.kind == VertexKind::device; ++g)
      if (check.via < 0 && gpu(g).host == middle.host && gpu(g).dev == middle.dev) check.via = g;
  }

  const Vertex& cpu = system_.at(VertexKind::cpu, 0);
  const bool amd_pair = cpu.arch == CpuArch::x86 && cpu.vendor == CpuVendor::amd &&
                        system_.count(VertexKind::device) <= 2;
  const PathType level = settings_.p2p_level.value_or(amd_pair ? PathType::sys : PathType::pxb);
  const bool capable = (a.pcie_p2p && b.pcie_p2p) || way.type <= PathType::nvb;
  const bool driver_refuses = a.device != b.device && a.host == b.host &&
                              !(capabilities_.p2p_status_ok && capable) &&
                              settings_.ignore_disabled_p2p != 2;
  check.allowed = way.type <= level && !driver_refuses;
  return check;
}

bool NodeTopology::net_is_better(std::int32_t from, std::int32_t to) const {
  if (!settings_.net_inside_host) return false;
  const auto near_net = [&](std::int32_t gpu) {
    float best = 0;
    for (std::int32_t n = 0; n < nets(); ++n)
      if (net_path(gpu, n).type <= PathType::pxb) best = std::max(best, net_path(gpu, n).bandwidth);
    return best;
  };
  const float between = gpu_path(from, to).bandwidth;
  return near_net(from) > between && near_net(to) > between;
}

bool NodeTopology::p2p_connects(std::int32_t from, std::int32_t to) const {
  const P2pCheck check = check_p2p(from, to);
  if (!check.allowed) return false;
  if (check.via >= 0) return !settings_.p2p_copy_engine;
  if (net_is_better(from, to)) return false;
  if (gpu(from).host != gpu(to).host) return true;
  const bool mapped =
      (gpu(from).pcie_p2p && gpu(to).pcie_p2p) || gpu_path(from, to).type <= PathType::nvb;
  return capabilities_.peer_access && mapped;
}

bool NodeTopology::shm_connects(std::int32_t from, std::int32_t to) const {
  return settings_.shared_memory && capabilities_.shared_memory && gpu(from).host == gpu(to).host &&
         !net_is_better(from, to);
}

GdrMode NodeTopology::check_gdr(std::int32_t index, std::int32_t net_index, bool read) const {
  const Vertex& device = gpu(index);
  if (!net(net_index).gdr || !device.gdr || !capabilities_.gpu_direct || sockets())
    return GdrMode::off;
  if (read && settings_.gdr_read.has_value() && !*settings_.gdr_read) return GdrMode::off;
  if (read && !settings_.gdr_read.has_value() && device.sm < kAmpere) {
    // Before Ampere reads hurt other PCI traffic: only where GPUs have NVLink for it.
    bool spare = gpus() == 1;
    for (std::int32_t g = 0; g < gpus(); ++g)
      if (g != index && gpu_path(index, g).type == PathType::nvl) spare = true;
    if (!spare) return GdrMode::off;
  }

  const PathType farthest =
      settings_.gdr_level.value_or(settings_.gdr_over_c2c ? PathType::p2c : PathType::pxb);
  std::int32_t near = index;
  PathType distance = net_path(index, net_index).type;
  if (distance == PathType::pxn) {
    near = relay_gpu(index, net_index);
    distance = net_path(near, net_index).type;
  }
  if (distance > farthest) return GdrMode::off;
  const std::int32_t cpu = local_cpu(near);
  const bool c2c =
      cpu >= 0 && path({VertexKind::gpu, near}, {VertexKind::cpu, cpu}).type == PathType::c2c;
  return c2c && distance != PathType::p2c ? GdrMode::over_pci : GdrMode::on;
}

std::int32_t NodeTopology::relay_gpu(std::int32_t index, std::int32_t net_index) const {
  const Path& way = net_path(index, net_index);
  if (way.type != PathType::pxn) return index;
  std::size_t step = 1;  // GPU, its device, then perhaps the NVSwitches
  while (step < way.links.size() &&
         system_.at(paths_.vertex_after(way, step)).kind == VertexKind::nvs)
    ++step;
  const Vertex& device = system_.at(paths_.vertex_after(way, step));
  for (std::int32_t g = 0; g < gpus(); ++g)
    if (gpu(g).host == device.host && gpu(g).dev == device.dev) return g;
  return index;
}

std::int32_t NodeTopology::local_cpu(std::int32_t index) const {
  std::int32_t nearest = -1;
  std::int32_t least = 0;
  for (std::int32_t c = 0; c < system_.count(VertexKind::cpu); ++c) {
    const std::int32_t hops = path({VertexKind::gpu, index}, {VertexKind::cpu, c}).hops();
    if (hops == 0 || (least != 0 && hops >= least)) continue;
    nearest = c;
    least = hops;
  }
  return nearest;
}

PathType NodeTopology::min_type(VertexKind kind) const {
  PathType least = kWorstType;
  for (std::int32_t g = 0; g < gpus(); ++g) {
    if (!paths_.any({VertexKind::gpu, g}, kind)) continue;
    for (std::int32_t i = 0; i < system_.count(kind); ++i)
      if (kind != VertexKind::gpu || i != g)
        least = std::min(least, path({VertexKind::gpu, g}, {kind, i}).type);
  }
  return least;
}

PathType NodeTopology::max_type(VertexKind kind) const {
  PathType most = PathType::loc;
  for (std::int32_t g = 0; g < gpus(); ++g) {
    if (!paths_.any({VertexKind::gpu, g}, kind)) continue;
    for (std::int32_t i = 0; i < system_.count(kind); ++i)
      if (kind != VertexKind::gpu || i != g)
        most = std::max(most, path({VertexKind::gpu, g}, {kind, i}).type);
  }
  return most;
}

// NCCL's count: a group is what the lowest GPU reaches by NVLink, later groups claim members back.
bool NodeTopology::split_nvlink() const {
  std::vector<std::int32_t> group;
  for (std::int32_t g = 0; g < gpus(); ++g) group.push_back(g);
  for (std::int32_t g = 0; g < gpus(); ++g)
    for (std::int32_t p = g + 1; p < gpus(); ++p)
      if (gpu_path(g, p).type == PathType::nvl)
        group[static_cast<std::size_t>(p)] = group[static_cast<std::size_t>(g)];
  std::map<std::int32_t, std::int32_t> sizes;
  for (const std::int32_t which : group) ++sizes[which];
  return std::count_if(sizes.begin(), sizes.end(),
                       [](const auto& entry) { return entry.second > 1; }) == 2;
}

sim::Result<std::vector<std::vector<std::int32_t>>> node_parts(const NodeInputs& inputs,
                                                               const Environment& env,
                                                               const Capabilities& capabilities) {
  RAILYARD_ASSIGN(const NodeTopology node, NodeTopology::of_all_ranks(inputs, env, capabilities));
  const std::vector<std::int32_t> domain = node.domains();
  std::map<std::int32_t, std::vector<std::int32_t>> parts;  // by domain
  for (std::int32_t g = 0; g < node.gpus(); ++g)
    parts[domain[static_cast<std::size_t>(g)]].push_back(node.gpu(g).rank);
  std::vector<std::vector<std::int32_t>> ranks;
  for (auto& [which, members] : parts) {
    std::sort(members.begin(), members.end());
    ranks.push_back(std::move(members));
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace railyard::algorithms::nccl
