#include "sim/host.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace railyard::sim {
namespace {

using namespace literals;

// A host and its GPU.
struct Machine {
  explicit Machine(const HostParameters& costs = {})
      : gpu(queue, trace, 0, {.launch_latency = costs.launch_latency}),
        stream(gpu.add_stream()),
        host(queue, gpu, costs) {
    trace.name("kernel");  // 0, as every kernel here is called
  }
  Time run(Task task) {
    host.start(std::move(task));
    queue.run();
    REQUIRE(host.finished());
    return queue.now();
  }
  EventQueue queue;
  Trace trace{1};
  Gpu gpu;
  StreamId stream;
  HostThread host;
  std::vector<Time> log;
};

Task launch_many(Machine& machine, int kernels, Duration alone) {
  for (int i = 0; i < kernels; ++i) {
    co_await machine.host.launch(machine.stream, {.alone = alone});
    machine.log.push_back(machine.host.now());
  }
  co_await machine.host.synchronize(machine.stream);
}

// Host 10 a launch, kernels 2: the GPU waits for the host. Kernel i (from 0) is launched at
// 10 (i + 1), starts 5 later and ends 2 after that: the last of 20 at 200 + 5 + 2.
TEST_CASE("host: a step that the host bounds") {
  Machine machine({.op_launch = 10_us, .launch_latency = 5_us});
  CHECK(machine.run(launch_many(machine, 20, 2_us)) == Time(207_us));
  REQUIRE(machine.trace.spans().size() == 20);
  for (int i = 0; i < 20; ++i) {
    CHECK(machine.log[static_cast<std::size_t>(i)] == Time((i + 1) * 10_us));
    CHECK(machine.trace.spans()[static_cast<std::size_t>(i)].start == Time((i + 1) * 10_us + 5_us));
  }
}

// Host 1 a launch, kernels 10: after the first launch and latency the GPU is never idle: 1 + 5 +
// 20 x 10. The host has launched all 20 by then, at 20.
TEST_CASE("host: a step that the GPU bounds") {
  Machine machine({.op_launch = 1_us, .launch_latency = 5_us});
  CHECK(machine.run(launch_many(machine, 20, 10_us)) == Time(206_us));
  CHECK(machine.log.back() == Time(20_us));
}

// 1024 launches of 1 us fill the queue at 1024 us, long before the first kernel (1 us .. 10'001 us)
// ends. Launch 1024 (from 0) goes out when it does, and launch 1025 when the next does.
TEST_CASE("host: a full launch queue blocks the host until a kernel has ended") {
  Machine machine({.op_launch = 1_us});
  machine.run(launch_many(machine, 1026, 10_ms));
  CHECK(HostThread::kLaunchQueue == 1024);
  CHECK(machine.log[1023] == Time(1024_us));
  CHECK(machine.log[1024] == Time(10'001_us));
  CHECK(machine.log[1025] == Time(20'001_us));
}

// Launch 1024 begins at 10,240, when all 1024 kernels before it are pending. The first ends at
// 10 + 10,235: before the ten of the launch are over, so the launch is not delayed, nor is it
// early.
TEST_CASE("host: the time of a launch passes also where the queue was full at its beginning") {
  Machine machine({.op_launch = 10_us});
  machine.run(launch_many(machine, 1025, 10'235_us));
  CHECK(machine.log[1023] == Time(10'240_us));
  CHECK(machine.trace.spans().front().end == Time(10'245_us));
  CHECK(machine.log[1024] == Time(10'250_us));
}

// A launch that costs no host time returns without an event, but not past a full queue.
TEST_CASE("host: launches without host time still stop at a full queue") {
  Machine machine;
  machine.run(launch_many(machine, 1025, 1_us));
  CHECK(machine.log[1023] == Time{});
  CHECK(machine.log[1024] == Time(1_us));
}

Task spend(Machine& machine, Duration time) {
  co_await machine.host.busy(time);
  machine.log.push_back(machine.host.now());
}
Task nothing() { co_return; }
Task outer(Machine& machine) {
  co_await spend(machine, 3_us);
  co_await nothing();
  for (int i = 0; i < 2; ++i) co_await spend(machine, 4_us);
  co_await machine.host.busy(0_us);
  machine.log.push_back(machine.host.now());
}
Task outermost(Machine& machine) {
  co_await outer(machine);
  co_await spend(machine, 5_us);
}

TEST_CASE("host: tasks nest, and each goes on when the inner one is done") {
  Machine machine;
  CHECK(machine.run(outermost(machine)) == Time(16_us));
  CHECK(machine.log ==
        std::vector<Time>{Time(3_us), Time(7_us), Time(11_us), Time(11_us), Time(16_us)});
}

Task wait_for_kernel(Machine& machine) {
  const StreamId other = machine.gpu.add_stream();
  co_await machine.host.launch(machine.stream, {.alone = 9_us});
  const GpuEventId ready = machine.gpu.record(machine.stream);
  co_await machine.host.synchronize(other);  // idle: at once
  machine.log.push_back(machine.host.now());
  co_await machine.host.until(ready);
  machine.log.push_back(machine.host.now());
  co_await machine.host.until(ready);  // has fired
  machine.log.push_back(machine.host.now());
}

TEST_CASE("host: waiting for an event of the GPU, an idle stream, one that has fired") {
  Machine machine({.op_launch = 1_us});
  machine.run(wait_for_kernel(machine));
  CHECK(machine.log == std::vector<Time>{Time(1_us), Time(10_us), Time(10_us)});
}

TEST_CASE("host: several hosts share one clock") {
  EventQueue queue;
  Trace trace(2);
  Gpu gpu_a(queue, trace, 0, {});
  Gpu gpu_b(queue, trace, 1, {});
  HostThread a(queue, gpu_a, {});
  HostThread b(queue, gpu_b, {});
  std::vector<std::pair<char, Time>> log;
  const auto ticks = [&log](HostThread& host, char name, Duration each, int count) -> Task {
    for (int i = 0; i < count; ++i) {
      co_await host.busy(each);
      log.emplace_back(name, host.now());
    }
  };
  a.start(ticks(a, 'a', 2_us, 3));
  b.start(ticks(b, 'b', 3_us, 2));
  CHECK(!a.finished());
  queue.run();
  CHECK(a.finished());
  CHECK(b.finished());
  // At 6 us b was scheduled first (at 3 us; a at 4 us).
  CHECK(log == std::vector<std::pair<char, Time>>{{'a', Time(2_us)},
                                                  {'b', Time(3_us)},
                                                  {'a', Time(4_us)},
                                                  {'b', Time(6_us)},
                                                  {'a', Time(6_us)}});
}

Task fail_after(Machine& machine, Duration time) {
  co_await machine.host.busy(time);
  throw std::runtime_error("the model broke");
}
Task fails_inside(Machine& machine) {
  co_await spend(machine, 1_us);
  co_await fail_after(machine, 2_us);
  machine.log.push_back(machine.host.now());  // never
}
Task catches(Machine& machine) {
  bool caught = false;
  try {
    co_await fail_after(machine, 2_us);
  } catch (const std::runtime_error&) {
    caught = true;
  }
  if (caught) co_await spend(machine, 1_us);
}

TEST_CASE("host: an exception in a task comes out of the run, through the tasks around it") {
  SUBCASE("in the program, before and after it first waits") {
    for (const Duration time : {0_us, 2_us}) {
      Machine machine;
      machine.host.start(fail_after(machine, time));
      CHECK_THROWS_WITH_AS(machine.queue.run(), "the model broke", std::runtime_error);
      CHECK(machine.queue.now() == Time(time));
      CHECK(machine.host.finished());
    }
  }
  SUBCASE("in a nested task") {
    Machine machine;
    machine.host.start(fails_inside(machine));
    CHECK_THROWS_WITH_AS(machine.queue.run(), "the model broke", std::runtime_error);
    CHECK(machine.log == std::vector<Time>{Time(1_us)});
  }
  SUBCASE("caught by the task around it") {
    Machine machine;
    CHECK(machine.run(catches(machine)) == Time(3_us));
  }
}

// Counts itself, to see that coroutine frames are destroyed.
struct Alive {
  explicit Alive(int& c) : count(&c) { ++*count; }
  Alive(const Alive& other) : count(other.count) { ++*count; }
  Alive& operator=(const Alive&) = delete;
  ~Alive() { --*count; }
  int* count;
};
Task inner_holding(Machine& machine, Alive) {
  co_await machine.host.busy(100_us);
  co_await machine.host.busy(100_us);
}
Task holding(Machine& machine, Alive alive) {
  const Alive local = alive;
  co_await inner_holding(machine, local);
}

TEST_CASE("host: tasks that are destroyed unfinished leave nothing behind") {
  int count = 0;
  SUBCASE("suspended two deep") {
    Machine machine;
    machine.host.start(holding(machine, Alive(count)));
    EventQueue::Limits limits;
    limits.until = Time(150_us);
    CHECK(machine.queue.run(limits) == EventQueue::Outcome::limit);
    CHECK(!machine.host.finished());
    CHECK(count > 2);
  }
  SUBCASE("never resumed") {
    Machine machine;
    machine.host.start(holding(machine, Alive(count)));
    CHECK(count > 0);
  }
  SUBCASE("never started, and moved") {
    Machine machine;
    Task task = holding(machine, Alive(count));
    Task other = std::move(task);
    CHECK(task.done());  // NOLINT(bugprone-use-after-move): an empty task is done
    CHECK(!other.done());
  }
  SUBCASE("run to the end") {
    Machine machine;
    machine.run(holding(machine, Alive(count)));
  }
  CHECK(count == 0);
}

Task iterate(Machine& machine, int iterations, int kernels, Duration alone) {
  for (int i = 0; i < iterations; ++i) {
    co_await machine.host.begin_iteration();
    for (int k = 0; k < kernels; ++k)
      co_await machine.host.launch(machine.stream, {.alone = alone});
    co_await machine.host.end_iteration(machine.stream);
    machine.log.push_back(machine.host.now());
  }
}

std::vector<Time> at_microseconds(const std::vector<int>& times) {
  std::vector<Time> out;
  for (const int time : times) out.emplace_back(microseconds(time));
  return out;
}

// Two launches of 1, two kernels of 10. Nobody reads: the host runs ahead. Reading every step: the
// kernels end at 1 + 20, and the next two launches begin there. Every second step: the host is at 4
// when it begins to wait for the fourth kernel, which ends at 1 + 40.
TEST_CASE("host: a result that is read at the end of iterations") {
  const auto log_of = [](std::vector<std::int64_t> read_every) {
    Machine machine({.op_launch = 1_us});
    machine.host.set_habits({.read_every = std::move(read_every)});
    machine.run(iterate(machine, 4, 2, 10_us));
    return machine.log;
  };
  CHECK(log_of({}) == at_microseconds({2, 4, 6, 8}));
  CHECK(log_of({1}) == at_microseconds({21, 42, 63, 84}));
  CHECK(log_of({2}) == at_microseconds({2, 41, 43, 82}));
  CHECK(log_of({3, 4}) == at_microseconds({2, 4, 61, 82}));
}

// 20 launches of 10 and kernels of 2: eager steps end at 200 + 2. The graph's launch takes 5, then
// 20 kernels follow one another: 202 + 5 + 40, and 45 more for the next.
TEST_CASE("host: a graph is launched once, and its kernels are there at once") {
  Machine machine({.op_launch = 10_us});
  machine.host.set_habits({.read_every = {1}, .eager_iterations = 1, .graph_launch = 5_us});
  machine.run(iterate(machine, 3, 20, 2_us));
  CHECK(machine.log == at_microseconds({202, 247, 292}));
}

TEST_CASE("host: the queue of launches does not hold a graph") {
  Machine machine({.op_launch = 1_us});
  machine.host.set_habits({.eager_iterations = 0, .graph_launch = 3_us});
  CHECK(machine.run(iterate(machine, 2, 3000, 1_us)) == Time(6003_us));
  CHECK(machine.log == at_microseconds({3, 6}));
}

Task work(Machine& machine) {
  co_await machine.host.begin_iteration();
  co_await machine.host.busy(4_us);
  machine.log.push_back(machine.host.now());
  co_await machine.host.launch(machine.stream, {.alone = 1_us});
  machine.log.push_back(machine.host.now());
}

// A pace of 1.5: the stall of 7 stays 7, 4 become 6 and the launch of 10 becomes 15.
TEST_CASE("host: the program's own work at the host's pace, stalls as they are") {
  Machine machine({.op_launch = 10_us});
  std::vector<Time> begun;
  machine.host.set_habits({.pace = 1.5, .stall = [&begun](Time now) {
                             begun.push_back(now);
                             return Duration(7_us);
                           }});
  machine.run(work(machine));
  CHECK(begun == at_microseconds({0}));
  CHECK(machine.log == at_microseconds({13, 28}));
}

// Two threads of one process: the second goes on when the first raises the flag, at 30, and a wait
// for a flag that was raised is none.
Task raises(Machine& machine, HostFlag& flag) {
  co_await machine.host.busy(30_us);
  flag.raise();
  co_await machine.host.busy(5_us);
}
Task waits(Machine& machine, HostThread& thread, HostFlag& flag) {
  co_await thread.until(flag);
  machine.log.push_back(thread.now());
  co_await thread.launch(machine.stream, {.alone = 2_us});
  co_await thread.until(flag);
  machine.log.push_back(thread.now());
}
TEST_CASE("host: threads of one process wait for each other's flags") {
  Machine machine({.op_launch = 4_us});
  HostFlag flag;
  const std::unique_ptr<HostThread> other = machine.host.another_thread();
  other->start(waits(machine, *other, flag));
  CHECK_FALSE(flag.raised());
  CHECK(machine.run(raises(machine, flag)) == Time(36_us));  // the kernel: 34 to 36
  CHECK(flag.raised());
  CHECK(other->finished());
  CHECK(machine.log == std::vector<Time>{Time(30_us), Time(34_us)});
}

}  // namespace
}  // namespace railyard::sim
