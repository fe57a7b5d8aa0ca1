#include "sim/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace railyard::sim {
namespace {

// Event codes; the argument is a stream.
constexpr std::uint32_t kStartItem = 0;
constexpr std::uint32_t kKernelEnd = 1;
constexpr std::uint32_t kEnterCollective = 2;

}  // namespace

Gpu::Gpu(EventQueue& queue, Trace& trace, std::uint32_t rank, const GpuTiming& timing)
    : queue_(&queue), trace_(&trace), rank_(rank), timing_(timing) {}

StreamId Gpu::add_stream() {
  streams_.emplace_back();
  return StreamId(streams_.size() - 1);
}

void Gpu::append(StreamId stream, Item item) {
  item.launched = queue_->now();
  streams_[stream.index()].items.push_back(item);
  if (!streams_[stream.index()].running && !streams_[stream.index()].stopped) go_on(stream.value());
}

void Gpu::launch(StreamId stream, const Kernel& kernel) {
  append(stream, {.kind = ItemKind::kernel,
                  .bound = kernel.bound,
                  .name = kernel.name,
                  .alone = kernel.alone});
}

void Gpu::launch_collective(StreamId stream, CollectiveRunner& runner, std::uint32_t group_rank,
                            PlanId plan, std::uint32_t name) {
  append(stream, {.kind = ItemKind::collective,
                  .name = name,
                  .group_rank = group_rank,
                  .runner = &runner,
                  .plan = plan});
}

GpuEventId Gpu::record(StreamId stream) {
  events_.emplace_back();
  const GpuEventId event(events_.size() - 1);
  append(stream, {.kind = ItemKind::record, .event = event});
  return event;
}

void Gpu::wait(StreamId stream, GpuEventId event) {
  append(stream, {.kind = ItemKind::wait, .event = event});
}

void Gpu::notify(GpuEventId id, EventHandler& handler, std::uint32_t code, std::uint32_t argument) {
  GpuEvent& event = events_[id.index()];
  if (event.fired) return queue_->schedule(queue_->now(), handler, code, argument);
  event.notices.push_back({&handler, code, argument});
}

void Gpu::notify_below(StreamId id, std::size_t limit, EventHandler& handler) {
  Stream& stream = streams_[id.index()];
  RAILYARD_CHECK(stream.below_handler == nullptr, "one host waits for a stream's queue");
  stream.below_handler = &handler;
  stream.below_limit = limit;
}

Gpu::Item Gpu::pop(std::uint32_t id) {
  Stream& stream = streams_[id];
  const Item item = stream.items.front();
  stream.items.pop_front();
  if (stream.below_handler != nullptr && stream.items.size() < stream.below_limit)
    queue_->schedule(queue_->now(), *std::exchange(stream.below_handler, nullptr), 0, 0);
  return item;
}

void Gpu::on_event(std::uint32_t code, std::uint32_t argument) {
  if (code == kStartItem) return start_item(argument);
  if (code == kEnterCollective) return enter_collective(argument);
  // A kernel whose speed changed since ends at another time: its old event is stale.
  const Stream& stream = streams_[argument];
  if (stream.executing && stream.end == queue_->now()) end_kernel(argument);
}

// Records and waits that take no time; true if there is something else to run.
bool Gpu::pass(std::uint32_t id) {
  for (;;) {
    Stream& stream = streams_[id];
    if (stream.items.empty()) return false;
    const Item item = stream.items.front();
    if (item.kind == ItemKind::record) {
      pop(id);
      fire(item.event);
    } else if (item.kind == ItemKind::wait) {
      GpuEvent& event = events_[item.event.index()];
      if (!event.fired) {
        stream.stopped = true;
        event.streams.push_back(id);
        return false;
      }
      pop(id);
    } else {
      return true;
    }
  }
}

void Gpu::go_on(std::uint32_t id) {
  if (!pass(id)) return;
  Stream& stream = streams_[id];
  const Item& item = stream.items.front();
  const Time after_previous = stream.free + (stream.after_kernel ? timing_.kernel_gap : Duration{});
  const Time start =
      std::max({queue_->now(), item.launched + timing_.launch_latency, after_previous});
  stream.running = true;
  if (start > queue_->now()) return queue_->schedule(start, *this, kStartItem, id);
  start_item(id);
}

void Gpu::start_item(std::uint32_t id) {
  Stream& stream = streams_[id];
  stream.started = queue_->now();
  if (stream.items.front().kind == ItemKind::kernel) return start_kernel(id);
  if (timing_.collective_start.count() > 0)
    return queue_->schedule(queue_->now() + timing_.collective_start, *this, kEnterCollective, id);
  enter_collective(id);
}

void Gpu::start_kernel(std::uint32_t id) {
  Stream& stream = streams_[id];
  stream.left = stream.items.front().alone;
  stream.since = queue_->now();
  stream.executing = true;
  reschedule(id);
}

double Gpu::speed(KernelBound bound) const {
  return bound == KernelBound::compute ? compute_factor_ : memory_factor_;
}

void Gpu::reschedule(std::uint32_t id) {
  Stream& stream = streams_[id];
  stream.end = later(stream.since, scale(stream.left, speed(stream.items.front().bound)));
  queue_->schedule(stream.end, *this, kKernelEnd, id);
}

void Gpu::end_kernel(std::uint32_t id) {
  Stream& stream = streams_[id];
  const Item item = pop(id);
  stream.running = false;
  stream.executing = false;
  stream.free = queue_->now();
  stream.after_kernel = true;
  stream.busy += queue_->now() - stream.started;
  stream.alone += item.alone;
  trace_->add({rank_, item.name, static_cast<std::uint16_t>(id), SpanKind::kernel, stream.started,
               queue_->now()});
  go_on(id);
}

void Gpu::enter_collective(std::uint32_t id) {
  const Item item = streams_[id].items.front();
  collectives_.push_back({item.runner, item.runner->next_call(item.group_rank), StreamId(id),
                          item.runner->slowdown(item.plan)});
  change_speed();
  item.runner->enter(item.group_rank, item.plan, *this);  // may end at once
}

void Gpu::on_collective_done(const CollectiveRunner& runner, std::uint32_t, std::uint32_t call) {
  const auto found = std::ranges::find_if(collectives_, [&](const RunningCollective& c) {
    return c.runner == &runner && c.call == call;
  });
  RAILYARD_CHECK(found != collectives_.end(), "an unknown collective ended");
  const std::uint32_t id = found->stream.value();
  collectives_.erase(found);
  change_speed();
  Stream& stream = streams_[id];
  const Item item = pop(id);
  stream.running = false;
  stream.free = queue_->now();
  stream.after_kernel = false;
  trace_->add({rank_, item.name, static_cast<std::uint16_t>(id), SpanKind::collective,
               stream.started, queue_->now()});
  go_on(id);
}

void Gpu::set_pace(double factor) {
  RAILYARD_CHECK(factor > 0, "a pace is positive");
  pace_ = factor;
  change_speed();
}

// Collectives that run at once take their shares together.
void Gpu::change_speed() {
  const auto at_old_speed = [this](Stream& stream) {
    const double factor = speed(stream.items.front().bound);
    const auto elapsed = static_cast<double>((queue_->now() - stream.since).count());
    stream.left =
        std::max(Duration{}, stream.left - Duration(static_cast<std::int64_t>(elapsed / factor)));
    stream.since = queue_->now();
  };
  std::vector<std::uint32_t> kernels;
  for (std::uint32_t id = 0; id < streams_.size(); ++id) {
    Stream& stream = streams_[id];
    if (!stream.executing) continue;
    at_old_speed(stream);
    kernels.push_back(id);
  }
  compute_factor_ = 1;
  memory_factor_ = 1;
  for (const RunningCollective& collective : collectives_) {
    compute_factor_ += collective.slowdown.compute - 1;
    memory_factor_ += collective.slowdown.memory - 1;
  }
  compute_factor_ *= pace_;
  memory_factor_ *= pace_;
  for (const std::uint32_t id : kernels) reschedule(id);
}

void Gpu::fire(GpuEventId id) {
  GpuEvent& event = events_[id.index()];
  event.fired = true;
  event.at = queue_->now();
  for (const Notice& notice : event.notices)
    queue_->schedule(queue_->now(), *notice.handler, notice.code, notice.argument);
  const std::vector<std::uint32_t> streams = std::move(event.streams);
  for (const std::uint32_t stream : streams) {
    streams_[stream].stopped = false;
    go_on(stream);
  }
}

std::vector<std::string> Gpu::waiting() const {
  std::vector<std::string> lines;
  for (std::size_t id = 0; id < streams_.size(); ++id) {
    const Stream& stream = streams_[id];
    if (stream.items.empty()) continue;
    const Item& item = stream.items.front();
    const char* what = item.kind == ItemKind::collective ? "is in a collective"
                       : item.kind == ItemKind::wait     ? "waits for an event of another stream"
                                                         : "runs a kernel";
    lines.push_back(fmt::format("rank {} stream {} {}", rank_, id, what));
  }
  return lines;
}

}  // namespace railyard::sim
