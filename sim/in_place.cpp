#include "sim/in_place.h"

#include <fmt/format.h>

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

InPlaceWatch::InPlaceWatch(const Expansion& expansion)
    : expansion_(expansion),
      before_(lanes_before(expansion)),
      component_(components(expansion, before_)),
      index_in_component_(expansion.lanes.size()),
      clocks_(expansion.lanes.size()),
      in_flight_(expansion.connections.size()),
      readers_(expansion.ranks),
      destroyed_(expansion.ranks) {
  std::vector<std::uint32_t> sizes(expansion.lanes.size(), 0);
  for (std::size_t lane = 0; lane < component_.size(); ++lane)
    index_in_component_[lane] = sizes[component_[lane]]++;
  for (std::size_t lane = 0; lane < component_.size(); ++lane)
    clocks_[lane].assign(sizes[component_[lane]], 0);
}

void InPlaceWatch::begin(LaneId lane, std::uint32_t op, bool aligned) {
  now_ = {lane, op};
  aligned_ = aligned;
  if (op == 0)
    for (const LaneId earlier : before_[lane.index()]) learn(clocks_[earlier.index()]);
  clocks_[lane.index()][index_in_component_[lane.index()]] = op + 1;
}

void InPlaceWatch::learn(const Clock& clock) {
  Clock& mine = clocks_[now_.lane.index()];
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::max(mine[i], clock[i]);
}

void InPlaceWatch::receive(ConnectionId connection) {
  std::deque<Clock>& queue = in_flight_[connection.index()];
  learn(queue.front());
  queue.pop_front();
}

void InPlaceWatch::send(ConnectionId connection) {
  in_flight_[connection.index()].push_back(clocks_[now_.lane.index()]);
}

bool InPlaceWatch::happened_before_now(Access access) const {
  const std::size_t now = now_.lane.index();
  const std::size_t then = access.lane.index();
  if (now == then) return access.op < now_.op || aligned_;
  return component_[now] == component_[then] && clocks_[now][index_in_component_[then]] > access.op;
}

void InPlaceWatch::report(std::int64_t begin, std::int64_t end, Access reader, Access writer) {
  if (!violation_.empty()) return;
  violation_ = fmt::format(
      "rank {} byte [{},{}) of the common buffer: operation {} of lane {} writes output over input "
      "that operation {} of lane {} need not have read yet",
      expansion_.lanes[now_.lane.index()].rank, begin, end, writer.op, writer.lane.value(),
      reader.op, reader.lane.value());
}

void InPlaceWatch::read(std::int64_t begin, std::int64_t end) {
  const std::uint32_t rank = expansion_.lanes[now_.lane.index()].rank;
  destroyed_[rank].for_each(begin, end, [&](std::int64_t b, std::int64_t e, Access writer) {
    report(b, e, now_, writer);
  });
  readers_[rank].fill_gaps(begin, end, {});
  const auto update = [&](std::int64_t, std::int64_t, std::vector<Access>& readers) {
    const auto mine = std::ranges::find(readers, now_.lane, &Access::lane);
    if (mine == readers.end())
      readers.push_back(now_);
    else
      mine->op = now_.op;
  };
  readers_[rank].for_each(begin, end, update);
}

void InPlaceWatch::destroy(std::int64_t begin, std::int64_t end) {
  const std::uint32_t rank = expansion_.lanes[now_.lane.index()].rank;
  const auto check = [&](std::int64_t b, std::int64_t e, const std::vector<Access>& readers) {
    for (const Access& reader : readers)
      if (!happened_before_now(reader)) report(b, e, reader, now_);
  };
  readers_[rank].for_each(begin, end, check);
  destroyed_[rank].fill_gaps(begin, end, now_);
}

}  // namespace railyard::sim
