// LaneCost::poll_time and keep_rate by hand, through both engines: what an operation takes at
// least.
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

TEST_CASE("poll time: every unit behind the first") {
  LaneCost cost;
  cost.poll_time = 300_ns;
  CHECK(poll_time(cost, 1_MiB) == 0_ns);  // no unit: nothing is polled
  cost.poll_unit = 4_KiB;
  CHECK(poll_time(cost, 0_B) == 0_ns);
  CHECK(poll_time(cost, 4_KiB) == 0_ns);
  CHECK(poll_time(cost, bytes(4097)) == 300_ns);
  CHECK(poll_time(cost, 8_KiB) == 300_ns);
  CHECK(poll_time(cost, 32_KiB) == 7 * 300_ns);
}

// 0 -> 1 -> 2, one message of 8 bytes: rank 0 only sends, rank 1 passes on, rank 2 keeps.
struct Chain {
  explicit Chain(bool staged) {
    HandSchedule hand(tests::call_of(Collective::broadcast, 8), 3);
    hand.work(tests::linear_work(8, 8));
    const LaneId a = hand.lane(0, {op(P::copy_send)}, LaneRole::ring);
    const LaneId b = hand.lane(1, {op(P::recv_copy_send)}, LaneRole::ring);
    const LaneId c = hand.lane(2, {op(P::recv)}, LaneRole::ring);
    hand.connect(a, b);
    hand.connect(b, c);
    schedule = hand.done();
    costs = simple_costs(schedule);
    for (ConnectionCost& cost : costs.connections) cost.staged = staged;
  }
  void poll(std::size_t lane, Duration time) {
    costs.lanes[lane].poll_time = time;
    costs.lanes[lane].poll_unit = 4_B;  // two units: one counts
  }
  Schedule schedule;
  Costs costs;
};

// Direct: rank 1 begins at 128 (10 + 8 + 100, and 10 of its own), rank 2 at 246.
TEST_CASE("poll time: a receiver looks from when its sender's start can be seen") {
  Chain chain(false);
  CHECK(run_both(chain.schedule, chain.costs).end == 246_ns);
  chain.poll(0, 1'000_ns);  // receives nothing
  CHECK(run_both(chain.schedule, chain.costs).end == 246_ns);
  chain.poll(2, 28_ns);  // from 118 + 100: over when it begins
  CHECK(run_both(chain.schedule, chain.costs).end == 246_ns);
  chain.poll(2, 50_ns);
  CHECK(run_both(chain.schedule, chain.costs).end == 268_ns);
  chain.poll(1, 36_ns);  // from 0 + 100: over when its flow is
  CHECK(run_both(chain.schedule, chain.costs).end == 268_ns);
  chain.poll(1, 100_ns);  // until 200; 100 on the way, and 10
  CHECK(run_both(chain.schedule, chain.costs).end == 310_ns);
}

TEST_CASE("poll time: over the network it is over when the data come, unless the lane was busy") {
  Chain chain(true);
  chain.poll(1, 118_ns);
  chain.poll(2, 236_ns);
  CHECK(run_both(chain.schedule, chain.costs).end == 246_ns);
  chain.poll(2, 300_ns);
  CHECK(run_both(chain.schedule, chain.costs).end == 300_ns);
}

TEST_CASE("poll time: cut-through waits for it, too") {
  Chain chain(false);
  for (ConnectionCost& cost : chain.costs.connections) cost.grain = 2_B;
  chain.poll(1, 500_ns);
  CHECK(run_both(chain.schedule, chain.costs).end == 100_ns + 500_ns + 100_ns);
}

// Two ranks exchange 1,000 bytes: both send until 1,010, and find all there at 1,110.
TEST_CASE("poll time: whoever sent looks from then on") {
  HandSchedule hand(tests::call_of(Collective::all_gather, 1000), 2);
  hand.work(tests::per_rank_work(2, 1000, 1000));
  const Program program{op(P::copy_send, 1, 0, 1), op(P::recv, 1, 1, 1)};
  const LaneId a = hand.lane(0, program, LaneRole::ring, 0);
  const LaneId b = hand.lane(1, program, LaneRole::ring, 1);
  hand.connect(a, b);
  hand.connect(b, a);
  const Schedule schedule = hand.done();
  Costs costs = simple_costs(schedule);
  CHECK(run_both(schedule, costs).end == 1'120_ns);
  for (LaneCost& lane : costs.lanes) {
    lane.poll_unit = 250_B;
    lane.poll_time = 60_ns;
  }
  CHECK(run_both(schedule, costs).end == 1'010_ns + 3 * 60_ns);
}

TEST_CASE("poll time: rings and loops agree in both engines") {
  for (const std::uint32_t ranks : {2U, 3U, 5U}) {
    CAPTURE(ranks);
    const Schedule schedule = tests::ring_all_reduce(ranks, 9'001, 64).done();
    Costs costs = simple_costs(schedule);
    const Duration before = run_both(schedule, costs).end;
    for (LaneCost& lane : costs.lanes) {
      lane.poll_time = 37_ns;
      lane.poll_unit = 16_B;
    }
    CHECK(run_both(schedule, costs).end > before);
  }
}

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

// Rank 0 has its 8 bytes under way in 8 ns, but stores them twice.
TEST_CASE("keep rate: whoever sends and keeps is later by it, whoever only keeps is not") {
  Chain chain(false);
  chain.costs.lanes[2].keep_rate = bytes_per_second(1'000'000);
  CHECK(run_both(chain.schedule, chain.costs).end == 246_ns);
  chain.costs.lanes[1].keep_rate = 1_GBps;  // in step with its flow
  CHECK(run_both(chain.schedule, chain.costs).end == 246_ns);
  chain.costs.lanes[1].keep_rate = bytes_per_second(100'000'000);  // 80 ns for a flow of 8
  CHECK(run_both(chain.schedule, chain.costs).end == 318_ns);
  chain.costs.lanes[0].keep_rate = bytes_per_second(100'000'000);
  CHECK(run_both(chain.schedule, chain.costs).end == 390_ns);
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
