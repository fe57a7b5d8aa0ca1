// Costs of stops in the memory of hosts; see host_stops.h.
#include <algorithm>
#include <limits>

#include "models/comm/comm_costs.h"
#include "models/comm/host_stops.h"
#include "models/comm/lane_rate.h"

namespace railyard::models {

using sim::Bandwidth;
using sim::Connection;
using sim::ConnectionCost;
using sim::Lane;
using sim::Protocol;
using sim::Result;
using sim::SwitchFlow;

namespace {

constexpr std::int64_t kSocketTask = 64 * 1024;  // a message uses one stream for each so many bytes

// The lower of two rates of which 0 is no limit.
Bandwidth lower(Bandwidth a, Bandwidth b) {
  if (a.raw() == 0 || b.raw() == 0) return std::max(a, b);
  return std::min(a, b);
}

Bandwidth times(Bandwidth rate, std::int64_t count) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / count;
  return rate.raw() > most ? Bandwidth{} : rate * count;
}

// The largest message of a lane, as it is on the wire.
std::int64_t largest_message(const sim::Schedule& schedule, const Lane& lane,
                             const ConnectionCost& cost) {
  if (lane.work >= schedule.works.size()) return kSocketTask;
  const sim::Work& work = schedule.works[lane.work];
  const sim::Region chunk{sim::Bytes{}, std::min(work.chunk, work.size)};
  return sim::wire_bytes(cost, sim::slice_region(work, chunk, 0).size).raw();
}

}  // namespace

sim::DeviceId written_at(Protocol protocol, const Connection& connection) {
  return protocol == Protocol::ll ? connection.host.out_ll : connection.host.out;
}

bool is_fetched(Protocol protocol, const Connection& connection) {
  return protocol == Protocol::simple && connection.host.in.valid();
}

bool passes_relay(Protocol protocol, const Connection& connection) {
  const bool around = protocol == Protocol::ll && connection.host.out_ll.valid();
  return connection.relay.valid() && !around;
}

Result<void> CommCosts::add_host_costs(const sim::Schedule& schedule, const sim::Group& group,
                                       const Connection& connection, ConnectionCost& cost) const {
  const Protocol protocol = schedule.call.protocol;
  const Lane& sender = schedule.lanes[connection.from.index()];
  const Lane& receiver = schedule.lanes[connection.to.index()];
  if (passes_relay(protocol, connection)) cost.latency += costs_of(schedule).hop_latency;
  if (connection.host.in.valid()) {
    RAILYARD_ASSIGN(const sim::Route load,
                    topology_->route({connection.host.in, group[receiver.rank].gpu}, 0));
    const sim::Duration way = latency(load);
    cost.fetched = is_fetched(protocol, connection);
    if (cost.fetched) {
      cost.latency += way * (cost.staged ? 2 : 4);
      cost.grain = {};
    } else {
      cost.latency += way;
      if (!cost.staged) cost.cap = lower(cost.cap, load_rate(receiver));
    }
  }
  if (connection.host.sockets)
    add_socket_costs(largest_message(schedule, sender, cost), connection.host.streams, cost);
  return {};
}

Bandwidth CommCosts::load_rate(const Lane& lane) const {
  return lane_rate(parameters_->gpu.host_load_rate, lane, ConnectionCost{});
}

void CommCosts::add_socket_costs(std::int64_t message, std::uint32_t streams,
                                 ConnectionCost& cost) const {
  const sim::NetworkParameters& network = parameters_->network;
  const std::int64_t tasks = (message + kSocketTask - 1) / kSocketTask;
  if (streams == 0) {
    cost.send_byte_rate = in_turn(cost.send_byte_rate, network.socket_rate);
    cost.recv_byte_rate = network.socket_rate;
  } else {
    cost.wire_cap =
        times(network.socket_rate, std::clamp<std::int64_t>(tasks, 1, std::int64_t{streams}));
  }
  cost.latency += network.socket_latency;
  cost.send_service += network.socket_message;
  cost.recv_service = network.proxy_recv + network.socket_message;
  cost.recv_busy = {};
}

Result<std::optional<SwitchFlow>> CommCosts::fetch_flow(const sim::Schedule& schedule,
                                                        const sim::Group& group,
                                                        sim::LaneId id) const {
  const Lane& lane = schedule.lanes[id.index()];
  const Protocol protocol = schedule.call.protocol;
  for (std::uint32_t k = 0; k < lane.recv_count; ++k) {
    const Connection& connection =
        schedule.connections[schedule.slots[lane.first_recv + k].index()];
    if (!is_fetched(protocol, connection)) continue;
    RAILYARD_ASSIGN(const sim::Route route,
                    topology_->route({connection.host.in, group[lane.rank].gpu}, 0));
    SwitchFlow flow;
    for (const sim::LinkId link : route) flow.uses.push_back({link, 1});
    ConnectionCost ratio;
    set_wire_ratio(protocol, parameters_->protocol(protocol).wire_efficiency, ratio);
    flow.wire_numerator = ratio.wire_numerator;
    flow.wire_denominator = ratio.wire_denominator;
    flow.cap = load_rate(lane);
    return std::optional<SwitchFlow>(std::move(flow));
  }
  return std::optional<SwitchFlow>();
}

}  // namespace railyard::models
