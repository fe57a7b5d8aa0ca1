#include "sim/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace railyard::sim {

void Executor::on_event(std::uint32_t code, std::uint32_t argument) {
  switch (code) {
    case try_lane_code: return try_lane(argument);
    case begin_code: return begin_first_flow(argument);
    case local_leg_code: return leg_done(argument);
    case settle_tails_code: return settle_tails(argument);
    case finish_slice_code: return finish_slice(argument);
    case end_lane_code: return end_lane(argument);
    case staged_leg_code: return leg_of_connection(argument);
    case post_code: return post(argument);
    case served_code: return served(argument);
    case wire_code: return start_wire(argument);
    case landed_code: return landed(argument);
    default: RAILYARD_CHECK(false, "unknown event");
  }
}

void Executor::at(std::int64_t time, std::uint32_t code, std::uint32_t argument) {
  queue_->schedule(Time(Duration(time)), *this, code, argument);
}

// For waits that no range bounds, such as the copy of a large slice at a low rate.
void Executor::after(std::int64_t wait, std::uint32_t code, std::uint32_t argument) {
  queue_->schedule(later(queue_->now(), Duration(wait)), *this, code, argument);
}

void Executor::start_rank(std::uint32_t rank) {
  if (origin_ < 0) origin_ = now();
  if (lanes_left_[rank] == 0) {  // nothing to do: an empty message
    --ranks_left_;
    if (listener_ != nullptr) listener_->on_rank_done(rank);
    return;
  }
  for (std::uint32_t g = first_group_[rank]; g < first_group_[rank + 1]; ++g)
    if (groups_[g].head) start_group(g);
}

void Executor::start_group(std::uint32_t group) {
  const LaneGroup range = groups_[group];
  const std::int64_t start = now() + (groups_[group].head ? costs_->start.count() : 0);
  for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
    const std::uint32_t lane = grouped_lanes_[i];
    const Lane& description = schedule_->lanes[lane];
    LaneState& state = lanes_[lane];
    RAILYARD_CHECK(state.phase == Phase::idle, "a rank starts once per run");
    state.loops = loop_count(schedule_->works[description.work]);
    if (state.loops == 0 || schedule_->programs[description.program.index()].empty()) {
      at(start, end_lane_code, lane);
      continue;
    }
    enter_loop(lane);
    // Through the queue: what listeners do must not meet a rank that is half started.
    state.phase = Phase::wait_time;
    state.ready_since = start;
    at(start, try_lane_code, lane);
  }
}

// The sizes of all chunks of a loop follow from two numbers; see block_region().
void Executor::enter_loop(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  const Work& work = schedule_->works[schedule_->lanes[lane].work];
  const Region first = block_region(work, state.loop, 0);
  state.chunk = first.size.raw();
  if (work.layout == Layout::rotating) state.rest = loop_bytes(work, state.loop).raw();
  state.op_index = 0;
  state.iteration = 0;
  enter_op(lane);
}

void Executor::enter_op(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  const Lane& description = schedule_->lanes[lane];
  const Work& work = schedule_->works[description.work];
  if (state.iteration == 0) {
    state.op = &schedule_->programs[description.program.index()][state.op_index];
    const std::int64_t blocks = work.blocks;
    const std::int64_t block = std::int64_t{state.op->block_base} +
                               std::int64_t{state.op->block_per_position} * description.position;
    state.block = static_cast<std::uint32_t>(((block % blocks) + blocks) % blocks);
    state.cut_through = false;
    for_recv(lane, [&](std::uint32_t c) {
      const ConnectionCost& cost = costs_->connections[c];
      state.cut_through = state.cut_through || (cost.grain.raw() > 0 && !cost.staged);
    });
  } else {
    const std::int64_t blocks = work.blocks;
    const std::int64_t next = std::int64_t{state.block} + state.op->block_step;
    const bool inside = next >= 0 && next < blocks;
    state.block = static_cast<std::uint32_t>(inside ? next : ((next % blocks) + blocks) % blocks);
  }
  state.op_bytes = state.chunk;
  if (work.layout == Layout::rotating) {
    const std::int64_t begin = std::min(state.rest, state.chunk * state.block);
    state.op_bytes = std::min(state.chunk, state.rest - begin);
  }
  state.even_slice = work.slices_per_chunk == 1
                         ? state.op_bytes
                         : slice_region(work, {Bytes{}, bytes(state.op_bytes)}, 0).size.raw();
  state.slice = 0;
  set_slice(lane);
}

void Executor::set_slice(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  const std::int64_t begin = std::min(state.op_bytes, state.even_slice * state.slice);
  state.slice_bytes = std::min(state.even_slice, state.op_bytes - begin);
}

// To the next slice, operation or loop; false at the end of the lane's work.
bool Executor::advance(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  const Lane& description = schedule_->lanes[lane];
  if (++state.slice < schedule_->works[description.work].slices_per_chunk) {
    set_slice(lane);
    return true;
  }
  if (++state.iteration >= state.op->repeat) {
    state.iteration = 0;
    if (++state.op_index >= schedule_->programs[description.program.index()].size()) {
      if (++state.loop >= state.loops) return false;
      enter_loop(lane);
      return true;
    }
  }
  enter_op(lane);
  return true;
}

void Executor::try_lane(std::uint32_t lane) {
  if (ready(lane)) begin(lane);
}

// False when an incoming slice is not under way yet; else `time` becomes the latest arrival.
bool Executor::inputs_ready(std::uint32_t lane, std::int64_t& time) {
  bool known = true;
  const auto wait_on = [&](std::uint32_t c) {
    connections_[c].receiver_waits = true;
    lanes_[lane].waits_on = c;
    known = false;
  };
  for_wait(lane, [&](std::uint32_t c) {
    if (known && connections_[c].sent == connections_[c].consumed) wait_on(c);
  });
  for_recv(lane, [&](std::uint32_t c) {
    if (!known) return;
    const ConnectionState& connection = connections_[c];
    const std::uint32_t sequence = connection.consumed + lanes_[lane].op->recv_part.ahead;
    if (connection.headed > sequence) {
      time = std::max(time, slice(c, sequence).head);
    } else if (connection.sent > sequence) {
      time = std::max(time, slice(c, sequence).arrival);
    } else {
      wait_on(c);
    }
  });
  return known;
}

// False when a FIFO is full; else `time` becomes the latest time at which a slot is free again.
bool Executor::slots_ready(std::uint32_t lane, std::int64_t& time) {
  if (!credits_) return true;
  bool known = true;
  for_send(lane, [&](std::uint32_t c) {
    ConnectionState& connection = connections_[c];
    const std::uint32_t sequence = connection.issued + lanes_[lane].op->send_part.ahead;
    if (!known || sequence < fifo_ || sequence < connection.begun) return;
    const bool staged = costs_->connections[c].staged;
    if ((staged ? connection.wired : connection.consumed) + fifo_ > sequence) {
      const SliceState& freed = slice(c, sequence - fifo_);
      time = std::max(time, staged ? freed.completed : freed.credit);
    } else {
      connection.sender_waits = true;
      lanes_[lane].waits_on = c;
      known = false;
    }
  });
  return known;
}

bool Executor::ready(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  std::int64_t time = now();
  if (!inputs_ready(lane, time)) {
    state.phase = Phase::wait_data;
    return false;
  }
  if (!slots_ready(lane, time)) {
    state.phase = Phase::wait_credit;
    return false;
  }
  if (time <= now()) return true;
  state.phase = Phase::wait_time;
  at(time, try_lane_code, lane);
  return false;
}

void Executor::begin(std::uint32_t lane) {
  lanes_[lane].phase = Phase::busy;
  lanes_[lane].slice_end = 0;
  for_wait(lane, [&](std::uint32_t c) { ++connections_[c].consumed; });
  open_slices(lane);
  const Duration overhead = costs_->lanes[lane].op_overhead;
  if (overhead.count() > 0) return at(now() + overhead.count(), begin_code, lane);
  begin_first_flow(lane);
}

// A slice is as long as its last part reaches, and is issued unless it stays open.
void Executor::open_slices(std::uint32_t lane) {
  const MessagePart part = lanes_[lane].op->send_part;
  const std::int64_t reach = lanes_[lane].slice_bytes * (part.index + 1);
  for_send(lane, [&](std::uint32_t c) {
    ConnectionState& connection = connections_[c];
    const std::uint32_t sequence = connection.issued + part.ahead;
    for (; connection.begun <= sequence; ++connection.begun) {
      slice(c, connection.begun).issue = now();
      slice(c, connection.begun).size = 0;
    }
    std::int64_t& size = slice(c, sequence).size;
    connection.growth = std::max(size, reach) - size;
    size += connection.growth;
    if (!part.more) ++connection.issued;
  });
}

void Executor::begin_first_flow(std::uint32_t lane) {
  const LaneCost& cost = costs_->lanes[lane];
  if (cost.in_switch)
    return network_->start(lane_flows_[lane],
                           wire_bytes(*cost.in_switch, bytes(lanes_[lane].slice_bytes)));
  const std::int64_t fetched = fetched_bytes(lane);
  if (fetched == 0) return begin_legs(lane);
  network_->start(lane_flows_[lane], wire_bytes(*cost.fetch, bytes(fetched)));
}

// What the slice under way loads from the host's memory.
std::int64_t Executor::fetched_bytes(std::uint32_t lane) const {
  if (!costs_->lanes[lane].fetch) return 0;
  std::int64_t inputs = 0;
  for_recv(lane, [&](std::uint32_t c) { inputs += costs_->connections[c].fetched ? 1 : 0; });
  return inputs * lanes_[lane].slice_bytes;
}

// When the legs of the slice that begins end at the earliest, see keep_time() and poll_time().
std::int64_t Executor::least_end(std::uint32_t lane) const {
  const LaneCost& cost = costs_->lanes[lane];
  const LaneState& state = lanes_[lane];
  std::int64_t end = cost.poll_unit.raw() > 0 ? polled_until(lane) : 0;
  if (cost.keep_rate.raw() == 0) return end;
  // No later than the clock can show a hop after it.
  constexpr Duration kMost = Duration::max() / 2 - microseconds(1'000'000);
  const Duration kept =
      std::min(kMost, keep_time(cost, state.op->primitive, bytes(state.slice_bytes)));
  return std::max(end, now() + kept.count());
}

// When the slices under way have been looked at.
std::int64_t Executor::polled_until(std::uint32_t lane) const {
  const LaneState& state = lanes_[lane];
  if (!receives_now(lane)) return 0;
  const Duration poll = poll_time(costs_->lanes[lane], bytes(state.slice_bytes));
  std::int64_t from = state.ready_since;
  for_recv(lane, [&](std::uint32_t c) {
    const ConnectionCost& cost = costs_->connections[c];
    const std::uint32_t sequence = connections_[c].consumed + state.op->recv_part.ahead;
    if (!cost.staged) from = std::max(from, slice(c, sequence).issue + cost.latency.count());
  });
  return poll.count() == 0 ? 0 : from + poll.count();
}

std::int64_t Executor::copy_time(std::int64_t size, Bandwidth rate) const {
  return rate.raw() == 0 ? 0 : transfer_time(bytes(size), rate).count();
}

void Executor::begin_legs(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  const Lane& description = schedule_->lanes[lane];
  state.least_end = least_end(lane);
  state.pending = 1;  // ours, until all legs have begun
  for_send(lane, [&](std::uint32_t c) {
    const ConnectionCost& cost = costs_->connections[c];
    ++state.pending;
    if (cost.staged)
      return after(copy_time(wire(c, state.slice_bytes), cost.cap), staged_leg_code, c);
    const bool tells = !state.op->send_part.more && !state.op->holds;
    if (cost.grain.raw() > 0 && tells) announce_head(c);
    network_->start(connections_[c].flow, bytes(wire(c, connections_[c].growth)));
  });
  if (state.pending == 1 || description.send_count == 0 || !sends_now(lane)) {
    const bool copies = state.op->primitive != Primitive::nop && fetched_bytes(lane) == 0;
    const std::int64_t size = copies ? state.slice_bytes : 0;
    const std::int64_t time = copy_time(size, costs_->lanes[lane].local_rate);
    if (time > 0) return after(time, local_leg_code, lane);
  }
  leg_done(lane);
}

void Executor::leg_done(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  --state.pending;
  if (state.cut_through) return settle_tails(lane);
  if (state.pending > 0) return;
  if (state.least_end <= now()) return finish_slice(lane);
  state.phase = Phase::wait_time;
  at(state.least_end, finish_slice_code, lane);
}

// Whether all inputs of the slice under way have arrived; if not, the lane hears of the first that
// has not.
bool Executor::tails_known(std::uint32_t lane) {
  bool known = true;
  for_recv(lane, [&](std::uint32_t c) {
    ConnectionState& connection = connections_[c];
    if (!known || connection.sent > connection.consumed) return;
    connection.receiver_waits = true;
    lanes_[lane].waits_on = c;
    known = false;
  });
  return known;
}

// When the last cut-through input and one more grain of it are through; `c` is the outgoing
// connection, or kLocal for the copy into the output.
std::int64_t Executor::held_until(std::uint32_t lane, std::uint32_t c) const {
  std::int64_t held = 0;
  for_recv(lane, [&](std::uint32_t input) {
    const ConnectionCost& cost = costs_->connections[input];
    if (cost.grain.raw() == 0 || cost.staged) return;
    const std::int64_t grain = std::min(cost.grain.raw(), lanes_[lane].slice_bytes);
    const std::int64_t time =
        c == kLocal ? copy_time(grain, costs_->lanes[lane].local_rate) : leg_rate_time(c, grain);
    held = std::max(held, slice(input, connections_[input].consumed).arrival + time);
  });
  return held;
}

// A slice that began on the heads of its inputs ends no earlier than their tails plus one grain, on
// each leg by itself.
void Executor::settle_tails(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  if (state.phase != Phase::busy && state.phase != Phase::wait_tail) return;  // a late notice
  if (!tails_known(lane)) {
    if (state.pending == 0) state.phase = Phase::wait_tail;
    return;
  }
  for_send(lane, [&](std::uint32_t c) {
    ConnectionState& connection = connections_[c];
    if (!std::exchange(connection.leg_ended, false)) return;
    const std::int64_t leg_end =
        std::max(slice(c, connection.issued - 1).arrival, held_until(lane, c));
    state.slice_end = std::max(state.slice_end, leg_end);
    hand_over(c, leg_end);
  });
  if (state.pending > 0) return;
  std::int64_t end = std::max({now(), state.slice_end, state.least_end});
  if (!sends_now(lane)) end = std::max(end, held_until(lane, kLocal));
  // Not busy any more: a late notice of the tail must not finish the slice a second time.
  state.phase = Phase::wait_time;
  if (end > now()) return at(end, finish_slice_code, lane);
  finish_slice(lane);
}

void Executor::finish_slice(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  if (!state.op->recv_part.more) for_recv(lane, [&](std::uint32_t c) { give_credit(c); });
  if (state.op->holds)
    state.holds = true;
  else if (std::exchange(state.holds, false))
    tell_held(lane);
  if (state.op->signal_slots != 0) give_signals(lane);
  if (!advance(lane)) return end_lane(lane);
  state.phase = Phase::wait_time;
  state.ready_since = now();
  // Slices that take no time would recurse without bound; they go through the queue instead.
  if (!ready(lane)) return;
  at(now(), try_lane_code, lane);
}

void Executor::tell_held(std::uint32_t lane) {
  const Lane& description = schedule_->lanes[lane];
  const auto tell = [&](std::uint32_t c) {
    ConnectionState& connection = connections_[c];
    const ConnectionCost& cost = costs_->connections[c];
    if (cost.staged) {
      while (connection.posted < connection.issued) post(c);
      return;
    }
    const std::int64_t arrival = now() + cost.latency.count();
    while (connection.sent < connection.issued) {
      if (cost.grain.raw() > 0) slice(c, connection.headed++).head = arrival;
      deliver(c, arrival);
    }
  };
  for_slots(description.first_send, description.send_count, kAllSlots, tell);
}

void Executor::give_signals(std::uint32_t lane) {
  const Lane& description = schedule_->lanes[lane];
  const LaneState& state = lanes_[lane];
  const bool last = state.slice + 1U == schedule_->works[description.work].slices_per_chunk &&
                    state.iteration + 1 == state.op->repeat;
  if (!last) return;
  const auto give = [&](std::uint32_t c) {
    ++connections_[c].sent;
    if (!std::exchange(connections_[c].receiver_waits, false)) return;
    const std::uint32_t receiver = schedule_->connections[c].to.value();
    lanes_[receiver].phase = Phase::wait_time;
    at(now(), try_lane_code, receiver);
  };
  for_slots(description.first_send, description.send_count, state.op->signal_slots, give);
}

void Executor::end_lane(std::uint32_t lane) {
  lanes_[lane].phase = Phase::done;
  const std::uint32_t rank = schedule_->lanes[lane].rank;
  LaneGroup& group = groups_[group_of_[lane]];
  const bool last_of_rank = --lanes_left_[rank] == 0;
  if (--group.left == 0 && group.more) start_group(group_of_[lane] + 1);
  if (!last_of_rank) return;
  --ranks_left_;
  if (listener_ != nullptr) listener_->on_rank_done(rank);
}

std::vector<std::string> Executor::waiting_lanes(std::size_t limit, const Group& group) const {
  const auto rank_of = [&](const Lane& lane) { return group[lane.rank].rank.value(); };
  std::vector<std::string> lines;
  for (std::size_t l = 0; l < lanes_.size() && lines.size() < limit; ++l) {
    const LaneState& state = lanes_[l];
    if (state.phase == Phase::done) continue;
    const Lane& lane = schedule_->lanes[l];
    std::string text =
        fmt::format("rank {} channel {} {}: ", rank_of(lane), lane.channel, to_text(lane.role));
    if (state.phase == Phase::idle) {
      text += "not started";
    } else if (state.phase == Phase::wait_data || state.phase == Phase::wait_tail) {
      const Lane& peer = schedule_->lanes[schedule_->connections[state.waits_on].from.index()];
      const bool signal = schedule_->connections[state.waits_on].signal;
      text += fmt::format("{} waits for {} of rank {}", to_text(state.op->primitive),
                          signal ? "a signal" : "data", rank_of(peer));
    } else if (state.phase == Phase::wait_credit) {
      const Lane& peer = schedule_->lanes[schedule_->connections[state.waits_on].to.index()];
      text += fmt::format("{} waits for a free slot at rank {}", to_text(state.op->primitive),
                          rank_of(peer));
    } else {
      text += fmt::format("{} under way", to_text(state.op->primitive));
    }
    lines.push_back(std::move(text));
  }
  return lines;
}

}  // namespace railyard::sim
