#include "sim/event_queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace railyard::sim {
namespace {

using namespace literals;

using Ran = std::vector<std::pair<std::int64_t, std::uint32_t>>;  // (time in ps, argument)

// Notes all that runs; `then` may schedule more.
struct Log : EventHandler {
  explicit Log(EventQueue& q) : queue(&q) {}
  void on_event(std::uint32_t, std::uint32_t argument) override {
    ran.emplace_back(queue->now().time_since_epoch().count(), argument);
    if (then) then(argument);
  }
  void at(Duration time, std::uint32_t argument) {
    queue->schedule(Time(time), *this, 0, argument);
  }
  EventQueue* queue;
  Ran ran;
  std::function<void(std::uint32_t)> then;
};

// Notes when it is asked to settle something, and how many events had run by then.
struct Solver : Settler {
  explicit Solver(Log& l) : log(&l) { log->queue->set_settler(this); }
  void settle() override {
    if (!std::exchange(changed, false)) return;
    settled.emplace_back(log->queue->now().time_since_epoch().count(), log->ran.size());
    if (then) then();
  }
  Log* log;
  bool changed = false;
  std::vector<std::pair<std::int64_t, std::size_t>> settled;
  std::function<void()> then;
};

TEST_CASE("event queue: by time, and at equal times in the order of scheduling") {
  EventQueue queue;
  Log log(queue);
  log.at(5_ns, 0);
  log.at(0_ns, 1);
  log.at(5_ns, 2);
  log.at(3_ns, 3);
  log.at(0_ns, 4);
  log.at(5_ns, 5);
  CHECK(!queue.empty());
  CHECK(queue.run() == EventQueue::Outcome::drained);
  CHECK(log.ran == Ran{{0, 1}, {0, 4}, {3000, 3}, {5000, 0}, {5000, 2}, {5000, 5}});
  CHECK(queue.empty());
  CHECK(queue.executed() == 6);
  CHECK(queue.now() == Time(5_ns));
}

TEST_CASE("event queue: handlers of one instant take turns as they were scheduled") {
  EventQueue queue;
  struct Codes : EventHandler {
    std::vector<std::uint32_t>* all = nullptr;
    void on_event(std::uint32_t code, std::uint32_t argument) override {
      all->push_back(code * 100 + argument);
    }
  } a, b;
  std::vector<std::uint32_t> all;
  a.all = b.all = &all;
  queue.schedule(Time(1_ns), a, 1, 7);
  queue.schedule(Time(1_ns), b, 2, 8);
  queue.schedule(Time(1_ns), a, 3, 9);
  queue.run();
  CHECK(all == std::vector<std::uint32_t>{107, 208, 309});
}

// 0 and 1 stand at 2 ns. 0 adds 10 (same instant), 11 (later) and 12 (same instant); 10 adds 13.
TEST_CASE("event queue: what an event adds to its own instant runs last in it") {
  EventQueue queue;
  Log log(queue);
  log.then = [&](std::uint32_t argument) {
    if (argument == 0) {
      log.at(2_ns, 10);
      log.at(3_ns, 11);
      log.at(2_ns, 12);
    }
    if (argument == 10) log.at(2_ns, 13);
  };
  log.at(2_ns, 0);
  log.at(2_ns, 1);
  log.at(3_ns, 2);
  queue.run();
  CHECK(log.ran ==
        Ran{{2000, 0}, {2000, 1}, {2000, 10}, {2000, 12}, {2000, 13}, {3000, 2}, {3000, 11}});
}

TEST_CASE("event queue: an event in the past is a bug, one at this instant is not") {
  EventQueue queue;
  Log log(queue);
  log.at(4_ns, 0);
  queue.run();
  CHECK_THROWS_AS(log.at(3_ns, 1), InternalError);
  log.at(4_ns, 2);
  queue.run();
  CHECK(log.ran == Ran{{4000, 0}, {4000, 2}});
}

TEST_CASE("event queue: the settler settles once per instant, after its last event") {
  EventQueue queue;
  Log log(queue);
  Solver solver(log);
  log.then = [&](std::uint32_t argument) {
    solver.changed = argument != 4;
    if (argument == 0) log.at(1_ns, 5);
  };
  for (std::uint32_t i = 0; i < 3; ++i) log.at(1_ns, i);
  log.at(2_ns, 4);  // changes nothing
  log.at(3_ns, 3);
  queue.run();
  // At 1 ns four events ran first (the fourth was added there), at 3 ns it is the sixth.
  CHECK(solver.settled == std::vector<std::pair<std::int64_t, std::size_t>>{{1000, 4}, {3000, 6}});
}

TEST_CASE("event queue: settling may add events to the same instant, and is asked again") {
  EventQueue queue;
  Log log(queue);
  Solver solver(log);
  log.then = [&](std::uint32_t argument) { solver.changed = argument < 2; };
  int rounds = 0;
  solver.then = [&] {
    if (++rounds == 1) log.at(1_ns, 1);  // that event changes something
    if (rounds == 2) log.at(1_ns, 2);    // this one does not
  };
  log.at(1_ns, 0);
  log.at(2_ns, 3);
  queue.run();
  CHECK(log.ran == Ran{{1000, 0}, {1000, 1}, {1000, 2}, {2000, 3}});
  CHECK(solver.settled == std::vector<std::pair<std::int64_t, std::size_t>>{{1000, 1}, {1000, 2}});
}

TEST_CASE("event queue: what changed before the first event is settled before it") {
  EventQueue queue;
  Log log(queue);
  Solver solver(log);
  solver.changed = true;
  solver.then = [&] { log.at(1_ns, 0); };
  log.at(2_ns, 1);
  queue.run();
  CHECK(log.ran == Ran{{1000, 0}, {2000, 1}});
  CHECK(solver.settled.front() == std::pair<std::int64_t, std::size_t>{0, 0});
}

// Eight instants of one to eight events, some of which add to their own instant.
struct Cascade {
  EventQueue queue;
  Log log{queue};
  Solver solver{log};
  Cascade() {
    log.then = [this](std::uint32_t argument) {
      solver.changed = true;
      const Duration now = queue.now().time_since_epoch();
      if (argument % 5 == 0) log.at(now, argument + 100 + 1);
      if (argument % 7 == 0) log.at(now + 2_ns, argument + 200 + 2);
    };
    std::uint32_t argument = 0;
    for (std::int64_t t = 0; t < 8; ++t)
      for (std::int64_t i = 0; i <= t; ++i) log.at(nanoseconds(t), argument++);
  }
};

TEST_CASE("event queue: max_events stops anywhere and resumes exactly where it was") {
  Cascade whole;
  CHECK(whole.queue.run() == EventQueue::Outcome::drained);
  for (const std::uint64_t piece : {1ULL, 2ULL, 7ULL, 1000ULL}) {
    Cascade parts;
    EventQueue::Limits limits;
    limits.max_events = piece;
    for (std::uint64_t done = 0;; done += piece) {
      const EventQueue::Outcome outcome = parts.queue.run(limits);
      if (outcome == EventQueue::Outcome::drained) break;
      REQUIRE(outcome == EventQueue::Outcome::limit);
      REQUIRE(parts.log.ran.size() == done + piece);
      // The clock stands at the last event that ran, not at the next.
      REQUIRE(parts.queue.now() == Time(Duration(parts.log.ran.back().first)));
    }
    CHECK(parts.log.ran == whole.log.ran);
    CHECK(parts.solver.settled == whole.solver.settled);
    CHECK(parts.queue.executed() == whole.queue.executed());
  }
}

TEST_CASE("event queue: after a stop between instants, events may go in before the next instant") {
  EventQueue queue;
  Log log(queue);
  log.at(1_ns, 0);
  log.at(9_ns, 1);
  EventQueue::Limits limits;
  limits.max_events = 1;
  CHECK(queue.run(limits) == EventQueue::Outcome::limit);
  log.at(5_ns, 2);
  queue.run();
  CHECK(log.ran == Ran{{1000, 0}, {5000, 2}, {9000, 1}});
}

TEST_CASE("event queue: no events at all under a limit of none") {
  EventQueue queue;
  Log log(queue);
  log.at(1_ns, 0);
  EventQueue::Limits limits;
  limits.max_events = 0;
  CHECK(queue.run(limits) == EventQueue::Outcome::limit);
  CHECK(log.ran.empty());
  CHECK(queue.now() == Time{});
}

TEST_CASE("event queue: `until` is included, and later events wait for the next call") {
  EventQueue queue;
  Log log(queue);
  for (std::uint32_t i = 0; i < 4; ++i) log.at(nanoseconds(i), i);
  EventQueue::Limits limits;
  limits.until = Time(2_ns);
  CHECK(queue.run(limits) == EventQueue::Outcome::limit);
  CHECK(log.ran.size() == 3);
  CHECK(queue.now() == Time(2_ns));
  CHECK(queue.run(limits) == EventQueue::Outcome::limit);
  CHECK(log.ran.size() == 3);
  limits.until = Time(3_ns);
  CHECK(queue.run(limits) == EventQueue::Outcome::drained);
  CHECK(log.ran.size() == 4);
}

TEST_CASE("event queue: an interrupt ends the run with the instant, and the run can go on") {
  EventQueue queue;
  Log log(queue);
  std::atomic<bool> stop = false;
  log.then = [&](std::uint32_t argument) {
    if (argument == 1) stop = true;
  };
  log.at(1_ns, 0);
  log.at(2_ns, 1);
  log.at(2_ns, 2);
  log.at(3_ns, 3);
  EventQueue::Limits limits;
  limits.interrupted = &stop;
  CHECK(queue.run(limits) == EventQueue::Outcome::interrupted);
  CHECK(log.ran == Ran{{1000, 0}, {2000, 1}, {2000, 2}});
  stop = false;
  CHECK(queue.run(limits) == EventQueue::Outcome::drained);
  CHECK(log.ran.size() == 4);
}

// Every event is numbered as it is scheduled, before or during the run. Whatever the handlers do,
// the order of running is the stable sort of all events by time. Times come in three kinds: few
// distinct ones, many, and this very instant.
TEST_CASE("event queue: a million random events run in the order of a stable sort") {
  constexpr std::uint32_t kEvents = 1'000'000;
  EventQueue queue;
  std::mt19937_64 random(99);
  std::vector<std::int64_t> time_of;
  struct Spawner : EventHandler {
    std::function<void()> spawn;
    std::vector<std::uint32_t> order;
    void on_event(std::uint32_t, std::uint32_t argument) override {
      order.push_back(argument);
      spawn();
    }
  } spawner;
  const auto add = [&](std::int64_t time) {
    queue.schedule(Time(Duration(time)), spawner, 0, static_cast<std::uint32_t>(time_of.size()));
    time_of.push_back(time);
  };
  spawner.spawn = [&] {
    const std::int64_t now = queue.now().time_since_epoch().count();
    for (std::uint64_t n = random() % 3; n > 0 && time_of.size() < kEvents; --n) {
      const std::uint64_t kind = random() % 3;
      if (kind == 0) add(now);
      if (kind == 1) add((now / 1000 + 1 + static_cast<std::int64_t>(random() % 8)) * 1000);
      if (kind == 2) add(now + static_cast<std::int64_t>(random() % 1'000'000'007));
    }
  };
  while (time_of.size() < kEvents / 4) add(static_cast<std::int64_t>(random() % 100'000'000'000));
  queue.run();
  while (time_of.size() < kEvents) {  // should the cascade have died out
    add(queue.now().time_since_epoch().count() + static_cast<std::int64_t>(random() % 5000));
    if (random() % 1000 == 0) queue.run();
  }
  queue.run();

  std::vector<std::uint32_t> expected(kEvents);
  std::iota(expected.begin(), expected.end(), 0U);
  std::ranges::stable_sort(
      expected, [&](std::uint32_t a, std::uint32_t b) { return time_of[a] < time_of[b]; });
  REQUIRE(spawner.order.size() == kEvents);
  CHECK(spawner.order == expected);
  CHECK(queue.executed() == kEvents);
}

// 24 h are 8.64e16 ps; int64 reaches 106 days.
TEST_CASE("event queue: a simulated day, a hundred days, and the end of time") {
  constexpr std::int64_t kDay = 86'400'000'000'000'000;
  EventQueue queue;
  Log log(queue);
  queue.schedule(Time::max(), log, 0, 3);
  log.at(picoseconds(100 * kDay), 2);
  log.at(picoseconds(kDay), 0);
  log.at(picoseconds(kDay + 1), 1);
  CHECK(queue.run() == EventQueue::Outcome::drained);
  CHECK(
      log.ran ==
      Ran{{kDay, 0}, {kDay + 1, 1}, {100 * kDay, 2}, {Time::max().time_since_epoch().count(), 3}});
}

// A hundred thousand pending instants make the table of times grow and, as they retire, move
// entries back; every one must still be found when a second event joins it.
TEST_CASE("event queue: many distinct pending times, each joined by a second event") {
  EventQueue queue;
  Log log(queue);
  constexpr std::int64_t kTimes = 100'000;
  // Multiples of a power of two collide in a table that takes the low bits of a time.
  for (std::int64_t i = 0; i < kTimes; ++i) log.at(picoseconds((i * 7919 % kTimes) << 20), 0);
  for (std::int64_t i = 0; i < kTimes; ++i) log.at(picoseconds(i << 20), 1);
  queue.run();
  REQUIRE(log.ran.size() == 2 * kTimes);
  bool right = true;
  for (std::int64_t i = 0; i < 2 * kTimes; ++i)
    right = right && log.ran[static_cast<std::size_t>(i)] ==
                         std::pair{(i / 2) << 20, static_cast<std::uint32_t>(i % 2)};
  CHECK(right);
}

}  // namespace
}  // namespace railyard::sim
