#include "sim/dataflow.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "sim/in_place.h"
#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

using tests::op;

std::string refusal(const Expansion& expansion, const Promise& promise) {
  const Result<DataflowReport> result = check_dataflow(expansion, promise);
  return result.ok() ? "" : result.error().text();
}
std::string refusal(const Schedule& schedule) {
  return refusal(expand(schedule), promise_of(schedule));
}
InPlace in_place(const Schedule& schedule) {
  const Result<DataflowReport> result = check_dataflow(schedule);
  REQUIRE(result.ok());
  return result.value().in_place;
}

TEST_CASE("dataflow: hand-made schedules keep their promise") {
  for (std::uint32_t n = 2; n <= 6; ++n)
    for (const std::int64_t size : {1, 16, 100, 1000}) {
      CAPTURE(n);
      CAPTURE(size);
      CHECK(refusal(tests::ring_all_reduce(n, size, 16).done()) == "");
      CHECK(refusal(tests::ring_all_reduce(n, size, 16, 16).done()) == "");
      CHECK(refusal(tests::ring_all_gather(n, size, 16).done()) == "");
      CHECK(refusal(tests::ring_reduce_scatter(n, size, 16).done()) == "");
      CHECK(refusal(tests::broadcast_chain(n, size, 16).done()) == "");
      CHECK(refusal(tests::all_to_all(n, size * n, 16).done()) == "");
    }
  CHECK(refusal(tests::tree_of_three(100, 16).done()) == "");
}

TEST_CASE("dataflow: a chain that reduces to its end keeps Reduce's promise, for the root only") {
  tests::HandSchedule hand(tests::call_of(Collective::reduce, 40, 2), 3);
  hand.work(tests::linear_work(40, 16));
  const LaneId a = hand.lane(0, {op(Primitive::send)}, LaneRole::ring);
  const LaneId b = hand.lane(1, {op(Primitive::recv_reduce_send)}, LaneRole::ring);
  const LaneId c = hand.lane(2, {op(Primitive::recv_reduce_copy)}, LaneRole::ring);
  hand.connect(a, b);
  hand.connect(b, c);
  CHECK(refusal(hand.done()) == "");
  hand.raw().programs[1] = {op(Primitive::recv_reduce_copy_send)};
  CHECK(refusal(hand.done()).find("rank 1 writes output [0,16) outside its 0 bytes") == 0);
}

// The root of a tree of three passes on what its children send without adding its own.
TEST_CASE("dataflow: a missing contribution") {
  const Schedule schedule = tests::tree_of_three(32, 16).done();
  Expansion expansion = expand(schedule);
  expansion.lanes[0].ops[1].primitive = Primitive::recv_copy_send;
  CHECK(refusal(expansion, promise_of(schedule)) ==
        "rank 0 output [16,32): missing contribution of rank 0");
}

// In a tree of three, the lane that should send rank 2's data runs on rank 1.
TEST_CASE("dataflow: a doubled contribution") {
  tests::HandSchedule hand = tests::tree_of_three(16, 16);
  hand.raw().lanes[2].rank = 1;
  CHECK(refusal(hand.done()) ==
        "rank 0 output [0,16): missing contribution of rank 2, has rank 1 twice");
}

TEST_CASE("dataflow: data of the wrong place in the input") {
  const Schedule schedule = tests::tree_of_three(32, 16).done();
  Expansion expansion = expand(schedule);
  expansion.lanes[2].ops[1].source_offset = bytes(4);
  CHECK(refusal(expansion, promise_of(schedule)) ==
        "rank 0 output [16,32): has input offset 4 of rank 2 instead of 16");
}

TEST_CASE("dataflow: data of a rank that does not belong") {
  Schedule schedule = tests::broadcast_chain(3, 16, 16).done();
  Expansion expansion = expand(schedule);
  Promise promise = promise_of(schedule);
  promise.root = 1;
  CHECK(refusal(expansion, promise).find("rank 0 reads input [0,16) outside its 0 bytes") == 0);
  // AllGather in which everyone starts with the wrong block of the output.
  Schedule gather = tests::ring_all_gather(2, 8, 8).done();
  gather.lanes[0].position = 1;
  gather.lanes[1].position = 0;
  gather.works[0].stride = bytes(8);
  CHECK(refusal(gather) ==
        "rank 0 output [0,8): missing contribution of rank 0, has rank 1, which does not belong");
}

TEST_CASE("dataflow: output bytes that nobody writes") {
  const Schedule schedule = tests::broadcast_chain(3, 40, 16).done();
  Expansion expansion = expand(schedule);
  expansion.lanes[0].ops[1].primitive = Primitive::send;  // the root's own copy
  CHECK(refusal(expansion, promise_of(schedule)) == "rank 0 output [16,32): never written");
  Expansion tail = expand(schedule);
  tail.lanes[0].ops[2].primitive = Primitive::send;
  CHECK(refusal(tail, promise_of(schedule)) == "rank 0 output [32,40): never written");
}

TEST_CASE("dataflow: an output byte is final when it is written") {
  const Schedule schedule = tests::broadcast_chain(2, 32, 16).done();
  Expansion expansion = expand(schedule);
  expansion.lanes[1].ops[1].target_offset = bytes(8);
  CHECK(refusal(expansion, promise_of(schedule)) ==
        "rank 1 output [8,16): written twice with different values");
  // The same value again is allowed, and counted.
  tests::HandSchedule twice(tests::call_of(Collective::broadcast, 32), 1);
  twice.work(tests::linear_work(32, 16));
  twice.lane(0, {op(Primitive::copy, 2)}, LaneRole::local);
  const Result<DataflowReport> report = check_dataflow(twice.done());
  REQUIRE(report.ok());
  CHECK(report.value().rewritten == bytes(32));
  CHECK(report.value().slices == 4);
}

TEST_CASE("dataflow: nothing outside the buffers") {
  const Schedule schedule = tests::broadcast_chain(2, 32, 16).done();
  Expansion expansion = expand(schedule);
  expansion.lanes[1].ops[1].target_offset = bytes(17);
  CHECK(refusal(expansion, promise_of(schedule)) ==
        "rank 1 writes output [17,33) outside its 32 bytes (loop 1 op 0.0 slice 0 recv block 0 out "
        "[17,33) from c0#1)");
  expansion = expand(schedule);
  expansion.lanes[0].ops[0].source_offset = bytes(-1);
  CHECK(
      refusal(expansion, promise_of(schedule)).find("rank 0 reads input [-1,15) outside its 32") ==
      0);
}

TEST_CASE("dataflow: slices that are left over, of other sizes, or on foreign connections") {
  const Schedule schedule = tests::broadcast_chain(3, 32, 16).done();
  const Promise promise = promise_of(schedule);
  Expansion expansion = expand(schedule);
  expansion.lanes[2].ops.pop_back();
  CHECK(refusal(expansion, promise) ==
        "1 slices are sent and never received, on connection 1 first");
  expansion = expand(schedule);
  expansion.lanes[2].ops[0].size = bytes(8);
  CHECK(refusal(expansion, promise).find("connection 1: a slice of 16 bytes is received as 8") ==
        0);
  expansion = expand(schedule);
  expansion.lanes[0].ops[0].send[0].connection = ConnectionId(1);
  CHECK(refusal(expansion, promise) == "lane 0 sends on connection 1, which is not its own");
  expansion = expand(schedule);
  expansion.lanes[2].ops[0].recv[0].connection = ConnectionId(0);
  CHECK(refusal(expansion, promise) == "lane 2 receives from connection 0, which is not its own");
  expansion = expand(schedule);
  expansion.lanes[0].ops.pop_back();
  CHECK(refusal(expansion, promise)
            .find("it never ends: lane 1 (rank 1, channel 0, ring) at "
                  "operation 1") == 0);
}

TEST_CASE("dataflow: what cannot be checked is refused") {
  Schedule schedule = tests::broadcast_chain(2, 32, 16).done();
  schedule.lanes[0].multiplicity = 2;
  CHECK(check_dataflow(schedule).error().message ==
        "a lane of multiplicity above 1 cannot be checked");
  schedule.lanes[0].multiplicity = 1;
  Promise promise = promise_of(schedule);
  promise.ranks = 3;
  CHECK(refusal(expand(schedule), promise) == "the promise is for 3 ranks and the expansion has 2");
  promise = {Collective::all_to_all, 2, bytes(7), 0, false};
  CHECK(refusal(expand(schedule), promise) == "AllToAll of 7 bytes does not divide by 2 ranks");
  promise = {Collective::all_to_all, 2, bytes(8), 0, true};
  CHECK(refusal(expand(schedule), promise) == "AllToAll cannot be in place");
}

TEST_CASE("dataflow: rings, chains and trees are safe in place") {
  CHECK(in_place(tests::ring_all_reduce(4, 100, 8).done()) == InPlace::safe);
  CHECK(in_place(tests::ring_all_gather(4, 100, 8).done()) == InPlace::safe);
  CHECK(in_place(tests::ring_reduce_scatter(4, 100, 8).done()) == InPlace::safe);
  CHECK(in_place(tests::broadcast_chain(4, 100, 8).done()) == InPlace::safe);
  CHECK(in_place(tests::tree_of_three(100, 8).done()) == InPlace::safe);
  CHECK(in_place(tests::all_to_all(4, 100, 8).done()) == InPlace::not_offered);
}

// Rank 1 sends its input to rank 0, gets the sum, and reads its input once more: in place, that
// byte is gone.
TEST_CASE("dataflow: an input byte that is read after the output was written over it") {
  tests::HandSchedule hand(tests::call_of(Collective::all_reduce, 16), 2);
  hand.work(tests::linear_work(16, 16));
  const LaneId root =
      hand.lane(0, {op(Primitive::recv_reduce_copy_send), op(Primitive::recv)}, LaneRole::ring);
  const LaneId leaf =
      hand.lane(1, {op(Primitive::send), op(Primitive::recv), op(Primitive::send)}, LaneRole::ring);
  hand.connect(leaf, root);
  hand.connect(root, leaf);
  Schedule schedule = hand.done();
  Expansion expansion = expand(schedule);
  // The root takes the second slice without writing it, so that the promise holds out of place.
  expansion.lanes[0].ops[1].primitive = Primitive::recv_reduce_send;
  expansion.lanes[0].ops[1].send.clear();
  const Result<DataflowReport> report = check_dataflow(expansion, promise_of(schedule));
  REQUIRE(report.ok());
  CHECK(report.value().in_place == InPlace::unsafe);
  CHECK(report.value().in_place_danger ==
        "rank 1 byte [0,16) of the common buffer: operation 1 of lane 1 writes output over input "
        "that operation 2 of lane 1 need not have read yet");
  Promise promise = promise_of(schedule);
  promise.in_place = true;
  CHECK(refusal(expansion, promise).find("not safe in place: rank 1 byte [0,16)") == 0);
}

// The down lane of rank 1 gets the result without the up lane having anything to do with it: rank
// 1's contribution travels by a second up lane. Any one run may have the read first; it is still a
// race.
TEST_CASE("dataflow: lanes that race are unsafe in place, whatever the order of the run") {
  tests::HandSchedule hand(tests::call_of(Collective::all_reduce, 16), 2);
  hand.work(tests::linear_work(16, 16));
  const LaneId root = hand.lane(0, {op(Primitive::recv_reduce_copy_send)}, LaneRole::tree_root);
  const LaneId up = hand.lane(1, {op(Primitive::send)}, LaneRole::tree_up);
  const LaneId down = hand.lane(1, {op(Primitive::recv)}, LaneRole::tree_down);
  const LaneId extra = hand.lane(1, {op(Primitive::send)}, LaneRole::tree_up);
  const LaneId sink = hand.lane(0, {op(Primitive::recv)}, LaneRole::tree_down);
  hand.connect(up, root);
  hand.connect(root, down);
  hand.connect(extra, sink);
  const Schedule schedule = hand.done();
  Expansion expansion = expand(schedule);
  expansion.lanes[4].ops[0].primitive = Primitive::recv_reduce_send;  // takes it, writes nothing
  const Result<DataflowReport> report = check_dataflow(expansion, promise_of(schedule));
  REQUIRE(report.ok());
  CHECK(report.value().in_place == InPlace::unsafe);
  CHECK(report.value().in_place_danger.find("operation 0 of lane 2 writes output over input that "
                                            "operation 0 of lane 3 need not have read yet") !=
        std::string::npos);
  // Batches order them: the writers, root and down, begin when the others on their rank have ended.
  expansion.lanes[0].batch = 1;
  expansion.lanes[2].batch = 1;
  CHECK(check_dataflow(expansion, promise_of(schedule)).value().in_place == InPlace::safe);
}

TEST_CASE("dataflow: one operation may not shift data over itself in place") {
  using P = Primitive;
  tests::HandSchedule hand(tests::call_of(Collective::reduce_scatter, 8), 2);
  hand.work(tests::linear_work(8, 8));
  Work second = tests::linear_work(8, 8);
  second.input_shift = bytes(8);
  hand.work(second);
  const LaneId a = hand.lane(0, {op(P::send)}, LaneRole::ring, 0, 1);
  const LaneId b = hand.lane(0, {op(P::recv_reduce_copy)}, LaneRole::ring, 0, 0);
  const LaneId c = hand.lane(1, {op(P::send)}, LaneRole::ring, 0, 0);
  const LaneId d = hand.lane(1, {op(P::recv_reduce_copy)}, LaneRole::ring, 0, 1);
  hand.connect(a, d);
  hand.connect(c, b);
  const Schedule schedule = hand.done();
  CHECK(in_place(schedule) == InPlace::safe);
  // A slice that is read at [4,12) and written to [0,8) by one operation.
  const Expansion expansion = expand(schedule);
  HappensBefore order(expansion);
  order.begin(LaneId(0), 0);
  InPlaceWatch watch(expansion, order);
  watch.begin(false);
  watch.read(4, 12);
  watch.destroy(0, 8);
  CHECK(
      watch.violation() ==
      "rank 0 byte [4,8) of the common buffer: operation 0 of lane 0 writes output over input that "
      "operation 0 of lane 0 need not have read yet");
  InPlaceWatch aligned(expansion, order);
  aligned.begin(true);
  aligned.read(0, 8);
  aligned.destroy(0, 8);
  CHECK(aligned.violation().empty());
}

// In place, AllGather need not copy its own block; out of place it must.
TEST_CASE("dataflow: an in-place call finds its own input in the output") {
  Schedule schedule = tests::ring_all_gather(3, 8, 8).done();
  for (Program& program : schedule.programs) program[0].primitive = Primitive::send;
  CHECK(refusal(schedule) == "rank 0 output [0,8): never written");
  schedule.call.in_place = true;
  CHECK(refusal(schedule) == "");

  Schedule scatter = tests::ring_reduce_scatter(3, 8, 8).done();
  scatter.call.in_place = true;
  CHECK(refusal(scatter) == "");

  tests::HandSchedule nothing(tests::call_of(Collective::all_reduce, 8), 2);
  nothing.raw().call.in_place = true;
  CHECK(refusal(nothing.done()) == "rank 0 output [0,8): missing contribution of rank 1");
}

TEST_CASE("dataflow: buffer sizes of every collective") {
  const auto sizes = [](Collective collective, std::uint32_t rank) {
    const Promise promise{collective, 4, bytes(8), 1, false};
    return std::pair(input_size(promise, rank).raw(), output_size(promise, rank).raw());
  };
  using Sizes = std::pair<std::int64_t, std::int64_t>;
  CHECK(sizes(Collective::all_reduce, 0) == Sizes(8, 8));
  CHECK(sizes(Collective::all_gather, 0) == Sizes(8, 32));
  CHECK(sizes(Collective::reduce_scatter, 0) == Sizes(32, 8));
  CHECK(sizes(Collective::broadcast, 0) == Sizes(0, 8));
  CHECK(sizes(Collective::broadcast, 1) == Sizes(8, 8));
  CHECK(sizes(Collective::gather, 0) == Sizes(8, 0));
  CHECK(sizes(Collective::gather, 1) == Sizes(8, 32));
  CHECK(sizes(Collective::scatter, 0) == Sizes(0, 8));
  CHECK(sizes(Collective::scatter, 1) == Sizes(32, 8));
  CHECK(sizes(Collective::send_recv, 3) == Sizes(8, 8));
  CHECK(sizes(Collective::reduce, 0) == Sizes(8, 0));
  CHECK(sizes(Collective::reduce, 1) == Sizes(8, 8));
  CHECK(sizes(Collective::all_to_all, 0) == Sizes(8, 8));
}

// 64 ranks x 24 loops x 127 operations: 195 072 slices.
TEST_CASE("dataflow: a few hundred thousand slices of 64 ranks") {
  const Schedule schedule = tests::ring_all_reduce(64, 64 * 16 * 24, 16).done();
  const Expansion expansion = expand(schedule);
  const auto before = std::chrono::steady_clock::now();
  const Result<DataflowReport> report = check_dataflow(expansion, promise_of(schedule));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - before;
  REQUIRE(report.ok());
  CHECK(report.value().slices == 195'072);
  MESSAGE("195072 slice operations checked in " << seconds.count() << " s");
}

}  // namespace
}  // namespace railyard::sim
