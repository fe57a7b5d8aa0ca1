// Completions of flows that a resource holds back: a heap of marks per resource, and one indexed
// heap over all such resources so that a single event is pending for all of them.
#include <algorithm>

#include "sim/network.h"

namespace railyard::sim {
namespace {

constexpr std::uint32_t kGroupEnd = 1;
constexpr std::uint32_t kNotInHeap = 0xffffffff;

}  // namespace

void Network::advance(Resource& resource) const {
  const std::int64_t elapsed = now() - resource.since;
  if (elapsed == 0) return;
  resource.service += Uint128(resource.level) * static_cast<std::uint64_t>(elapsed);
  resource.since = now();
}

bool Network::is_current(const Mark& mark, std::uint32_t resource) const {
  const Flow& flow = flows_[mark.flow];
  return flow.state == State::active && flow.bottleneck == resource && flow.mark == mark.at;
}

static bool later(const auto& a, const auto& b) {
  return a.at != b.at ? a.at > b.at : a.flow > b.flow;
}

void Network::push_mark(std::uint32_t resource, std::uint32_t flow) {
  std::vector<Mark>& marks = resources_[resource].marks;
  marks.push_back({flows_[flow].mark, flow});
  std::ranges::push_heap(marks, [](const Mark& a, const Mark& b) { return later(a, b); });
}

void Network::attach(std::uint32_t id, std::uint32_t resource) {
  Flow& flow = flows_[id];
  if (flow.bottleneck == resource) return;
  const Uint128 left = work_left(flow);
  if (flow.bottleneck != kPrivate) touched_groups_.push_back(flow.bottleneck);
  flow.bottleneck = resource;
  flow.mark = resources_[resource].service + left;
  push_mark(resource, id);
}

// Finds the next completion of a group and its place in the heap of groups.
void Network::update_group(std::uint32_t id) {
  Resource& resource = resources_[id];
  std::vector<Mark>& marks = resource.marks;
  while (!marks.empty() && !is_current(marks.front(), id)) {
    std::ranges::pop_heap(marks, [](const Mark& a, const Mark& b) { return later(a, b); });
    marks.pop_back();
  }
  if (marks.empty()) {
    resource.level = 0;
    place_group(id, -1);
    return;
  }
  advance(resource);
  const Uint128 left =
      marks.front().at > resource.service ? marks.front().at - resource.service : Uint128(0);
  place_group(id, end_of(left, resource.level));
}

bool Network::group_before(std::uint32_t a, std::uint32_t b) const {
  const Resource& x = resources_[a];
  const Resource& y = resources_[b];
  return x.end_time != y.end_time ? x.end_time < y.end_time : a < b;
}

// end_time < 0 takes the group out of the heap.
void Network::place_group(std::uint32_t id, std::int64_t end_time) {
  Resource& resource = resources_[id];
  if (end_time >= 0) {
    if (resource.heap_position != kNotInHeap && resource.end_time == end_time) return;
    resource.end_time = end_time;
    if (resource.heap_position == kNotInHeap) {
      resource.heap_position = static_cast<std::uint32_t>(groups_.size());
      groups_.push_back(id);
    }
    return sift_group(resource.heap_position);
  }
  if (resource.heap_position == kNotInHeap) return;
  const std::size_t hole = resource.heap_position;
  resource.heap_position = kNotInHeap;
  const std::uint32_t last = groups_.back();
  groups_.pop_back();
  if (last == id) return;
  groups_[hole] = last;
  resources_[last].heap_position = static_cast<std::uint32_t>(hole);
  sift_group(hole);
}

void Network::sift_group(std::size_t position) {
  const auto put = [this](std::size_t at, std::uint32_t id) {
    groups_[at] = id;
    resources_[id].heap_position = static_cast<std::uint32_t>(at);
  };
  const std::uint32_t id = groups_[position];
  while (position > 0 && group_before(id, groups_[(position - 1) / 2])) {
    put(position, groups_[(position - 1) / 2]);
    position = (position - 1) / 2;
  }
  for (;;) {
    std::size_t child = 2 * position + 1;
    if (child >= groups_.size()) break;
    if (child + 1 < groups_.size() && group_before(groups_[child + 1], groups_[child])) ++child;
    if (!group_before(groups_[child], id)) break;
    put(position, groups_[child]);
    position = child;
  }
  put(position, id);
}

void Network::schedule_groups() {
  for (std::size_t i = 0; i < touched_groups_.size(); ++i) update_group(touched_groups_[i]);
  touched_groups_.clear();
  if (groups_.empty()) return;
  const std::int64_t first = resources_[groups_.front()].end_time;
  if (group_event_ == first && first > now()) return;
  group_event_ = first;
  queue_->schedule(Time(Duration(first)), *this, kGroupEnd, 0);
}

void Network::finish_groups() {
  while (!groups_.empty() && resources_[groups_.front()].end_time == now()) {
    const std::uint32_t id = groups_.front();
    advance(resources_[id]);
    place_group(id, -1);
    touched_groups_.push_back(id);
    // finish() may start the flow again, with a later mark, and may add to `marks`.
    for (std::vector<Mark>& marks = resources_[id].marks;
         !marks.empty() && marks.front().at <= resources_[id].service;) {
      const Mark mark = marks.front();
      std::ranges::pop_heap(marks, [](const Mark& a, const Mark& b) { return later(a, b); });
      marks.pop_back();
      if (is_current(mark, id)) finish(mark.flow);
    }
  }
}

}  // namespace railyard::sim
