#include "sim/simulation.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/executor.h"
#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

using namespace literals;

// Links at what their class achieves, latency 700 ns on every connection.
struct FlatCosts : CostModel {
  Bandwidth link_capacity(const Link& link) const override { return link.capacity; }
  Result<ConnectionCost> connection(const Schedule&, const Group&, ConnectionId c) const override {
    ConnectionCost cost;
    cost.route = {LinkId(c.index() % 2)};  // all connections share two links
    cost.latency = 700_ns;
    cost.credit_latency = 300_ns;
    return cost;
  }
  LaneCost lane(const Schedule&, const Lane&) const override { return {150_ns, 200_GBps}; }
  Slowdown slowdown(const Schedule&, const Group&) const override { return {}; }
};

Topology two_links(Bandwidth first, Bandwidth second) {
  Topology topology;
  topology.links.resize(2);
  topology.links[0].capacity = first;
  topology.links[1].capacity = second;
  return topology;
}

// One schedule on one simulation; every rank starts at `start`.
struct Job : EventHandler, RunListener, MessageObserver {
  Job(const Schedule& description, const Topology& topology, Time start = {})
      : simulation(topology, costs) {
    auto schedule = std::make_shared<const Schedule>(description);
    auto bound = std::make_shared<const ScheduleCosts>(
        bind_costs(*schedule, Group(schedule->ranks), costs).value());
    executor = std::make_unique<Executor>(schedule, bound, simulation.queue(), simulation.network(),
                                          Executor::Options{.observer = this});
    executor->set_listener(this);
    ends.resize(schedule->ranks);
    simulation.queue().schedule(start, *this, 0, 0);
  }
  void on_event(std::uint32_t, std::uint32_t) override {
    for (std::uint32_t r = 0; r < ends.size(); ++r) executor->start_rank(r);
  }
  void on_rank_done(std::uint32_t rank) override { ends[rank] = simulation.now(); }
  void on_message(const Schedule&, const Message& message) override {
    messages.emplace_back(message.connection, message.arrival);
  }
  FlatCosts costs;
  Simulation simulation;
  std::unique_ptr<Executor> executor;
  std::vector<Time> ends;
  std::vector<std::pair<ConnectionId, Time>> messages;  // in the order of their reports
};

Job& finished(Job& job) {
  CHECK(job.simulation.queue().run() == EventQueue::Outcome::drained);
  REQUIRE(job.executor->finished());
  return job;
}

const Schedule& reduce_of_six() {
  static const Schedule schedule = tests::ring_all_reduce(6, 1'000'000, 20'000, 16).done();
  return schedule;
}
const Schedule& broadcast_of_five() {
  static const Schedule schedule = tests::broadcast_chain(5, 700'001, 33'333).done();
  return schedule;
}

TEST_CASE("simulation: network resource i is topology link i, with its multiplicity") {
  Topology topology = two_links(3_GBps, 5_GBps);
  topology.links[1].multiplicity = 4;
  const FlatCosts costs;
  Simulation simulation(topology, costs);
  Network& network = simulation.network();
  REQUIRE(network.resource_count() == 2);
  CHECK(network.capacity(ResourceId(0)) == 3_GBps);
  CHECK(network.capacity(ResourceId(1)) == 5_GBps);
  // Two flows on the second: each gets 4 x 5 / 2 GB/s.
  const std::array<ResourceUse, 1> uses{ResourceUse{ResourceId(1)}};
  for (int i = 0; i < 2; ++i) network.start(network.add_flow({.uses = uses}), 1_GiB);
  network.settle();
  CHECK(network.rate(FlowId(0)) == 10_GBps);
  CHECK(simulation.now() == Time{});
}

TEST_CASE("simulation: two of them, event by event in turn, give what they give apart") {
  const Topology fast = two_links(25_GBps, 20_GBps);
  const Topology slow = two_links(3_GBps, 7_GBps);
  Job alone_a(reduce_of_six(), fast);
  Job alone_b(broadcast_of_five(), slow);
  finished(alone_a);
  finished(alone_b);

  Job a(reduce_of_six(), fast);
  Job b(broadcast_of_five(), slow);
  EventQueue::Limits one;
  one.max_events = 1;
  std::uint64_t turns = 0;
  while (!a.simulation.queue().empty() || !b.simulation.queue().empty()) {
    for (Job* each : {&a, &b}) each->simulation.queue().run(one);
    ++turns;
  }
  for (const auto& [together, alone] : {std::pair{&a, &alone_a}, std::pair{&b, &alone_b}}) {
    CHECK(together->executor->finished());
    CHECK(together->ends == alone->ends);
    CHECK(together->messages == alone->messages);
    CHECK(together->executor->digest() == alone->executor->digest());
    CHECK(together->simulation.queue().executed() == alone->simulation.queue().executed());
    CHECK(together->simulation.network().solves() == alone->simulation.network().solves());
    CHECK(together->simulation.now() == alone->simulation.now());
  }
  CHECK(turns > 500);
}

TEST_CASE("simulation: the same run twice gives the same digest, another run another") {
  const Topology topology = two_links(25_GBps, 20_GBps);
  Job first(reduce_of_six(), topology);
  Job second(reduce_of_six(), topology);
  Job other(reduce_of_six(), two_links(25_GBps, bytes_per_second(20'000'000'001)));
  CHECK(finished(first).executor->digest() == finished(second).executor->digest());
  CHECK(first.messages == second.messages);
  CHECK(finished(other).executor->digest() != first.executor->digest());
}

TEST_CASE("simulation: an executor runs again on the same clock, with the same digest") {
  Job job(reduce_of_six(), two_links(25_GBps, 20_GBps));
  finished(job);
  const std::uint64_t digest = job.executor->digest();
  const Duration length = job.ends[0].time_since_epoch();
  const Time again = job.simulation.now() + 123'456'789_ps;
  job.executor->reset();
  CHECK(!job.executor->finished());
  job.simulation.queue().schedule(again, job, 0, 0);
  finished(job);
  CHECK(job.executor->digest() == digest);
  CHECK(job.ends[0] - again == length);
}

// The constant is the digest of this run: whatever compiler, library and machine built the tests,
// every start and arrival of every message is the same to the picosecond. It changes only with the
// model or the schedule; then all three numbers are written anew.
TEST_CASE("simulation: a golden digest, equal on every compiler") {
  Job job(reduce_of_six(), two_links(25_GBps, 20_GBps));
  finished(job);
  CHECK(job.executor->messages() == 540);  // 9 loops x 10 steps x 6 ranks
  CHECK(job.simulation.now().time_since_epoch().count() == 303'690'650);
  CHECK(job.executor->digest() == 5'934'840'081'998'727'814ULL);
}

// Chain of two ranks in chunks of 1/8: the wire is busy throughout but for 150 ns an operation, and
// the last arrival follows after 700 ns; the receiver's last operation takes its 150 ns and copies
// a chunk at 200 GB/s.
TEST_CASE("simulation: 512 MiB and 16 TiB, exactly") {
  for (const Bytes size : {512_MiB, 16_TiB}) {
    const Bytes chunk = size / 8;
    Job job(tests::broadcast_chain(2, size.raw(), chunk.raw()).done(), two_links(25_GBps, 1_GBps));
    finished(job);
    const Duration sent = 8 * (150_ns + transfer_time(chunk, 25_GBps));
    CHECK(job.ends[0] == Time(sent));
    CHECK(job.ends[1] == Time(sent + 700_ns + 150_ns + transfer_time(chunk, 200_GBps)));
    CHECK(job.simulation.network().carried(ResourceId(0)) == size);
  }
}

// 16 TiB in 4096 chunks of 4 GiB at 100 MB/s: 17'592'186'044'416 B / 1e8 B/s = 175'921.86044416 s,
// more than two days. A chunk takes 42.94967296 s.
TEST_CASE("simulation: a transfer of more than two days, and one that starts after a day") {
  constexpr std::int64_t kDay = 86'400'000'000'000'000;
  const Schedule schedule = tests::broadcast_chain(2, (16_TiB).raw(), (4_GiB).raw()).done();
  const Topology topology = two_links(bytes_per_second(100'000'000), 1_GBps);
  Job job(schedule, topology);
  finished(job);
  CHECK(job.ends[0] == Time(4096 * 150_ns + picoseconds(175'921'860'444'160'000)));
  CHECK(job.ends[0].time_since_epoch().count() > 2 * kDay);

  const Time tomorrow{picoseconds(kDay + 1)};
  Job later(reduce_of_six(), topology, tomorrow);
  Job now(reduce_of_six(), topology);
  finished(later);
  finished(now);
  CHECK(later.executor->digest() == now.executor->digest());
  for (std::size_t r = 0; r < now.ends.size(); ++r)
    CHECK(later.ends[r] - tomorrow == now.ends[r].time_since_epoch());
}

}  // namespace
}  // namespace railyard::sim
