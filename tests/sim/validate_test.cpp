#include "sim/validate.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

using tests::op;

std::string refusal(const Schedule& schedule) {
  const Result<void> result = validate(schedule);
  return result.ok() ? "" : result.error().text();
}

// The ring AllReduce of three ranks after one change.
std::string changed_ring(const std::function<void(Schedule&)>& change) {
  Schedule schedule = tests::ring_all_reduce(3, 12, 4).done();
  change(schedule);
  return refusal(schedule);
}

TEST_CASE("validate: hand-made schedules pass") {
  CHECK(refusal(tests::ring_all_reduce(2, 100, 16).done()).empty());
  CHECK(refusal(tests::ring_all_reduce(8, 1000, 16).done()).empty());
  CHECK(refusal(tests::ring_all_gather(5, 100, 16).done()).empty());
  CHECK(refusal(tests::ring_reduce_scatter(5, 100, 16).done()).empty());
  CHECK(refusal(tests::broadcast_chain(4, 100, 16).done()).empty());
  CHECK(refusal(tests::tree_of_three(100, 16).done()).empty());
  CHECK(refusal(tests::all_to_all(4, 64, 4).done()).empty());
}

TEST_CASE("validate: every field out of range is named") {
  CHECK(changed_ring([](Schedule& s) { s.ranks = 0; }) == "schedule: it has no ranks");
  CHECK(changed_ring([](Schedule& s) { s.fifo_slices = 0; }) ==
        "schedule: fifo_slices is 0; a connection needs a slot");
  CHECK(changed_ring([](Schedule& s) { s.call.root = 3; }) ==
        "schedule: root 3 is not one of 3 ranks");
  CHECK(changed_ring([](Schedule& s) { s.call.size = bytes(-1); }) ==
        "schedule: the call's size is negative");
  CHECK(changed_ring([](Schedule& s) { s.lanes[1].rank = 7; }) ==
        "schedule: lane 1: rank 7 is not one of 3");
  CHECK(changed_ring([](Schedule& s) { s.lanes[1].program = {}; }) ==
        "schedule: lane 1 (rank 1): program id out of range");
  CHECK(changed_ring([](Schedule& s) { s.lanes[1].work = 1; }) ==
        "schedule: lane 1 (rank 1): work 1 out of range");
  CHECK(changed_ring([](Schedule& s) { s.lanes[1].multiplicity = 0; }) ==
        "schedule: lane 1 (rank 1): multiplicity is 0");
  CHECK(changed_ring([](Schedule& s) { s.lanes[1].first_send = 6; }) ==
        "schedule: lane 1 (rank 1): slots out of range");
  CHECK(changed_ring([](Schedule& s) { s.connections[2].to = {}; }) ==
        "schedule: connection 2 has an end that is no lane");
  CHECK(changed_ring([](Schedule& s) { s.programs[0][1].repeat = 0; }) ==
        "schedule: program 0: an op with repeat 0");
}

std::string changed_work(const std::function<void(Work&)>& change) {
  return changed_ring([&](Schedule& s) { change(s.works[0]); });
}

TEST_CASE("validate: works") {
  CHECK(changed_work([](Work& w) { w.chunk = bytes(0); }) ==
        "schedule: work 0: chunk must be positive");
  CHECK(changed_work([](Work& w) { w.size = bytes(-1); }) == "schedule: work 0: size is negative");
  CHECK(changed_work([](Work& w) { w.offset = bytes(-1); }) ==
        "schedule: work 0: offset is negative");
  CHECK(changed_work([](Work& w) { w.stride = bytes(-1); }) ==
        "schedule: work 0: stride is negative");
  CHECK(changed_work([](Work& w) { w.min_slice = bytes(-1); }) ==
        "schedule: work 0: min_slice is negative");
  CHECK(changed_work([](Work& w) { w.blocks = 0; }) == "schedule: work 0: blocks is 0");
  CHECK(changed_work([](Work& w) { w.slices_per_chunk = 0; }) ==
        "schedule: work 0: slices_per_chunk is 0");
  CHECK(changed_work([](Work& w) { w.align = 0; }) == "schedule: work 0: align must be positive");
  CHECK(changed_work([](Work& w) { w.slice_align = 0; }) ==
        "schedule: work 0: slice_align must be positive");
  CHECK(changed_work([](Work& w) { w.single_block_input = true; }) ==
        "schedule: work 0: single_block_* is for the layout per_rank only");
  CHECK(changed_work([](Work& w) { w.block_order = 0; }) ==
        "schedule: work 0: block_order is for the layout per_rank only");
}

TEST_CASE("validate: block orders are permutations of the ranks") {
  tests::HandSchedule hand = tests::ring_all_gather(3, 8, 8);
  hand.raw().works[0].block_order = 0;
  CHECK(refusal(hand.done()) == "schedule: work 0: block order 0 out of range");
  hand.raw().block_orders = {{0, 1, 1}};
  CHECK(refusal(hand.done()) == "schedule: block order 0 is no permutation of the ranks");
  hand.raw().block_orders = {{0, 1}};
  CHECK(refusal(hand.done()) == "schedule: block order 0 is no permutation of the ranks");
  hand.raw().block_orders = {{2, 1, 0}};
  CHECK(refusal(hand.done()).empty());
  hand.raw().works[0].blocks = 4;
  CHECK(refusal(hand.done()) == "schedule: work 0: more blocks than its block order has ranks");
}

TEST_CASE("validate: slots and connection ends agree") {
  CHECK(changed_ring([](Schedule& s) { s.connections[0].from = LaneId(2); }) ==
        "schedule: lane 0 sends on connection 0, whose sender is lane 2");
  CHECK(changed_ring([](Schedule& s) { s.connections[0].to = LaneId(2); }) ==
        "schedule: lane 1 receives from connection 0, whose receiver is lane 2");
  CHECK(changed_ring([](Schedule& s) { s.slots[0] = ConnectionId(9); }) ==
        "schedule: lane 0: slot 0 names no connection");
  CHECK(changed_ring([](Schedule& s) {
          s.connections.push_back({LaneId(0), LaneId(1), {}, {}, {}});
        }) == "schedule: connection 3 has no slot at its sender");
  CHECK(changed_ring([](Schedule& s) {
          s.connections.push_back({LaneId(0), LaneId(1), {}, {}, {}});
          s.slots.push_back(s.slots[s.lanes[0].first_send]);
          s.slots.push_back(ConnectionId(3));
          s.lanes[0].first_send = 6;
          s.lanes[0].send_count = 2;
        }) == "schedule: connection 3 has no slot at its receiver");
  CHECK(changed_ring([](Schedule& s) {
          const ConnectionId twice = s.slots[s.lanes[0].first_send];
          s.slots.insert(s.slots.end(), {twice, twice});
          s.lanes[0].first_send = 6;
          s.lanes[0].send_count = 2;
        }) == "schedule: lane 0 sends on connection 0 in two slots");
}

TEST_CASE("validate: operations have the peers they need") {
  CHECK(changed_ring([](Schedule& s) { s.programs[0][0].send_slots = 0; }) ==
        "schedule: lane 0 (rank 0), op 0 (send): it sends, but to no connection");
  CHECK(
      changed_ring([](Schedule& s) { s.programs[0][0].send_slots = 0b10; }) ==
      "schedule: lane 0 (rank 0), op 0 (send): send_slots names a connection that the lane lacks");
  CHECK(changed_ring([](Schedule& s) { s.programs[0][1].recv_slots = 0; }) ==
        "schedule: lane 0 (rank 0), op 1 (recvReduceSend): it receives, but from no connection");
  CHECK(changed_ring([](Schedule& s) { s.programs[0][1].recv_slots = 0b101; }) ==
        "schedule: lane 0 (rank 0), op 1 (recvReduceSend): recv_slots names a connection that the "
        "lane lacks");
  Schedule tree = tests::tree_of_three(4, 4).done();
  tree.programs[0][0].primitive = Primitive::recv_copy_send;
  CHECK(refusal(tree) ==
        "schedule: lane 0 (rank 0), op 0 (recvCopySend): it receives from several connections "
        "without a sum");
}

TEST_CASE("validate: both ends move the same slices in the same order") {
  tests::HandSchedule hand = tests::broadcast_chain(2, 12, 4);
  hand.raw().programs[0][0].repeat = 2;
  CHECK(refusal(hand.done()) ==
        "schedule: connection 0 (lane 0 -> lane 1): 6 slices are sent and 3 received");
  hand.raw().programs[0][0].repeat = 1;
  hand.raw().lanes[1].work = hand.work(tests::linear_work(11, 4));
  CHECK(refusal(hand.done()) ==
        "schedule: connection 0 (lane 0 -> lane 1): slice 2 is sent with 4 bytes and received with "
        "3");
}

// Both receive before they send.
TEST_CASE("validate: a circular wait is named, lane by lane") {
  tests::HandSchedule hand(tests::call_of(Collective::all_reduce, 4), 2);
  hand.work(tests::linear_work(4, 4));
  const Program program{op(Primitive::recv), op(Primitive::send)};
  const LaneId a = hand.lane(0, program, LaneRole::ring);
  const LaneId b = hand.lane(1, program, LaneRole::ring);
  hand.connect(a, b);
  hand.connect(b, a);
  const Result<void> result = validate(hand.done());
  REQUIRE(!result.ok());
  CHECK(result.error().code == ErrorCode::would_hang);
  CHECK(result.error().message ==
        "schedule: it never ends: lane 0 (rank 0, channel 0, ring) at operation 0 (loop 0 op 0.0 "
        "slice 0 recv) waits for slice 0 from lane 1 on connection 1; lane 1 (rank 1, channel 0, "
        "ring) at operation 0 (loop 0 op 0.0 slice 0 recv) waits for slice 0 from lane 0 on "
        "connection 0; lane 0 (rank 0, channel 0, ring) closes the circle");
}

// Each sends three slices and then receives three: ends with a FIFO of 3 slices, hangs with 2.
TEST_CASE("validate: the FIFO depth decides whether two senders hang") {
  tests::HandSchedule hand(tests::call_of(Collective::all_reduce, 4), 2);
  hand.work(tests::linear_work(4, 4));
  const Program program{op(Primitive::send, 3), op(Primitive::recv, 3)};
  const LaneId a = hand.lane(0, program, LaneRole::ring);
  const LaneId b = hand.lane(1, program, LaneRole::ring);
  hand.connect(a, b);
  hand.connect(b, a);
  hand.raw().fifo_slices = 3;
  CHECK(refusal(hand.done()).empty());
  hand.raw().fifo_slices = 2;
  CHECK(refusal(hand.done())
            .find("at operation 2 (loop 0 op 0.2 slice 0 send) waits for a slot "
                  "for slice 2 at lane 1 on connection 0; lane 1") != std::string::npos);
  CHECK(validate_structure(hand.done()).ok());
}

// The sender of a slice is in a batch after its receiver's, on the same rank and channel.
TEST_CASE("validate: batches that wait for each other hang") {
  tests::HandSchedule hand(tests::call_of(Collective::all_to_all, 8), 1);
  hand.work(tests::linear_work(4, 4));
  const LaneId from = hand.lane(0, {op(Primitive::send)}, LaneRole::p2p_send);
  const LaneId to = hand.lane(0, {op(Primitive::recv)}, LaneRole::p2p_recv);
  hand.connect(from, to);
  CHECK(refusal(hand.done()).empty());
  hand.raw().lanes[0].batch = 1;
  CHECK(
      refusal(hand.done()) ==
      "schedule: it never ends: lane 0 (rank 0, channel 0, p2pSend) waits for the earlier batch of "
      "lane 1; lane 1 (rank 0, channel 0, p2pRecv) at operation 0 (loop 0 op 0.0 slice 0 recv) "
      "waits for slice 0 from lane 0 on connection 0; lane 0 (rank 0, channel 0, p2pSend) closes "
      "the circle");
}

ScheduleTotals counted(const Schedule& schedule) {
  ScheduleTotals totals;
  for (const ExpandedLane& lane : expand(schedule).lanes)
    for (const SliceOp& slice : lane.ops) {
      totals.messages += static_cast<std::int64_t>(slice.send.size());
      totals.payload += slice.size * static_cast<std::int64_t>(slice.send.size());
    }
  return totals;
}

void check_totals(const Schedule& schedule) {
  const ScheduleTotals fast = totals(schedule);
  const ScheduleTotals slow = counted(schedule);
  CHECK(fast.messages == slow.messages);
  CHECK(fast.payload == slow.payload);
}

TEST_CASE("validate: totals without expansion are those of the expansion") {
  for (std::uint32_t n = 2; n <= 9; ++n)
    for (const std::int64_t size : {1, 7, 16, 63, 64, 65, 500, 1000}) {
      CAPTURE(n);
      CAPTURE(size);
      check_totals(tests::ring_all_reduce(n, size, 16, 16).done());
      check_totals(tests::ring_all_reduce(n, size, 10).done());
      check_totals(tests::ring_all_gather(n, size, 16).done());
      check_totals(tests::ring_reduce_scatter(n, size, 16).done());
      check_totals(tests::broadcast_chain(n, size, 16).done());
    }
  check_totals(tests::tree_of_three(100, 16).done());
  check_totals(tests::all_to_all(4, 64, 5).done());
}

TEST_CASE("validate: totals of any block step and repeat") {
  for (const std::int32_t step : {-3, -1, 0, 1, 2})
    for (const std::uint32_t repeat : {1U, 4U, 5U, 13U}) {
      tests::HandSchedule hand = tests::ring_all_reduce(5, 47, 16);
      hand.raw().works[0].slices_per_chunk = 2;
      for (Program& program : hand.raw().programs)
        program = {op(Primitive::send, repeat, -2, 3, step)};
      CAPTURE(step);
      CAPTURE(repeat);
      check_totals(hand.done());
    }
}

// 2(n-1) messages a rank and loop: n = 4, 3 loops (100 = 2 x 4 x 12 + 4) -> 4 x 6 x 3 = 72; bytes
// 2(n-1) x 100 = 600. Multiplicity 10 of every lane: ten times that.
TEST_CASE("validate: totals count multiplicity") {
  Schedule schedule = tests::ring_all_reduce(4, 100, 12).done();
  CHECK(totals(schedule).messages == 72);
  CHECK(totals(schedule).payload == bytes(600));
  for (Lane& lane : schedule.lanes) lane.multiplicity = 10;
  CHECK(totals(schedule).messages == 720);
  CHECK(totals(schedule).payload == bytes(6000));
}

}  // namespace
}  // namespace railyard::sim
