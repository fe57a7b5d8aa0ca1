// Small messages that the network's library copies: costs by size, turns, order.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/sim/both_engines.h"
#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

using namespace literals;
using by_hand::Costs;
using by_hand::run_both;
using by_hand::run_fluid;
using by_hand::simple_costs;

TEST_CASE("small messages that the CPU copies: within their sizes, but not empty ones") {
  ConnectionCost cost;
  cost.send_service = 5_ns;
  cost.recv_service = 7_ns;
  cost.recv_busy = 1_ns;
  cost.inline_to = 16_B;
  cost.inline_copy = 300_ns;
  cost.eager_to = 32_B;
  cost.eager_copy = 200_ns;
  cost.eager_interval = 40_ns;
  struct Row {
    Bytes wire;
    Duration send, receive, interval;
  };
  for (const auto& [wire, send, receive, interval] : {Row{0_B, 5_ns, 7_ns, 0_ns},
                                                      {1_B, 305_ns, 207_ns, 40_ns},
                                                      {16_B, 305_ns, 207_ns, 40_ns},
                                                      {17_B, 5_ns, 207_ns, 40_ns},
                                                      {32_B, 5_ns, 207_ns, 40_ns},
                                                      {33_B, 5_ns, 7_ns, 0_ns}}) {
    CHECK(send_service_time(cost, wire) == send);
    CHECK(recv_service_time(cost, wire) == receive);
    CHECK(eager_interval(cost, wire) == interval);
  }
}

// A and B, 16 bytes each, from rank 0 by rank 1 to rank 2, each copied in 7 ns, one every 40. Rank
// 1 looks at A at 126, sees it at 133, has it ready at 143; B, there at 142, is looked at at 166,
// seen at 173, ready at 183: at rank 2 at 299, just when that looks again, seen at 306, used at
// 316.
TEST_CASE("eager messages: a rank looks at one after the other, and sends meanwhile") {
  const Schedule schedule = tests::broadcast_chain(3, 32, 16).done();
  Costs costs = simple_costs(schedule);
  for (ConnectionCost& cost : costs.connections) {
    cost.staged = true;
    cost.eager_to = 16_B;
    cost.eager_copy = 7_ns;
    cost.eager_interval = 40_ns;
  }
  CHECK(run_fluid(schedule, costs).end == 316_ns);
  // Every connection alone: B is seen at 149 and leaves when A has, at 159.
  CHECK(longest_path(schedule, costs.connections, costs.lanes, costs.links, {}).end == 292_ns);
  for (ConnectionCost& cost : costs.connections) cost.eager_to = 15_B;
  CHECK(run_both(schedule, costs).end == 278_ns);  // without a copy: 136, 152 + 16, 268, 278
}

// Three ranks send 16 bytes each to the fourth, which sees them in the order of the connections.
TEST_CASE(
    "eager messages: turns are a rank's, over all that send to it, and copies take the proxy") {
  tests::HandSchedule hand(tests::call_of(Collective::gather, 64), 4);
  for (std::uint32_t r = 0; r < 3; ++r) {
    const std::uint32_t work = hand.work(tests::linear_work(16, 16));
    hand.connect(hand.lane(r, {tests::op(Primitive::send)}, LaneRole::p2p_send, 0, work),
                 hand.lane(3, {tests::op(Primitive::recv)}, LaneRole::p2p_recv, 0, work));
  }
  const Schedule schedule = hand.done();
  Costs costs = simple_costs(schedule);
  for (ConnectionCost& cost : costs.connections) {
    cost.staged = true;
    cost.eager_to = 16_B;
    cost.eager_copy = 7_ns;
  }
  const auto arrivals = [&] { return run_fluid(schedule, costs).arrivals; };
  CHECK(arrivals() == std::vector<std::vector<Duration>>{{133_ns}, {140_ns}, {147_ns}});
  for (ConnectionCost& cost : costs.connections) cost.eager_interval = 40_ns;
  CHECK(arrivals() == std::vector<std::vector<Duration>>{{133_ns}, {173_ns}, {213_ns}});
  for (ConnectionCost& cost : costs.connections) cost.eager_interval = 4_ns;  // the proxy is slower
  CHECK(arrivals() == std::vector<std::vector<Duration>>{{133_ns}, {140_ns}, {147_ns}});
}

// 16, 8, 16, 8, ... bytes, of which those of 8 are eager: none may pass the one before it.
TEST_CASE("eager messages: longer ones behind them wait with them") {
  tests::HandSchedule hand(tests::call_of(Collective::broadcast, 96), 2);
  Work work = tests::linear_work(96, 24);
  work.slices_per_chunk = 2;
  work.slice_align = 16;
  hand.work(work);
  hand.connect(hand.lane(0, {tests::op(Primitive::send)}, LaneRole::ring),
               hand.lane(1, {tests::op(Primitive::recv)}, LaneRole::ring));
  const Schedule schedule = hand.done();
  Costs costs = simple_costs(schedule);
  ConnectionCost& cost = costs.connections[0];
  cost.staged = true;
  cost.eager_to = 8_B;
  cost.eager_copy = 3_ns;
  const auto arrivals = [&] { return run_fluid(schedule, costs).arrivals[0]; };
  for (const Duration interval : {0_ns, 100_ns}) {
    cost.eager_interval = interval;
    const std::vector<Duration> seen = arrivals();
    REQUIRE(seen.size() == 8);
    CHECK(std::ranges::is_sorted(seen));
    for (std::size_t k = 3; k < seen.size(); k += 2) CHECK(seen[k] - seen[k - 2] >= interval);
    if (interval > 0_ns) CHECK(seen[4] == seen[3]);  // it was there before that was seen
  }
  // A proxy that is busy when an eager message comes, and not asked about the longer one behind it.
  cost.eager_interval = {};
  cost.recv_busy = 500_ns;
  CHECK(std::ranges::is_sorted(arrivals()));
  CHECK(arrivals()[2] == arrivals()[1]);
}

}  // namespace
}  // namespace railyard::sim
