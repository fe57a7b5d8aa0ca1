// LaneCost::keep_rate by hand, through both engines: operations that store what they send a second
// time.
#include <doctest/doctest.h>

#include "tests/sim/both_engines.h"
#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

using namespace literals;
using by_hand::Costs;
using by_hand::run_both;
using by_hand::simple_costs;
using tests::HandSchedule;
using tests::op;
using P = Primitive;

TEST_CASE("keep time: of operations that send and keep") {
  LaneCost cost;
  for (const P p : {P::copy_send, P::recv_copy_send, P::recv})
    CHECK(keep_time(cost, p, 1'000_B) == 0_ns);
  cost.keep_rate = 1_GBps;
  for (const P p : {P::copy_send, P::recv_copy_send, P::recv_reduce_copy_send})
    CHECK(keep_time(cost, p, 1'000_B) == 1'000_ns);
  for (const P p : {P::send, P::recv, P::copy, P::recv_reduce_copy, P::recv_reduce_send, P::nop})
    CHECK(keep_time(cost, p, 1'000_B) == 0_ns);
  CHECK(keep_time(cost, P::copy_send, 0_B) == 0_ns);
}

// 0 -> 1 -> 2, one message of 8 bytes at 1 GB/s, 10 ns per operation, 100 ns a hop: 246 ns.
TEST_CASE("keep rate: whoever passes on and keeps is later by it, whoever only keeps is not") {
  HandSchedule hand(tests::call_of(Collective::broadcast, 8), 3);
  hand.work(tests::linear_work(8, 8));
  const LaneId a = hand.lane(0, {op(P::send)}, LaneRole::ring);
  const LaneId b = hand.lane(1, {op(P::recv_copy_send)}, LaneRole::ring);
  const LaneId c = hand.lane(2, {op(P::recv)}, LaneRole::ring);
  hand.connect(a, b);
  hand.connect(b, c);
  const Schedule schedule = hand.done();
  Costs costs = simple_costs(schedule);
  CHECK(run_both(schedule, costs).end == 246_ns);
  costs.lanes[0].keep_rate = costs.lanes[2].keep_rate = bytes_per_second(1'000'000);
  CHECK(run_both(schedule, costs).end == 246_ns);
  costs.lanes[1].keep_rate = 1_GBps;  // in step with its flow
  CHECK(run_both(schedule, costs).end == 246_ns);
  costs.lanes[1].keep_rate = bytes_per_second(100'000'000);  // 80 ns for a flow of 8
  CHECK(run_both(schedule, costs).end == 318_ns);
}

TEST_CASE("keep rate: an AllReduce's ring is later by it, in both engines") {
  const Schedule schedule = tests::ring_all_reduce(4, 9'001, 64).done();
  Costs costs = simple_costs(schedule);
  const Duration before = run_both(schedule, costs).end;
  for (LaneCost& lane : costs.lanes) lane.keep_rate = bytes_per_second(500'000'000);
  CHECK(run_both(schedule, costs).end > before);
}

}  // namespace
}  // namespace railyard::sim
