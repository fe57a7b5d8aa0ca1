#include "scenarios/gpu_path.h"

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

Result<GpuPath> gpu_path(const Bound& bound, const algorithms::Places& places, std::uint32_t from,
                         std::uint32_t to, PathKind kind) {
  return gpu_path(bound, GroupPlaces{bound.world, places}, from, to, kind);
}

Result<GpuPath> gpu_path(const Bound& bound, const GroupPlaces& of, std::uint32_t from,
                         std::uint32_t to, PathKind kind) {
  const sim::Topology& topology = bound.topology;
  const sim::Group& group = of.group;
  const algorithms::Places& places = of.places;
  const std::uint32_t from_place = places.place_of[from];
  const std::uint32_t to_place = places.place_of[to];
  GpuPath path;
  path.network = from_place != to_place && !places.nearest_rails[from].empty() &&
                 !places.nearest_rails[to].empty();
  std::vector<sim::DeviceId> way{group[from].gpu};
  const auto stop_at_host = [&](std::uint32_t rank) {
    const sim::DeviceId host = nearest_cpu(topology, group[rank].gpu);
    if (kind == PathKind::hosts && host.valid()) way.push_back(host);
  };
  if (path.network) {
    stop_at_host(from);
    way.push_back(places.places[from_place].nics[places.nearest_rails[from].front()]);
    way.push_back(places.places[to_place].nics[places.nearest_rails[to].front()]);
    stop_at_host(to);
  }
  way.push_back(group[to].gpu);
  RAILYARD_ASSIGN(const sim::Route route, topology.route(way, std::uint64_t{from} << 32 | to));
  std::map<sim::ResourceId, std::uint32_t> weights;  // a PCIe link may be passed twice
  for (const sim::LinkId link : route) {
    ++weights[sim::ResourceId(link.value())];
    const sim::Link& each = topology.links[link.index()];
    path.latency += bound.parameters.link(each.link_class).latency + each.extra_latency;
  }
  for (const auto& [resource, weight] : weights) path.uses.push_back({resource, weight});
  return path;
}

}  // namespace railyard::scenarios
