#include "sim/network.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace railyard::sim {
namespace {

constexpr std::uint32_t kFlowEnd = 0;   // argument: flow
constexpr std::uint32_t kGroupEnd = 1;  // some flow held back by a resource ends now
constexpr std::uint32_t kInstant = 2;   // argument: flow without work
constexpr std::uint64_t kNoCap = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kWorkPerByte = 1'000'000'000'000ULL * kBandwidthScale;  // level units x ps

}  // namespace

Network::Network(EventQueue& queue) : queue_(&queue) {}

ResourceId Network::add_resource(Bandwidth capacity, std::uint32_t multiplicity) {
  RAILYARD_CHECK(capacity.raw() > 0 && multiplicity > 0, "a resource has a positive capacity");
  Resource resource;
  resource.unit_capacity = static_cast<std::uint64_t>(capacity.raw());
  resource.capacity = Uint128(resource.unit_capacity) * multiplicity;
  resource.cluster = static_cast<std::uint32_t>(clusters_.size());
  clusters_.push_back({.members = {static_cast<std::uint32_t>(resources_.size())}});
  filling_.emplace_back();
  resources_.push_back(std::move(resource));
  return ResourceId(resources_.size() - 1);
}

FlowId Network::add_flow(const FlowSpec& spec) {
  RAILYARD_CHECK(spec.share > 0 && spec.multiplicity > 0, "shares and multiplicities are positive");
  Flow flow;
  flow.first_use = static_cast<std::uint32_t>(uses_.size());
  flow.use_count = static_cast<std::uint16_t>(spec.uses.size());
  flow.solved_uses = flow.use_count;
  flow.share = spec.share;
  flow.multiplicity = spec.multiplicity;
  flow.listener = spec.listener;
  flow.tag = spec.tag;
  flow.cap_level =
      spec.cap.raw() == 0 ? kNoCap : static_cast<std::uint64_t>(spec.cap.raw()) / spec.share;
  flow.pair = spec.uses.size() == 2 && spec.cap.raw() == 0;
  for (const ResourceUse& use : spec.uses) {
    const std::uint64_t carried = std::uint64_t{use.weight} * spec.multiplicity;
    RAILYARD_CHECK(carried > 0, "weights are positive");
    flow.pair = flow.pair && carried * spec.share == 1;
    uses_.push_back({use.resource.value(), 0, carried * spec.share, carried});
  }
  flow.solo_level = solo_level(flow);
  RAILYARD_CHECK(flow.solo_level > 0, "a flow's rate may not round to zero");
  flows_.push_back(flow);
  return FlowId(flows_.size() - 1);
}

// Level of a flow that shares nothing.
std::uint64_t Network::solo_level(const Flow& flow) const {
  std::uint64_t least = flow.cap_level;
  for (std::uint32_t u = flow.first_use; u < flow.first_use + flow.use_count; ++u) {
    const Uint128 level = resources_[uses_[u].resource].capacity / uses_[u].load;
    least = std::min(least, static_cast<std::uint64_t>(level));
  }
  return least;
}

void Network::set_capacity(ResourceId id, Bandwidth capacity) {
  RAILYARD_CHECK(capacity.raw() > 0, "a resource has a positive capacity");
  Resource& resource = resources_[id.index()];
  const Uint128 multiplicity = resource.capacity / resource.unit_capacity;
  resource.unit_capacity = static_cast<std::uint64_t>(capacity.raw());
  resource.capacity = multiplicity * resource.unit_capacity;
  for (Flow& flow : flows_) {
    const auto begin = uses_.begin() + flow.first_use;
    const bool uses_it = std::any_of(begin, begin + flow.use_count,
                                     [&](const Use& use) { return use.resource == id.value(); });
    if (uses_it) flow.solo_level = solo_level(flow);
    RAILYARD_CHECK(flow.solo_level > 0, "a flow's rate may not round to zero");
  }
  if (!resource.active.empty()) dirty_.push_back(id.value());
  update_tightness(id.value());
  capacities_changed_ = true;
}

void Network::start(FlowId id, Bytes size) {
  Flow& flow = flows_[id.index()];
  RAILYARD_CHECK(flow.state == State::idle || flow.state == State::ended, "the flow is under way");
  RAILYARD_CHECK(size.raw() >= 0, "a size is never negative");
  flow.size = size.raw();
  if (size.raw() == 0 || flow.solo_level == kNoCap) {
    queue_->schedule(queue_->now(), *this, kInstant, id.value());
    return;
  }
  const bool was_active = flow.state == State::ended;  // ended in this very instant
  flow.state = was_active ? State::active : State::starting;
  if (was_active) begin_work(id.value());
  if (!was_active && !flow.listed) {
    flow.listed = true;
    changed_.push_back(id.value());
  }
}

// The flow keeps its rate and bottleneck; only the amount of work is new.
void Network::begin_work(std::uint32_t id) {
  Flow& flow = flows_[id];
  const Uint128 work =
      (Uint128(static_cast<std::uint64_t>(flow.size)) * kWorkPerByte + flow.share - 1) / flow.share;
  if (flow.bottleneck == kPrivate) {
    flow.mark = work;
    flow.since = now();
    flow.end_time = end_of(work, flow.level);
    queue_->schedule(Time(Duration(flow.end_time)), *this, kFlowEnd, id);
    return;
  }
  Resource& resource = resources_[flow.bottleneck];
  advance(resource);
  flow.mark = resource.service + work;
  push_mark(flow.bottleneck, id);
  touched_groups_.push_back(flow.bottleneck);
}

std::int64_t Network::end_of(Uint128 work, std::uint64_t level) const {
  constexpr std::int64_t kClockEnd = std::numeric_limits<std::int64_t>::max();
  const Uint128 wait = (work + level - 1) / level;
  return wait > static_cast<std::uint64_t>(kClockEnd - now())
             ? kClockEnd
             : now() + static_cast<std::int64_t>(wait);
}

Bandwidth Network::rate(FlowId id) const {
  const Flow& flow = flows_[id.index()];
  if (flow.state != State::active) return {};
  return Bandwidth::from_raw(static_cast<std::int64_t>(level_of_flow(flow) * flow.share));
}

void Network::on_event(std::uint32_t code, std::uint32_t argument) {
  if (code == kGroupEnd) return finish_groups();
  if (code == kFlowEnd) return finish_private(argument);
  const Flow& flow = flows_[argument];
  for (std::uint32_t u = flow.first_use; u < flow.first_use + flow.use_count; ++u)
    resources_[uses_[u].resource].carried +=
        flow.size * static_cast<std::int64_t>(uses_[u].carried);
  if (flow.listener != nullptr) flow.listener->on_flow_done(flow.tag);
}

// Events of a rate that has changed since are stale: they do not fall on the flow's end time, or
// (when they do) they end it rightly.
void Network::finish_private(std::uint32_t id) {
  const Flow& flow = flows_[id];
  if (flow.state == State::active && flow.bottleneck == kPrivate && flow.end_time == now())
    finish(id);
}

void Network::finish(std::uint32_t id) {
  Flow& flow = flows_[id];
  flow.state = State::ended;
  for (std::uint32_t u = flow.first_use; u < flow.first_use + flow.use_count; ++u)
    resources_[uses_[u].resource].carried +=
        flow.size * static_cast<std::int64_t>(uses_[u].carried);
  if (!flow.listed) {
    flow.listed = true;
    changed_.push_back(id);
  }
  if (flow.listener != nullptr) flow.listener->on_flow_done(flow.tag);
}

void Network::activate(std::uint32_t id) {
  Flow& flow = flows_[id];
  flow.state = State::active;
  ++active_count_;
  for (std::uint32_t u = flow.first_use; u < flow.first_use + flow.solved_uses; ++u) {
    Resource& resource = resources_[uses_[u].resource];
    uses_[u].position = static_cast<std::uint32_t>(resource.active.size());
    const std::uint32_t other = flow.first_use + flow.first_use + 1 - u;
    resource.active.push_back({id, u, flow.pair ? uses_[other].resource : kGeneric});
    resource.load += uses_[u].load;
    if (flow.cap_level == kNoCap)
      ++resource.uncapped;
    else
      resource.demand += Uint128(uses_[u].load) * (flow.cap_level + 1);
    update_tightness(uses_[u].resource);
  }
  merge_clusters(flow);
  // Until a solve finds otherwise the flow stands alone, with all its work left.
  flow.bottleneck = kPrivate;
  flow.level = 0;
  flow.since = now();
  flow.end_time = -1;
  flow.mark =
      (Uint128(static_cast<std::uint64_t>(flow.size)) * kWorkPerByte + flow.share - 1) / flow.share;
}

void Network::swap_active(Resource& resource, std::uint32_t a, std::uint32_t b) {
  std::swap(resource.active[a], resource.active[b]);
  uses_[resource.active[a].use].position = a;
  uses_[resource.active[b].use].position = b;
}

// Takes a use out of the held part of its resource's list, if it is there.
void Network::release_pair(std::uint32_t use) {
  Resource& resource = resources_[uses_[use].resource];
  if (uses_[use].position >= resource.held) return;
  swap_active(resource, uses_[use].position, --resource.held);
}

void Network::deactivate(std::uint32_t id) {
  Flow& flow = flows_[id];
  flow.state = State::idle;
  --active_count_;
  if (flow.solved_uses > 0) {
    Cluster& cluster = clusters_[resources_[uses_[flow.first_use].resource].cluster];
    --cluster.active;
    cluster.generic -= flow.pair ? 0 : 1;
    ++cluster.removed;
  }
  for (std::uint32_t u = flow.first_use; u < flow.first_use + flow.solved_uses; ++u) {
    Resource& resource = resources_[uses_[u].resource];
    release_pair(u);
    swap_active(resource, uses_[u].position,
                static_cast<std::uint32_t>(resource.active.size() - 1));
    resource.active.pop_back();
    resource.load -= uses_[u].load;
    if (!resource.active.empty() && resource.tight)
      dirty_.push_back(uses_[u].resource);
    else if (resource.active.empty() && resource.level != 0)
      touched_groups_.push_back(uses_[u].resource);
    if (flow.cap_level == kNoCap)
      --resource.uncapped;
    else
      resource.demand -= Uint128(uses_[u].load) * (flow.cap_level + 1);
    update_tightness(uses_[u].resource);
  }
}

// A resource that has become tight may hold back the flows that it had before; one that is tight no
// more lets all of them go.
void Network::update_tightness(std::uint32_t id) {
  Resource& resource = resources_[id];
  const bool tight = resource.uncapped > 0 || resource.demand > resource.capacity;
  if (tight == resource.tight) return;
  resource.tight = tight;
  if (tight) {
    if (resource.active.size() > 1) dirty_.push_back(id);
    return;
  }
  advance(resource);
  for (const ActiveUse& active : resource.active) released_.push_back(active.flow);
}

Uint128 Network::work_left(const Flow& flow) const {
  Uint128 done = 0;
  Uint128 mark = flow.mark;
  if (flow.bottleneck == kPrivate)
    done = Uint128(flow.level) * static_cast<std::uint64_t>(now() - flow.since);
  else
    done = resources_[flow.bottleneck].service;  // advanced to now by the solve
  return mark > done ? mark - done : Uint128(0);
}

void Network::set_private(std::uint32_t id, std::uint64_t level) {
  Flow& flow = flows_[id];
  if (flow.bottleneck == kPrivate && flow.level == level) return;
  flow.mark = work_left(flow);
  if (flow.bottleneck != kPrivate) {
    touched_groups_.push_back(flow.bottleneck);
    for (std::uint32_t u = flow.first_use; flow.pair && u < flow.first_use + 2; ++u)
      release_pair(u);
  }
  flow.bottleneck = kPrivate;
  flow.level = level;
  flow.since = now();
  flow.end_time = end_of(flow.mark, level);
  new_private_.push_back(id);
}

std::uint64_t Network::level_of_flow(const Flow& flow) const {
  return flow.bottleneck == kPrivate ? flow.level : resources_[flow.bottleneck].level;
}

// Stamps tell this solve from all earlier ones; when they run out they start afresh.
void Network::next_stamp() {
  if (++stamp_ != 0 && level_stamp_ < std::numeric_limits<std::uint32_t>::max() / 2) return;
  for (Flow& flow : flows_) flow.stamp = flow.fixed_stamp = 0;
  for (Resource& resource : resources_) resource.stamp = 0;
  for (Filling& filling : filling_) filling.done = filling.level_stamp = 0;
  stamp_ = 1;
  level_stamp_ = 0;
}

// The component of a flow's tight resources, unless it is solved already; without any the flow goes
// at its cap.
void Network::solve_flow(std::uint32_t id) {
  const Flow& flow = flows_[id];
  for (std::uint32_t u = flow.first_use; u < flow.first_use + flow.solved_uses; ++u) {
    const Resource& resource = resources_[uses_[u].resource];
    if (!resource.tight) continue;
    if (resource.stamp != stamp_) solve_component(uses_[u].resource);
    return;
  }
  set_private(id, flow.cap_level);
}

void Network::settle() {
  if (changed_.empty() && touched_groups_.empty() && !capacities_changed_) return;
  lowest_change_ = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint32_t id : changed_) {
    flows_[id].listed = false;
    if (flows_[id].state != State::ended) continue;
    lowest_change_ = std::min(lowest_change_, level_of_flow(flows_[id]));
    deactivate(id);
  }
  for (const std::uint32_t id : changed_) {
    if (flows_[id].state != State::starting) continue;
    activate(id);
    lowest_change_ = 0;  // a new flow may lower any level
  }
  if (std::exchange(capacities_changed_, false)) lowest_change_ = 0;
  next_stamp();
  for (const std::uint32_t id : changed_) {
    Flow& flow = flows_[id];
    // Level 0 marks a flow that just joined; one that ended and was started again changed nothing.
    if (flow.state != State::active || flow.bottleneck != kPrivate || flow.level != 0) continue;
    bool alone = true;
    for (std::uint32_t u = flow.first_use; u < flow.first_use + flow.solved_uses; ++u)
      alone = alone && resources_[uses_[u].resource].active.size() == 1;
    if (alone && !flow.alone_noted) note_alone(flow);
    if (alone)
      set_private(id, flow.solo_level);
    else
      solve_flow(id);
  }
  for (const std::uint32_t id : released_)
    if (flows_[id].state == State::active) solve_flow(id);
  for (const std::uint32_t id : dirty_) {
    const Resource& resource = resources_[id];
    if (resource.tight && resource.stamp != stamp_ && !resource.active.empty()) solve_component(id);
  }
  changed_.clear();
  released_.clear();
  dirty_.clear();

  // In the order of flow numbers, so that equal end times do not depend on the solver's history.
  std::ranges::sort(new_private_);
  for (const std::uint32_t id : new_private_)
    queue_->schedule(Time(Duration(flows_[id].end_time)), *this, kFlowEnd, id);
  new_private_.clear();
  schedule_groups();
}

}  // namespace railyard::sim
