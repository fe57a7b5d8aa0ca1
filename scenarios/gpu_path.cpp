#include "scenarios/gpu_path.h"

#include <algorithm>
#include <map>

namespace railyard::scenarios {
sim::DeviceId nearest_cpu(const sim::Topology& topology, sim::DeviceId gpu) {
  sim::DeviceId best{};
  std::size_t hops = 0;
  for (std::size_t d = 0; d < topology.devices.size(); ++d) {
    const sim::Device& device = topology.devices[d];
    if (device.kind != sim::DeviceKind::cpu || device.node != topology.devices[gpu.index()].node)
      continue;
    const auto route = topology.route({gpu, sim::DeviceId(d)}, 0);
    if (!route.ok() || (best.valid() && route.value().size() >= hops)) continue;
    best = sim::DeviceId(d);
    hops = route.value().size();
  }
  return best;
}

namespace {

Result<GpuPath> path_along(const Bound& bound, const std::vector<sim::DeviceId>& way,
                           std::uint64_t hash) {
  GpuPath path;
  RAILYARD_ASSIGN(const sim::Route route, bound.topology.route(way, hash));
  std::map<sim::ResourceId, std::uint32_t> weights;  // a PCIe link may be passed twice
  for (const sim::LinkId link : route) {
    ++weights[sim::ResourceId(link.value())];
    const sim::Link& each = bound.topology.links[link.index()];
    path.latency += bound.parameters.link(each.link_class).latency + each.extra_latency;
  }
  for (const auto& [resource, weight] : weights) path.uses.push_back({resource, weight});
  return path;
}

sim::DeviceId nic_of(const algorithms::Places& places, std::uint32_t rank,
                     const PathChoice& choice) {
  const std::vector<sim::DeviceId>& nics = places.places[places.place_of[rank]].nics;
  const std::vector<std::uint32_t>& nearest = places.nearest_rails[rank];
  const std::size_t index = choice.stripe % nic_count(places, rank, choice.every_nic);
  return nics[choice.every_nic ? index : nearest[index]];
}

}  // namespace

std::size_t nic_count(const algorithms::Places& places, std::uint32_t rank, bool every_nic) {
  return every_nic ? places.places[places.place_of[rank]].nics.size()
                   : places.nearest_rails[rank].size();
}

Result<GpuPath> gpu_path(const Bound& bound, const algorithms::Places& places, std::uint32_t from,
                         std::uint32_t to, const PathChoice& choice) {
  return gpu_path(bound, GroupPlaces{bound.world, places}, from, to, choice);
}

Result<GpuPath> gpu_path(const Bound& bound, const GroupPlaces& of, std::uint32_t from,
                         std::uint32_t to, const PathChoice& choice) {
  const algorithms::Places& places = of.places;
  const bool apart = places.place_of[from] != places.place_of[to];
  const bool network = (apart || choice.network) && nic_count(places, from, choice.every_nic) > 0 &&
                       nic_count(places, to, choice.every_nic) > 0;
  std::vector<sim::DeviceId> way{of.group[from].gpu};
  const auto stop_at_host = [&](std::uint32_t rank) {
    if (choice.kind != PathKind::hosts) return;
    const sim::DeviceId host = nearest_cpu(bound.topology, of.group[rank].gpu);
    if (host.valid() && host != way.back()) way.push_back(host);
  };
  sim::DeviceId out{};
  sim::DeviceId in{};
  stop_at_host(from);
  if (network) {
    out = nic_of(places, from, choice);
    in = nic_of(places, to, choice);
    way.push_back(out);
    way.push_back(in);
  }
  stop_at_host(to);
  way.push_back(of.group[to].gpu);
  // The hash of the first stripe is that of a plain flow.
  const std::uint64_t hash = std::uint64_t{from} << 32 ^ to ^ std::uint64_t{choice.stripe} << 56;
  RAILYARD_ASSIGN(GpuPath path, path_along(bound, way, hash));
  path.network = network;
  path.nic_out = out;
  path.nic_in = in;
  return path;
}

Result<GpuPath> host_path(const Bound& bound, std::uint32_t rank, bool to_host) {
  const sim::DeviceId gpu = bound.world[rank].gpu;
  const sim::DeviceId host = nearest_cpu(bound.topology, gpu);
  if (!host.valid())
    return sim::bad_input("the machine of rank " + std::to_string(rank) + " has no host memory");
  return path_along(bound, to_host ? std::vector{gpu, host} : std::vector{host, gpu}, 0);
}

}  // namespace railyard::scenarios
