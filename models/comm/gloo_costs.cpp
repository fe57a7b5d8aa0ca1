#include "models/comm/gloo_costs.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "sim/expand.h"

namespace railyard::models {
namespace {

using sim::Bandwidth;
using sim::ConnectionCost;
using sim::DeviceId;
using sim::Duration;
using sim::LaneRole;

constexpr Bandwidth kSlowestLink = sim::bytes_per_second(1'000);

bool inside_host(sim::LinkClass link_class) {
  return link_class == sim::LinkClass::pcie || link_class == sim::LinkClass::c2c;
}

// Breadth first from all processors at once; a device that none reaches is its own.
std::vector<DeviceId> nearest_processors(const sim::Topology& topology) {
  std::vector<std::vector<DeviceId>> neighbours(topology.devices.size());
  for (const sim::Link& link : topology.links)
    if (inside_host(link.link_class)) neighbours[link.to.index()].push_back(link.from);
  std::vector<DeviceId> nearest(topology.devices.size());
  std::deque<DeviceId> open;
  for (std::size_t d = 0; d < nearest.size(); ++d) {
    if (topology.devices[d].kind != sim::DeviceKind::cpu) continue;
    nearest[d] = DeviceId(d);
    open.push_back(nearest[d]);
  }
  for (; !open.empty(); open.pop_front())
    for (const DeviceId next : neighbours[open.front().index()]) {
      if (nearest[next.index()].valid()) continue;
      nearest[next.index()] = nearest[open.front().index()];
      open.push_back(next);
    }
  for (std::size_t d = 0; d < nearest.size(); ++d)
    if (!nearest[d].valid()) nearest[d] = DeviceId(d);
  return nearest;
}

Duration time_of(sim::Bytes size, Bandwidth rate) {
  return rate.raw() == 0 ? Duration{} : sim::transfer_time(size, rate);
}

}  // namespace

GlooCosts::GlooCosts(const sim::Topology& topology, const sim::Parameters& parameters)
    : topology_(&topology), parameters_(&parameters), memory_(nearest_processors(topology)) {}

Bandwidth GlooCosts::link_capacity(const sim::Link& link) const {
  return std::max(kSlowestLink,
                  sim::scale(link.capacity, parameters_->link(link.link_class).efficiency));
}

sim::Result<sim::Route> GlooCosts::route(const sim::Schedule& schedule, const sim::Group& group,
                                         const sim::Connection& connection) const {
  const sim::Member& from = group[schedule.lanes[connection.from.index()].rank];
  const sim::Member& to = group[schedule.lanes[connection.to.index()].rank];
  if (!connection.nic_out.valid() && from.node == to.node) return sim::Route{};
  std::vector<DeviceId> way_points{memory_[from.gpu.index()]};
  for (const DeviceId stop : {connection.nic_out, connection.nic_in, memory_[to.gpu.index()]})
    if (stop.valid() && stop != way_points.back()) way_points.push_back(stop);
  const std::uint64_t flow = std::uint64_t{from.rank.value()} << 32 ^ to.rank.value();
  return topology_->route(way_points, flow);
}

sim::Result<ConnectionCost> GlooCosts::connection(const sim::Schedule& schedule,
                                                  const sim::Group& group,
                                                  sim::ConnectionId id) const {
  const sim::GlooParameters& gloo = parameters_->gloo;
  ConnectionCost cost;
  RAILYARD_ASSIGN(cost.route, route(schedule, group, schedule.connections[id.index()]));
  for (const sim::LinkId link : cost.route)
    cost.latency += parameters_->link(topology_->links[link.index()].link_class).latency +
                    topology_->links[link.index()].extra_latency;
  cost.latency += gloo.latency;
  cost.credit_latency = cost.latency;
  cost.staged = true;
  cost.wire_cap = gloo.stream_rate;
  cost.send_service = gloo.message;
  cost.recv_service = gloo.message;
  return cost;
}

sim::LaneCost GlooCosts::lane(const sim::Schedule&, const sim::Lane& lane) const {
  const sim::GlooParameters& gloo = parameters_->gloo;
  sim::LaneCost cost;
  if (lane.role == LaneRole::local) {
    cost.local_rate = gloo.copy_rate;
    return cost;
  }
  cost.op_overhead = gloo.op_overhead;
  if (lane.role == LaneRole::gloo_reduce) cost.local_rate = gloo.reduce_rate;
  return cost;
}

Duration GlooCosts::start(const sim::Schedule& schedule) const {
  return schedule.ranks < 2 ? Duration{} : parameters_->gloo.start;
}

sim::Slowdown GlooCosts::slowdown(const sim::Schedule&, const sim::Group&) const { return {}; }

namespace {

// Every operation of these schedules uses all connections of its lane.
void add_op(const sim::Lane& lane, const sim::Work& work, std::uint32_t loop, const sim::Op& op,
            GlooWork& out) {
  const std::int64_t in = sim::receives(op.primitive) ? lane.recv_count : 0;
  const std::int64_t peers = in + (sim::sends(op.primitive) ? lane.send_count : 0);
  for (std::uint32_t i = 0; i < op.repeat; ++i) {
    const std::uint32_t block = sim::block_of(op, lane, work, i);
    const sim::Bytes size = sim::block_region(work, loop, block).size;
    out.messages += peers * work.slices_per_chunk;
    out.moved += size * peers;
    if (lane.role != LaneRole::local) out.operations += work.slices_per_chunk;
    if (lane.role == LaneRole::gloo_reduce) out.added += size * in;
  }
}

void add_lane(const sim::Schedule& schedule, const sim::Lane& lane, GlooWork& out) {
  const sim::Work& work = schedule.works[lane.work];
  for (std::uint32_t loop = 0; loop < sim::loop_count(work); ++loop)
    for (const sim::Op& op : schedule.programs[lane.program.index()])
      add_op(lane, work, loop, op, out);
}

}  // namespace

GlooWork gloo_work(const sim::Schedule& schedule) {
  std::vector<GlooWork> ranks(std::max(1U, schedule.ranks));
  for (const sim::Lane& lane : schedule.lanes) add_lane(schedule, lane, ranks[lane.rank]);
  const auto less = [](const GlooWork& a, const GlooWork& b) { return a.moved < b.moved; };
  return *std::ranges::max_element(ranks, less);
}

Duration gloo_processor_time(const GlooWork& work, const sim::GlooParameters& parameters) {
  return time_of(work.moved, parameters.stream_rate) + time_of(work.added, parameters.reduce_rate) +
         parameters.message * work.messages + parameters.op_overhead * work.operations;
}

}  // namespace railyard::models
