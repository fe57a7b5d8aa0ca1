// Slices on their way between two lanes: flows, proxies, arrivals and credits.
#include <algorithm>

#include "sim/executor.h"
#include "sim/trace.h"

namespace railyard::sim {

// Time of `payload` on a connection's leg when nothing is shared.
std::int64_t Executor::leg_rate_time(std::uint32_t c, std::int64_t payload) const {
  const ConnectionCost& cost = costs_->connections[c];
  return copy_time(wire(c, payload), cost.staged ? cost.cap : solo_[c]);
}

void Executor::on_flow_done(std::uint32_t c) {
  const auto count = static_cast<std::uint32_t>(connections_.size());
  const auto lanes = static_cast<std::uint32_t>(lanes_.size());
  if (c >= count + lanes) return pair_done(c - count - lanes);
  if (c >= count) return begin_legs(c - count);
  if (costs_->connections[c].staged) return wire_done(c);
  leg_of_connection(c);
}

// The leg of the sender's operation on this connection has ended.
void Executor::leg_of_connection(std::uint32_t c) {
  const std::uint32_t lane = schedule_->connections[c].from.value();
  const LaneState& state = lanes_[lane];
  if (state.op->send_part.more || state.op->holds) return leg_done(lane);
  const std::int64_t leg_end = std::max(now(), state.least_end);
  if (state.cut_through) {  // handed over when the inputs' tails are known
    slice(c, connections_[c].issued - 1).arrival = leg_end;
    connections_[c].leg_ended = true;
  } else {
    hand_over(c, leg_end);
  }
  leg_done(lane);
}

void Executor::hand_over(std::uint32_t c, std::int64_t leg_end) {
  const ConnectionCost& cost = costs_->connections[c];
  if (!cost.staged) return deliver(c, leg_end + cost.latency.count());
  if (leg_end > now()) return at(leg_end, post_code, c);
  post(c);
}

// The arrival of the next slice is known.
void Executor::deliver(std::uint32_t c, std::int64_t arrival) {
  ConnectionState& connection = connections_[c];
  const std::uint32_t sequence = connection.sent++;
  slice(c, sequence).arrival = arrival;
  report(c, sequence);
  if (!connection.receiver_waits) return;
  connection.receiver_waits = false;
  const std::uint32_t receiver = schedule_->connections[c].to.value();
  LaneState& state = lanes_[receiver];
  if (state.phase == Phase::wait_tail || state.phase == Phase::busy)
    return at(now(), settle_tails_code, receiver);  // by event: a pipeline would recurse
  state.phase = Phase::wait_time;
  at(arrival, try_lane_code, receiver);
}

void Executor::announce_head(std::uint32_t c) {
  ConnectionState& connection = connections_[c];
  const ConnectionCost& cost = costs_->connections[c];
  const std::int64_t payload = slice(c, connection.issued - 1).size;
  const std::int64_t grain = leg_rate_time(c, std::min(cost.grain.raw(), payload));
  const std::int64_t head = now() + grain + cost.latency.count();
  slice(c, connection.headed++).head = head;
  if (!connection.receiver_waits) return;
  connection.receiver_waits = false;
  const std::uint32_t receiver = schedule_->connections[c].to.value();
  lanes_[receiver].phase = Phase::wait_time;
  at(head, try_lane_code, receiver);
}

void Executor::wake_sender(std::uint32_t c, std::int64_t time) {
  ConnectionState& connection = connections_[c];
  if (!connection.sender_waits) return;
  connection.sender_waits = false;
  const std::uint32_t sender = schedule_->connections[c].from.value();
  lanes_[sender].phase = Phase::wait_time;
  at(time, try_lane_code, sender);
}

// The receiver has consumed a slice: its slot is free, or clear to send, once the sender knows.
void Executor::give_credit(std::uint32_t c) {
  ConnectionState& connection = connections_[c];
  const ConnectionCost& cost = costs_->connections[c];
  const std::int64_t free = now() + cost.credit_latency.count();
  slice(c, connection.consumed++).credit = free;
  if (!cost.staged) return wake_sender(c, free);
  if (has_queue_pairs(c)) {
    if (connection.consumed - 1 + fifo_ < connection.served) at(free, wire_code, c);
    return;
  }
  const bool awaited =
      connection.served > connection.wired && connection.consumed + fifo_ == connection.wired + 1;
  if (awaited && !connection.wire_busy) at(free, wire_code, c);
}

// Staged: the slice lies in the FIFO; a proxy serves its connections in order of arrival.
void Executor::post(std::uint32_t c) {
  const ConnectionCost& cost = costs_->connections[c];
  const std::uint32_t rank = cost.relay_rank != ConnectionCost::kNoRank
                                 ? cost.relay_rank
                                 : schedule_->lanes[schedule_->connections[c].from.index()].rank;
  const std::int64_t size = slice(c, connections_[c].posted++).size;
  std::int64_t& free = proxy_free_[rank];
  free = std::max(free, now()) + send_service_time(cost, bytes(wire(c, size))).count();
  if (free > now()) return at(free, served_code, c);
  served(c);
}

void Executor::served(std::uint32_t c) {
  const std::uint32_t message = connections_[c].served++;
  if (has_queue_pairs(c)) {
    const ConnectionCost& cost = costs_->connections[c];
    parts_left_[slot(c, message)] = cost.split ? queue_pairs(cost) : 1;
  }
  start_wire(c);
}

// One flow of a connection at a time, when the proxy has served it and the receiver has room.
void Executor::start_wire(std::uint32_t c) {
  if (has_queue_pairs(c)) return start_queue_pairs(c);
  ConnectionState& connection = connections_[c];
  const std::uint32_t next = connection.wired;
  if (connection.wire_busy || connection.served <= next || !is_cleared(c, next)) return;
  connection.wire_busy = true;
  network_->start(connection.flow, bytes(wire(c, slice(c, next).size)));
}

// Whether the receiver has room for the message; if not, the connection hears of it.
bool Executor::is_cleared(std::uint32_t c, std::uint32_t message) {
  if (!credits_ || message < fifo_) return true;
  if (connections_[c].consumed + fifo_ <= message) return false;  // give_credit() goes on with it
  const std::int64_t cleared = slice(c, message - fifo_).credit;
  if (cleared > now()) at(cleared, wire_code, c);
  return cleared <= now();
}

void Executor::wire_done(std::uint32_t c) {
  free_slot(c);
  connections_[c].wire_busy = false;
  start_wire(c);
  on_the_way(c);
}

void Executor::free_slot(std::uint32_t c) {
  ConnectionState& connection = connections_[c];
  slice(c, connection.wired++).completed = now() + costs_->connections[c].completion.count();
}

// The flow of the last message wired has ended: its sender, and then its receiver, hear of it.
void Executor::on_the_way(std::uint32_t c) {
  const ConnectionCost& cost = costs_->connections[c];
  wake_sender(c, now() + cost.completion.count());
  if (!is_served(cost)) return deliver(c, now() + cost.latency.count());
  if (cost.latency.count() == 0) return landed(c);
  at(now() + cost.latency.count(), landed_code, c);
}

// The connection's next message is there. An eager one is looked at in its turn among the rank's,
// and what comes behind it on the connection waits with it: whoever is called at that time takes
// it.
void Executor::landed(std::uint32_t c) {
  const std::uint32_t rank = schedule_->lanes[schedule_->connections[c].to.index()].rank;
  const ConnectionCost& cost = costs_->connections[c];
  ConnectionState& connection = connections_[c];
  const Bytes size = bytes(wire(c, slice(c, connection.sent).size));
  if (const std::int64_t interval = eager_interval(cost, size).count(); interval > 0) {
    if (connection.look == kNever) {
      connection.look = std::max(eager_free_[rank], now());
      eager_free_[rank] = connection.look + interval;
    }
    if (connection.look > now()) return at(connection.look, landed_code, c);
    connection.look = kNever;
  }
  const std::int64_t service = recv_service_time(cost, size).count();
  std::int64_t& free = proxy_free_[rank];
  const std::int64_t served = service == 0 ? now() : std::max(free, now()) + service;
  connection.seen = std::max(connection.seen, served);  // in order, whatever each of them takes
  free = std::max(free, connection.seen) + cost.recv_busy.count();
  deliver(c, connection.seen);
}

void Executor::report(std::uint32_t c, std::uint32_t sequence) {
  const SliceState& state = slice(c, sequence);
  const std::uint64_t multiplicity =
      schedule_->lanes[schedule_->connections[c].from.index()].multiplicity;
  const auto start = static_cast<std::uint64_t>(state.issue - origin_);
  const auto end = static_cast<std::uint64_t>(state.arrival - origin_);
  digest_ += mix_hash((std::uint64_t{c} << 32 | sequence) ^ mix_hash(start ^ mix_hash(end)));
  messages_ += static_cast<std::int64_t>(multiplicity);
  if (observer_ == nullptr) return;
  observer_->on_message(*schedule_, {ConnectionId(c), sequence, bytes(state.size),
                                     Time(Duration(state.issue)), Time(Duration(state.arrival))});
}

}  // namespace railyard::sim
