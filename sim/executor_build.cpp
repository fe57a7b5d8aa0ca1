// Lays out the state of a run: flows, FIFO rings, lanes grouped by batch.
#include <algorithm>
#include <bit>
#include <tuple>

#include "sim/executor.h"

namespace railyard::sim {
namespace {

// Slices of the connection that carries most. Without credits a sender may run ahead by so many.
std::uint32_t longest_connection(const Schedule& schedule) {
  std::vector<std::int64_t> slices(schedule.connections.size(), 0);
  const auto count_op = [&](const Lane& lane, const Op& op) {
    const Work& work = schedule.works[lane.work];
    const std::int64_t each = std::int64_t{op.repeat} * work.slices_per_chunk * loop_count(work);
    for (std::uint32_t k = 0; k < lane.send_count; ++k)
      if (names_slot(op.send_slots, k)) slices[schedule.slots[lane.first_send + k].index()] += each;
  };
  for (const Lane& lane : schedule.lanes)
    for (const Op& op : schedule.programs[lane.program.index()])
      if (sends(op.primitive)) count_op(lane, op);
  return slices.empty() ? 0 : static_cast<std::uint32_t>(*std::ranges::max_element(slices));
}

}  // namespace

Executor::Executor(std::shared_ptr<const Schedule> schedule,
                   std::shared_ptr<const ScheduleCosts> costs, EventQueue& queue, Network& network,
                   const Options& options)
    : schedule_(std::move(schedule)),
      costs_(std::move(costs)),
      queue_(&queue),
      network_(&network),
      observer_(options.observer),
      credits_(options.credits),
      fifo_(schedule_->fifo_slices) {
  const std::size_t count = schedule_->connections.size();
  RAILYARD_CHECK(costs_->connections.size() == count, "costs of another schedule");
  RAILYARD_CHECK(costs_->lanes.size() == schedule_->lanes.size(), "costs of another schedule");
  connections_.resize(count);
  solo_.resize(count);
  std::vector<ResourceUse> uses;
  for (std::size_t c = 0; c < count; ++c) {
    const ConnectionCost& cost = costs_->connections[c];
    uses.clear();
    const Bandwidth cap = cost.staged ? cost.wire_cap : cost.cap;
    Bandwidth solo = cap;
    for (const LinkId link : cost.route) {
      uses.push_back({ResourceId(link.value()), 1});
      const Bandwidth capacity = network.capacity(uses.back().resource);
      solo = solo.raw() == 0 ? capacity : std::min(solo, capacity);
    }
    solo_[c] = solo;
    connections_[c].flow = network.add_flow(
        {.uses = uses, .cap = cap, .listener = this, .tag = static_cast<std::uint32_t>(c)});
  }
  add_lane_flows();
  add_queue_pairs();
  if (!credits_) fifo_ = std::max(fifo_, longest_connection(*schedule_));
  ring_ = std::bit_ceil(2 * fifo_);
  slices_.resize(count * ring_);
  if (!pairs_.empty()) parts_left_.resize(count * ring_);
  lanes_.resize(schedule_->lanes.size());
  group_lanes();
  ranks_left_ = 0;
  reset();
}

// The first flow of every lane that has one.
void Executor::add_lane_flows() {
  const std::size_t lanes = schedule_->lanes.size();
  std::vector<ResourceUse> uses;
  for (std::size_t l = 0; l < lanes; ++l) {
    const LaneCost& cost = costs_->lanes[l];
    const SwitchFlow* flow = cost.in_switch ? cost.in_switch.get() : cost.fetch.get();
    if (flow == nullptr) continue;
    lane_flows_.resize(lanes);
    uses.clear();
    for (const LinkUse& use : flow->uses)
      uses.push_back({ResourceId(use.link.value()), use.weight});
    lane_flows_[l] =
        network_->add_flow({.uses = uses,
                            .cap = flow->cap,
                            .listener = this,
                            .tag = static_cast<std::uint32_t>(schedule_->connections.size() + l)});
  }
}

void Executor::add_queue_pairs() {
  const std::size_t count = schedule_->connections.size();
  const std::size_t tags = count + schedule_->lanes.size();
  std::vector<ResourceUse> uses;
  for (std::size_t c = 0; c < count; ++c) {
    const ConnectionCost& cost = costs_->connections[c];
    if (cost.more_routes.empty()) continue;
    RAILYARD_CHECK(cost.staged, "only the network has queue pairs");
    first_pair_.resize(count, kNone);
    first_pair_[c] = static_cast<std::uint32_t>(pairs_.size());
    for (std::uint32_t number = 0; number < queue_pairs(cost); ++number) {
      uses.clear();
      for (const LinkId link : route_of_pair(cost, number))
        uses.push_back({ResourceId(link.value()), 1});
      const FlowId flow =
          network_->add_flow({.uses = uses,
                              .cap = cost.wire_cap,
                              .listener = this,
                              .tag = static_cast<std::uint32_t>(tags + pairs_.size())});
      pairs_.push_back({flow, static_cast<std::uint32_t>(c), number});
    }
  }
}

void Executor::group_lanes() {
  const std::vector<Lane>& lanes = schedule_->lanes;
  const auto key = [&](std::uint32_t l) {
    return std::tuple(lanes[l].rank, lanes[l].channel, lanes[l].batch);
  };
  grouped_lanes_.resize(lanes.size());
  for (std::size_t l = 0; l < lanes.size(); ++l) grouped_lanes_[l] = static_cast<std::uint32_t>(l);
  std::ranges::stable_sort(grouped_lanes_,
                           [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });

  group_of_.resize(lanes.size());
  first_group_.assign(schedule_->ranks + 1, 0);
  for (std::uint32_t i = 0; i < grouped_lanes_.size(); ++i) {
    const std::uint32_t l = grouped_lanes_[i];
    const bool same = i > 0 && key(grouped_lanes_[i - 1]) == key(l);
    if (!same) {
      const bool chained = i > 0 && lanes[grouped_lanes_[i - 1]].rank == lanes[l].rank &&
                           lanes[grouped_lanes_[i - 1]].channel == lanes[l].channel;
      if (chained) groups_.back().more = true;
      groups_.push_back({.first = i, .rank = lanes[l].rank, .head = !chained});
      ++first_group_[lanes[l].rank + 1];
    }
    ++groups_.back().count;
    group_of_[l] = static_cast<std::uint32_t>(groups_.size() - 1);
  }
  for (std::uint32_t r = 0; r < schedule_->ranks; ++r) first_group_[r + 1] += first_group_[r];
}

void Executor::reset() {
  RAILYARD_CHECK(ranks_left_ == 0, "the run is under way");
  for (ConnectionState& connection : connections_) {
    const FlowId flow = connection.flow;
    connection = ConnectionState{};
    connection.flow = flow;
  }
  for (QueuePair& pair : pairs_) {
    pair.carried = 0;
    pair.busy = false;
  }
  std::ranges::fill(lanes_, LaneState{});
  lanes_left_.assign(schedule_->ranks, 0);
  for (LaneGroup& group : groups_) {
    group.left = group.count;
    lanes_left_[group.rank] += group.count;
  }
  proxy_free_.assign(schedule_->ranks, 0);  // nothing of an earlier call is left to do
  eager_free_.assign(schedule_->ranks, 0);
  ranks_left_ = schedule_->ranks;
  origin_ = -1;
  digest_ = 0;
  messages_ = 0;
}

}  // namespace railyard::sim
