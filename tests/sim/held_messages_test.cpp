// Messages that their sender tells of together (Op::holds), by hand through both engines.
#include <doctest/doctest.h>

#include "tests/sim/both_engines.h"
#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

using namespace literals;
using by_hand::Costs;
using by_hand::refusal;
using by_hand::run_both;
using by_hand::simple_costs;
using tests::HandSchedule;
using tests::op;
using P = Primitive;

// Rank 0 copies 8 bytes to rank 1, then to rank 2, and tells both when it has done both.
Schedule held_broadcast(bool holds) {
  HandSchedule hand(tests::call_of(Collective::broadcast, 8), 3);
  hand.work(tests::linear_work(8, 8));
  Op first = op(P::copy_send);
  first.send_slots = 1;
  first.holds = holds;
  Op second = op(P::send);
  second.send_slots = 2;
  const LaneId a = hand.lane(0, {first, second}, LaneRole::nvls_scatter);
  const LaneId b = hand.lane(1, {op(P::recv)}, LaneRole::nvls_gather);
  const LaneId c = hand.lane(2, {op(P::recv)}, LaneRole::nvls_gather);
  hand.connect(a, b);
  hand.connect(a, c);
  return hand.done();
}

TEST_CASE("held: receivers are told when the sender has served all") {
  const Schedule schedule = held_broadcast(true);
  CHECK(refusal(schedule) == "");
  Costs costs = simple_costs(schedule);
  costs.lanes[1].local_rate = Bandwidth::from_raw((1_GBps).raw() / 10);
  // 10 + 8 + 10 + 8, 100 on the way, then 10 + 80 of rank 1.
  CHECK(run_both(schedule, costs).end == 226_ns);
  CHECK(run_both(held_broadcast(false), costs).end == 208_ns);
}

TEST_CASE("held: several loops, in order, within the FIFO") {
  Schedule schedule = held_broadcast(true);
  schedule.call.size = schedule.works[0].size = bytes(32);
  schedule.fifo_slices = 1;
  CHECK(refusal(schedule) == "");
  // A loop: 36 of the sender, 100, 10 of the receivers, and their slots are free at once.
  CHECK(run_both(schedule, simple_costs(schedule)).end == 4 * 146_ns);
}

TEST_CASE("held: what is refused") {
  Schedule last = held_broadcast(true);
  last.programs[0][1].holds = true;
  CHECK(refusal(last) ==
        "schedule: lane 0 (rank 0): its last operation holds what nothing after it tells of");
  Schedule nothing = held_broadcast(true);
  nothing.programs[1][0].holds = true;
  CHECK(refusal(nothing) == "schedule: lane 1 (rank 1), op 0 (recv): only whole messages are held");
}

}  // namespace
}  // namespace railyard::sim
