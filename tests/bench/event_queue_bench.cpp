// Events per second of the queue alone.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>

#include "sim/event_queue.h"

namespace {

using namespace railyard::sim;  // NOLINT

// Keeps the number of pending events: each event schedules its successor.
struct Hold : EventHandler {
  EventQueue* queue = nullptr;
  std::mt19937_64 random{1};
  std::int64_t step = 0;  // 0: a random one up to 1 ms
  std::int64_t left = 0;
  void on_event(std::uint32_t code, std::uint32_t argument) override {
    if (--left < 0) return;
    const std::int64_t wait =
        step > 0 ? step : static_cast<std::int64_t>(random() % 1'000'000'000) + 1;
    queue->schedule(queue->now() + Duration(wait), *this, code, argument);
  }
};

void hold(benchmark::State& state, std::int64_t step) {
  const std::int64_t pending = state.range(0);
  std::int64_t events = 0;
  for (auto _ : state) {
    EventQueue queue;
    Hold handler;
    handler.queue = &queue;
    handler.step = step;
    handler.left = 1'000'000;
    for (std::int64_t i = 0; i < pending; ++i)
      queue.schedule(queue.now() + Duration(step > 0 ? step : i * 997), handler, 0, 0);
    queue.run();
    events += static_cast<std::int64_t>(queue.executed());
  }
  state.SetItemsProcessed(events);
}

// A ring in lock step: all pending events fall on one instant.
void queue_synchronous(benchmark::State& state) { hold(state, 1'000'000); }
// Every event at an instant of its own.
void queue_random(benchmark::State& state) { hold(state, 0); }

BENCHMARK(queue_synchronous)->Arg(1)->Arg(64)->Arg(4096)->Unit(benchmark::kMillisecond);
BENCHMARK(queue_random)->Arg(64)->Arg(4096)->Arg(262'144)->Unit(benchmark::kMillisecond);

}  // namespace
