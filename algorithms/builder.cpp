#include "algorithms/builder.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace railyard::algorithms {
namespace {

using sim::Connection;
using sim::ConnectionId;
using sim::Lane;
using sim::LaneId;

bool before(const sim::NetEdge& a, const sim::NetEdge& b) {
  return std::tie(a.from, a.to) < std::tie(b.from, b.to);
}

}  // namespace

NicTable::NicTable(const sim::Channel& channel) : edges_(channel.net_edges) {
  std::sort(edges_.begin(), edges_.end(), before);
}

NicPair NicTable::find(std::uint32_t from, std::uint32_t to) const {
  sim::NetEdge wanted;
  wanted.from = from;
  wanted.to = to;
  const auto found = std::lower_bound(edges_.begin(), edges_.end(), wanted, before);
  if (found == edges_.end() || before(wanted, *found)) return {};
  return {found->nic_out, found->nic_in, found->relay, found->host};
}

ScheduleBuilder::ScheduleBuilder(const sim::CollectiveCall& call, std::uint32_t ranks) {
  schedule_.call = call;
  schedule_.ranks = ranks;
}

sim::ProgramId ScheduleBuilder::add_program(sim::Program program) {
  schedule_.programs.push_back(std::move(program));
  return sim::ProgramId(schedule_.programs.size() - 1);
}

std::uint32_t ScheduleBuilder::add_work(const sim::Work& work) {
  schedule_.works.push_back(work);
  return static_cast<std::uint32_t>(schedule_.works.size() - 1);
}

std::uint32_t ScheduleBuilder::add_block_order(std::vector<std::uint32_t> order) {
  schedule_.block_orders.push_back(std::move(order));
  return static_cast<std::uint32_t>(schedule_.block_orders.size() - 1);
}

LaneId ScheduleBuilder::add_lane(const Lane& lane) {
  schedule_.lanes.push_back(lane);
  if (lane.channel >= channel_used_.size()) channel_used_.resize(lane.channel + std::size_t{1});
  if (!channel_used_[lane.channel]) ++schedule_.channels;
  channel_used_[lane.channel] = true;
  return LaneId(schedule_.lanes.size() - 1);
}

void ScheduleBuilder::connect(LaneId from, LaneId to, const NicPair& nics) {
  Connection connection;
  connection.from = from;
  connection.to = to;
  connection.nic_out = nics.out;
  connection.nic_in = nics.in;
  connection.relay = nics.relay;
  connection.host = nics.host;
  schedule_.connections.push_back(connection);
  ++schedule_.lanes[from.index()].send_count;
  ++schedule_.lanes[to.index()].recv_count;
}

void ScheduleBuilder::signal(LaneId from, LaneId to) {
  connect(from, to, {});
  schedule_.connections.back().signal = true;
}

// Counting sort of the connections by receiving and by sending lane.
void ScheduleBuilder::lay_out_slots() {
  std::uint32_t next = 0;
  for (Lane& lane : schedule_.lanes) {
    lane.first_recv = next;
    lane.first_send = next + lane.recv_count;
    next = lane.first_send + lane.send_count;
    lane.recv_count = lane.send_count = 0;
  }
  schedule_.slots.resize(next);
  for (std::size_t i = 0; i < schedule_.connections.size(); ++i) {
    Lane& from = schedule_.lanes[schedule_.connections[i].from.index()];
    Lane& to = schedule_.lanes[schedule_.connections[i].to.index()];
    schedule_.slots[from.first_send + from.send_count++] = ConnectionId(i);
    schedule_.slots[to.first_recv + to.recv_count++] = ConnectionId(i);
  }
}

sim::Schedule ScheduleBuilder::finish(std::uint32_t fifo_slices) && {
  lay_out_slots();
  schedule_.fifo_slices = fifo_slices;
  return std::move(schedule_);
}

}  // namespace railyard::algorithms
