// The clock and the event queue of one run. Events are ordered by (time, sequence of scheduling):
// equal times run in the order in which they were scheduled, always, on every compiler.
//
// Collective traffic is highly synchronous (a thousand ranks finish a step at one instant), so
// events are kept in one FIFO per distinct time, found by hashing; only distinct times enter the
// heap. Cost: O(1) amortised per event of a shared instant, O(log distinct times) otherwise.
//
//   queue.schedule(now + 5us, handler, code, argument);
//   queue.run();   // handler.on_event(code, argument) at that time
//
// When the last event of an instant has run, the settler (the network) is asked to settle: changes
// of one instant are solved once. It may schedule further events, also at the same instant.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace railyard::sim {

class EventHandler {
 public:
  virtual ~EventHandler() = default;
  virtual void on_event(std::uint32_t code, std::uint32_t argument) = 0;
};

class Settler {
 public:
  virtual ~Settler() = default;
  virtual void settle() = 0;
};

// Runs stop here, 53 days after their start: half of what the clock can show, so that no sum of
// delays overflows on the way.
inline constexpr Time kEndOfTime = Time(Duration::max() / 2);

// `wait` after `time`; the clock's end where it would lie beyond.
constexpr Time later(Time time, Duration wait) {
  return wait > Time::max() - time ? Time::max() : time + wait;
}

class EventQueue {
 public:
  struct Limits {
    std::uint64_t max_events = ~std::uint64_t{0};
    Time until = Time::max();
    const std::atomic<bool>* interrupted = nullptr;  // polled once per instant
  };
  enum class Outcome { drained, limit, interrupted };

  EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] std::uint64_t executed() const { return executed_; }
  [[nodiscard]] bool empty() const { return heap_.empty(); }

  // `at` must not lie in the past. The handler must outlive the event.
  void schedule(Time at, EventHandler& handler, std::uint32_t code, std::uint32_t argument) {
    RAILYARD_CHECK(at >= now_, "an event may not lie in the past");
    const std::uint32_t bucket = at == memo_time_ ? memo_bucket_ : find_or_create(at);
    buckets_[bucket].push_back({&handler, code, argument});
  }

  void set_settler(Settler* settler) { settler_ = settler; }

  // Runs events until none is left or a limit is met. May be called again after a limit.
  Outcome run(const Limits& limits);
  Outcome run() { return run(Limits{}); }

 private:
  struct Event {
    EventHandler* handler;
    std::uint32_t code;
    std::uint32_t argument;
  };
  struct Instant {
    std::int64_t time;
    std::uint32_t bucket;
  };

  std::uint32_t find_or_create(Time at);
  [[nodiscard]] std::size_t home(std::int64_t time) const;
  void erase_from_table(std::int64_t time);
  void grow_table();
  bool run_instant(std::uint32_t bucket, std::uint64_t& budget);
  void retire_first();

  Time now_{};
  Time memo_time_ = Time::min();
  std::uint32_t memo_bucket_ = 0;
  std::uint64_t executed_ = 0;
  std::size_t cursor_ = 0;  // next event of the first instant, kept across run() calls
  Settler* settler_ = nullptr;
  std::vector<Instant> heap_;   // binary min-heap by time (times are distinct)
  std::vector<Instant> table_;  // open addressing: time -> bucket
  std::size_t table_used_ = 0;
  std::vector<std::vector<Event>> buckets_;
  std::vector<std::uint32_t> free_buckets_;
};

}  // namespace railyard::sim
