#include "topologies/fabric_routes.h"

#include <algorithm>
#include <deque>

namespace railyard::topologies {
namespace {

constexpr std::uint64_t kNoChoice = ~std::uint64_t{0};
constexpr std::uint32_t kUnseen = 0xffffffff;

}  // namespace

struct FabricRoutes::Query {
  std::uint64_t from_leaf = 0;
  std::uint64_t to_leaf = 0;
  std::uint64_t from_block = 0;
  std::uint64_t to_block = 0;
  std::uint64_t flow_hash = 0;
  std::uint64_t destination = 0;
};

FabricRoutes::FabricRoutes(const ClusterPlan& plan, const SlotMap& links)
    : shape_(plan.fabric),
      links_(links),
      routing_(plan.routing),
      first_slot_(plan.first_cable_slot()) {
  if (!links_.empty()) build_hops();
}

void FabricRoutes::build_hops() {
  hop_offsets_.assign(shape_.switches() + 1, 0);
  const auto for_each_hop = [&](auto&& visit) {
    for_each_trunk(shape_, [&](const Trunk& trunk) {
      if (alive(slot(trunk.cable, false))) visit(trunk.a, trunk.b, slot(trunk.cable, false));
      if (alive(slot(trunk.cable, true))) visit(trunk.b, trunk.a, slot(trunk.cable, true));
    });
  };
  for_each_hop([&](std::uint64_t from, std::uint64_t, std::uint64_t) { ++hop_offsets_[from + 1]; });
  for (std::size_t i = 1; i < hop_offsets_.size(); ++i) hop_offsets_[i] += hop_offsets_[i - 1];
  hops_.resize(hop_offsets_.back());
  std::vector<std::uint32_t> next(hop_offsets_.begin(), hop_offsets_.end() - 1);
  for_each_hop([&](std::uint64_t from, std::uint64_t to, std::uint64_t at) {
    hops_[next[from]++] = {static_cast<std::uint32_t>(to), at};
  });
}

void FabricRoutes::push(std::uint64_t slot, sim::Route& out) const {
  out.push_back(links_.empty() ? sim::LinkId(static_cast<std::size_t>(slot)) : links_[slot]);
}

// The key-th of the usable choices 0 .. choices - 1, or kNoChoice.
template <typename Usable>
std::uint64_t FabricRoutes::choose(std::uint64_t choices, std::uint64_t key,
                                   Usable&& usable) const {
  if (choices == 0) return kNoChoice;
  if (links_.empty()) return key % choices;
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < choices; ++i) count += usable(i) ? 1 : 0;
  if (count == 0) return kNoChoice;
  std::uint64_t left = key % count;
  for (std::uint64_t i = 0; i < choices; ++i)
    if (usable(i) && left-- == 0) return i;
  return kNoChoice;
}

std::uint64_t FabricRoutes::key(const Query& query, std::uint64_t at_switch,
                                std::uint64_t divisor) const {
  return routing_ == FabricRouting::ecmp ? splitmix64(query.flow_hash ^ splitmix64(at_switch))
                                         : query.destination / divisor;
}

// Leaf - spine - leaf.
bool FabricRoutes::in_block(const Query& query, sim::Route& out) const {
  const auto up = [&](std::uint64_t s) {
    return slot(shape_.leaf_cable(query.from_leaf, s), false);
  };
  const auto down = [&](std::uint64_t s) {
    return slot(shape_.leaf_cable(query.to_leaf, s), true);
  };
  const std::uint64_t spine =
      choose(shape_.spines_per_block, key(query, query.from_leaf, 1),
             [&](std::uint64_t s) { return alive(up(s)) && alive(down(s)); });
  if (spine == kNoChoice) return false;
  push(up(spine), out);
  push(down(spine), out);
  return true;
}

// Leaf - spine - core of the spine's plane - spine - leaf.
bool FabricRoutes::over_cores(const Query& query, sim::Route& out) const {
  const auto leaf_up = [&](std::uint64_t s) {
    return slot(shape_.leaf_cable(query.from_leaf, s), false);
  };
  const auto leaf_down = [&](std::uint64_t s) {
    return slot(shape_.leaf_cable(query.to_leaf, s), true);
  };
  const auto core_up = [&](std::uint64_t s, std::uint64_t c) {
    return slot(shape_.core_cable(query.from_block, s, c), false);
  };
  const auto core_down = [&](std::uint64_t s, std::uint64_t c) {
    return slot(shape_.core_cable(query.to_block, s, c), true);
  };
  const auto core_usable = [&](std::uint64_t s, std::uint64_t c) {
    return alive(core_up(s, c)) && alive(core_down(s, c));
  };
  const auto spine_usable = [&](std::uint64_t s) {
    if (!alive(leaf_up(s)) || !alive(leaf_down(s))) return false;
    for (std::uint64_t c = 0; c < shape_.cores_per_spine; ++c)
      if (core_usable(s, c)) return true;
    return false;
  };
  const std::uint64_t spine =
      choose(shape_.spines_per_block, key(query, query.from_leaf, 1), spine_usable);
  if (spine == kNoChoice) return false;
  const std::uint64_t spine_switch =
      shape_.leaves + query.from_block * shape_.spines_per_block + spine;
  const std::uint64_t core =
      choose(shape_.cores_per_spine, key(query, spine_switch, shape_.spines_per_block),
             [&](std::uint64_t c) { return core_usable(spine, c); });
  if (core == kNoChoice) return false;
  push(leaf_up(spine), out);
  push(core_up(spine, core), out);
  push(core_down(spine, core), out);
  push(leaf_down(spine), out);
  return true;
}

// Leaf - spine - spine of the other group - leaf; the choice is among the global cables.
bool FabricRoutes::over_groups(const Query& query, sim::Route& out) const {
  const std::uint64_t low = std::min(query.from_block, query.to_block);
  const std::uint64_t high = std::max(query.from_block, query.to_block);
  const auto up = [&](std::uint64_t c) {
    return slot(shape_.leaf_cable(query.from_leaf,
                                  shape_.global_spine(query.from_block, query.to_block, c)),
                false);
  };
  const auto across = [&](std::uint64_t c) {
    return slot(shape_.global_cable(low, high, c), query.from_block == high);
  };
  const auto down = [&](std::uint64_t c) {
    return slot(
        shape_.leaf_cable(query.to_leaf, shape_.global_spine(query.to_block, query.from_block, c)),
        true);
  };
  const std::uint64_t cable =
      choose(shape_.global_cables, key(query, query.from_leaf, 1),
             [&](std::uint64_t c) { return alive(up(c)) && alive(across(c)) && alive(down(c)); });
  if (cable == kNoChoice) return false;
  push(up(cable), out);
  push(across(cable), out);
  push(down(cable), out);
  return true;
}

// Breadth first over the switches that are left.
bool FabricRoutes::detour(const Query& query, sim::Route& out) const {
  if (links_.empty()) return false;
  std::vector<std::uint32_t> came_by(shape_.switches(), kUnseen);  // index into hops_
  std::vector<std::uint32_t> came_from(shape_.switches(), kUnseen);
  came_from[query.from_leaf] = static_cast<std::uint32_t>(query.from_leaf);
  std::deque<std::uint32_t> queue{static_cast<std::uint32_t>(query.from_leaf)};
  while (!queue.empty() && came_from[query.to_leaf] == kUnseen) {
    const std::uint32_t at = queue.front();
    queue.pop_front();
    for (std::uint32_t i = hop_offsets_[at]; i < hop_offsets_[at + 1]; ++i) {
      if (came_from[hops_[i].to] != kUnseen) continue;
      came_from[hops_[i].to] = at;
      came_by[hops_[i].to] = i;
      queue.push_back(hops_[i].to);
    }
  }
  if (came_from[query.to_leaf] == kUnseen) return false;
  const auto start = static_cast<std::ptrdiff_t>(out.size());
  for (std::uint64_t at = query.to_leaf; at != query.from_leaf; at = came_from[at])
    push(hops_[came_by[at]].slot, out);
  std::reverse(out.begin() + start, out.end());
  return true;
}

bool FabricRoutes::append(Endpoint from, Endpoint to, std::uint64_t flow_hash,
                          sim::Route& out) const {
  if (shape_.kind == FabricKind::none) return false;
  const std::uint64_t up = slot(shape_.host_cable(from.node, from.rail), false);
  const std::uint64_t down = slot(shape_.host_cable(to.node, to.rail), true);
  if (!alive(up) || !alive(down)) return false;
  Query query;
  query.from_leaf = shape_.leaf_of(from.node, from.rail);
  query.to_leaf = shape_.leaf_of(to.node, to.rail);
  query.from_block = shape_.block_of(query.from_leaf);
  query.to_block = shape_.block_of(query.to_leaf);
  query.flow_hash = flow_hash;
  query.destination = shape_.destination_index(to.node, to.rail);
  const std::size_t before = out.size();
  push(up, out);
  bool found = query.from_leaf == query.to_leaf;
  if (!found && query.from_block == query.to_block) {
    found = in_block(query, out);
  } else if (!found) {
    found = shape_.kind == FabricKind::dragonfly_plus ? over_groups(query, out)
                                                      : over_cores(query, out);
  }
  if (!found && !detour(query, out)) {
    out.resize(before);
    return false;
  }
  push(down, out);
  return true;
}

}  // namespace railyard::topologies
