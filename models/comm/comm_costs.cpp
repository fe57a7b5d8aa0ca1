#include "models/comm/comm_costs.h"

#include <algorithm>
#include <map>

#include "models/comm/host_stops.h"
#include "models/comm/lane_rate.h"
#include "sim/trace.h"

namespace railyard::models {
namespace {

using sim::Bandwidth;
using sim::ConnectionCost;
using sim::Duration;
using sim::Protocol;

constexpr Bandwidth kSlowestLink = sim::bytes_per_second(1'000);
// Blocks that NCCL moves in one operation where a schedule has one for each.
std::int64_t blocks_at_once(const sim::Lane& lane) {
  switch (lane.role) {
    case sim::LaneRole::nvls_scatter:
    case sim::LaneRole::collnet_scatter: return std::max(1U, lane.send_count);
    case sim::LaneRole::nvls_gather:
    case sim::LaneRole::collnet_gather: return std::max(1U, lane.recv_count);
    default: return 1;
  }
}

// What a CTA's 512 threads look at together: LL lines of 8 bytes of payload, one each.
constexpr sim::Bytes kPollUnit = sim::bytes(4096);

bool is_nvls(sim::LaneRole role) {
  switch (role) {
    case sim::LaneRole::nvls_scatter:
    case sim::LaneRole::nvls_gather:
    case sim::LaneRole::nvls_reduce:
    case sim::LaneRole::nvls_broadcast: return true;
    default: return false;
  }
}

// The member whose GPU relays for `from`; a node's ranks are near each other.
std::uint32_t rank_of(const sim::Group& group, std::uint32_t from, sim::DeviceId gpu) {
  for (std::size_t step = 1; step < group.size(); ++step) {
    if (from + step < group.size() && group[from + step].gpu == gpu)
      return static_cast<std::uint32_t>(from + step);
    if (step <= from && group[from - step].gpu == gpu)
      return static_cast<std::uint32_t>(from - step);
  }
  return ConnectionCost::kNoRank;
}

}  // namespace

Bandwidth CommCosts::link_capacity(const sim::Link& link) const {
  return std::max(kSlowestLink,
                  sim::scale(link.capacity, parameters_->link(link.link_class).efficiency));
}

sim::Result<sim::Route> CommCosts::route(const sim::Schedule& schedule, const sim::Group& group,
                                         const sim::Connection& connection,
                                         std::uint32_t pair) const {
  const sim::Lane& from = schedule.lanes[connection.from.index()];
  const sim::Lane& to = schedule.lanes[connection.to.index()];
  std::vector<sim::DeviceId> way_points{group[from.rank].gpu};
  const auto pass = [&](sim::DeviceId stop) {
    if (stop.valid() && stop != way_points.back()) way_points.push_back(stop);
  };
  if (passes_relay(schedule.call.protocol, connection)) pass(connection.relay);
  pass(written_at(schedule.call.protocol, connection));
  pass(connection.nic_out);
  pass(connection.nic_in);
  pass(connection.host.in);
  if (!is_fetched(schedule.call.protocol, connection)) pass(group[to.rank].gpu);
  // A queue pair is one flow to the fabric's hash.
  const std::uint64_t flow = std::uint64_t{group[from.rank].rank.value()} << 40 ^
                             std::uint64_t{group[to.rank].rank.value()} << 16 ^ from.channel;
  return topology_->route(way_points, pair == 0 ? flow : sim::mix_hash(flow ^ sim::mix_hash(pair)));
}

sim::Result<void> CommCosts::add_queue_pairs(const sim::Schedule& schedule, const sim::Group& group,
                                             const sim::Connection& connection,
                                             ConnectionCost& cost) const {
  for (std::uint32_t pair = 1; pair < connection.host.queue_pairs; ++pair) {
    RAILYARD_ASSIGN(sim::Route way, route(schedule, group, connection, pair));
    cost.more_routes.push_back(std::move(way));
  }
  const bool one_way = std::ranges::all_of(
      cost.more_routes, [&](const sim::Route& way) { return way == cost.route; });
  if (one_way) cost.more_routes.clear();
  cost.split = connection.host.split;
  return {};
}

// The protocol's, or those of send/receive kernels: their chunk is one slice, which nobody sees
// before it is whole.
sim::ProtocolParameters CommCosts::costs_of(const sim::Schedule& schedule) const {
  sim::ProtocolParameters costs = parameters_->protocol(schedule.call.protocol);
  const sim::SendRecvParameters& own = parameters_->send_recv;
  if (schedule.call.protocol != Protocol::simple ||
      !sim::is_point_to_point(schedule.call.collective))
    return costs;
  costs.forward_grain = {};
  if (own.channel_rate.raw() == 0) return costs;
  costs.channel_rate = own.channel_rate;
  if (own.local_rate.raw() != 0) costs.local_rate = own.local_rate;
  costs.op_overhead = own.op_overhead;
  costs.hop_latency = own.hop_latency;
  return costs;
}

Duration CommCosts::latency(const sim::Route& route) const {
  Duration sum{};
  for (const sim::LinkId id : route) {
    const sim::Link& link = topology_->links[id.index()];
    sum += parameters_->link(link.link_class).latency + link.extra_latency;
  }
  return sum;
}

// Whether a rank exchanges with more than one other through its NVSwitch in this call.
bool CommCosts::mixes(const sim::Schedule& schedule, const sim::Group& group,
                      const sim::Route& route, std::uint32_t rank) const {
  const sim::Collective collective = schedule.call.collective;
  if (!sim::is_point_to_point(collective) || collective == sim::Collective::send_recv) return false;
  const bool switched = std::ranges::any_of(route, [&](sim::LinkId id) {
    return topology_->devices[topology_->links[id.index()].to.index()].kind ==
           sim::DeviceKind::nvswitch;
  });
  if (!switched) return false;
  const auto domain = [&](std::size_t member) {
    return topology_->nodes[group[member].node].nvlink_domain;
  };
  std::size_t first = rank;  // ranks of a domain follow one another
  std::size_t last = rank;
  while (first > 0 && domain(first - 1) == domain(rank) && last - first < 2) --first;
  while (last + 1 < group.size() && domain(last + 1) == domain(rank) && last - first < 2) ++last;
  return last - first >= 2;
}

sim::Result<ConnectionCost> CommCosts::connection(const sim::Schedule& schedule,
                                                  const sim::Group& group,
                                                  sim::ConnectionId id) const {
  const sim::Connection& connection = schedule.connections[id.index()];
  const sim::Lane& sender = schedule.lanes[connection.from.index()];
  const Protocol protocol = schedule.call.protocol;
  const sim::ProtocolParameters costs = costs_of(schedule);
  const sim::Lane& receiver = schedule.lanes[connection.to.index()];
  if (sender.role == sim::LaneRole::collnet_switch ||
      receiver.role == sim::LaneRole::collnet_switch)
    return beside_fabric_switch(schedule, group, connection);
  if (sender.role == sim::LaneRole::nvls_scatter || receiver.role == sim::LaneRole::nvls_gather)
    return beside_nvswitch(schedule, group, connection);
  ConnectionCost cost;
  RAILYARD_ASSIGN(cost.route, route(schedule, group, connection, 0));
  cost.latency = latency(cost.route);
  cost.credit_latency = cost.latency;
  if (protocol == Protocol::plain) return cost;

  const bool mixed = protocol == Protocol::simple && !connection.nic_out.valid() &&
                     mixes(schedule, group, cost.route, sender.rank);
  set_wire_ratio(protocol,
                 costs.wire_efficiency * (mixed ? parameters_->send_recv.mixed_efficiency : 1),
                 cost);
  // A lane in a switch sends what its flow brings, while it brings it.
  if (!sender.in_switch.valid()) cost.cap = lane_rate(costs.channel_rate, sender, cost);
  cost.staged = connection.nic_out.valid();
  if (!cost.staged) {
    cost.latency += costs.hop_latency;
    cost.credit_latency += costs.hop_latency;
    cost.grain = costs.forward_grain;
    RAILYARD_TRY(add_host_costs(schedule, group, connection, cost));
    return cost;
  }
  RAILYARD_TRY(add_queue_pairs(schedule, group, connection, cost));
  cost.completion = cost.latency;  // the acknowledgement comes back on the wire
  if (connection.host.gpu_initiated) {
    cost.latency += parameters_->network.gpu_hop_latency;
    if (protocol == Protocol::simple) cost.latency += parameters_->network.flush;
    return cost;
  }
  cost.latency += costs.net_hop_latency;
  set_send_service(parameters_->network, protocol, cost);
  if (passes_relay(protocol, connection))
    cost.relay_rank = rank_of(group, sender.rank, connection.relay);
  const bool into_gpu = !connection.host.in.valid();
  set_copies(parameters_->network, !written_at(protocol, connection).valid(), into_gpu, cost);
  if (protocol == Protocol::simple) {
    if (into_gpu) cost.latency += parameters_->network.flush;
    cost.recv_service = parameters_->network.proxy_recv;
  } else {
    cost.recv_busy = parameters_->network.proxy_recv;
  }
  RAILYARD_TRY(add_host_costs(schedule, group, connection, cost));
  return cost;
}

sim::LaneCost CommCosts::lane(const sim::Schedule& schedule, const sim::Lane& lane) const {
  if (schedule.call.protocol == Protocol::plain) return {};
  const sim::ProtocolParameters costs = costs_of(schedule);
  if (lane.role == sim::LaneRole::collnet_switch) return {};
  if (is_nvls(lane.role))
    return {parameters_->nvls.op_overhead / blocks_at_once(lane),
            lane_rate(parameters_->nvls.copy_rate, lane, ConnectionCost{})};
  sim::LaneCost cost{costs.op_overhead / blocks_at_once(lane),
                     lane_rate(costs.local_rate, lane, ConnectionCost{})};
  if (schedule.call.protocol == Protocol::ll && !sim::is_point_to_point(schedule.call.collective))
    cost.keep_rate =
        in_turn(lane_rate(costs.channel_rate, lane, ConnectionCost{}), cost.local_rate);
  if (lane.role == sim::LaneRole::ring && costs.poll_time.count() > 0) {
    cost.poll_time = costs.poll_time;
    cost.poll_unit = kPollUnit;
  }
  return cost;
}

sim::Duration CommCosts::start(const sim::Schedule& schedule) const {
  if (schedule.call.protocol == Protocol::plain || schedule.ranks < 2) return {};
  Duration start{};
  if (schedule.channels > 1) start += parameters_->host.multi_cta_start;
  if (schedule.call.algorithm == sim::Algorithm::nvls ||
      schedule.call.algorithm == sim::Algorithm::nvls_tree)
    start += parameters_->nvls.start;
  return start;
}

sim::Slowdown CommCosts::slowdown(const sim::Schedule& schedule, const sim::Group& group) const {
  if (schedule.call.protocol == Protocol::plain || schedule.ranks < 2) return {};
  const sim::GpuParameters& gpu = parameters_->gpu;
  sim::Slowdown slowdown;
  const auto sms = static_cast<double>(gpu.sms);
  const auto taken = static_cast<double>(schedule.channels);
  slowdown.compute = sms > taken ? sms / (sms - taken) : 2.0;

  // What rank 0 can send at most: its lanes' rates, within each link that they leave by.
  std::map<std::uint32_t, double> through_link;  // first link -> rate asked of it
  for (std::size_t c = 0; c < schedule.connections.size(); ++c) {
    if (schedule.lanes[schedule.connections[c].from.index()].rank != 0) continue;
    const sim::Result<ConnectionCost> cost = connection(schedule, group, sim::ConnectionId(c));
    if (!cost.ok() || cost.value().route.empty()) continue;
    Bandwidth narrow = link_capacity(topology_->links[cost.value().route.front().index()]);
    for (const sim::LinkId link : cost.value().route)
      narrow = std::min(narrow, link_capacity(topology_->links[link.index()]));
    const Bandwidth cap = cost.value().cap.raw() == 0 ? narrow : std::min(cost.value().cap, narrow);
    through_link[cost.value().route.front().value()] += sim::to_gigabytes_per_second(cap);
  }
  double rate = 0;
  for (const auto& [link, asked] : through_link)
    rate += std::min(asked, sim::to_gigabytes_per_second(link_capacity(topology_->links[link])));
  const double memory = sim::to_gigabytes_per_second(gpu.hbm_bandwidth) * gpu.memory_efficiency;
  const double share = memory > 0 ? std::min(0.9, gpu.comm_hbm_factor * rate / memory) : 0;
  slowdown.memory = 1 / (1 - share);
  return slowdown;
}

}  // namespace railyard::models
