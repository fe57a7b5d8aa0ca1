// Connections with several queue pairs, by hand: rank 0 sends messages of 1,024 bytes to rank 1.
//
// Times in ns. An operation takes 10, so that message k is with the proxy (which takes no time) at
// 10 (k + 1); links of 1 GB/s take 1,024 for it; it is seen 100 later and received in 10.
#include <doctest/doctest.h>

#include "tests/sim/both_engines.h"
#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

using namespace literals;
using by_hand::Costs;
using tests::HandSchedule;
using tests::op;
using P = Primitive;

constexpr LinkId kFirst{0};
constexpr LinkId kSecond{1};

Schedule messages(std::int64_t count, std::uint32_t fifo = 8) {
  HandSchedule hand(tests::call_of(Collective::broadcast, count * 1024), 2);
  hand.work(tests::linear_work(count * 1024, 1024));
  const LaneId from = hand.lane(0, {op(P::copy_send)}, LaneRole::ring);
  const LaneId to = hand.lane(1, {op(P::recv)}, LaneRole::ring);
  hand.connect(from, to);
  Schedule schedule = hand.done();
  schedule.fifo_slices = fifo;
  return schedule;
}

// A queue pair for each route.
Costs costs_of(const std::vector<Route>& routes, bool split) {
  Costs costs;
  ConnectionCost cost;
  cost.staged = true;
  cost.latency = 100_ns;
  cost.route = routes.front();
  cost.more_routes.assign(routes.begin() + 1, routes.end());
  cost.split = split;
  costs.connections = {cost};
  costs.lanes.assign(2, {.op_overhead = 10_ns});
  costs.links = {1_GBps, 1_GBps};
  return costs;
}

// The fluid engine's end; it moves the same bytes as the other engine, and is not faster.
Duration end_of(const Schedule& schedule, const Costs& costs) {
  REQUIRE(validate(schedule).ok());
  const by_hand::Fluid fluid = by_hand::run_fluid(schedule, costs);
  const LongestPathResult path =
      longest_path(schedule, costs.connections, costs.lanes, costs.links, {});
  CHECK(fluid.carried == path.link_payload);
  CHECK(fluid.messages == path.messages);
  CHECK(fluid.end >= path.end);
  return fluid.end;
}

TEST_CASE("queue pairs: messages take them in turn, and both are under way") {
  const Schedule schedule = messages(8);
  CHECK(end_of(schedule, costs_of({{kFirst}}, false)) == 10_ns + 8 * 1024_ns + 110_ns);
  // The second pair's first message comes 10 later, its last one ends all.
  CHECK(end_of(schedule, costs_of({{kFirst}, {kSecond}}, false)) == 20_ns + 4 * 1024_ns + 110_ns);
}

TEST_CASE("queue pairs: a split message is on all of them, in parts of whole 128 bytes") {
  CHECK(end_of(messages(8), costs_of({{kFirst}, {kSecond}}, true)) == 10_ns + 8 * 512_ns + 110_ns);
  ConnectionCost three;
  three.more_routes.resize(2);
  three.split = true;
  const auto parts = [&](std::int64_t size) {
    std::vector<std::int64_t> out;
    for (std::uint32_t pair = 0; pair < queue_pairs(three); ++pair)
      out.push_back(pair_bytes(three, 5, pair, bytes(size)).raw());
    return out;
  };
  CHECK(parts(1000) == std::vector<std::int64_t>{384, 384, 232});
  CHECK(parts(129) == std::vector<std::int64_t>{128, 1, 0});
  CHECK(parts(0) == std::vector<std::int64_t>{0, 0, 0});
  three.split = false;
  CHECK(parts(1000) == std::vector<std::int64_t>{0, 0, 1000});  // 5 mod 3
}

TEST_CASE("queue pairs: a message that overtakes another is seen after it") {
  Costs costs = costs_of({{kFirst}, {kSecond}}, false);
  costs.links[1] = 10_GBps;
  // Message 0 ends at 1,034, message 1 long before; both are received after that.
  CHECK(end_of(messages(2), costs) == 10_ns + 1024_ns + 100_ns + 20_ns);
}

TEST_CASE("queue pairs: on one path they share it") {
  // Two at half the rate, from 20 on; what the first moved alone before is no help to the second.
  CHECK(end_of(messages(2), costs_of({{kFirst}, {kFirst}}, false)) == 10_ns + 2 * 1024_ns + 110_ns);
}

TEST_CASE("queue pairs: the FIFO bounds how many messages are under way") {
  const Schedule schedule = messages(4, 1);
  const Duration alone = end_of(schedule, costs_of({{kFirst}}, false));
  CHECK(alone == 10_ns + 4 * (1024_ns + 110_ns));
  CHECK(end_of(schedule, costs_of({{kFirst}, {kSecond}}, false)) == alone);
}

}  // namespace
}  // namespace railyard::sim
