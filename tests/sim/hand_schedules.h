// Schedules made by hand, from the documentation of sim/schedule.h alone, for the tests of sim/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/schedule.h"

namespace railyard::tests {

// Lanes and connections in any order; done() lays out the slots.
class HandSchedule {
 public:
  HandSchedule(const sim::CollectiveCall& call, std::uint32_t ranks) {
    schedule_.call = call;
    schedule_.ranks = ranks;
    schedule_.channels = 1;
  }

  std::uint32_t work(const sim::Work& work) {
    schedule_.works.push_back(work);
    return static_cast<std::uint32_t>(schedule_.works.size() - 1);
  }

  sim::LaneId lane(std::uint32_t rank, sim::Program program, sim::LaneRole role,
                   std::uint32_t position = 0, std::uint32_t work = 0) {
    sim::Lane lane;
    lane.rank = rank;
    lane.role = role;
    lane.position = position;
    lane.work = work;
    lane.program = sim::ProgramId(schedule_.programs.size());
    schedule_.programs.push_back(std::move(program));
    schedule_.lanes.push_back(lane);
    return sim::LaneId(schedule_.lanes.size() - 1);
  }

  void connect(sim::LaneId from, sim::LaneId to) {
    sim::Connection connection;
    connection.from = from;
    connection.to = to;
    schedule_.connections.push_back(connection);
  }

  sim::Schedule& raw() { return schedule_; }

  sim::Schedule done() const {
    sim::Schedule schedule = schedule_;
    for (std::size_t l = 0; l < schedule.lanes.size(); ++l) {
      sim::Lane& lane = schedule.lanes[l];
      lane.first_recv = static_cast<std::uint32_t>(schedule.slots.size());
      for (std::size_t c = 0; c < schedule.connections.size(); ++c)
        if (schedule.connections[c].to == sim::LaneId(l))
          schedule.slots.push_back(sim::ConnectionId(c));
      lane.first_send = static_cast<std::uint32_t>(schedule.slots.size());
      lane.recv_count = lane.first_send - lane.first_recv;
      for (std::size_t c = 0; c < schedule.connections.size(); ++c)
        if (schedule.connections[c].from == sim::LaneId(l))
          schedule.slots.push_back(sim::ConnectionId(c));
      lane.send_count = static_cast<std::uint32_t>(schedule.slots.size()) - lane.first_send;
    }
    return schedule;
  }

 private:
  sim::Schedule schedule_;
};

inline sim::Work linear_work(std::int64_t size, std::int64_t chunk) {
  sim::Work work;
  work.layout = sim::Layout::linear;
  work.size = sim::bytes(size);
  work.chunk = sim::bytes(chunk);
  return work;
}

inline sim::Op op(sim::Primitive primitive, std::uint32_t repeat = 1, std::int32_t base = 0,
                  std::int32_t per_position = 0, std::int32_t step = 0) {
  sim::Op op;
  op.primitive = primitive;
  op.repeat = repeat;
  op.block_base = base;
  op.block_per_position = per_position;
  op.block_step = step;
  return op;
}

// An op that may be repeated zero times is left out.
inline void append(sim::Program& program, const sim::Op& op) {
  if (op.repeat > 0) program.push_back(op);
}

inline sim::CollectiveCall call_of(sim::Collective collective, std::int64_t size,
                                   std::uint32_t root = 0) {
  sim::CollectiveCall call;
  call.collective = collective;
  call.size = sim::bytes(size);
  call.root = root;
  call.element_size = 1;
  return call;
}

// One lane per rank, ring 0 -> 1 -> ... -> 0, all with one program.
inline HandSchedule ring(const sim::CollectiveCall& call, std::uint32_t n, const sim::Work& work,
                         const sim::Program& program) {
  HandSchedule hand(call, n);
  hand.work(work);
  for (std::uint32_t r = 0; r < n; ++r) hand.lane(r, program, sim::LaneRole::ring, r);
  for (std::uint32_t r = 0; r < n; ++r) hand.connect(sim::LaneId(r), sim::LaneId((r + 1) % n));
  return hand;
}

// n >= 2: send p-1; reduce p-2, p-3, ...; finish p; pass p-1, p-2, ...; take p+1.
inline HandSchedule ring_all_reduce(std::uint32_t n, std::int64_t size, std::int64_t chunk,
                                    std::int64_t align = 1) {
  using P = sim::Primitive;
  sim::Work work;
  work.layout = sim::Layout::rotating;
  work.size = sim::bytes(size);
  work.chunk = sim::bytes(chunk);
  work.blocks = n;
  work.align = align;
  sim::Program program{op(P::send, 1, -1, 1)};
  append(program, op(P::recv_reduce_send, n - 2, -2, 1, -1));
  append(program, op(P::recv_reduce_copy_send, 1, 0, 1));
  append(program, op(P::recv_copy_send, n - 2, -1, 1, -1));
  append(program, op(P::recv, 1, 1, 1));
  return ring(call_of(sim::Collective::all_reduce, size), n, work, program);
}

inline sim::Work per_rank_work(std::uint32_t n, std::int64_t size, std::int64_t chunk) {
  sim::Work work;
  work.layout = sim::Layout::per_rank;
  work.size = sim::bytes(size);
  work.chunk = sim::bytes(chunk);
  work.stride = sim::bytes(size);
  work.blocks = n;
  return work;
}

inline HandSchedule ring_all_gather(std::uint32_t n, std::int64_t size, std::int64_t chunk) {
  using P = sim::Primitive;
  sim::Work work = per_rank_work(n, size, chunk);
  work.single_block_input = true;
  sim::Program program{op(P::copy_send, 1, 0, 1)};
  append(program, op(P::recv_copy_send, n - 2, -1, 1, -1));
  append(program, op(P::recv, 1, 1, 1));
  return ring(call_of(sim::Collective::all_gather, size), n, work, program);
}

inline HandSchedule ring_reduce_scatter(std::uint32_t n, std::int64_t size, std::int64_t chunk) {
  using P = sim::Primitive;
  sim::Work work = per_rank_work(n, size, chunk);
  work.single_block_output = true;
  sim::Program program{op(P::send, 1, -1, 1)};
  append(program, op(P::recv_reduce_send, n - 2, -2, 1, -1));
  append(program, op(P::recv_reduce_copy, 1, 0, 1));
  return ring(call_of(sim::Collective::reduce_scatter, size), n, work, program);
}

// 0 -> 1 -> ... -> n-1.
inline HandSchedule broadcast_chain(std::uint32_t n, std::int64_t size, std::int64_t chunk) {
  using P = sim::Primitive;
  HandSchedule hand(call_of(sim::Collective::broadcast, size), n);
  hand.work(linear_work(size, chunk));
  for (std::uint32_t r = 0; r < n; ++r) {
    const P what = r == 0 ? P::copy_send : r + 1 < n ? P::recv_copy_send : P::recv;
    hand.lane(r, {op(what)}, sim::LaneRole::ring, r);
  }
  for (std::uint32_t r = 0; r + 1 < n; ++r) hand.connect(sim::LaneId(r), sim::LaneId(r + 1));
  return hand;
}

// Root 0 with leaves 1 and 2. Lanes: 0 root, 1 and 2 up, 3 and 4 down. Connections: 0 and 1 up,
// 2 and 3 down.
inline HandSchedule tree_of_three(std::int64_t size, std::int64_t chunk) {
  using P = sim::Primitive;
  HandSchedule hand(call_of(sim::Collective::all_reduce, size), 3);
  hand.work(linear_work(size, chunk));
  const auto root = hand.lane(0, {op(P::recv_reduce_copy_send)}, sim::LaneRole::tree_root);
  const auto up1 = hand.lane(1, {op(P::send)}, sim::LaneRole::tree_up);
  const auto up2 = hand.lane(2, {op(P::send)}, sim::LaneRole::tree_up);
  const auto down1 = hand.lane(1, {op(P::recv)}, sim::LaneRole::tree_down);
  const auto down2 = hand.lane(2, {op(P::recv)}, sim::LaneRole::tree_down);
  hand.connect(up1, root);
  hand.connect(up2, root);
  hand.connect(root, down1);
  hand.connect(root, down2);
  return hand;
}

// One send and one receive lane per ordered pair of ranks, one local lane per rank.
inline HandSchedule all_to_all(std::uint32_t n, std::int64_t size, std::int64_t chunk) {
  using P = sim::Primitive;
  const std::int64_t block = size / n;
  HandSchedule hand(call_of(sim::Collective::all_to_all, size), n);
  const auto place = [&](std::uint32_t in, std::uint32_t out) {
    sim::Work work = linear_work(block, chunk);
    work.input_shift = sim::bytes(block * in);
    work.output_shift = sim::bytes(block * out);
    return hand.work(work);
  };
  for (std::uint32_t i = 0; i < n; ++i)
    for (std::uint32_t j = 0; j < n; ++j) {
      if (i == j) {
        hand.lane(i, {op(P::copy)}, sim::LaneRole::local, 0, place(i, i));
        continue;
      }
      const auto from = hand.lane(i, {op(P::send)}, sim::LaneRole::p2p_send, 0, place(j, 0));
      const auto to = hand.lane(j, {op(P::recv)}, sim::LaneRole::p2p_recv, 0, place(0, i));
      hand.connect(from, to);
    }
  return hand;
}

}  // namespace railyard::tests
