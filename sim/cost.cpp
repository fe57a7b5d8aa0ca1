#include "sim/cost.h"

#include <algorithm>
#include <string>

namespace railyard::sim {

namespace {

Bytes scaled(Bytes payload, std::int64_t numerator, std::int64_t denominator) {
  if (numerator == denominator) return payload;
  const Uint128 product =
      Uint128(static_cast<std::uint64_t>(payload.raw())) * static_cast<std::uint64_t>(numerator);
  const auto divisor = static_cast<std::uint64_t>(denominator);
  return bytes(static_cast<std::int64_t>((product + divisor - 1) / divisor));
}

// Nothing is copied of an empty message.
bool is_within(Bytes wire, Bytes most) { return wire.raw() > 0 && wire <= most; }

}  // namespace

Result<SwitchFlow> CostModel::switch_flow(const Schedule& schedule, const Group&,
                                          LaneId lane) const {
  return Error{ErrorCode::unsupported,
               "no costs are known for operations in switches (" +
                   std::string(to_text(schedule.lanes[lane.index()].role)) + ")",
               {}};
}

Duration CostModel::start(const Schedule&) const { return {}; }

Duration send_service_time(const ConnectionCost& cost, Bytes wire) {
  Duration time = cost.send_service;
  if (cost.send_byte_rate.raw() > 0) time += transfer_time(wire, cost.send_byte_rate);
  if (cost.rendezvous_to.raw() > 0 && wire >= cost.rendezvous_from && wire <= cost.rendezvous_to)
    time += cost.rendezvous;
  if (is_within(wire, cost.inline_to)) time += cost.inline_copy;
  return time;
}

Duration recv_service_time(const ConnectionCost& cost, Bytes wire) {
  Duration time = cost.recv_service;
  if (cost.recv_byte_rate.raw() > 0) time += transfer_time(wire, cost.recv_byte_rate);
  if (is_within(wire, cost.eager_to)) time += cost.eager_copy;
  return time;
}

Duration eager_interval(const ConnectionCost& cost, Bytes wire) {
  return is_within(wire, cost.eager_to) ? cost.eager_interval : Duration{};
}

bool is_served(const ConnectionCost& cost) {
  return cost.recv_service.count() + cost.recv_busy.count() + cost.recv_byte_rate.raw() +
             cost.eager_copy.count() + cost.eager_interval.count() >
         0;
}

Duration keep_time(const LaneCost& cost, Primitive primitive, Bytes size) {
  if (cost.keep_rate.raw() == 0 || !sends(primitive) || !writes_target(primitive)) return {};
  return transfer_time(size, cost.keep_rate);
}

Duration poll_time(const LaneCost& cost, Bytes size) {
  if (cost.poll_unit.raw() == 0 || size <= cost.poll_unit) return {};
  return cost.poll_time * ((size.raw() - 1) / cost.poll_unit.raw());
}

Result<std::optional<SwitchFlow>> CostModel::fetch_flow(const Schedule&, const Group&,
                                                        LaneId) const {
  return std::optional<SwitchFlow>();
}

std::uint32_t queue_pairs(const ConnectionCost& cost) {
  return static_cast<std::uint32_t>(cost.more_routes.size() + 1);
}

const Route& route_of_pair(const ConnectionCost& cost, std::uint32_t pair) {
  return pair == 0 ? cost.route : cost.more_routes[pair - 1];
}

Bytes pair_bytes(const ConnectionCost& cost, std::uint32_t sequence, std::uint32_t pair,
                 Bytes wire) {
  constexpr std::int64_t kAlign = 128;
  const std::uint32_t pairs = queue_pairs(cost);
  if (!cost.split) return sequence % pairs == pair ? wire : Bytes{};
  const std::int64_t even = (wire.raw() + pairs - 1) / pairs;
  const std::int64_t part = (even + kAlign - 1) / kAlign * kAlign;
  return bytes(std::clamp<std::int64_t>(wire.raw() - part * pair, 0, part));
}

Bytes wire_bytes(const ConnectionCost& cost, Bytes payload) {
  return scaled(payload, cost.wire_numerator, cost.wire_denominator);
}

Bytes wire_bytes(const SwitchFlow& flow, Bytes payload) {
  return scaled(payload, flow.wire_numerator, flow.wire_denominator);
}

}  // namespace railyard::sim
