// Integer max-min by progressive filling; the definition stands in network.h.
#include <algorithm>
#include <limits>
#include <utility>

#include "sim/network.h"

namespace railyard::sim {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
// A cluster is split anew when more flows left it than are in it; the surplus keeps small ones
// quiet.
constexpr std::uint64_t kRemovedSlack = 256;

}  // namespace

std::uint64_t Network::level_of(std::uint32_t resource) const {
  const Filling& filling = filling_[resource];
  if ((filling.left >> 64) == 0) return static_cast<std::uint64_t>(filling.left) / filling.unfixed;
  const Uint128 level = filling.left / filling.unfixed;
  return (level >> 64) == 0 ? static_cast<std::uint64_t>(level) : kNone - 1;
}

// Joins the clusters of a flow's resources, the smaller into the larger.
void Network::merge_clusters(const Flow& flow) {
  if (flow.solved_uses == 0) return;
  std::uint32_t into = resources_[uses_[flow.first_use].resource].cluster;
  for (std::uint32_t u = flow.first_use + 1; u < flow.first_use + flow.solved_uses; ++u) {
    std::uint32_t from = resources_[uses_[u].resource].cluster;
    if (from == into) continue;
    if (clusters_[from].members.size() > clusters_[into].members.size()) std::swap(from, into);
    Cluster& a = clusters_[into];
    Cluster& b = clusters_[from];
    for (const std::uint32_t id : b.members) resources_[id].cluster = into;
    a.members.insert(a.members.end(), b.members.begin(), b.members.end());
    a.active += b.active;
    a.generic += b.generic;
    a.removed += b.removed;
    b = Cluster{};
    vacant_clusters_.push_back(from);
  }
  ++clusters_[into].active;
  clusters_[into].generic += flow.pair ? 0 : 1;
}

// Splits a cluster into what is still connected: singles first, then merged along the active flows.
void Network::rebuild(std::uint32_t cluster) {
  const std::vector<std::uint32_t> members = std::move(clusters_[cluster].members);
  clusters_[cluster] = Cluster{};
  vacant_clusters_.push_back(cluster);  // with it there is one vacant slot per member
  for (const std::uint32_t id : members) {
    resources_[id].cluster = vacant_clusters_.back();
    vacant_clusters_.pop_back();
    clusters_[resources_[id].cluster].members.push_back(id);
  }
  for (const std::uint32_t id : members)
    for (const ActiveUse& active : resources_[id].active)
      if (active.use == flows_[active.flow].first_use) merge_clusters(flows_[active.flow]);
}

// Fills component_ with the resources to solve together, and capped_ with the capped flows on them.
void Network::collect(std::uint32_t seed) {
  const Cluster& whole = clusters_[resources_[seed].cluster];
  if (whole.removed > whole.active + whole.members.size() + kRemovedSlack)
    rebuild(resources_[seed].cluster);
  const Cluster& cluster = clusters_[resources_[seed].cluster];
  component_.clear();
  capped_.clear();
  pairs_only_ = cluster.generic == 0;
  if (!pairs_only_) return search(seed);
  for (const std::uint32_t id : cluster.members) {
    resources_[id].stamp = stamp_;
    if (!resources_[id].active.empty()) component_.push_back(id);
  }
}

// The exact component, by breadth-first search.
void Network::search(std::uint32_t seed) {
  component_.push_back(seed);
  resources_[seed].stamp = stamp_;
  for (std::size_t i = 0; i < component_.size(); ++i) {
    for (const ActiveUse& active : resources_[component_[i]].active) {
      Flow& flow = flows_[active.flow];
      if (flow.stamp == stamp_) continue;
      flow.stamp = stamp_;
      if (flow.cap_level != kNone) capped_.push_back(active.flow);
      for (std::uint32_t u = flow.first_use; u < flow.first_use + flow.solved_uses; ++u) {
        Resource& other = resources_[uses_[u].resource];
        if (other.stamp == stamp_ || !other.tight) continue;
        other.stamp = stamp_;
        component_.push_back(uses_[u].resource);
      }
    }
  }
  // Equal caps, as channels of one protocol have them, need no order among themselves.
  const auto by_cap = [this](std::uint32_t flow) { return flows_[flow].cap_level; };
  if (!std::ranges::is_sorted(capped_, {}, by_cap)) std::ranges::sort(capped_, {}, by_cap);
}

// When flows have only ended, levels below that of the slowest of them stay as they are: filling
// gets so far without meeting any of their resources. Takes the resources that settled there out of
// component_, with what their flows use elsewhere.
void Network::keep_lower_levels() {
  if (!pairs_only_ || lowest_change_ == 0) return;
  const auto is_kept = [this](std::uint32_t id) {
    return resources_[id].level != 0 && resources_[id].level < lowest_change_ &&
           resources_[id].held > 0;
  };
  for (const std::uint32_t id : component_) {
    if (!is_kept(id)) continue;
    const Resource& resource = resources_[id];
    for (std::uint32_t i = 0; i < resource.held; ++i) {
      Filling& other = filling_[resource.active[i].other];
      other.left -= resource.level;
      other.unfixed -= 1;
    }
    filling_[id].done = stamp_;
  }
  std::erase_if(component_, is_kept);
}

void Network::solve_component(std::uint32_t seed) {
  ++solves_;
  collect(seed);
  next_capped_ = 0;
  candidates_.clear();
  for (const std::uint32_t id : component_) {
    Resource& resource = resources_[id];
    advance(resource);
    filling_[id].left = resource.capacity;
    filling_[id].unfixed = resource.load;
  }
  keep_lower_levels();
  for (const std::uint32_t id : component_) add_candidate(id);
  std::ranges::make_heap(candidates_,
                         [](const Candidate& a, const Candidate& b) { return a.level > b.level; });
  fill_levels();
  touched_groups_.insert(touched_groups_.end(), component_.begin(), component_.end());
}

void Network::add_candidate(std::uint32_t resource) {
  if (filling_[resource].unfixed == 0) return;
  candidates_.push_back({level_of(resource), filling_[resource].unfixed, resource});
}

// Restores the heap after its first entry was made larger.
void Network::sift_candidate() {
  const Candidate moved = candidates_.front();
  const std::size_t count = candidates_.size();
  std::size_t hole = 0;
  for (std::size_t child = 1; child < count; child = 2 * hole + 1) {
    if (child + 1 < count && candidates_[child + 1].level < candidates_[child].level) ++child;
    if (candidates_[child].level >= moved.level) break;
    candidates_[hole] = candidates_[child];
    hole = child;
  }
  candidates_[hole] = moved;
}

// Levels only grow while flows are fixed, so a stored level is a lower bound: look, and put back.
bool Network::next_level(std::uint64_t& level) {
  bottlenecks_.clear();
  level = kNone;
  while (!candidates_.empty() && candidates_.front().level <= level) {
    Candidate& first = candidates_.front();
    const Filling& filling = filling_[first.resource];
    if (filling.unfixed != 0 && filling.unfixed != first.unfixed) {
      first.unfixed = filling.unfixed;
      const std::uint64_t stored = std::exchange(first.level, level_of(first.resource));
      if (first.level != stored) {
        sift_candidate();
        continue;
      }
    }
    if (filling.unfixed != 0) {
      level = first.level;
      bottlenecks_.push_back(first.resource);
    }
    first = candidates_.back();
    candidates_.pop_back();
    if (!candidates_.empty()) sift_candidate();
  }
  return !bottlenecks_.empty();
}

void Network::take(const Flow& flow, std::uint64_t level) {
  for (std::uint32_t u = flow.first_use; u < flow.first_use + flow.solved_uses; ++u) {
    Filling& filling = filling_[uses_[u].resource];
    filling.left -= Uint128(uses_[u].load) * level;
    filling.unfixed -= uses_[u].load;
  }
}

void Network::fix(std::uint32_t id, std::uint64_t level, std::uint32_t resource) {
  Flow& flow = flows_[id];
  flow.fixed_stamp = stamp_;
  take(flow, level);
  if (resource == kPrivate) return set_private(id, level);
  // A flow that two resources hold back at this level stays with the one it had.
  const bool stays =
      flow.bottleneck != kPrivate && filling_[flow.bottleneck].level_stamp == level_stamp_;
  attach(id, stays ? flow.bottleneck : resource);
}

// The resource holds back the pair flow at `position` from now on; it joins the held part there.
void Network::hold_pair(std::uint32_t id, std::uint32_t position) {
  Resource& resource = resources_[id];
  const ActiveUse active = resource.active[position];
  const Flow& flow = flows_[active.flow];
  if (flow.bottleneck == active.other)
    release_pair(flow.first_use + flow.first_use + 1 - active.use);
  swap_active(resource, position, resource.held++);
  attach(active.flow, id);
}

void Network::fix_all_on(std::uint32_t id, std::uint64_t level) {
  Resource& resource = resources_[id];
  resource.level = level;
  resource.limiting = true;
  // What it held before it still holds, or the other resource would have claimed it by now.
  for (std::uint32_t i = 0; i < resource.held; ++i) {
    Filling& other = filling_[resource.active[i].other];
    other.left -= level;
    other.unfixed -= 1;
  }
  for (auto i = resource.held; i < resource.active.size(); ++i) {
    const ActiveUse active = resource.active[i];
    if (active.other == kGeneric) {
      if (flows_[active.flow].fixed_stamp != stamp_) fix(active.flow, level, id);
      continue;
    }
    Filling& other = filling_[active.other];
    // Fixed by the other resource; or held by it at this very level: it stays there.
    if (other.done == stamp_) continue;
    if (other.level_stamp == level_stamp_ && flows_[active.flow].bottleneck == active.other)
      continue;
    other.left -= level;
    other.unfixed -= 1;
    hold_pair(id, i);
  }
  filling_[id].done = stamp_;
  filling_[id].unfixed = 0;
}

void Network::fill_levels() {
  std::uint64_t level = 0;
  bool more = next_level(level);
  while (more) {
    const auto cap_below = [&] {
      while (next_capped_ < capped_.size() && flows_[capped_[next_capped_]].fixed_stamp == stamp_)
        ++next_capped_;
      return next_capped_ < capped_.size() && flows_[capped_[next_capped_]].cap_level < level;
    };
    if (cap_below()) {
      // Caps below the level of every resource: those resources are looked at again afterwards.
      while (cap_below()) {
        const std::uint32_t flow = capped_[next_capped_++];
        fix(flow, flows_[flow].cap_level, kPrivate);
      }
      for (const std::uint32_t id : bottlenecks_) add_candidate(id);
      std::ranges::make_heap(
          candidates_, [](const Candidate& a, const Candidate& b) { return a.level > b.level; });
    } else {
      ++level_stamp_;
      for (const std::uint32_t id : bottlenecks_) filling_[id].level_stamp = level_stamp_;
      for (const std::uint32_t id : bottlenecks_) fix_all_on(id, level);
    }
    more = next_level(level);
  }
}

}  // namespace railyard::sim
