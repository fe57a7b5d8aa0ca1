#include "sim/topology.h"

#include <fmt/format.h>

namespace railyard::sim {

std::size_t Topology::gpu_count() const {
  std::size_t count = 0;
  for (const Node& node : nodes) count += node.gpus.size();
  return count;
}

std::string Topology::link_name(LinkId link) const {
  const Link& l = links.at(link.index());
  return devices.at(l.from.index()).name + "->" + devices.at(l.to.index()).name;
}

Result<Route> Topology::route(const std::vector<DeviceId>& way_points,
                              std::uint64_t flow_hash) const {
  RAILYARD_CHECK(routing != nullptr, "a topology is built with its routing");
  Route route;
  for (const DeviceId point : way_points)
    RAILYARD_CHECK(point.valid() && point.index() < devices.size(), "way point of this topology");
  for (std::size_t i = 0; i + 1 < way_points.size(); ++i)
    if (!routing->append_route(way_points[i], way_points[i + 1], flow_hash, route))
      return bad_input(fmt::format("no path from {} to {}", devices[way_points[i].index()].name,
                                   devices[way_points[i + 1].index()].name));
  return route;
}

}  // namespace railyard::sim
