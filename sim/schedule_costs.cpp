#include "sim/schedule_costs.h"

#include <algorithm>

namespace railyard::sim {

Result<ScheduleCosts> bind_costs(const Schedule& schedule, const Group& group,
                                 const CostModel& model) {
  RAILYARD_CHECK(group.size() == schedule.ranks, "the schedule is for a group of another size");
  ScheduleCosts costs;
  costs.start = model.start(schedule);
  costs.connections.reserve(schedule.connections.size());
  for (std::size_t c = 0; c < schedule.connections.size(); ++c) {
    if (schedule.connections[c].signal) {
      costs.connections.emplace_back();
      continue;
    }
    RAILYARD_ASSIGN(ConnectionCost cost, model.connection(schedule, group, ConnectionId(c)));
    costs.connections.push_back(std::move(cost));
  }
  costs.lanes.reserve(schedule.lanes.size());
  for (std::size_t l = 0; l < schedule.lanes.size(); ++l) {
    costs.lanes.push_back(model.lane(schedule, schedule.lanes[l]));
    RAILYARD_ASSIGN(std::optional<SwitchFlow> fetch, model.fetch_flow(schedule, group, LaneId(l)));
    if (fetch) costs.lanes.back().fetch = std::make_shared<const SwitchFlow>(*std::move(fetch));
    if (!schedule.lanes[l].in_switch.valid()) continue;
    RAILYARD_ASSIGN(SwitchFlow flow, model.switch_flow(schedule, group, LaneId(l)));
    costs.lanes.back().in_switch = std::make_shared<const SwitchFlow>(std::move(flow));
  }
  return costs;
}

Bandwidth solo_rate(const ConnectionCost& cost, const std::vector<Bandwidth>& link_capacity) {
  Bandwidth rate = cost.staged ? cost.wire_cap : cost.cap;
  const auto passed_by_all = [&](LinkId link) {
    return std::ranges::all_of(cost.more_routes, [&](const Route& route) {
      return std::ranges::find(route, link) != route.end();
    });
  };
  for (const LinkId link : cost.route) {
    if (!passed_by_all(link)) continue;
    const Bandwidth capacity = link_capacity[link.index()];
    rate = rate.raw() == 0 ? capacity : std::min(rate, capacity);
  }
  return rate;
}

Bandwidth solo_rate(const SwitchFlow& flow, const std::vector<Bandwidth>& link_capacity) {
  Bandwidth rate = flow.cap;
  for (const LinkUse& use : flow.uses) {
    const Bandwidth part =
        Bandwidth::from_raw(link_capacity[use.link.index()].raw() / std::int64_t{use.weight});
    rate = rate.raw() == 0 ? part : std::min(rate, part);
  }
  return rate;
}

}  // namespace railyard::sim
