#include "sim/longest_path.h"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

using namespace literals;
using tests::op;

// Every connection over a link of its own, all alike.
struct Costs {
  std::vector<ConnectionCost> connections;
  std::vector<LaneCost> lanes;
  std::vector<Bandwidth> links;
  std::vector<Duration> starts;

  Costs(const Schedule& schedule, const ConnectionCost& cost, Bandwidth link) {
    for (std::size_t c = 0; c < schedule.connections.size(); ++c) {
      connections.push_back(cost);
      connections.back().route = {LinkId(c)};
    }
    lanes.resize(schedule.lanes.size());
    links.assign(schedule.connections.size(), link);
  }
};

LongestPathResult run(const Schedule& schedule, const Costs& costs) {
  LongestPathResult result =
      longest_path(schedule, costs.connections, costs.lanes, costs.links, costs.starts);
  // Of every result: the parts of the critical path are its length, and it moves forward.
  CHECK(std::accumulate(result.parts.begin(), result.parts.end(), Duration{}) == result.end);
  for (std::size_t i = 1; i < result.critical_path.size(); ++i)
    CHECK(result.critical_path[i - 1].time <= result.critical_path[i].time);
  return result;
}

Duration part(const LongestPathResult& result, PathPart part) {
  return result.parts[static_cast<std::size_t>(part)];
}

ConnectionCost latency_of(Duration latency) {
  ConnectionCost cost;
  cost.latency = latency;
  return cost;
}

// Ring AllReduce, one loop, one slice, nothing else: every step is one block of S/n bytes and one
// latency, 2(n-1) steps: 2(n-1)(ceil(S/n / rate) + latency). The last op is a recv, which takes no
// time. With 3 GB/s, 1000 B take ceil(1000/3 * 1000) = 333 334 ps.
TEST_CASE("longest_path: ring AllReduce is 2(n-1) (block / rate + latency)") {
  for (std::uint32_t n = 2; n <= 9; ++n) {
    const Schedule schedule = tests::ring_all_reduce(n, 1000 * n, 1000).done();
    const LongestPathResult result = run(schedule, Costs(schedule, latency_of(500_ns), 3_GBps));
    CHECK(result.end == 2 * (n - 1) * (333'334_ps + 500_ns));
    CHECK(result.messages == 2 * (n - 1) * n);
    CHECK(part(result, PathPart::wire) == 2 * (n - 1) * 333'334_ps);
    CHECK(part(result, PathPart::latency) == 2 * (n - 1) * 500_ns);
    CHECK(result.rank_end == std::vector<Duration>(n, result.end));
    for (const Bytes payload : result.link_payload) CHECK(payload == bytes(2000 * (n - 1)));
    CHECK(result.critical_path.size() == 2 * n - 1);
    CHECK(result.critical_path.front().why == PathReason::rank_start);
    CHECK(result.critical_path.back().why == PathReason::data);
  }
}

// Chain of n ranks, k chunks, store and forward, wire time w, latency l: the last chunk leaves the
// root at k w and then crosses n-1 links: (k + n - 2) w + (n-1) l.
TEST_CASE("longest_path: a broadcast chain is a pipeline") {
  for (std::uint32_t n = 2; n <= 5; ++n)
    for (std::int64_t k = 1; k <= 6; ++k) {
      const Schedule schedule = tests::broadcast_chain(n, 1000 * k, 1000).done();
      const LongestPathResult result = run(schedule, Costs(schedule, latency_of(7_us), 1_GBps));
      CHECK(result.end == (k + n - 2) * 1_us + (n - 1) * 7_us);
      CHECK(result.rank_end[0] == k * 1_us);
    }
}

// One connection, FIFO of 2, wire w = 1 us, latency 5 us, credit latency 3 us. Slice j leaves at
// max(leave of j-1 + w, credit): it arrives (and is consumed at once) w + l = 6 us after it starts,
// and its slot is known to be free 3 us later. So starts: 0, 1, then start(j) = start(j-2) + 9:
// 0 1 9 10 18 19, ends one us later, and the last of 6 slices arrives at 19 + 6 = 25 us.
TEST_CASE("longest_path: credits bound the rate when the FIFO is short") {
  tests::HandSchedule hand = tests::broadcast_chain(2, 6000, 1000);
  hand.raw().fifo_slices = 2;
  const Schedule schedule = hand.done();
  ConnectionCost cost = latency_of(5_us);
  cost.credit_latency = 3_us;
  const LongestPathResult result = run(schedule, Costs(schedule, cost, 1_GBps));
  CHECK(result.end == 25_us);
  CHECK(result.rank_end[0] == 20_us);
  // Slice 5 follows 4 in lane order (its credit comes at the same time), 4 waits for the credit of
  // 2, and 2 for that of 0.
  CHECK(part(result, PathPart::credit) == 6_us);
  CHECK(part(result, PathPart::latency) == 15_us);
  CHECK(part(result, PathPart::wire) == 4_us);
  std::vector<PathReason> reasons;
  for (const CriticalStep& step : result.critical_path) reasons.push_back(step.why);
  using R = PathReason;
  CHECK(reasons == std::vector<R>{R::rank_start, R::data, R::credit, R::data, R::credit,
                                  R::lane_order, R::data});
  // With 8 slots nothing waits: 6 + 5 us.
  hand.raw().fifo_slices = 8;
  CHECK(run(hand.done(), Costs(schedule, cost, 1_GBps)).end == 11_us);
}

// The receiver is the slow end: copies of 10 us each. FIFO of 1, so the sender of slice j waits for
// the end of copy j-1: per slice wire 1 + latency 2 + copy 10 + credit 4 = 17 us, without the last
// credit: 3 x 17 - 4 = 47.
TEST_CASE("longest_path: a slot is free when the receiver's operation has ended") {
  tests::HandSchedule hand = tests::broadcast_chain(2, 3000, 1000);
  hand.raw().fifo_slices = 1;
  const Schedule schedule = hand.done();
  ConnectionCost cost = latency_of(2_us);
  cost.credit_latency = 4_us;
  Costs costs(schedule, cost, 1_GBps);
  costs.lanes[1].local_rate = bytes_per_second(100'000'000);  // 1000 B in 10 us
  const LongestPathResult result = run(schedule, costs);
  CHECK(result.end == 47_us);
  CHECK(part(result, PathPart::copy) == 30_us);
}

// Overheads 1, 2, 3 us on the three ranks of a chain; copy at the end 4 us:
// 1 + w 5 + l 7 | 2 + 5 + 7 | 3 + 4 = 34.
TEST_CASE("longest_path: overheads precede the flow, local copies follow") {
  const Schedule schedule = tests::broadcast_chain(3, 1000, 1000).done();
  Costs costs(schedule, latency_of(7_us), bytes_per_second(200'000'000));
  costs.lanes = {{1_us, {}}, {2_us, {}}, {3_us, bytes_per_second(250'000'000)}};
  const LongestPathResult result = run(schedule, costs);
  CHECK(result.end == 34_us);
  CHECK(result.rank_end == std::vector<Duration>{6_us, 20_us, 34_us});
  CHECK(part(result, PathPart::op_overhead) == 6_us);
  CHECK(part(result, PathPart::copy) == 4_us);
}

// Rate = min(cap, links of the route); wire bytes = payload x 16/15, rounded up: 1000 -> 1067 B.
TEST_CASE("longest_path: the cap, every link of the route and the wire ratio") {
  const Schedule schedule = tests::broadcast_chain(2, 1000, 1000).done();
  Costs costs(schedule, {}, 4_GBps);
  costs.links = {4_GBps, 2_GBps};
  CHECK(run(schedule, costs).end == 250_ns);  // over link 0 alone
  costs.connections[0].route = {LinkId(0), LinkId(1)};
  CHECK(run(schedule, costs).end == 500_ns);
  costs.connections[0].cap = 1_GBps;
  CHECK(run(schedule, costs).end == 1_us);
  costs.connections[0].wire_numerator = 16;
  costs.connections[0].wire_denominator = 15;
  const LongestPathResult result = run(schedule, costs);
  CHECK(result.end == 1067_ns);
  CHECK(result.link_payload == std::vector<Bytes>{bytes(1000), bytes(1000)});
  costs.connections[0].route = {};
  CHECK(run(schedule, costs).end == 1067_ns);
  costs.connections[0].cap = {};
  CHECK(run(schedule, costs).end == 0_ns);  // nothing limits it
}

// LL-like chain: grain 16 B, 1000 B at 1 GB/s = 1 us, grain 16 ns, latency 100 ns.
// Rank 0: flow 0..1000, head at 16 + 100 = 116, tail 1100. Rank 1: flow 116..1116, held until
// 1100 + 16 = 1116; head 116 + 16 + 100 = 232, tail 1216. Rank 2: recv with no local limit: ends at
// its tail, 1216 = (n-1)(16 + 100) - 16 + 1000.
TEST_CASE("longest_path: cut-through forwards after a grain and ends a grain after its input") {
  const Schedule schedule = tests::broadcast_chain(3, 1000, 1000).done();
  ConnectionCost cost = latency_of(100_ns);
  cost.grain = bytes(16);
  Costs costs(schedule, cost, 1_GBps);
  const LongestPathResult result = run(schedule, costs);
  CHECK(result.rank_end == std::vector<Duration>{1000_ns, 1116_ns, 1216_ns});

  // The second link is 4 times as fast: flow 116..366, held until 1100 + 4 = 1104; arrives 1204.
  costs.links[1] = 4_GBps;
  const LongestPathResult held = run(schedule, costs);
  CHECK(held.rank_end == std::vector<Duration>{1000_ns, 1104_ns, 1204_ns});
  CHECK(held.critical_path.back().why == PathReason::data_tail);
  CHECK(held.critical_path.back().lane == LaneId(2));
  CHECK(held.critical_path.back().time == 1204_ns);

  // The second link is 4 times as slow: its own flow is what counts: 116 + 4000 + 100.
  costs.links[1] = bytes_per_second(250'000'000);
  CHECK(run(schedule, costs).end == 4216_ns);

  // A receiver that copies at 0.5 GB/s: from the head, 232, it needs 2000 ns.
  costs.links[1] = 1_GBps;
  costs.lanes[2].local_rate = bytes_per_second(500'000'000);
  CHECK(run(schedule, costs).end == 2232_ns);
  // At 10 GB/s it is held: tail 1216 + one grain at 10 GB/s = 1.6 ns.
  costs.lanes[2].local_rate = 10_GBps;
  CHECK(run(schedule, costs).end == 1'217'600_ps);
}

// A grain larger than the slice is the slice: store and forward again, but for the tail's grain.
// 10 B at 1 GB/s = 10 ns; 16 B grain: head = tail = 110; rank 1 flow 110..120, held until 110 + 10.
TEST_CASE("longest_path: a slice smaller than the grain") {
  const Schedule schedule = tests::broadcast_chain(3, 10, 10).done();
  ConnectionCost cost = latency_of(100_ns);
  cost.grain = bytes(16);
  CHECK(run(schedule, Costs(schedule, cost, 1_GBps)).rank_end ==
        std::vector<Duration>{10_ns, 120_ns, 220_ns});
}

// One slice of 1000 B: copy 1000/cap = 2 us, post 3, wire 1, latency 5, completion 4 = 15 us.
// Two slices: lane free at 2, 4; posted 5, 8; wired 6, 9; arrive 11, 14; done 15, 19.
TEST_CASE("longest_path: staged connections post, send and complete behind the lane") {
  ConnectionCost cost = latency_of(5_us);
  cost.staged = true;
  cost.cap = bytes_per_second(500'000'000);
  cost.send_service = 3_us;
  cost.recv_service = 4_us;
  const Schedule one = tests::broadcast_chain(2, 1000, 1000).done();
  const LongestPathResult result = run(one, Costs(one, cost, 1_GBps));
  CHECK(result.rank_end == std::vector<Duration>{2_us, 15_us});
  CHECK(part(result, PathPart::proxy) == 7_us);
  CHECK(part(result, PathPart::copy) == 2_us);
  const Schedule two = tests::broadcast_chain(2, 2000, 1000).done();
  CHECK(run(two, Costs(two, cost, 1_GBps)).rank_end == std::vector<Duration>{4_us, 19_us});
  // The wire is the slow stage (10 us a slice): 5 + 10 + 10 + 5 + 4.
  CHECK(run(two, Costs(two, cost, bytes_per_second(100'000'000))).end == 34_us);
}

// Root of a tree of three: both children's slices arrive at 1 + 2 = 3 us; its two sends run at
// once, the slower decides when its operation ends; each child gets its own.
TEST_CASE("longest_path: several inputs and outputs of one operation") {
  const Schedule schedule = tests::tree_of_three(1000, 1000).done();
  Costs costs(schedule, latency_of(2_us), 1_GBps);
  costs.links[3] = bytes_per_second(100'000'000);
  const LongestPathResult result = run(schedule, costs);
  CHECK(result.lane_end == std::vector<Duration>{13_us, 1_us, 1_us, 6_us, 15_us});
  CHECK(result.rank_end == std::vector<Duration>{13_us, 6_us, 15_us});
  // Child 2 comes late: everything shifts by its delay.
  costs.starts = {0_us, 0_us, 50_us};
  const LongestPathResult late = run(schedule, costs);
  CHECK(late.end == 65_us);
  CHECK(part(late, PathPart::rank_start) == 50_us);
  CHECK(late.rank_end[1] == 56_us);
}

// Cut-through into two outgoing links of 1 and 10 GB/s. Input: flow 0..1000 ns, grain 10 B, no
// latency: head 10, tail 1000. Leg a: 10..1010, held until 1010. Leg b: 10..110, held until 1001.
TEST_CASE("longest_path: every leg of a cut-through operation is held by the input's tail") {
  tests::HandSchedule hand(tests::call_of(Collective::broadcast, 1000), 4);
  hand.work(tests::linear_work(1000, 1000));
  const LaneId root = hand.lane(0, {op(Primitive::copy_send)}, LaneRole::tree_down);
  const LaneId middle = hand.lane(1, {op(Primitive::recv_copy_send)}, LaneRole::tree_down);
  const LaneId a = hand.lane(2, {op(Primitive::recv)}, LaneRole::tree_down);
  const LaneId b = hand.lane(3, {op(Primitive::recv)}, LaneRole::tree_down);
  hand.connect(root, middle);
  hand.connect(middle, a);
  hand.connect(middle, b);
  const Schedule schedule = hand.done();
  ConnectionCost cost;
  cost.grain = bytes(10);
  Costs costs(schedule, cost, 1_GBps);
  costs.links[2] = 10_GBps;
  CHECK(run(schedule, costs).lane_end == std::vector<Duration>{1000_ns, 1010_ns, 1010_ns, 1001_ns});
}

// Two lanes of one rank and channel; the second batch begins when the first has ended (5 us).
TEST_CASE("longest_path: a batch begins when the one below it has ended") {
  tests::HandSchedule hand(tests::call_of(Collective::broadcast, 1000), 1);
  hand.work(tests::linear_work(1000, 1000));
  hand.lane(0, {op(Primitive::copy)}, LaneRole::local);
  hand.lane(0, {op(Primitive::copy)}, LaneRole::local);
  Costs costs(hand.done(), {}, 1_GBps);
  costs.lanes = {{5_us, {}}, {2_us, {}}};
  CHECK(run(hand.done(), costs).lane_end == std::vector<Duration>{5_us, 2_us});
  hand.raw().lanes[1].batch = 3;
  const LongestPathResult result = run(hand.done(), costs);
  CHECK(result.lane_end == std::vector<Duration>{5_us, 7_us});
  CHECK(result.critical_path.back().why == PathReason::batch);
}

// Empty slices cost what others cost, but for the wire.
TEST_CASE("longest_path: empty slices still take overhead and latency") {
  tests::HandSchedule hand = tests::broadcast_chain(2, 1000, 1000);
  hand.raw().works[0].slices_per_chunk = 2;
  hand.raw().works[0].min_slice = bytes(1000);
  const Schedule schedule = hand.done();
  Costs costs(schedule, latency_of(10_us), 1_GBps);
  costs.lanes = {{2_us, {}}, {3_us, {}}};
  // Sender: 2 + 1, 2 + 0 -> 3 and 5. Arrivals 13 and 15; receiver 16, 19.
  CHECK(run(schedule, costs).rank_end == std::vector<Duration>{5_us, 19_us});
}

TEST_CASE("longest_path: ranks that do nothing end when they start") {
  tests::HandSchedule hand(tests::call_of(Collective::broadcast, 0), 2);
  hand.work(tests::linear_work(0, 8));
  hand.lane(0, {op(Primitive::copy)}, LaneRole::local);
  Costs costs(hand.done(), {}, 1_GBps);
  costs.starts = {3_us, 8_us};
  const LongestPathResult result = run(hand.done(), costs);
  CHECK(result.end == 8_us);
  CHECK(result.rank_end == costs.starts);
  CHECK(result.critical_path.empty());
}

TEST_CASE("longest_path: a schedule that never ends is a bug of the caller") {
  tests::HandSchedule hand(tests::call_of(Collective::all_reduce, 4), 2);
  hand.work(tests::linear_work(4, 4));
  const LaneId a = hand.lane(0, {op(Primitive::recv), op(Primitive::send)}, LaneRole::ring);
  const LaneId b = hand.lane(1, {op(Primitive::recv), op(Primitive::send)}, LaneRole::ring);
  hand.connect(a, b);
  hand.connect(b, a);
  const Schedule schedule = hand.done();
  const Costs costs(schedule, {}, 1_GBps);
  CHECK_THROWS_AS(longest_path(schedule, costs.connections, costs.lanes, costs.links, {}),
                  InternalError);
}

}  // namespace
}  // namespace railyard::sim
