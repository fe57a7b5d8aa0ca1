// Going through one step of a trace as the host did: ranges of host code as they begin, launches as
// they are made, each with the ranges around it.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "calibrate/traces/gpu_trace.h"
#include "calibrate/traces/launches.h"

namespace railyard::calibrate {

// The ranges that are open on a thread, outermost first.
class OpenRanges {
 public:
  OpenRanges(const GpuTrace& trace) : trace_(&trace), threads_(trace.threads.size()) {}

  const std::vector<const HostRange*>& at(std::uint32_t thread, std::int64_t ns) {
    auto& open = threads_[thread];
    while (!open.empty() && open.back()->end_ns < ns) open.pop_back();
    return open;
  }
  void open(const HostRange& range) { threads_[range.thread].push_back(&range); }

 private:
  const GpuTrace* trace_;
  std::vector<std::vector<const HostRange*>> threads_;
};

// What a launch or range stands in.
class Around {
 public:
  Around(const GpuTrace& trace, const std::vector<const HostRange*>& open)
      : trace_(&trace), open_(&open) {}

  // Whether one of the ranges has a name that holds the text.
  [[nodiscard]] bool inside(std::string_view part) const {
    return std::any_of(open_->begin(), open_->end(), [&](const HostRange* range) {
      return trace_->name(*range).find(part) != std::string::npos;
    });
  }
  // Whether one of them is an operator with a sequence number.
  [[nodiscard]] bool numbered() const {
    return std::any_of(open_->begin(), open_->end(),
                       [](const HostRange* range) { return range->sequence.has_value(); });
  }

 private:
  const GpuTrace* trace_;
  const std::vector<const HostRange*>* open_;
};

// visitor.range(const HostRange&, Around) as a range begins; visitor.launch(const StepLaunch&,
// const Activity&, Around); visitor.wait(const StreamWait&, Around).
template <typename Visitor>
void walk(const GpuTrace& trace, const TraceStep& step, const StepLaunches& launches,
          Visitor& visitor) {
  OpenRanges open(trace);
  const auto from = [&](const auto& list, auto time) {
    return std::partition_point(list.begin(), list.end(),
                                [&](const auto& each) { return time(each) < step.start_ns; });
  };
  auto range = from(trace.ranges, [](const HostRange& r) { return r.start_ns; });
  auto wait = from(trace.stream_waits, [](const StreamWait& w) { return w.host_ns; });
  const auto catch_up = [&](std::int64_t ns) {
    for (;;) {
      const bool ranges = range != trace.ranges.end() && range->start_ns <= ns;
      const bool waits = wait != trace.stream_waits.end() && wait->host_ns <= ns;
      if (!ranges && !waits) return;
      if (ranges && (!waits || range->start_ns <= wait->host_ns)) {
        visitor.range(*range, Around(trace, open.at(range->thread, range->start_ns)));
        open.open(*range);
        ++range;
      } else {
        visitor.wait(*wait, Around(trace, open.at(wait->thread, wait->host_ns)));
        ++wait;
      }
    }
  };
  for (const StepLaunch& launch : launches.launches) {
    const Activity& activity = trace.activities[launch.activity];
    catch_up(activity.issued_ns());
    visitor.launch(launch, activity, Around(trace, open.at(activity.thread, activity.issued_ns())));
  }
  catch_up(step.end_ns - 1);
}

}  // namespace railyard::calibrate
