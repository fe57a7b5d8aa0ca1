#include "sim/collective_runner.h"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/gpu.h"
#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

using namespace literals;

constexpr std::uint32_t kRanks = 4;

// GPUs in a ring; link r leads from r to r + 1.
Topology ring_topology() {
  Topology topology;
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    topology.devices.push_back({DeviceKind::gpu, 0, r, "gpu" + std::to_string(r)});
    Link link;
    link.from = DeviceId(r);
    link.to = DeviceId((r + 1) % kRanks);
    topology.links.push_back(link);
  }
  return topology;
}

// Ranks 10, 11, ... of the job, so that they differ from the group ranks.
Group ring_group() {
  Group group;
  for (std::uint32_t r = 0; r < kRanks; ++r) group.push_back({Rank(10 + r), DeviceId(r), 0, r});
  return group;
}

// AllReduce: one ring loop. Broadcast: a chain from rank 0 in chunks of 1000 B. Every link 1 GB/s,
// every message 1 us of latency.
struct Hand : CollectiveSource, CostModel {
  std::map<std::pair<Collective, std::int64_t>, std::shared_ptr<const Schedule>> built;
  Duration latency = 1_us;
  Duration credit_latency{};

  static tests::HandSchedule deadlock(const CollectiveCall& call) {
    tests::HandSchedule schedule(call, kRanks);
    schedule.work(tests::linear_work(call.size.raw(), call.size.raw()));
    std::vector<LaneId> lanes;
    for (std::uint32_t r = 0; r < kRanks; ++r)
      lanes.push_back(schedule.lane(r, {tests::op(Primitive::recv), tests::op(Primitive::send)},
                                    LaneRole::ring, r));
    for (std::uint32_t r = 0; r < kRanks; ++r) schedule.connect(lanes[r], lanes[(r + 1) % kRanks]);
    return schedule;
  }
  static tests::HandSchedule build(const CollectiveCall& call) {
    const std::int64_t size = call.size.raw();
    if (size == 0) return {call, kRanks};
    if (call.collective == Collective::all_gather) return deadlock(call);
    if (call.collective == Collective::broadcast) return tests::broadcast_chain(kRanks, size, 1000);
    return tests::ring_all_reduce(kRanks, size, size / kRanks);
  }
  Result<std::shared_ptr<const Schedule>> schedule(const CollectiveCall& call) override {
    if (call.collective == Collective::reduce) return bad_input("no Reduce by hand");
    std::shared_ptr<const Schedule>& schedule = built[{call.collective, call.size.raw()}];
    if (!schedule) schedule = std::make_shared<const Schedule>(build(call).done());
    return schedule;
  }
  std::uint32_t sm_count(const Schedule&) const override { return 1; }
  Bandwidth link_capacity(const Link&) const override { return 1_GBps; }
  Result<ConnectionCost> connection(const Schedule& schedule, const Group&,
                                    ConnectionId connection) const override {
    const Connection& ends = schedule.connections[connection.index()];
    ConnectionCost cost;
    cost.route = {LinkId(schedule.lanes[ends.from.index()].rank)};
    cost.latency = latency;
    cost.credit_latency = credit_latency;
    return cost;
  }
  LaneCost lane(const Schedule&, const Lane&) const override { return {}; }
  Slowdown slowdown(const Schedule&, const Group&) const override { return {.compute = 2}; }
};

struct Leave {
  std::uint32_t rank;
  std::uint32_t call;
  Time at;
  friend bool operator==(const Leave&, const Leave&) = default;
};

// A communicator, and ranks that enter calls at given times.
struct Bench : EventHandler, CollectiveListener {
  explicit Bench(const CollectiveRunner::Options& options = {}, const Hand& hand = {})
      : source(hand), runner(simulation, {&topology, ring_group(), &source, &source}, options) {}
  PlanId plan(Collective collective, std::int64_t size) {
    return runner.plan({.collective = collective, .size = bytes(size)}).value();
  }
  void enter(std::uint32_t rank, PlanId plan, Duration at) {
    entries.emplace_back(rank, plan);
    simulation.queue().schedule(Time(at), *this, 0, static_cast<std::uint32_t>(entries.size() - 1));
  }
  void enter_all(PlanId plan, Duration at) {
    for (std::uint32_t r = 0; r < kRanks; ++r) enter(r, plan, at);
  }
  void on_event(std::uint32_t, std::uint32_t entry) override {
    const auto [rank, plan] = entries[entry];
    const std::uint32_t expected = runner.next_call(rank);
    const std::uint32_t call = runner.enter(rank, plan, *this);
    CHECK(call == expected);
  }
  void on_collective_done(const CollectiveRunner& who, std::uint32_t rank,
                          std::uint32_t call) override {
    CHECK(&who == &runner);
    left.push_back({rank, call, simulation.now()});
  }
  const CallRecord& run(std::size_t call = 0) {
    simulation.queue().run();
    return runner.records().at(call);
  }

  Topology topology = ring_topology();
  Hand source;
  Simulation simulation{topology, source};
  CollectiveRunner runner;
  std::vector<std::pair<std::uint32_t, PlanId>> entries;
  std::vector<Leave> left;
};

using Times = std::vector<Time>;

// 4000 B over 4 ranks: 6 steps of 1000 B / 1 GB/s + 1 us = 12 us from the last entry, at 7.
TEST_CASE("runner: an AllReduce starts when the last rank has entered") {
  for (const bool replay : {false, true}) {
    Bench bench({.replay = replay});
    const PlanId plan = bench.plan(Collective::all_reduce, 4000);
    const std::vector<Duration> at{0_us, 3_us, 7_us, 5_us};
    for (std::uint32_t r = 0; r < kRanks; ++r) bench.enter(r, plan, at[r]);
    const CallRecord& record = bench.run();
    CHECK(record.enter == Times{Time(0_us), Time(3_us), Time(7_us), Time(5_us)});
    CHECK(record.begin == Time(7_us));
    CHECK(record.end == Times(kRanks, Time(19_us)));
    CHECK(record.done == Time(19_us));
    CHECK(record.messages == 24);  // 4 ranks x 6 steps
    CHECK(bench.runner.messages() == 24);
    CHECK(!record.replayed);
    CHECK(bench.left.size() == kRanks);
    CHECK(bench.runner.waiting(10).empty());
    for (std::size_t r = 0; r < kRanks; ++r)
      CHECK(bench.simulation.network().carried(ResourceId(r)) == 6000_B);
  }
}

// Two calls, entered by all ranks at 0: 12 us, then 2 (n-1) (2 + 1) = 18 us.
TEST_CASE("runner: the calls of a communicator follow one another") {
  for (const bool replay : {false, true}) {
    Bench bench({.replay = replay});
    const PlanId small = bench.plan(Collective::all_reduce, 4000);
    const PlanId large = bench.plan(Collective::all_reduce, 8000);
    CHECK(small != large);
    bench.enter_all(small, 0_us);
    bench.enter_all(large, 0_us);
    bench.run();
    const std::vector<CallRecord>& records = bench.runner.records();
    CHECK(records[1].enter == Times(kRanks, Time{}));
    CHECK(records[1].begin == Time(12_us));
    CHECK(records[1].end == Times(kRanks, Time(30_us)));
    for (std::size_t i = 0; i < bench.left.size(); ++i) CHECK(bench.left[i].call == i / kRanks);
  }
}

// Rank 3 comes to the second call at 40 only: it waits for that, not for the first call's end.
TEST_CASE("runner: a later call waits for its own last rank") {
  Bench bench;
  const PlanId plan = bench.plan(Collective::all_reduce, 4000);
  bench.enter_all(plan, 0_us);
  for (std::uint32_t r = 0; r < 3; ++r) bench.enter(r, plan, 5_us);
  bench.enter(3, plan, 40_us);
  const CallRecord& record = bench.run(1);
  CHECK(record.begin == Time(40_us));
  CHECK(record.done == Time(52_us));
}

// Chain 0 -> 1 -> 2 -> 3, one chunk: 1 us of wire, 1 us of latency. Rank 0 enters at 0 and leaves
// at
// 1. Rank 1 enters at 10, forwards 10..11; the data is at rank 2 at 12, which entered at 0 and
// forwards 12..13; at rank 3 at 14, which enters at 20 and takes it at once.
TEST_CASE("runner: in a Broadcast every rank starts as it enters") {
  for (const bool replay : {false, true}) {
    Bench bench({.replay = replay});
    const PlanId plan = bench.plan(Collective::broadcast, 1000);
    const std::vector<Duration> at{0_us, 10_us, 0_us, 20_us};
    for (std::uint32_t r = 0; r < kRanks; ++r) bench.enter(r, plan, at[r]);
    const CallRecord& record = bench.run();
    CHECK(record.begin == Time{});
    CHECK(record.end == Times{Time(1_us), Time(11_us), Time(13_us), Time(20_us)});
    CHECK(record.messages == 3);
    CHECK(bench.left.front() == Leave{0, 0, Time(1_us)});
    CHECK(bench.runner.replays() == 0);
  }
}

// Ranks 0 and 2 enter the Broadcast behind the AllReduce (0..12) at 2 and wait for its end; ranks 1
// and 3 enter at 30. Root: 12..13; at rank 1 at 14, forwards 30..31; rank 2 32..33; rank 3 at 34.
TEST_CASE("runner: a Broadcast behind another call starts with the ranks that wait in it") {
  Bench bench;
  bench.enter_all(bench.plan(Collective::all_reduce, 4000), 0_us);
  const PlanId plan = bench.plan(Collective::broadcast, 1000);
  for (const std::uint32_t r : {0U, 2U}) bench.enter(r, plan, 2_us);
  for (const std::uint32_t r : {1U, 3U}) bench.enter(r, plan, 30_us);
  const CallRecord& record = bench.run(1);
  CHECK(record.begin == Time(12_us));
  CHECK(record.end == Times{Time(13_us), Time(31_us), Time(33_us), Time(34_us)});
}

TEST_CASE("runner: every rank leaves an empty message as it enters it, call after call") {
  Bench bench;
  const PlanId plan = bench.plan(Collective::all_reduce, 0);
  for (std::uint32_t r = 0; r < kRanks; ++r) bench.enter(r, plan, r * 2_us);
  bench.enter_all(plan, 3_us);
  bench.run();
  const std::vector<CallRecord>& records = bench.runner.records();
  CHECK(records[0].end == Times{Time(0_us), Time(2_us), Time(3_us), Time(3_us)});
  // Rank 2 entered the first call at 3, its second at 4; rank 3 likewise, at 6.
  CHECK(records[0].enter == records[0].end);
  CHECK(records[1].done == Time(6_us));
  CHECK(records[0].messages == 0);
}

TEST_CASE("runner: one plan per schedule, bad calls fail before the run") {
  Bench bench;
  const PlanId plan = bench.plan(Collective::all_reduce, 4000);
  CHECK(bench.plan(Collective::all_reduce, 4000) == plan);
  CHECK(bench.runner.schedule(plan).call.size == 4000_B);
  CHECK(bench.runner.slowdown(plan).compute == 2);
  const Result<PlanId> bad = bench.runner.plan({.collective = Collective::reduce, .size = 4_B});
  REQUIRE(!bad.ok());
  CHECK(bad.error().message == "no Reduce by hand");
}

TEST_CASE("runner: ranks that make different calls are a bug") {
  Bench bench;
  bench.enter(0, bench.plan(Collective::all_reduce, 4000), 0_us);
  bench.enter(1, bench.plan(Collective::all_reduce, 8000), 0_us);
  CHECK_THROWS_AS(bench.run(), InternalError);
}

// Five chunks through a FIFO of 8 need no credit; twenty do, and credits come 100 us late.
TEST_CASE("runner: credits can be left out") {
  Hand slow;
  slow.credit_latency = 100_us;
  const auto done = [&](bool credits, std::int64_t size) {
    Bench bench({.credits = credits}, slow);
    bench.enter_all(bench.plan(Collective::broadcast, size), 0_us);
    return bench.run().done;
  };
  CHECK(done(true, 5000) == done(false, 5000));
  CHECK(done(true, 20'000) > Time(200_us));
  // Chain of 4, k chunks of 1 us, latency 1 us: (k + n - 2) + (n - 1).
  CHECK(done(false, 20'000) == Time(25_us));
}

TEST_CASE("runner: observers see the messages of calls simulated in place") {
  struct Count : MessageObserver {
    std::int64_t messages = 0;
    void on_message(const Schedule&, const Message& message) override {
      ++messages;
      CHECK(message.payload == 1000_B);
      CHECK(message.arrival - message.start == 2_us);
    }
  } count;
  Bench bench({.observer = &count});
  bench.enter_all(bench.plan(Collective::all_reduce, 4000), 50_us);
  bench.run();
  CHECK(count.messages == 24);
}

TEST_CASE("runner: it names the ranks of the job that never entered") {
  for (const bool replay : {false, true}) {
    Bench bench({.replay = replay});
    const PlanId plan = bench.plan(Collective::all_reduce, 4000);
    bench.enter_all(plan, 0_us);
    bench.enter(0, plan, 20_us);
    bench.enter(2, plan, 20_us);
    bench.simulation.queue().run();
    const std::vector<std::string> lines = bench.runner.waiting(10);
    REQUIRE(lines.size() >= 2);
    CHECK(lines[0] == "call 1 (AllReduce): rank 11 never entered");
    CHECK(lines[1] == "call 1 (AllReduce): rank 13 never entered");
    CHECK(bench.runner.waiting(1).size() == 1);
  }
}

// Rank 11 is missing: 10 has gone on, 12 waits for its data.
TEST_CASE("runner: of a call under way it says what every lane waits for") {
  Bench bench;
  const PlanId plan = bench.plan(Collective::broadcast, 1000);
  for (const std::uint32_t r : {0U, 2U, 3U}) bench.enter(r, plan, 0_us);
  bench.simulation.queue().run();
  CHECK(bench.runner.waiting(10) ==
        std::vector<std::string>{"call 0 (Broadcast): rank 11 never entered",
                                 "rank 11 channel 0 ring: not started",
                                 "rank 12 channel 0 ring: recvCopySend waits for data of rank 11",
                                 "rank 13 channel 0 ring: recv waits for data of rank 12"});
}

// Everybody receives before it sends.
TEST_CASE("runner: a schedule that waits for itself is told, replayed or not") {
  for (const bool replay : {false, true}) {
    CAPTURE(replay);
    Bench bench({.replay = replay});
    bench.enter_all(bench.plan(Collective::all_gather, 1000), 0_us);
    CHECK(bench.simulation.queue().run() == EventQueue::Outcome::drained);
    CHECK(bench.left.empty());
    const std::vector<std::string> lines = bench.runner.waiting(10);
    REQUIRE(lines.size() == kRanks);
    CHECK(lines[0] == "rank 10 channel 0 ring: recv waits for data of rank 13");
    CHECK(lines[3] == "rank 13 channel 0 ring: recv waits for data of rank 12");
    CHECK(bench.runner.waiting(2).size() == 2);
  }
}

// Six steps of 20 days each: the clock stops at 53.
TEST_CASE("runner: a call that lasts longer than the clock leaves the run unfinished") {
  Hand slow;
  slow.latency = 20 * 86'400'000 * 1_ms;
  for (const bool replay : {false, true}) {
    Bench bench({.replay = replay}, slow);
    bench.enter_all(bench.plan(Collective::all_reduce, 4000), 0_us);
    CHECK(bench.simulation.queue().run({.until = kEndOfTime}) == EventQueue::Outcome::limit);
    CHECK(bench.left.empty());
  }
}

// Every link is used by one flow without a cap: the ring is held back by all of them, the chain of
// the Broadcast by all but the last.
TEST_CASE("runner: it knows the links that held something back") {
  std::vector<bool> links(kRanks, false);
  Bench reduce({.replay = true});
  reduce.runner.mark_limiting(links);
  CHECK(links == std::vector<bool>(kRanks, false));
  reduce.enter_all(reduce.plan(Collective::all_reduce, 4000), 0_us);
  reduce.run();
  reduce.runner.mark_limiting(links);
  CHECK(links == std::vector<bool>(kRanks, true));
  Bench chain;
  chain.enter_all(chain.plan(Collective::broadcast, 4000), 0_us);
  chain.run();
  for (std::size_t r = 0; r < kRanks; ++r)
    CHECK(chain.simulation.network().limiting(ResourceId(r)) == (r + 1 < kRanks));
}

// A job: every rank runs kernels of random lengths and the same ten calls, on two streams.
struct Job {
  explicit Job(bool replay) : bench({.replay = replay}) {
    for (std::uint32_t r = 0; r < kRanks; ++r)
      gpus.push_back(std::make_unique<Gpu>(bench.simulation.queue(), trace, r, GpuTiming{}));
    const std::vector<PlanId> plans{
        bench.plan(Collective::all_reduce, 4000), bench.plan(Collective::all_reduce, 10'004),
        bench.plan(Collective::broadcast, 3500), bench.plan(Collective::all_reduce, 0)};
    const std::vector<std::size_t> calls{0, 1, 0, 2, 0, 3, 1, 1, 2, 0};
    std::mt19937_64 random(5);
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      Gpu& gpu = *gpus[r];
      const StreamId compute = gpu.add_stream();
      const StreamId communicate = gpu.add_stream();
      for (const std::size_t call : calls) {
        const auto length = static_cast<std::int64_t>(random() % 20'000'000);
        gpu.launch(compute, {.alone = picoseconds(length), .name = trace.name("kernel")});
        if (call % 2 == 0) gpu.wait(communicate, gpu.record(compute));
        gpu.launch_collective(communicate, bench.runner, r, plans[call],
                              trace.name("call " + std::to_string(call)));
      }
    }
    bench.simulation.queue().run();
    for (const CallRecord& record : bench.runner.records()) trace.add_digest(record.digest);
  }
  Bench bench;
  Trace trace{kRanks};
  std::vector<std::unique_ptr<Gpu>> gpus;
};

TEST_CASE("runner: a replayed run has the records, bytes and trace hash of one that is not") {
  Job plain(false);
  Job replayed(true);
  const std::vector<CallRecord>& a = plain.bench.runner.records();
  const std::vector<CallRecord>& b = replayed.bench.runner.records();
  REQUIRE(a.size() == 10);
  REQUIRE(b.size() == 10);
  std::vector<std::size_t> replays;
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(a[i].enter == b[i].enter);
    CHECK(a[i].begin == b[i].begin);
    CHECK(a[i].end == b[i].end);
    CHECK(a[i].done == b[i].done);
    CHECK(a[i].digest == b[i].digest);
    CHECK(a[i].messages == b[i].messages);
    CHECK(!a[i].replayed);
    if (b[i].replayed) replays.push_back(i);
  }
  CHECK(a[0].digest != a[1].digest);
  CHECK(a[0].digest == a[2].digest);
  // Each AllReduce plan once apart, then again from its outcome.
  CHECK(replays == std::vector<std::size_t>{2, 4, 6, 7, 9});
  CHECK(replayed.bench.runner.replays() == 5);
  CHECK(plain.bench.runner.replays() == 0);
  CHECK(plain.bench.runner.sandbox_events() == 0);
  CHECK(replayed.bench.runner.sandbox_events() > 0);
  CHECK(replayed.bench.runner.messages() == plain.bench.runner.messages());
  for (std::size_t r = 0; r < kRanks; ++r) {
    const auto carried = [r](Job& job) {
      return job.bench.simulation.network().carried(ResourceId(r));
    };
    CHECK(carried(plain) == carried(replayed));
    CHECK(carried(plain) > 0_B);
  }
  CHECK(plain.trace.hash() == replayed.trace.hash());
  CHECK(plain.trace.spans().size() == 80);
}

}  // namespace
}  // namespace railyard::sim
