#include "topologies/placement.h"

#include <fmt/format.h>

namespace railyard::topologies {
namespace {

using sim::bad_input;
using sim::Group;
using sim::Result;

// The nodes to use, checked.
Result<std::vector<std::uint32_t>> select_nodes(const sim::Topology& topology,
                                                const PlacementSpec& spec) {
  std::vector<std::uint32_t> nodes = spec.nodes;
  if (nodes.empty())
    for (std::uint32_t i = 0; i < topology.nodes.size(); ++i) nodes.push_back(i);
  std::vector<bool> used(topology.nodes.size(), false);
  for (const std::uint32_t node : nodes) {
    if (node >= used.size())
      return bad_input(fmt::format("placement.nodes names node {}, but the cluster has nodes 0..{}",
                                   node, used.size() - 1));
    if (used[node]) return bad_input(fmt::format("placement.nodes names node {} twice", node));
    used[node] = true;
  }
  return nodes;
}

// The local GPU indices to use on every node, checked against the smallest selected node.
Result<std::vector<std::uint32_t>> select_gpus(const sim::Topology& topology,
                                               const PlacementSpec& spec,
                                               const std::vector<std::uint32_t>& nodes) {
  const sim::Node* smallest = &topology.nodes[nodes.front()];
  for (const std::uint32_t node : nodes)
    if (topology.nodes[node].gpus.size() < smallest->gpus.size()) smallest = &topology.nodes[node];
  const std::size_t available = smallest->gpus.size();
  if (!spec.gpus.empty() && spec.gpus_per_node != 0 && spec.gpus_per_node != spec.gpus.size())
    return bad_input(fmt::format("placement.gpus lists {} GPUs, but gpus_per_node is {}",
                                 spec.gpus.size(), spec.gpus_per_node));
  if (spec.gpus_per_node > available)
    return bad_input(fmt::format("placement.gpus_per_node is {}, but {} has {} GPUs",
                                 spec.gpus_per_node, smallest->name, available));
  std::vector<std::uint32_t> gpus = spec.gpus;
  const std::size_t count = spec.gpus_per_node != 0 ? spec.gpus_per_node : available;
  if (gpus.empty())
    for (std::uint32_t i = 0; i < count; ++i) gpus.push_back(i);
  std::vector<bool> used(available, false);
  for (const std::uint32_t gpu : gpus) {
    if (gpu >= available)
      return bad_input(fmt::format("placement.gpus names GPU {}, but {} has GPUs 0..{}", gpu,
                                   smallest->name, available - 1));
    if (used[gpu]) return bad_input(fmt::format("placement.gpus names GPU {} twice", gpu));
    used[gpu] = true;
  }
  return gpus;
}

}  // namespace

Result<Group> place_world(const sim::Topology& topology, const PlacementSpec& spec) {
  RAILYARD_ASSIGN(const std::vector<std::uint32_t> nodes, select_nodes(topology, spec));
  RAILYARD_ASSIGN(const std::vector<std::uint32_t> gpus, select_gpus(topology, spec, nodes));
  const std::size_t selected = nodes.size() * gpus.size();
  if (spec.ranks > selected)
    return bad_input(fmt::format("the world has {} ranks, but {} nodes x {} GPUs are {} GPUs",
                                 spec.ranks, nodes.size(), gpus.size(), selected));
  const std::size_t ranks = spec.ranks == 0 ? selected : spec.ranks;
  Group world;
  world.reserve(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const bool by_host = spec.order == PlacementOrder::host_major;
    const std::uint32_t node = nodes[by_host ? rank / gpus.size() : rank % nodes.size()];
    const std::uint32_t local = gpus[by_host ? rank % gpus.size() : rank / nodes.size()];
    world.push_back({sim::Rank(rank), topology.nodes[node].gpus[local], node, local});
  }
  return world;
}

Result<std::vector<Group>> sub_groups(const Group& world, const SubGroupSpec& spec) {
  const std::string name = spec.name.empty() ? "group" : fmt::format("group '{}'", spec.name);
  if (spec.size == 0) return bad_input(fmt::format("{}: size is 0", name));
  if (spec.stride == 0) return bad_input(fmt::format("{}: stride is 0", name));
  if (spec.size > world.size())
    return bad_input(
        fmt::format("{}: size {} exceeds the world's {} ranks", name, spec.size, world.size()));
  const std::uint64_t run = std::uint64_t{spec.size} * spec.stride;
  if (world.size() % run != 0)
    return bad_input(
        fmt::format("{}: the world's {} ranks do not divide by size {} x stride {} = {}", name,
                    world.size(), spec.size, spec.stride, run));
  std::vector<Group> groups;
  for (std::size_t start = 0; start < world.size(); start += run)
    for (std::size_t first = start; first < start + spec.stride; ++first) {
      Group group;
      for (std::size_t i = 0; i < spec.size; ++i) group.push_back(world[first + i * spec.stride]);
      groups.push_back(std::move(group));
    }
  return groups;
}

Result<Group> pick_ranks(const Group& world, const std::vector<std::uint32_t>& ranks) {
  if (ranks.empty()) return bad_input("a group needs at least one rank");
  Group group;
  std::vector<bool> used(world.size(), false);
  for (const std::uint32_t rank : ranks) {
    if (rank >= world.size())
      return bad_input(fmt::format("rank {} is not in the world of {} ranks", rank, world.size()));
    if (used[rank]) return bad_input(fmt::format("rank {} is named twice", rank));
    used[rank] = true;
    group.push_back(world[rank]);
  }
  return group;
}

}  // namespace railyard::topologies
