// Costs of what takes place in switches: NVLS in an NVSwitch, SHARP in a fabric switch.
#include <map>

#include "models/comm/comm_costs.h"
#include "models/comm/lane_rate.h"

namespace railyard::models {

using sim::Connection;
using sim::ConnectionCost;
using sim::DeviceId;
using sim::Lane;
using sim::LaneRole;
using sim::LinkId;
using sim::Protocol;
using sim::Result;
using sim::Route;
using sim::SwitchFlow;

namespace {

// The connections of a lane: those it receives from, or sends on.
template <typename Visit>
void for_connections(const sim::Schedule& schedule, std::uint32_t first, std::uint32_t count,
                     Visit&& visit) {
  for (std::uint32_t k = 0; k < count; ++k)
    visit(schedule.connections[schedule.slots[first + k].index()]);
}

SwitchFlow flow_of(const std::map<LinkId, std::uint32_t>& weights) {
  SwitchFlow flow;
  for (const auto& [link, weight] : weights) flow.uses.push_back({link, weight});
  return flow;
}

}  // namespace

const sim::FabricTree& CommCosts::fabric_tree(DeviceId root) const {
  const auto known = fabric_trees_.find(root);
  if (known != fabric_trees_.end()) return known->second;
  return fabric_trees_.emplace(root, sim::FabricGraph(*topology_).tree(root)).first->second;
}

// Scatter: the copy into the buffer that the switch reads. Gather: its sender's flow has brought
// the data already.
Result<ConnectionCost> CommCosts::beside_nvswitch(const sim::Schedule& schedule,
                                                  const sim::Group& group,
                                                  const Connection& connection) const {
  const Lane& sender = schedule.lanes[connection.from.index()];
  const Lane& receiver = schedule.lanes[connection.to.index()];
  const bool scatter = sender.role == LaneRole::nvls_scatter;
  const DeviceId nvswitch = scatter ? receiver.in_switch : sender.in_switch;
  std::vector<DeviceId> way_points{group[sender.rank].gpu, nvswitch, group[receiver.rank].gpu};
  if (!nvswitch.valid()) way_points.erase(way_points.begin() + 1);  // a node of one GPU
  RAILYARD_ASSIGN(const Route route, topology_->route(way_points, 0));
  ConnectionCost cost;
  cost.latency = cost.credit_latency = latency(route);
  const Protocol protocol = schedule.call.protocol;
  if (protocol == Protocol::plain) return cost;
  const sim::NvlsParameters& costs = parameters_->nvls;
  if (scatter) cost.cap = lane_rate(costs.copy_rate, sender, cost);
  cost.latency += costs.hop_latency;
  cost.credit_latency += costs.hop_latency;
  return cost;
}

Result<ConnectionCost> CommCosts::beside_fabric_switch(const sim::Schedule& schedule,
                                                       const sim::Group& group,
                                                       const Connection& connection) const {
  const Lane& sender = schedule.lanes[connection.from.index()];
  const Lane& receiver = schedule.lanes[connection.to.index()];
  const bool up = receiver.role == LaneRole::collnet_switch;
  const sim::FabricTree& tree = fabric_tree(up ? receiver.in_switch : sender.in_switch);
  RAILYARD_ASSIGN(Route route,
                  up ? topology_->route({group[sender.rank].gpu, connection.nic_out}, 0)
                     : topology_->route({connection.nic_in, group[receiver.rank].gpu}, 0));
  const DeviceId nic = up ? connection.nic_out : connection.nic_in;
  if (tree.distance(nic) == sim::FabricTree::kUnreachable)
    return sim::bad_input("no path from " + topology_->devices[nic.index()].name +
                          " to the switch that sums");
  if (up)
    tree.append_path_up(nic, route);
  else
    tree.append_path_down(nic, route);
  ConnectionCost cost;
  cost.latency = cost.credit_latency = latency(route);
  const Protocol protocol = schedule.call.protocol;
  if (protocol == Protocol::plain) return cost;
  const sim::ProtocolParameters& costs = parameters_->protocol(protocol);
  cost.staged = true;
  if (up) {
    cost.cap = lane_rate(costs.channel_rate, sender, cost);
    cost.completion = cost.latency;
    set_send_service(parameters_->network, protocol, cost);
    return cost;
  }
  cost.latency += costs.net_hop_latency + parameters_->network.flush;
  cost.recv_service = parameters_->network.proxy_recv;
  return cost;
}

Result<SwitchFlow> CommCosts::nvswitch_flow(const sim::Schedule& schedule, const sim::Group& group,
                                            const Lane& lane) const {
  std::map<LinkId, std::uint32_t> weights;
  Result<void> found;
  const auto add = [&](DeviceId from, DeviceId to) {
    const Result<Route> route = topology_->route({from, to}, 0);
    if (!route.ok()) {
      found = route.error();
      return;
    }
    for (const LinkId link : route.value()) ++weights[link];
  };
  const DeviceId own = group[lane.rank].gpu;
  bool reads = false;
  bool stores = false;
  for_connections(schedule, lane.first_recv, lane.recv_count, [&](const Connection& connection) {
    const Lane& from = schedule.lanes[connection.from.index()];
    if (from.role != LaneRole::nvls_scatter) return;
    reads = true;
    add(group[from.rank].gpu, lane.in_switch);
  });
  for_connections(schedule, lane.first_send, lane.send_count, [&](const Connection& connection) {
    const Lane& to = schedule.lanes[connection.to.index()];
    if (to.role != LaneRole::nvls_gather) return;
    stores = true;
    add(lane.in_switch, group[to.rank].gpu);
  });
  if (reads) add(lane.in_switch, own);
  if (stores) add(own, lane.in_switch);
  RAILYARD_TRY(found);
  return flow_of(weights);
}

// Switches sum and multicast on the way, so a link carries the data once whoever is behind it.
Result<SwitchFlow> CommCosts::fabric_switch_flow(const sim::Schedule& schedule,
                                                 const sim::Group& group, const Lane& lane) const {
  const sim::FabricTree& tree = fabric_tree(lane.in_switch);
  std::map<LinkId, std::uint32_t> weights;
  Result<void> found;
  const auto add = [&](Result<Route> route, DeviceId nic, bool up) {
    if (!route.ok() || tree.distance(nic) == sim::FabricTree::kUnreachable) {
      found = route.ok() ? sim::bad_input("no path from " + topology_->devices[nic.index()].name +
                                          " to the switch that sums")
                         : route.error();
      return;
    }
    Route links = std::move(route).value();
    if (up)
      tree.append_path_up(nic, links);
    else
      tree.append_path_down(nic, links);
    for (const LinkId link : links) weights[link] = 1;
  };
  for_connections(schedule, lane.first_recv, lane.recv_count, [&](const Connection& connection) {
    const Lane& from = schedule.lanes[connection.from.index()];
    add(topology_->route({group[from.rank].gpu, connection.nic_out}, 0), connection.nic_out, true);
  });
  for_connections(schedule, lane.first_send, lane.send_count, [&](const Connection& connection) {
    const Lane& to = schedule.lanes[connection.to.index()];
    add(topology_->route({connection.nic_in, group[to.rank].gpu}, 0), connection.nic_in, false);
  });
  RAILYARD_TRY(found);
  return flow_of(weights);
}

Result<SwitchFlow> CommCosts::switch_flow(const sim::Schedule& schedule, const sim::Group& group,
                                          sim::LaneId id) const {
  const Lane& lane = schedule.lanes[id.index()];
  const bool in_fabric = lane.role == LaneRole::collnet_switch;
  RAILYARD_ASSIGN(SwitchFlow flow, in_fabric ? fabric_switch_flow(schedule, group, lane)
                                             : nvswitch_flow(schedule, group, lane));
  const Protocol protocol = schedule.call.protocol;
  if (protocol == Protocol::plain) return flow;
  const double efficiency =
      in_fabric ? parameters_->protocol(protocol).wire_efficiency : parameters_->nvls.efficiency;
  ConnectionCost ratio;
  set_wire_ratio(protocol, efficiency, ratio);
  flow.wire_numerator = ratio.wire_numerator;
  flow.wire_denominator = ratio.wire_denominator;
  if (!in_fabric) flow.cap = lane_rate(parameters_->nvls.reduce_rate, lane, ratio);
  return flow;
}

}  // namespace railyard::models
