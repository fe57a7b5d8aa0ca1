#include "sim/schedule_costs.h"

#include <algorithm>

namespace railyard::sim {

Result<ScheduleCosts> bind_costs(const Schedule& schedule, const Group& group,
                                 const CostModel& model) {
  RAILYARD_CHECK(group.size() == schedule.ranks, "the schedule is for a group of another size");
  ScheduleCosts costs;
  costs.connections.reserve(schedule.connections.size());
  for (std::size_t c = 0; c < schedule.connections.size(); ++c) {
    RAILYARD_ASSIGN(ConnectionCost cost, model.connection(schedule, group, ConnectionId(c)));
    costs.connections.push_back(std::move(cost));
  }
  costs.lanes.reserve(schedule.lanes.size());
  for (const Lane& lane : schedule.lanes) costs.lanes.push_back(model.lane(schedule, lane));
  return costs;
}

Bandwidth solo_rate(const ConnectionCost& cost, const std::vector<Bandwidth>& link_capacity) {
  Bandwidth rate = cost.staged ? Bandwidth{} : cost.cap;
  for (const LinkId link : cost.route) {
    const Bandwidth capacity = link_capacity[link.index()];
    rate = rate.raw() == 0 ? capacity : std::min(rate, capacity);
  }
  return rate;
}

}  // namespace railyard::sim
