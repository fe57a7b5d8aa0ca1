// A GPU of one rank: streams that run kernels and collectives in order, and events between them, as
// CUDA has them.
//
// A stream starts its next item when the previous one has ended. A kernel starts no earlier than
// `launch_latency` after the host launched it, and `kernel_gap` after the kernel before it. While
// collectives run on this GPU its compute kernels go on slower (Slowdown, per kernel bound); what
// is left of a kernel is kept as the time it would take alone, so a change of speed needs no
// history.
//
// Cost: one or two events per item. Units: picoseconds.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/collective_runner.h"
#include "sim/event_queue.h"
#include "sim/ids.h"
#include "sim/trace.h"

namespace railyard::sim {

enum class KernelBound : std::uint8_t { compute, memory };

struct Kernel {
  Duration alone{};  // its time when nothing else runs
  KernelBound bound = KernelBound::compute;
  std::uint32_t name = 0;  // Trace::name()
};

using StreamId = Id<struct StreamTag>;
using GpuEventId = Id<struct GpuEventTag>;

struct GpuTiming {
  Duration launch_latency{};    // launch call to kernel start on an idle stream
  Duration kernel_gap{};        // between consecutive kernels of a stream
  Duration collective_start{};  // from a collective kernel's start to its first operation
};

class Gpu final : public EventHandler, public CollectiveListener {
 public:
  // `rank` is the rank of the job, for the trace.
  Gpu(EventQueue& queue, Trace& trace, std::uint32_t rank, const GpuTiming& timing);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  StreamId add_stream();

  // All of these append to a stream, at the current time.
  void launch(StreamId stream, const Kernel& kernel);
  void launch_collective(StreamId stream, CollectiveRunner& runner, std::uint32_t group_rank,
                         PlanId plan, std::uint32_t name);
  GpuEventId record(StreamId stream);            // an event that fires when the stream gets here
  void wait(StreamId stream, GpuEventId event);  // the stream stops here until the event has fired

  [[nodiscard]] bool fired(GpuEventId event) const { return events_[event.index()].fired; }
  [[nodiscard]] Time fire_time(GpuEventId event) const { return events_[event.index()].at; }
  // Schedules handler.on_event(code, argument) when the event fires; at once if it has.
  void notify(GpuEventId event, EventHandler& handler, std::uint32_t code, std::uint32_t argument);
  // The same as soon as fewer than `limit` items of the stream are pending. One at a time per
  // stream.
  void notify_below(StreamId stream, std::size_t limit, EventHandler& handler);
  // Items of the stream that have not ended.
  [[nodiscard]] std::size_t pending(StreamId stream) const {
    return streams_[stream.index()].items.size();
  }
  // Time spent in kernels of the stream so far: as they ran, and as they would have run alone.
  [[nodiscard]] Duration busy(StreamId stream) const { return streams_[stream.index()].busy; }
  [[nodiscard]] Duration busy_alone(StreamId stream) const {
    return streams_[stream.index()].alone;
  }

  // From now on every kernel takes `factor` times as long (clocks that were lowered, a weak GPU).
  void set_pace(double factor);

  // What the rank is waiting for; one line per stream that is stuck.
  [[nodiscard]] std::vector<std::string> waiting() const;

  void on_event(std::uint32_t code, std::uint32_t argument) override;
  void on_collective_done(const CollectiveRunner& runner, std::uint32_t group_rank,
                          std::uint32_t call) override;

 private:
  enum class ItemKind : std::uint8_t { kernel, collective, record, wait };
  struct Item {
    ItemKind kind = ItemKind::kernel;
    KernelBound bound = KernelBound::compute;
    std::uint32_t name = 0;
    std::uint32_t group_rank = 0;
    Time launched{};
    Duration alone{};
    CollectiveRunner* runner = nullptr;
    PlanId plan;
    GpuEventId event;
  };
  struct Notice {
    EventHandler* handler;
    std::uint32_t code;
    std::uint32_t argument;
  };
  struct GpuEvent {
    bool fired = false;
    Time at{};
    std::vector<std::uint32_t> streams;  // stopped at it
    std::vector<Notice> notices;
  };
  struct Stream {
    std::deque<Item> items;
    bool running = false;    // the first item has started (or has its start scheduled)
    bool executing = false;  // the first item is a kernel and under way
    bool stopped = false;    // the first item waits for an event
    Time free{};             // end of the last item
    bool after_kernel = false;
    Time started{};   // of the running kernel or collective
    Time since{};     // when `left` was true
    Duration left{};  // of the running kernel, as if alone
    Time end{};       // of the running kernel at the current speed
    Duration busy{};
    Duration alone{};
    EventHandler* below_handler = nullptr;
    std::size_t below_limit = 0;
  };
  struct RunningCollective {
    const CollectiveRunner* runner;
    std::uint32_t call;
    StreamId stream;
    Slowdown slowdown;
  };

  void append(StreamId stream, Item item);
  Item pop(std::uint32_t stream);
  void go_on(std::uint32_t stream);
  bool pass(std::uint32_t stream);
  void start_item(std::uint32_t stream);
  void start_kernel(std::uint32_t stream);
  void enter_collective(std::uint32_t stream);
  void end_kernel(std::uint32_t stream);
  void fire(GpuEventId event);
  void change_speed();
  [[nodiscard]] double speed(KernelBound bound) const;
  void reschedule(std::uint32_t stream);

  EventQueue* queue_;
  Trace* trace_;
  std::uint32_t rank_;
  GpuTiming timing_;
  std::vector<Stream> streams_;
  std::vector<GpuEvent> events_;
  std::vector<RunningCollective> collectives_;
  double pace_ = 1;
  double compute_factor_ = 1;  // of both the collectives under way and the pace
  double memory_factor_ = 1;
};

}  // namespace railyard::sim
