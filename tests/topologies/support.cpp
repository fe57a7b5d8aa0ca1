#include "tests/topologies/support.h"

#include <deque>
#include <set>

namespace railyard::topologies::test {

sim::Topology must_build(const ClusterSpec& spec) {
  auto result = build(spec);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  return std::move(result).value();
}

std::string build_error(const ClusterSpec& spec) {
  const auto result = build(spec);
  return result.ok() ? "" : result.error().text();
}

ClusterSpec cluster(const std::string& machine, std::uint32_t nodes, FabricKind kind) {
  ClusterSpec spec;
  spec.machine = machine;
  spec.nodes = nodes;
  spec.fabric.kind = kind;
  return spec;
}

sim::DeviceId device(const sim::Topology& topology, const std::string& name) {
  for (std::size_t i = 0; i < topology.devices.size(); ++i)
    if (topology.devices[i].name == name) return sim::DeviceId(i);
  FAIL("no device called " << name);
  return {};
}

sim::Route must_route(const sim::Topology& topology, const std::string& from, const std::string& to,
                      std::uint64_t hash) {
  const auto result = topology.route({device(topology, from), device(topology, to)}, hash);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  return result.value();
}

std::string route_text(const sim::Topology& topology, const sim::Route& route) {
  std::string text;
  for (const sim::LinkId link : route) text += (text.empty() ? "" : " ") + topology.link_name(link);
  return text;
}

bool is_path(const sim::Topology& topology, const sim::Route& route, sim::DeviceId from,
             sim::DeviceId to) {
  std::set<sim::DeviceId> seen{from};
  sim::DeviceId at = from;
  for (const sim::LinkId link : route) {
    if (topology.links[link.index()].from != at) return false;
    at = topology.links[link.index()].to;
    if (!seen.insert(at).second) return false;
  }
  return at == to;
}

Oracle::Oracle(const sim::Topology& topology) : topology_(topology), out_(topology.devices.size()) {
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const sim::LinkClass c = topology.links[i].link_class;
    if (c == sim::LinkClass::nic || c == sim::LinkClass::fabric)
      out_[topology.links[i].from.index()].push_back(i);
  }
}

std::vector<std::size_t> Oracle::distances(sim::DeviceId from) const {
  std::vector<std::size_t> distance(topology_.devices.size(), 0);
  std::deque<std::size_t> queue{from.index()};
  while (!queue.empty()) {
    const std::size_t at = queue.front();
    queue.pop_front();
    const bool passable = topology_.devices[at].kind == sim::DeviceKind::fabric_switch;
    if (at != from.index() && !passable) continue;
    for (const std::size_t link : out_[at]) {
      const std::size_t to = topology_.links[link].to.index();
      if (to == from.index() || distance[to] != 0) continue;
      distance[to] = distance[at] + 1;
      queue.push_back(to);
    }
  }
  return distance;
}

std::vector<sim::DeviceId> endpoints(const sim::Topology& topology) {
  std::vector<sim::DeviceId> all;
  for (const sim::Node& node : topology.nodes) {
    const auto& ports = node.nics.empty() ? node.gpus : node.nics;
    all.insert(all.end(), ports.begin(), ports.end());
  }
  return all;
}

}  // namespace railyard::topologies::test
