#include "topologies/imported_routes.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "topologies/imported_fabric.h"

namespace railyard::topologies {
namespace {

constexpr std::uint16_t kFar = 0xffff;
constexpr std::uint32_t kNoLeaf = 0xffffffff;

}  // namespace

ImportedRoutes::ImportedRoutes(const ClusterPlan& plan, const SlotMap& links)
    : fabric_(*plan.imported),
      links_(links),
      routing_(plan.routing),
      first_slot_(plan.first_cable_slot()) {
  if (fabric_.has_tables()) return;
  trunks_.resize(fabric_.switches.size());
  for (std::size_t c = fabric_.endpoints(); c < fabric_.cables.size(); ++c) {
    trunks_[fabric_.cables[c].a].push_back(static_cast<std::uint32_t>(c));
    trunks_[fabric_.cables[c].b].push_back(static_cast<std::uint32_t>(c));
  }
  find_distances();
  std::vector<std::uint32_t> order(fabric_.endpoints());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) {
    return fabric_.cables[x].b < fabric_.cables[y].b;
  });
  place_.resize(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) place_[order[i]] = i;
}

// Breadth first from every switch with hosts, against the direction of the links.
void ImportedRoutes::find_distances() {
  const std::size_t switches = fabric_.switches.size();
  leaf_of_.assign(switches, kNoLeaf);
  std::uint32_t leaves = 0;
  for (std::size_t e = 0; e < fabric_.endpoints(); ++e)
    if (std::uint32_t& leaf = leaf_of_[fabric_.cables[e].b]; leaf == kNoLeaf) leaf = leaves++;
  distances_.assign(leaves * switches, kFar);
  for (std::uint32_t root = 0; root < switches; ++root) {
    if (leaf_of_[root] == kNoLeaf) continue;
    std::uint16_t* distance = &distances_[leaf_of_[root] * switches];
    distance[root] = 0;
    std::deque<std::uint32_t> queue{root};
    for (; !queue.empty(); queue.pop_front()) {
      const std::uint32_t at = queue.front();
      for (const std::uint32_t cable : trunks_[at]) {
        const std::uint32_t before = fabric_.across(cable, at);
        if (distance[before] != kFar || !alive(slot_from(cable, before))) continue;
        distance[before] = static_cast<std::uint16_t>(distance[at] + 1);
        queue.push_back(before);
      }
    }
  }
}

void ImportedRoutes::push(std::uint64_t slot, sim::Route& out) const {
  out.push_back(links_.empty() ? sim::LinkId(static_cast<std::size_t>(slot)) : links_[slot]);
}

// The tables were checked: from here on no circle, and no end but the destination or silence.
bool ImportedRoutes::by_tables(std::uint32_t from, std::uint32_t to, sim::Route& out) const {
  std::uint32_t at = fabric_.cables[from].b;
  while (true) {
    const std::uint32_t cable = fabric_.next_cable(at, fabric_.lids[to]);
    if (cable == kNoCable) return false;
    if (cable < fabric_.endpoints()) return true;
    if (!alive(slot_from(cable, at))) return false;
    push(slot_from(cable, at), out);
    at = fabric_.across(cable, at);
  }
}

bool ImportedRoutes::by_distance(std::uint32_t from, std::uint32_t to, std::uint64_t flow_hash,
                                 sim::Route& out) const {
  const std::uint32_t leaf = fabric_.cables[to].b;
  const std::uint16_t* distance = &distances_[leaf_of_[leaf] * fabric_.switches.size()];
  std::uint32_t at = fabric_.cables[from].b;
  if (distance[at] == kFar) return false;
  std::uint64_t divisor = 1;
  while (at != leaf) {
    const auto nearer = [&](std::uint32_t cable) {
      return distance[fabric_.across(cable, at)] + 1 == distance[at] && alive(slot_from(cable, at));
    };
    const std::vector<std::uint32_t>& cables = trunks_[at];
    const auto choices =
        static_cast<std::uint64_t>(std::count_if(cables.begin(), cables.end(), nearer));
    const std::uint64_t key = routing_ == FabricRouting::ecmp
                                  ? splitmix64(flow_hash ^ splitmix64(at))
                                  : place_[to] / divisor;
    std::uint64_t left = key % choices;
    const auto chosen = std::find_if(cables.begin(), cables.end(), [&](std::uint32_t cable) {
      return nearer(cable) && left-- == 0;
    });
    push(slot_from(*chosen, at), out);
    at = fabric_.across(*chosen, at);
    divisor *= choices;
  }
  return true;
}

bool ImportedRoutes::append(Endpoint from, Endpoint to, std::uint64_t flow_hash,
                            sim::Route& out) const {
  const auto a = static_cast<std::uint32_t>(from.node * fabric_.rails + from.rail);
  const auto b = static_cast<std::uint32_t>(to.node * fabric_.rails + to.rail);
  if (!alive(slot(a, false)) || !alive(slot(b, true))) return false;
  const std::size_t before = out.size();
  push(slot(a, false), out);
  const bool found =
      fabric_.has_tables() ? by_tables(a, b, out) : by_distance(a, b, flow_hash, out);
  if (!found) {
    out.resize(before);
    return false;
  }
  push(slot(b, true), out);
  return true;
}

}  // namespace railyard::topologies
