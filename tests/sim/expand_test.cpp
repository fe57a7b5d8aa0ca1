#include "sim/expand.h"

#include <doctest/doctest.h>

#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

using tests::op;

// 3 ranks, blocks of 4 bytes. Rank p sends p-1, reduces p-2, finishes p, passes p-1, takes p+1.
TEST_CASE("expand: the ring AllReduce of three ranks, as text") {
  const Schedule schedule = tests::ring_all_reduce(3, 12, 4).done();
  CHECK(to_text(expand(schedule)) ==
        "connection 0: lane 0 -> lane 1\n"
        "connection 1: lane 1 -> lane 2\n"
        "connection 2: lane 2 -> lane 0\n"
        "lane 0 rank 0 ch 0 ring: loop 0 op 0.0 slice 0 send block 2 in [8,12) to c0#0\n"
        "lane 0 rank 0 ch 0 ring: loop 0 op 1.0 slice 0 recvReduceSend block 1 in [4,8)"
        " from c2#0 to c0#1\n"
        "lane 0 rank 0 ch 0 ring: loop 0 op 2.0 slice 0 recvReduceCopySend block 0 in [0,4)"
        " out [0,4) from c2#1 to c0#2\n"
        "lane 0 rank 0 ch 0 ring: loop 0 op 3.0 slice 0 recvCopySend block 2 out [8,12)"
        " from c2#2 to c0#3\n"
        "lane 0 rank 0 ch 0 ring: loop 0 op 4.0 slice 0 recv block 1 out [4,8) from c2#3\n"
        "lane 1 rank 1 ch 0 ring: loop 0 op 0.0 slice 0 send block 0 in [0,4) to c1#0\n"
        "lane 1 rank 1 ch 0 ring: loop 0 op 1.0 slice 0 recvReduceSend block 2 in [8,12)"
        " from c0#0 to c1#1\n"
        "lane 1 rank 1 ch 0 ring: loop 0 op 2.0 slice 0 recvReduceCopySend block 1 in [4,8)"
        " out [4,8) from c0#1 to c1#2\n"
        "lane 1 rank 1 ch 0 ring: loop 0 op 3.0 slice 0 recvCopySend block 0 out [0,4)"
        " from c0#2 to c1#3\n"
        "lane 1 rank 1 ch 0 ring: loop 0 op 4.0 slice 0 recv block 2 out [8,12) from c0#3\n"
        "lane 2 rank 2 ch 0 ring: loop 0 op 0.0 slice 0 send block 1 in [4,8) to c2#0\n"
        "lane 2 rank 2 ch 0 ring: loop 0 op 1.0 slice 0 recvReduceSend block 0 in [0,4)"
        " from c1#0 to c2#1\n"
        "lane 2 rank 2 ch 0 ring: loop 0 op 2.0 slice 0 recvReduceCopySend block 2 in [8,12)"
        " out [8,12) from c1#1 to c2#2\n"
        "lane 2 rank 2 ch 0 ring: loop 0 op 3.0 slice 0 recvCopySend block 1 out [4,8)"
        " from c1#2 to c2#3\n"
        "lane 2 rank 2 ch 0 ring: loop 0 op 4.0 slice 0 recv block 0 out [0,4) from c1#3\n");
}

TEST_CASE("expand: a buffer with one block only holds it at 0, the other has rank * stride") {
  const Schedule gather = tests::ring_all_gather(3, 8, 8).done();
  const std::vector<SliceOp> ops = expand(gather).lanes[1].ops;
  REQUIRE(ops.size() == 3);
  CHECK(ops[0].source_offset == bytes(0));  // its own block
  CHECK(ops[0].target_offset == bytes(8));
  CHECK(ops[1].target_offset == bytes(0));  // block 0
  CHECK(ops[2].target_offset == bytes(16));

  const Schedule scatter = tests::ring_reduce_scatter(3, 8, 8).done();
  const std::vector<SliceOp> last = expand(scatter).lanes[2].ops;
  CHECK(last.back().primitive == Primitive::recv_reduce_copy);
  CHECK(last.back().source_offset == bytes(16));
  CHECK(last.back().target_offset == bytes(0));
}

TEST_CASE("expand: a block order turns places in the ring into ranks, sizes stay") {
  tests::HandSchedule hand = tests::ring_all_gather(3, 8, 8);
  hand.raw().block_orders = {{2, 0, 1}};
  hand.raw().works[0].block_order = 0;
  const Schedule schedule = hand.done();
  const std::vector<SliceOp> ops = expand(schedule).lanes[0].ops;  // places 0, 2, 1
  CHECK(ops[0].block == 0);
  CHECK(ops[0].target_offset == bytes(16));
  CHECK(ops[0].source_offset == bytes(0));
  CHECK(ops[1].target_offset == bytes(8));
  CHECK(ops[2].target_offset == bytes(0));
}

TEST_CASE("expand: shifts are added to either buffer") {
  const Schedule schedule = tests::all_to_all(2, 16, 8).done();
  // Lanes: local 0, send 0->1, recv at 1, send 1->0, recv at 0, local 1.
  const Expansion expansion = expand(schedule);
  CHECK(expansion.lanes[1].ops[0].source_offset == bytes(8));
  CHECK(expansion.lanes[2].ops[0].target_offset == bytes(0));
  CHECK(expansion.lanes[3].ops[0].source_offset == bytes(0));
  CHECK(expansion.lanes[4].ops[0].target_offset == bytes(8));
  CHECK(expansion.lanes[5].ops[0].source_offset == bytes(8));
}

// 20 bytes in chunks of 8: loops of 8, 8, 4. Two slices of at least 6 bytes: 6 + 2, 6 + 2, 4 + 0.
TEST_CASE("expand: loops, then slices, empty ones included") {
  tests::HandSchedule hand = tests::broadcast_chain(2, 20, 8);
  hand.raw().works[0].slices_per_chunk = 2;
  hand.raw().works[0].min_slice = bytes(6);
  const Schedule schedule = hand.done();
  const Expansion expansion = expand(schedule);
  CHECK(to_text(expansion.lanes[1].ops.back()) ==
        "loop 2 op 0.0 slice 1 recv block 0 out [20,20) from c0#5");
  std::vector<std::int64_t> sizes;
  for (const SliceOp& slice : expansion.lanes[0].ops) sizes.push_back(slice.size.raw());
  CHECK(sizes == std::vector<std::int64_t>{6, 2, 6, 2, 4, 0});
  CHECK(expansion.lanes[0].ops[3].source_offset == bytes(14));
}

TEST_CASE("expand: an empty part gives no operations") {
  const Schedule schedule = tests::broadcast_chain(2, 0, 8).done();
  CHECK(expand(schedule).lanes[0].ops.empty());
  CHECK(expand(schedule).lanes[1].ops.empty());
}

TEST_CASE("expand: slot masks choose among a lane's connections") {
  tests::HandSchedule hand = tests::tree_of_three(4, 4);
  hand.raw().programs[0] = {op(Primitive::recv_reduce_copy_send)};
  hand.raw().programs[0][0].recv_slots = 0b10;
  hand.raw().programs[0][0].send_slots = 0b01;
  const Schedule schedule = hand.done();
  CHECK(to_text(expand(schedule).lanes[0].ops[0]) ==
        "loop 0 op 0.0 slice 0 recvReduceCopySend block 0 in [0,4) out [0,4) from c1#0 to c2#0");
}

TEST_CASE("expand: blocks wrap in both directions") {
  Lane lane;
  lane.position = 1;
  Work work;
  work.blocks = 4;
  CHECK(block_of(op(Primitive::send, 9, -2, 1, -1), lane, work, 0) == 3);
  CHECK(block_of(op(Primitive::send, 9, -2, 1, -1), lane, work, 8) == 3);
  CHECK(block_of(op(Primitive::send, 9, 6, 1, 3), lane, work, 2) == 1);
}

TEST_CASE("expand: a lane waits for the next lower batch of its rank and channel that has work") {
  tests::HandSchedule hand = tests::all_to_all(2, 16, 8);
  const std::uint32_t nothing = hand.work(tests::linear_work(0, 8));
  hand.raw().lanes[1].batch = 2;  // rank 0
  hand.raw().lanes[4].batch = 1;
  hand.raw().lanes[4].work = nothing;
  const std::vector<std::vector<LaneId>> before = lanes_before(expand(hand.done()));
  CHECK(before[0].empty());
  CHECK(before[1] == std::vector<LaneId>{LaneId(0)});
  CHECK(before[4] == std::vector<LaneId>{LaneId(0)});
  CHECK(before[2].empty());
  CHECK(to_text(expand(hand.done())).find("lane 1 rank 0 ch 0 p2pSend batch 2: loop 0") !=
        std::string::npos);
}

}  // namespace
}  // namespace railyard::sim
