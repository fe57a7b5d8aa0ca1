// The iterations of a trace and what happened in each.
//
// A step is a range of host time: what the host launched in it belongs to it, whenever the GPU ran
// it. Steps are told by
//   ProfilerStep#k   torch.profiler's step(): from its start to the start of the next
//   pattern          without those: the shortest sequence of activities that repeats to the end of
//                    the trace; cut where it begins. Where a trace begins in the middle of an
//                    iteration, so do these steps
//   whole            neither: all of it as one step
//
// Of a step's activities, as sets of intervals on the GPU:
//   compute        some kernel or copy that is no collective was running
//   communication  some collective was running. It includes waiting for the last rank
//   overlap        both; exposed = communication - overlap
//   idle           duration - (compute or communication), not below zero
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/traces/gpu_trace.h"

namespace railyard::calibrate {

enum class StepSource : std::uint8_t { profiler, pattern, whole };

struct TraceStep {
  std::string name;                       // "ProfilerStep#4"
  std::int64_t start_ns = 0, end_ns = 0;  // on the host
  std::size_t first = 0, last = 0;        // activities, [first, last)
  std::int64_t compute_ns = 0, communication_ns = 0, overlap_ns = 0, exposed_ns = 0, idle_ns = 0;
  [[nodiscard]] std::int64_t duration_ns() const { return end_ns - start_ns; }
};

struct TraceSteps {
  StepSource source = StepSource::whole;
  std::vector<TraceStep> steps;  // at least one
  // The step of median duration among those with the median's number of collectives: what an
  // import takes.
  [[nodiscard]] const TraceStep& typical(const GpuTrace& trace) const;
};

TraceSteps find_steps(const GpuTrace& trace);

// The period of a sequence that repeats from its beginning to its end, twice at least; 0 if none.
// O(n).
std::size_t period_of(const std::vector<std::uint64_t>& sequence);

// The collectives of a trace, one row for each kind, size and group, in the order of their first.
struct CollectiveRow {
  std::string name;   // "allreduce"; the kernel's where the trace does not say
  std::string group;  // its name, else empty
  std::int64_t ranks = -1;
  std::int64_t bytes = -1;
  std::string dtype;
  std::size_t count = 0;
  std::int64_t total_ns = 0, shortest_ns = 0, median_ns = 0;
  double busbw = 0;  // GB/s from the shortest, which waited least; 0: not known
};
std::vector<CollectiveRow> collective_rows(const GpuTrace& trace);

}  // namespace railyard::calibrate
