#include "algorithms/nccl/net_choice.h"

#include <algorithm>
#include <limits>

#include "algorithms/nccl/nets.h"

namespace railyard::algorithms::nccl {
namespace {

// Path types, and none.
constexpr std::size_t kTypes = sim::EnumTable<sim::PathType>::entries.size() + 1;

void add_new(std::vector<std::int32_t>& nets, std::int32_t net) {
  if (std::find(nets.begin(), nets.end(), net) == nets.end()) nets.push_back(net);
}

}  // namespace

NetChoice::NetChoice(const NodeTopology& node)
    : node_(node), known_(static_cast<std::size_t>(node.gpus() + 1) * kTypes) {
  for (std::int32_t g = 0; g < node.gpus(); ++g) local_.push_back(local_nets(node, g));
}

const std::vector<std::int32_t>& NetChoice::order(std::int32_t gpu, std::int32_t worst) {
  auto& known =
      known_[static_cast<std::size_t>(gpu + 1) * kTypes + static_cast<std::size_t>(worst + 1)];
  if (!known) {
    known = preferred(gpu);
    add_others(*known, gpu, worst);
  }
  return *known;
}

std::vector<std::int32_t> NetChoice::preferred(std::int32_t gpu) const {
  std::vector<std::int32_t> nets;
  const std::int32_t first = gpu == kAnyGpu ? 0 : gpu;
  const std::int32_t end = gpu == kAnyGpu ? node_.gpus() : gpu + 1;
  if (node_.system().hosts <= 1 || !node_.settings().scatter_nets) {
    for (std::int32_t g = first; g < end; ++g)
      for (const std::int32_t net : local_[static_cast<std::size_t>(g)]) add_new(nets, net);
    return nets;
  }
  // Across the hosts of an MNNVL domain: the first choice of every GPU, then the second.
  for (std::size_t channel = 0; channel < static_cast<std::size_t>(kMaxChannels); ++channel)
    for (std::int32_t g = first; g < end; ++g) {
      const std::vector<std::int32_t>& local = local_[static_cast<std::size_t>(g)];
      if (channel < local.size()) add_new(nets, local[channel]);
    }
  return nets;
}

void NetChoice::add_others(std::vector<std::int32_t>& nets, std::int32_t gpu,
                           std::int32_t worst) const {
  std::size_t limit = std::numeric_limits<std::size_t>::max();
  if (node_.settings().net_policy == NetDevicePolicy::at_most)
    limit = static_cast<std::size_t>(node_.settings().net_policy_max) *
            static_cast<std::size_t>(gpu == kAnyGpu ? node_.gpus() : 1);
  const std::int32_t first = gpu == kAnyGpu ? 0 : gpu;
  const std::int32_t end = gpu == kAnyGpu ? node_.gpus() : gpu + 1;
  for (std::int32_t type = 0; type <= worst; ++type)
    for (std::int32_t g = first; g < end; ++g)
      add_at_distance(nets, g, static_cast<sim::PathType>(type), limit);
}

void NetChoice::add_at_distance(std::vector<std::int32_t>& nets, std::int32_t gpu,
                                sim::PathType type, std::size_t limit) const {
  const std::int32_t devices = std::min(node_.nets(), kMaxChannels);
  for (std::int32_t n = 0; n < devices && nets.size() < limit; ++n)
    if (node_.net_path(gpu, n).type == type) add_new(nets, n);
}

}  // namespace railyard::algorithms::nccl
