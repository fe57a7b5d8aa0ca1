#include "algorithms/places.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace railyard::algorithms {
namespace {

using sim::bad_input;
using sim::DeviceId;
using sim::DeviceKind;
using sim::Group;
using sim::LinkClass;
using sim::Result;
using sim::Topology;

bool inside_host(LinkClass link_class) {
  return link_class == LinkClass::pcie || link_class == LinkClass::c2c ||
         link_class == LinkClass::smp;
}

struct NearNics {
  std::vector<DeviceId> nics;
  std::uint32_t hops = 0;  // to each of them
};

// Neighbours over links inside a host, as one array with offsets.
class HostGraph {
 public:
  explicit HostGraph(const Topology& topology) : first_(topology.devices.size() + 1, 0) {
    for (const sim::Link& link : topology.links)
      if (inside_host(link.link_class)) ++first_[link.from.index() + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    neighbours_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (const sim::Link& link : topology.links)
      if (inside_host(link.link_class)) neighbours_[next[link.from.index()]++] = link.to;
  }

  // The NICs at the smallest distance from `gpu`, which other GPUs and NICs do not relay.
  [[nodiscard]] NearNics nearest_nics(const Topology& topology, DeviceId gpu) const {
    std::vector<DeviceId> seen{gpu};
    NearNics near;
    std::size_t begin = 0;
    while (begin < seen.size() && near.nics.empty()) {
      const std::size_t end = seen.size();
      for (; begin < end; ++begin) visit(topology, seen[begin], seen, near.nics);
      ++near.hops;
    }
    return near;
  }

 private:
  void visit(const Topology& topology, DeviceId at, std::vector<DeviceId>& seen,
             std::vector<DeviceId>& nics) const {
    for (std::size_t i = first_[at.index()]; i < first_[at.index() + 1]; ++i) {
      const DeviceId to = neighbours_[i];
      if (std::find(seen.begin(), seen.end(), to) != seen.end()) continue;
      const DeviceKind kind = topology.devices[to.index()].kind;
      if (kind == DeviceKind::gpu) continue;
      if (kind == DeviceKind::nic && std::find(nics.begin(), nics.end(), to) == nics.end())
        nics.push_back(to);
      if (kind != DeviceKind::nic) seen.push_back(to);
    }
  }

  std::vector<std::size_t> first_;
  std::vector<DeviceId> neighbours_;
};

Result<void> check_members(const Topology& topology, const Group& group) {
  if (group.empty()) return bad_input("a group without ranks");
  std::vector<bool> taken(topology.devices.size(), false);
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    const DeviceId gpu = group[rank].gpu;
    if (!gpu.valid() || gpu.index() >= topology.devices.size() ||
        topology.devices[gpu.index()].kind != DeviceKind::gpu ||
        topology.devices[gpu.index()].node >= topology.nodes.size())
      return bad_input("rank " + std::to_string(rank) +
                       " of the group is on no GPU of the topology");
    if (taken[gpu.index()])
      return bad_input("two ranks of the group are on " + topology.devices[gpu.index()].name);
    taken[gpu.index()] = true;
  }
  return {};
}

// NICs of each NVLink domain, nodes in order.
std::map<std::uint32_t, std::vector<DeviceId>> nics_by_domain(const Topology& topology) {
  std::map<std::uint32_t, std::vector<DeviceId>> nics;
  for (const sim::Node& node : topology.nodes) {
    auto& list = nics[node.nvlink_domain];
    list.insert(list.end(), node.nics.begin(), node.nics.end());
  }
  return nics;
}

void group_by_domain(const Topology& topology, const Group& group, Places& result) {
  const auto nics = nics_by_domain(topology);
  std::map<std::uint32_t, std::uint32_t> place_of_domain;
  for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
    const std::uint32_t node = topology.devices[group[rank].gpu.index()].node;
    const std::uint32_t domain = topology.nodes[node].nvlink_domain;
    const auto next = static_cast<std::uint32_t>(result.places.size());
    const auto [found, is_new] = place_of_domain.emplace(domain, next);
    if (is_new) result.places.push_back({.ranks = {}, .nics = nics.at(domain), .rails = {}});
    result.places[found->second].ranks.push_back(rank);
    result.place_of.push_back(found->second);
  }
  const auto key = [&](std::uint32_t rank) {
    const sim::Device& gpu = topology.devices[group[rank].gpu.index()];
    return std::make_tuple(gpu.node, gpu.local_index, rank);
  };
  for (Place& place : result.places)
    std::sort(place.ranks.begin(), place.ranks.end(),
              [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
}

// Where no path inside the host leads to a NIC, the NIC with the GPU's own local index (modulo the
// node's NICs) stands for the nearest.
NearNics nics_of(const Topology& topology, const HostGraph& graph, DeviceId gpu) {
  NearNics near = graph.nearest_nics(topology, gpu);
  const sim::Device& device = topology.devices[gpu.index()];
  const auto& own = topology.nodes[device.node].nics;
  if (near.nics.empty() && !own.empty()) near = {{own[device.local_index % own.size()]}, 0};
  return near;
}

// Keeps of each rank's nearest rails those that no other rank of the place is nearer to.
void find_gateways(const Place& place, const std::vector<std::uint32_t>& hops, Places& result) {
  std::vector<std::uint32_t> least(place.nics.size(), ~0U);
  for (const std::uint32_t rank : place.ranks)
    for (const std::uint32_t rail : result.nearest_rails[rank])
      least[rail] = std::min(least[rail], hops[rank]);
  for (const std::uint32_t rank : place.ranks)
    for (const std::uint32_t rail : result.nearest_rails[rank])
      if (hops[rank] == least[rail]) result.gateway_rails[rank].push_back(rail);
}

void find_rails(const Topology& topology, const Group& group, Places& result) {
  const HostGraph graph(topology);
  result.nearest_rails.resize(group.size());
  result.gateway_rails.resize(group.size());
  std::vector<std::uint32_t> hops(group.size(), 0);
  for (Place& place : result.places) {
    for (const std::uint32_t rank : place.ranks) {
      auto& rails = result.nearest_rails[rank];
      const NearNics near = nics_of(topology, graph, group[rank].gpu);
      hops[rank] = near.hops;
      for (const DeviceId nic : near.nics) {
        const auto found = std::find(place.nics.begin(), place.nics.end(), nic);
        if (found == place.nics.end()) continue;
        rails.push_back(static_cast<std::uint32_t>(found - place.nics.begin()));
      }
      std::sort(rails.begin(), rails.end());
      place.rails.insert(place.rails.end(), rails.begin(), rails.end());
    }
    std::sort(place.rails.begin(), place.rails.end());
    place.rails.erase(std::unique(place.rails.begin(), place.rails.end()), place.rails.end());
    find_gateways(place, hops, result);
  }
}

// Sets of devices that NVLinks join, over the group's GPUs and NVSwitches (union-find).
class NvlinkSets {
 public:
  explicit NvlinkSets(std::size_t devices) : parent_(devices) {
    for (std::size_t i = 0; i < devices; ++i) parent_[i] = i;
  }
  void join(DeviceId a, DeviceId b) { parent_[find(a.index())] = find(b.index()); }
  [[nodiscard]] bool joined(DeviceId a, DeviceId b) { return find(a.index()) == find(b.index()); }

 private:
  std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  std::vector<std::size_t> parent_;
};

void find_link_kinds(const Topology& topology, const Group& group, Places& result) {
  std::vector<bool> member(topology.devices.size(), false);
  std::vector<bool> has_nvlink(topology.devices.size(), false);
  NvlinkSets sets(topology.devices.size());
  for (const sim::Member& one : group) member[one.gpu.index()] = true;
  for (const sim::Link& link : topology.links) {
    if (!member[link.from.index()]) continue;
    const bool to_switch = topology.devices[link.to.index()].kind == DeviceKind::nvswitch;
    result.pcie |= link.link_class == LinkClass::pcie || link.link_class == LinkClass::c2c;
    result.nvswitch |= to_switch;
    if (link.link_class != LinkClass::nvlink) continue;
    has_nvlink[link.from.index()] = true;
    if (to_switch || member[link.to.index()]) sets.join(link.from, link.to);
  }
  result.nvlink = true;
  for (const Place& place : result.places)
    for (const std::uint32_t rank : place.ranks)
      result.nvlink &= has_nvlink[group[rank].gpu.index()] &&
                       sets.joined(group[rank].gpu, group[place.ranks.front()].gpu);
}

}  // namespace

Result<Places> find_places(const Topology& topology, const Group& group) {
  RAILYARD_TRY(check_members(topology, group));
  Places result;
  group_by_domain(topology, group, result);
  find_rails(topology, group, result);
  find_link_kinds(topology, group, result);
  return result;
}

CommShape shape_of(const Places& places) {
  return {static_cast<std::uint32_t>(places.place_of.size()),
          static_cast<std::uint32_t>(places.places.size())};
}

bool is_nearest(const Places& places, std::uint32_t rank, std::uint32_t rail) {
  const auto& rails = places.nearest_rails[rank];
  return std::binary_search(rails.begin(), rails.end(), rail);
}

bool is_gateway(const Places& places, std::uint32_t rank, std::uint32_t rail) {
  const auto& rails = places.gateway_rails[rank];
  return std::binary_search(rails.begin(), rails.end(), rail);
}

}  // namespace railyard::algorithms
