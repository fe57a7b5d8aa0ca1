#include "sim/gpu.h"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/simulation.h"
#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

using namespace literals;

// "Collectives" of one rank: a local copy of `size` bytes at 1 GB/s, so 1000 B take 1 us.
struct OneRank : CollectiveSource, CostModel {
  std::map<std::int64_t, std::shared_ptr<const Schedule>> built;
  std::map<std::int64_t, Slowdown> slow;  // by size

  Result<std::shared_ptr<const Schedule>> schedule(const CollectiveCall& call) override {
    std::shared_ptr<const Schedule>& schedule = built[call.size.raw()];
    if (!schedule) {
      tests::HandSchedule hand(call, 1);
      hand.work(tests::linear_work(call.size.raw(), call.size.raw()));
      hand.lane(0, {tests::op(Primitive::copy)}, LaneRole::local);
      schedule = std::make_shared<const Schedule>(hand.done());
    }
    return schedule;
  }
  std::uint32_t sm_count(const Schedule&) const override { return 1; }
  Bandwidth link_capacity(const Link&) const override { return 1_GBps; }
  Result<ConnectionCost> connection(const Schedule&, const Group&, ConnectionId) const override {
    return ConnectionCost{};
  }
  LaneCost lane(const Schedule&, const Lane&) const override { return {{}, 1_GBps}; }
  Slowdown slowdown(const Schedule& schedule, const Group&) const override {
    const auto found = slow.find(schedule.call.size.raw());
    return found == slow.end() ? Slowdown{} : found->second;
  }
};

using Interval = std::pair<Duration, Duration>;

// One GPU with as many streams and one-rank communicators as a test asks for. Actions run at their
// times, as a host's launches would.
struct Bench : EventHandler {
  explicit Bench(const GpuTiming& timing = {}) : gpu(simulation.queue(), trace, 0, timing) {
    for (int i = 0; i < 3; ++i) streams.push_back(gpu.add_stream());
  }
  void at(Duration time, std::function<void()> what) {
    actions.push_back(std::move(what));
    simulation.queue().schedule(Time(time), *this, 0,
                                static_cast<std::uint32_t>(actions.size() - 1));
  }
  void on_event(std::uint32_t, std::uint32_t argument) override { actions[argument](); }
  void kernel(std::size_t stream, const std::string& name, Duration alone,
              KernelBound bound = KernelBound::compute) {
    gpu.launch(streams[stream], {alone, bound, trace.name(name)});
  }
  void collective(std::size_t stream, const std::string& name, std::int64_t size,
                  const Slowdown& slowdown = {}) {
    source.slow[size] = slowdown;
    runners.push_back(std::make_unique<CollectiveRunner>(
        simulation, CollectiveRunner::Communicator{&topology, Group{Member{}}, &source, &source},
        CollectiveRunner::Options{}));
    const PlanId plan = runners.back()->plan({.size = bytes(size)}).value();
    gpu.launch_collective(streams[stream], *runners.back(), 0, plan, trace.name(name));
  }
  Interval span(const std::string& name) const {
    for (const Span& each : trace.spans())
      if (trace.names()[each.name] == name)
        return {each.start.time_since_epoch(), each.end.time_since_epoch()};
    FAIL("no span " << name);
    return {};
  }
  void run() { simulation.queue().run(); }

  Topology topology;
  OneRank source;
  Simulation simulation{topology, source};
  Trace trace{1};
  Gpu gpu;
  std::vector<StreamId> streams;
  std::vector<std::unique_ptr<CollectiveRunner>> runners;
  std::vector<std::function<void()>> actions;
};

// Launch latency 5, gap 1. a: 0 + 5 .. 15. b waits for a and the gap: 16 .. 19. c, launched at 18
// while b runs, needs max(18 + 5, 19 + 1) = 23. d comes to an idle stream: 40 + 5.
TEST_CASE("gpu: a stream is a FIFO with a launch latency and a gap between kernels") {
  Bench bench({.launch_latency = 5_us, .kernel_gap = 1_us});
  bench.at(0_us, [&] {
    bench.kernel(0, "a", 10_us);
    bench.kernel(0, "b", 3_us);
    CHECK(bench.gpu.pending(bench.streams[0]) == 2);
  });
  bench.at(18_us, [&] { bench.kernel(0, "c", 2_us); });
  bench.at(40_us, [&] { bench.kernel(0, "d", 1_us); });
  bench.run();
  CHECK(bench.span("a") == Interval{5_us, 15_us});
  CHECK(bench.span("b") == Interval{16_us, 19_us});
  CHECK(bench.span("c") == Interval{23_us, 25_us});
  CHECK(bench.span("d") == Interval{45_us, 46_us});
  CHECK(bench.gpu.busy(bench.streams[0]) == 16_us);
  CHECK(bench.gpu.busy_alone(bench.streams[0]) == 16_us);
  CHECK(bench.gpu.pending(bench.streams[0]) == 0);
  CHECK(bench.gpu.waiting().empty());
}

TEST_CASE("gpu: streams run side by side") {
  Bench bench;
  bench.at(0_us, [&] {
    bench.kernel(0, "a", 10_us);
    bench.kernel(1, "b", 4_us);
    bench.kernel(1, "c", 4_us);
  });
  bench.run();
  CHECK(bench.span("a") == Interval{0_us, 10_us});
  CHECK(bench.span("c") == Interval{4_us, 8_us});
}

// Stream 1 waits for stream 0's record behind a (0..10): c runs 10..13; stream 0 waits for stream
// 1's record behind c: d starts at 13 and not at 10.
TEST_CASE("gpu: record and wait order kernels of different streams") {
  Bench bench;
  bench.at(0_us, [&] {
    bench.kernel(0, "a", 10_us);
    const GpuEventId after_a = bench.gpu.record(bench.streams[0]);
    bench.gpu.wait(bench.streams[1], after_a);
    bench.kernel(1, "c", 3_us);
    const GpuEventId after_c = bench.gpu.record(bench.streams[1]);
    bench.gpu.wait(bench.streams[0], after_c);
    bench.kernel(0, "d", 1_us);
    CHECK(!bench.gpu.fired(after_a));
  });
  bench.run();
  CHECK(bench.span("c") == Interval{10_us, 13_us});
  CHECK(bench.span("d") == Interval{13_us, 14_us});
}

TEST_CASE("gpu: an event of an idle stream fires at once, and waiting for it then costs nothing") {
  Bench bench;
  GpuEventId event;
  bench.at(7_us, [&] {
    event = bench.gpu.record(bench.streams[0]);
    CHECK(bench.gpu.fired(event));
    CHECK(bench.gpu.fire_time(event) == Time(7_us));
  });
  bench.at(9_us, [&] {
    bench.gpu.wait(bench.streams[1], event);
    bench.kernel(1, "a", 2_us);
  });
  bench.run();
  CHECK(bench.span("a") == Interval{9_us, 11_us});
}

// Two streams stop at one event; its record stands behind a kernel of 6.
TEST_CASE("gpu: one event frees every stream that waits for it, and tells its listeners") {
  struct Note : EventHandler {
    EventQueue* queue = nullptr;
    std::vector<std::pair<Time, std::uint32_t>> heard;
    void on_event(std::uint32_t code, std::uint32_t argument) override {
      heard.emplace_back(queue->now(), code * 10 + argument);
    }
  } note;
  Bench bench;
  note.queue = &bench.simulation.queue();
  bench.at(0_us, [&] {
    bench.kernel(0, "first", 6_us);
    const GpuEventId event = bench.gpu.record(bench.streams[0]);
    for (const std::size_t s : {1U, 2U}) bench.gpu.wait(bench.streams[s], event);
    bench.kernel(1, "a", 1_us);
    bench.kernel(2, "b", 1_us);
    bench.gpu.notify(event, note, 4, 2);
    bench.at(8_us, [&bench, &note, event] { bench.gpu.notify(event, note, 5, 3); });
  });
  bench.run();
  CHECK(bench.span("a") == Interval{6_us, 7_us});
  CHECK(bench.span("b") == Interval{6_us, 7_us});
  CHECK(note.heard ==
        std::vector<std::pair<Time, std::uint32_t>>{{Time(6_us), 42}, {Time(8_us), 53}});
}

// Kernel of 10 alone from 0; a collective of 10 from 4 to 14 doubles compute times. Until 4: 4
// done, 6 left. Until 14: 10 / 2 = 5 done, 1 left. It ends at 15. The span of the collective is its
// own.
TEST_CASE("gpu: a kernel that starts before a collective and ends after it") {
  Bench bench;
  bench.at(0_us, [&] { bench.kernel(0, "k", 10_us); });
  bench.at(4_us, [&] { bench.collective(1, "c", 10'000, {.compute = 2}); });
  bench.run();
  CHECK(bench.span("c") == Interval{4_us, 14_us});
  CHECK(bench.span("k") == Interval{0_us, 15_us});
  CHECK(bench.gpu.busy(bench.streams[0]) == 15_us);
  CHECK(bench.gpu.busy_alone(bench.streams[0]) == 10_us);
}

// Odd numbers, to the picosecond. Factor 1.25. Kernel of 9'999'999 ps from 0; collective 1000 B =
// 1'000'000 ps from 3'000'001. Left then: 6'999'998. In 1'000'000 ps: 1e6 / 1.25 = 800'000 done,
// 6'199'998 left at 4'000'001: ends at 10'199'999.
TEST_CASE("gpu: slow-down to the picosecond") {
  Bench bench;
  bench.at(0_us, [&] { bench.kernel(0, "k", 9'999'999_ps); });
  bench.at(3'000'001_ps, [&] { bench.collective(1, "c", 1000, {.compute = 1.25}); });
  bench.run();
  CHECK(bench.span("k") == Interval{0_ps, 10'199'999_ps});
}

// Collective 0..10. Compute kernel of 3 alone inside: 3 x 2 = 6. Memory kernel of 2 alone: 2 x 1.5
// =
// 3. A second compute kernel follows at 6: 10 - 6 = 4 of wall time do 2 of its 5, the other 3 run
// alone: ends at 13.
TEST_CASE("gpu: kernels inside a collective, by what bounds them, and one that outlives it") {
  Bench bench;
  bench.at(0_us, [&] {
    bench.collective(1, "c", 10'000, {.compute = 2, .memory = 1.5});
    bench.kernel(0, "compute", 3_us);
    bench.kernel(0, "long", 5_us);
    bench.kernel(2, "memory", 2_us, KernelBound::memory);
  });
  bench.run();
  CHECK(bench.span("compute") == Interval{0_us, 6_us});
  CHECK(bench.span("memory") == Interval{0_us, 3_us});
  CHECK(bench.span("long") == Interval{6_us, 13_us});
}

// Two collectives at once take their shares together: factors 1.5 and 2 make 1 + 0.5 + 1 = 2.5.
// First 0..10, second 4..9. Kernel of 10 alone from 0: 4 / 1.5 = 2.666666 done at 4 (rounded down),
// 7.333334 left; 5 / 2.5 = 2 done at 9, 5.333334 left; 1 / 1.5 = 0.666666 at 10, 4.666668 left.
TEST_CASE("gpu: the shares of concurrent collectives add up") {
  Bench bench;
  bench.at(0_us, [&] {
    bench.collective(1, "c1", 10'000, {.compute = 1.5});
    bench.kernel(0, "k", 10_us);
  });
  bench.at(4_us, [&] { bench.collective(2, "c2", 5'000, {.compute = 2}); });
  bench.run();
  CHECK(bench.span("c2") == Interval{4_us, 9_us});
  CHECK(bench.span("k") == Interval{0_us, 14'666'668_ps});
}

// Launch latency 2, collective start 3: on the stream from 2, on the wire 5..6. Kernels are slower
// only while it is on the wire: 4 done by then, 1 at half speed, the rest alone: 10.5.
TEST_CASE("gpu: a collective kernel starts, and only then enters, no gap follows it") {
  Bench bench({.launch_latency = 2_us, .kernel_gap = 1_us, .collective_start = 3_us});
  bench.at(0_us, [&] {
    bench.collective(1, "c", 1000, {.compute = 2});
    bench.kernel(1, "after", 1_us);
    bench.kernel(0, "k", 8_us);
  });
  bench.run();
  CHECK(bench.span("c") == Interval{2_us, 6_us});
  CHECK(bench.runners[0]->records()[0].enter[0] == Time(5_us));
  CHECK(bench.span("k") == Interval{2_us, 10'500'000_ps});
  // `after` runs alone from 6: no gap behind a collective.
  CHECK(bench.span("after") == Interval{6_us, 7_us});
}

TEST_CASE("gpu: a listener hears when the queue of a stream is short enough") {
  struct Note : EventHandler {
    EventQueue* queue = nullptr;
    Time heard = Time::max();
    void on_event(std::uint32_t, std::uint32_t) override { heard = queue->now(); }
  } note;
  Bench bench;
  note.queue = &bench.simulation.queue();
  bench.at(0_us, [&] {
    for (const char* name : {"a", "b", "c"}) bench.kernel(0, name, 4_us);
    bench.gpu.notify_below(bench.streams[0], 2, note);
    CHECK_THROWS_AS(bench.gpu.notify_below(bench.streams[0], 1, note), InternalError);
  });
  bench.run();
  CHECK(note.heard == Time(8_us));  // a and b have ended, c is left
}

TEST_CASE("gpu: it says which streams are stuck, and on what") {
  Bench bench;
  bench.at(0_us, [&] {
    bench.kernel(0, "a", 10_us);
    const GpuEventId never = bench.gpu.record(bench.streams[0]);
    bench.gpu.wait(bench.streams[1], never);
  });
  EventQueue::Limits limits;
  limits.until = Time(5_us);
  bench.simulation.queue().run(limits);
  CHECK(bench.gpu.waiting() ==
        std::vector<std::string>{"rank 0 stream 0 runs a kernel",
                                 "rank 0 stream 1 waits for an event of another stream"});
}

TEST_CASE("gpu: spans are kept for the first ranks, the hash covers all") {
  const auto hash_of = [](std::uint32_t rank, Duration length, std::size_t& kept) {
    EventQueue queue;
    Trace trace(1);
    Gpu gpu(queue, trace, rank, {});
    gpu.launch(gpu.add_stream(), {length, KernelBound::compute, trace.name("k")});
    queue.run();
    kept = trace.spans().size();
    return trace.hash();
  };
  std::size_t kept_0 = 0;
  std::size_t kept_1 = 0;
  CHECK(hash_of(0, 3_us, kept_0) != hash_of(1, 3_us, kept_1));
  CHECK(kept_0 == 1);
  CHECK(kept_1 == 0);
  CHECK(hash_of(1, 3_us, kept_1) != hash_of(1, 4_us, kept_1));
  CHECK(hash_of(1, 4_us, kept_1) == hash_of(1, 4_us, kept_1));
}

}  // namespace
}  // namespace railyard::sim
