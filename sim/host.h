// The host thread of one rank, written as the framework's own control flow: a coroutine that spends
// host time, launches work on the GPU's streams and sometimes waits for it.
//
//   Task step(HostThread& host, ...) {
//     co_await host.launch(compute, kernel);  // costs().op_launch, room in the queue, the launch
//     co_await host.busy(grad_hook);
//     const GpuEventId ready = host.gpu().record(compute);
//     host.gpu().launch_collective(comm, runner, rank, plan, name);
//     co_await host.synchronize(compute);  // the host waits for the stream
//   }
//
// Tasks may co_await other tasks. They are resumed by the event queue only, and destroyed with the
// HostThread, finished or not.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "sim/event_queue.h"
#include "sim/gpu.h"
#include "sim/parameters.h"
#include "sim/task.h"

namespace railyard::sim {

// What hosts do between the framework's own calls.
struct HostHabits {
  double pace = 1;  // of the program's own work: so many times as long
  // Time lost before an iteration that would begin at a time: data loading, jitter. Empty = none.
  std::function<Duration(Time)> stall;
  // The host reads a result (.item(), a printed loss) at the end of every so many iterations;
  // several such periods. None = never.
  std::vector<std::int64_t> read_every;
  // After so many iterations a CUDA graph replaces all launches: one launch per iteration, whose
  // length the queue of launches does not limit. Negative: never.
  std::int64_t eager_iterations = -1;
  Duration graph_launch{};
  std::function<void()> finished;  // called when the program has ended
};

class HostThread;

// Raised once by one host thread; others wait for it (HostThread::until).
class HostFlag {
 public:
  [[nodiscard]] bool raised() const { return raised_; }
  void raise();

 private:
  friend class HostThread;
  bool raised_ = false;
  std::vector<HostThread*> waiting_;
};

class HostThread final : public EventHandler {
 public:
  // CUDA lets a host run this many launches ahead of a stream before a launch blocks.
  static constexpr std::size_t kLaunchQueue = 1024;

  HostThread(EventQueue& queue, Gpu& gpu, const HostParameters& costs)
      : queue_(&queue), gpu_(&gpu), costs_(costs) {}
  HostThread(const HostThread&) = delete;
  HostThread& operator=(const HostThread&) = delete;

  // A further thread of this process, with the same GPU and costs and no habits. It must live until
  // the run is over.
  [[nodiscard]] std::unique_ptr<HostThread> another_thread() const {
    return std::make_unique<HostThread>(*queue_, *gpu_, costs_);
  }

  // Begins the program at the current time. Once per host.
  void start(Task program) {
    program_ = std::move(program);
    resume_ = {};
    queue_->schedule(queue_->now(), *this, 0, 0);
  }
  [[nodiscard]] bool finished() const { return program_.done(); }
  [[nodiscard]] Gpu& gpu() { return *gpu_; }
  [[nodiscard]] const HostParameters& costs() const { return costs_; }
  [[nodiscard]] Time now() const { return queue_->now(); }

  void set_habits(HostHabits habits) { habits_ = std::move(habits); }
  // A program co_awaits these where an iteration begins, and where it ends on `stream`.
  [[nodiscard]] auto begin_iteration() {
    Duration lost = habits_.stall ? habits_.stall(now()) : Duration{};
    if (habits_.eager_iterations >= 0 && iterations_ >= habits_.eager_iterations) {
      replays_graph_ = true;
      lost += habits_.graph_launch;
    }
    ++iterations_;
    return Busy{this, lost};
  }
  [[nodiscard]] auto end_iteration(StreamId stream) {
    const bool reads = std::ranges::any_of(
        habits_.read_every, [this](std::int64_t every) { return iterations_ % every == 0; });
    return UntilEvent{this, reads ? gpu_->record(stream) : GpuEventId()};
  }

  // Suspends for host time; ready at once if that is zero.
  struct Busy {
    HostThread* host;
    Duration time;
    [[nodiscard]] bool await_ready() const { return time.count() == 0; }
    void await_suspend(std::coroutine_handle<> caller) const { host->sleep(time, caller); }
    void await_resume() const {}
  };
  // For the program's own work, at the host's pace; none of it is done again when a graph is
  // replayed.
  [[nodiscard]] Busy busy(Duration time) { return {this, at_pace(time)}; }

  // Suspends until an event of the GPU has fired.
  struct UntilEvent {
    HostThread* host;
    GpuEventId event;
    [[nodiscard]] bool await_ready() const {
      return !event.valid() || host->gpu().fired(event);  // an invalid one is nothing to wait for
    }
    void await_suspend(std::coroutine_handle<> caller) const { host->await_event(event, caller); }
    void await_resume() const {}
  };
  [[nodiscard]] UntilEvent until(GpuEventId event) { return {this, event}; }
  // Suspends until another thread has raised the flag, which outlives the wait.
  struct UntilFlag {
    HostThread* host;
    HostFlag* flag;
    [[nodiscard]] bool await_ready() const { return flag->raised_; }
    void await_suspend(std::coroutine_handle<> caller) const {
      host->resume_ = caller;
      flag->waiting_.push_back(host);
    }
    void await_resume() const {}
  };
  [[nodiscard]] UntilFlag until(HostFlag& flag) { return {this, &flag}; }
  [[nodiscard]] UntilEvent synchronize(StreamId stream) { return until(gpu_->record(stream)); }

  // Host time of one launch, a wait for room in the stream's queue, then the launch itself (a
  // nested task would cost an allocation each).
  struct Launch {
    HostThread* host;
    StreamId stream;
    Kernel kernel;
    [[nodiscard]] bool await_ready() const {
      return host->at_pace(host->costs_.op_launch).count() == 0 && host->has_room(stream);
    }
    void await_suspend(std::coroutine_handle<> caller) const {
      host->prepare_launch(stream, caller);
    }
    void await_resume() const { host->gpu().launch(stream, kernel); }
  };
  [[nodiscard]] Launch launch(StreamId stream, const Kernel& kernel) {
    return {this, stream, kernel};
  }

  void on_event(std::uint32_t code, std::uint32_t argument) override {
    const StreamId stream(argument);
    if (code == kPrepared && !has_room(stream))
      return gpu_->notify_below(stream, kLaunchQueue, *this);
    const std::coroutine_handle<> next = std::exchange(resume_, {});
    if (next)
      next.resume();
    else
      program_.resume();
    if (!program_.done()) return;
    program_.rethrow();
    if (habits_.finished) habits_.finished();
  }

 private:
  friend class HostFlag;
  void wake() { queue_->schedule(queue_->now(), *this, 0, 0); }

  static constexpr std::uint32_t kPrepared = 1;  // the argument is a stream; 0: go on

  [[nodiscard]] Duration at_pace(Duration time) const {
    if (replays_graph_) return {};
    return habits_.pace == 1 ? time : scale(time, habits_.pace);
  }
  [[nodiscard]] bool has_room(StreamId stream) const {
    return replays_graph_ || gpu_->pending(stream) < kLaunchQueue;
  }

  void sleep(Duration time, std::coroutine_handle<> caller) {
    resume_ = caller;
    queue_->schedule(queue_->now() + time, *this, 0, 0);
  }
  void await_event(GpuEventId event, std::coroutine_handle<> caller) {
    resume_ = caller;
    gpu_->notify(event, *this, 0, 0);
  }

  // The driver finds the queue full at the end of a launch's host time, not before.
  void prepare_launch(StreamId stream, std::coroutine_handle<> caller) {
    resume_ = caller;
    queue_->schedule(queue_->now() + at_pace(costs_.op_launch), *this, kPrepared, stream.value());
  }

  EventQueue* queue_;
  Gpu* gpu_;
  HostParameters costs_;
  HostHabits habits_;
  std::int64_t iterations_ = 0;
  bool replays_graph_ = false;
  Task program_{nullptr};
  std::coroutine_handle<> resume_;
};

inline void HostFlag::raise() {
  raised_ = true;
  for (HostThread* host : std::exchange(waiting_, {})) host->wake();
}

}  // namespace railyard::sim
