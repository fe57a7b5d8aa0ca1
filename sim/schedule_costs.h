// The costs of all lanes and connections of one schedule on one group, asked of the CostModel once
// and used by both engines.
#pragma once

#include <vector>

#include "sim/cost.h"

namespace railyard::sim {

struct ScheduleCosts {
  std::vector<ConnectionCost> connections;  // by ConnectionId
  std::vector<LaneCost> lanes;              // by LaneId
  Duration start{};                         // of every rank, before its first operation
};

Result<ScheduleCosts> bind_costs(const Schedule& schedule, const Group& group,
                                 const CostModel& model);

// The rate of a connection's flow when nothing else uses its links: min(cap, links); zero when
// neither bounds it. `link_capacity` is indexed by LinkId. A staged connection's flow has wire_cap:
// its cap is that of the copy into the FIFO. Of several queue pairs together it is at most this:
// the links are those that all of them pass.
Bandwidth solo_rate(const ConnectionCost& cost, const std::vector<Bandwidth>& link_capacity);

// Likewise of a flow in a switch: the least of its cap and capacity / weight of its links.
Bandwidth solo_rate(const SwitchFlow& flow, const std::vector<Bandwidth>& link_capacity);

}  // namespace railyard::sim
