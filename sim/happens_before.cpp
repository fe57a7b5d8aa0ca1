#include "sim/happens_before.h"

#include <algorithm>
#include <numeric>

namespace railyard::sim {
namespace {

std::uint32_t find_root(std::vector<std::uint32_t>& parent, std::uint32_t lane) {
  while (parent[lane] != lane) lane = parent[lane] = parent[parent[lane]];
  return lane;
}

// The component of every lane, named by one of its lanes.
std::vector<std::uint32_t> components(const Expansion& expansion,
                                      const std::vector<std::vector<LaneId>>& before) {
  std::vector<std::uint32_t> parent(expansion.lanes.size());
  std::iota(parent.begin(), parent.end(), 0U);
  for (const Connection& connection : expansion.connections)
    parent[find_root(parent, connection.from.value())] = find_root(parent, connection.to.value());
  for (std::uint32_t lane = 0; lane < parent.size(); ++lane)
    for (const LaneId earlier : before[lane])
      parent[find_root(parent, lane)] = find_root(parent, earlier.value());
  for (std::uint32_t lane = 0; lane < parent.size(); ++lane) parent[lane] = find_root(parent, lane);
  return parent;
}

}  // namespace

HappensBefore::HappensBefore(const Expansion& expansion)
    : before_(lanes_before(expansion)),
      component_(components(expansion, before_)),
      index_in_component_(expansion.lanes.size()),
      clocks_(expansion.lanes.size()),
      in_flight_(expansion.connections.size()) {
  std::vector<std::uint32_t> sizes(expansion.lanes.size(), 0);
  for (std::size_t lane = 0; lane < component_.size(); ++lane)
    index_in_component_[lane] = sizes[component_[lane]]++;
  for (std::size_t lane = 0; lane < component_.size(); ++lane)
    clocks_[lane].assign(sizes[component_[lane]], 0);
}

void HappensBefore::begin(LaneId lane, std::uint32_t op) {
  now_ = {lane, op};
  if (op == 0)
    for (const LaneId earlier : before_[lane.index()]) learn(clocks_[earlier.index()]);
  clocks_[lane.index()][index_in_component_[lane.index()]] = op + 1;
}

void HappensBefore::learn(const Clock& clock) {
  Clock& mine = clocks_[now_.lane.index()];
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::max(mine[i], clock[i]);
}

void HappensBefore::receive(ConnectionId connection, MessagePart part) {
  std::deque<Clock>& queue = in_flight_[connection.index()];
  learn(queue[part.ahead]);
  if (!part.more) queue.pop_front();
}

void HappensBefore::send(ConnectionId connection, MessagePart part) {
  if (!part.more) in_flight_[connection.index()].push_back(clocks_[now_.lane.index()]);
}

bool HappensBefore::ordered(Access earlier) const {
  const std::size_t now = now_.lane.index();
  const std::size_t then = earlier.lane.index();
  if (now == then) return earlier.op <= now_.op;
  return component_[now] == component_[then] &&
         clocks_[now][index_in_component_[then]] > earlier.op;
}

}  // namespace railyard::sim
