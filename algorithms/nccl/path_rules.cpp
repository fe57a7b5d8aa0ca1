#include "algorithms/nccl/path_rules.h"

#include <algorithm>

#include "algorithms/nccl/nets.h"

namespace railyard::algorithms::nccl {
namespace {

using sim::PathType;

// PCI on one side of a CPU and C2C on the other.
PathType join(PathType a, PathType b) {
  if (std::max(a, b) == PathType::phb && std::min(a, b) == PathType::c2c) return PathType::p2c;
  return std::max(a, b);
}

PathEnd gpu_end(std::int32_t index) { return {VertexKind::gpu, index}; }
PathEnd net_end(std::int32_t index) { return {VertexKind::net, index}; }
PathEnd cpu_end(std::int32_t index) { return {VertexKind::cpu, index}; }

}  // namespace

void PathRules::run() {
  node_.paths_ = PathTable(node_.system_, node_.settings_.through_devices);
  for (std::int32_t gpu = 0; gpu < node_.gpus(); ++gpu) {
    divert_without_p2p(gpu);
    cut_unreachable(gpu);
  }
  for (std::int32_t gpu = 0; gpu < node_.gpus(); ++gpu) prefer_c2c(gpu);
  for (std::int32_t net = 0; net < node_.nets(); ++net)
    for (std::int32_t gpu = 0; gpu < node_.gpus(); ++gpu) {
      relay(gpu, net);
      divert_without_gdr(gpu, net);
    }
  node_.local_gpu_.clear();
  for (std::int32_t net = 0; net < node_.nets(); ++net)
    node_.local_gpu_.push_back(find_local_gpu(node_, net));
}

// Traffic to GPUs that cannot be reached by P2P goes through the CPU near them.
void PathRules::divert_without_p2p(std::int32_t to) {
  const std::int32_t cpu = node_.local_cpu(to);
  for (std::int32_t from = 0; from < node_.gpus(); ++from)
    if (cpu >= 0 && !node_.check_p2p(from, to).allowed)
      go_through(gpu_end(from), cpu_end(cpu), gpu_end(to));
}

// What neither P2P nor shared memory connects belongs to another node.
void PathRules::cut_unreachable(std::int32_t to) {
  for (std::int32_t from = 0; from < node_.gpus(); ++from) {
    if (from == to || node_.p2p_connects(from, to) || node_.shm_connects(from, to)) continue;
    node_.paths_.at(gpu_end(from), gpu_end(to)).type = PathType::net;
  }
}

void PathRules::prefer_c2c(std::int32_t gpu) {
  const std::int32_t cpu = node_.local_cpu(gpu);
  if (cpu < 0) return;
  const PathType to_cpu = node_.path(gpu_end(gpu), cpu_end(cpu)).type;
  for (const std::int32_t net : local_ends(node_, gpu_end(gpu), VertexKind::net).indices) {
    if (join(to_cpu, node_.path(net_end(net), cpu_end(cpu)).type) != PathType::p2c) continue;
    Path& out = node_.paths_.at(gpu_end(gpu), net_end(net));
    Path& in = node_.paths_.at(net_end(net), gpu_end(gpu));
    out.type = std::min(out.type, PathType::p2c);
    in.type = std::min(in.type, PathType::p2c);
  }
}

// PXN: only towards the network; receiving stays local.
void PathRules::relay(std::int32_t gpu, std::int32_t net) {
  if (!node_.settings_.pxn) return;
  const std::int32_t peer = find_local_gpu(node_, net);
  if (peer < 0 || peer == gpu) return;
  const Path& own = node_.net_path(gpu, net);
  const Path& peers = node_.net_path(peer, net);
  const PathType worst = node_.settings_.pxn_over_c2c ? PathType::p2c : PathType::pxb;
  const bool near = peers.type <= worst && node_.check_gdr(peer, net, true) != GdrMode::off;
  const bool joined = node_.gpu_path(peer, gpu).type <= PathType::nvl &&
                      node_.gpu(peer).host == node_.gpu(gpu).host;
  const bool better = peers.bandwidth > own.bandwidth || own.type > PathType::pxn;
  if (near && joined && better) go_through(gpu_end(gpu), gpu_end(peer), net_end(net));
}

void PathRules::divert_without_gdr(std::int32_t gpu, std::int32_t net) {
  if (node_.net_path(gpu, net).type >= PathType::phb) return;
  if (node_.check_gdr(gpu, net, false) != GdrMode::off) return;
  const std::int32_t cpu = node_.local_cpu(gpu);
  if (cpu < 0) return;
  go_through(net_end(net), cpu_end(cpu), gpu_end(gpu));
  go_through(gpu_end(gpu), cpu_end(cpu), net_end(net));
}

void PathRules::go_through(PathEnd from, PathEnd via, PathEnd to) {
  const Path& first = node_.path(from, via);
  const Path& second = node_.path(via, to);
  Path joined;
  joined.links = first.links;
  joined.links.insert(joined.links.end(), second.links.begin(), second.links.end());
  joined.type = via.kind == VertexKind::gpu ? PathType::pxn : join(first.type, second.type);
  joined.bandwidth = std::min(first.bandwidth, second.bandwidth);
  node_.paths_.at(from, to) = std::move(joined);
}

}  // namespace railyard::algorithms::nccl
