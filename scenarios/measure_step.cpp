#include "scenarios/measure_step.h"

#include <algorithm>

namespace railyard::scenarios {
namespace {

using sim::Duration;

// When spans of one kind ran on a rank within [from, to].
std::vector<Interval> time_of(const sim::Trace& trace, sim::SpanKind kind, std::uint32_t rank,
                              const Interval& within) {
  std::vector<Interval> found;
  for (const sim::Span& span : trace.spans())
    if (span.kind == kind && span.rank == rank)
      found.push_back({std::max(span.start, within.start), std::min(span.end, within.end)});
  return sim::united(std::move(found));
}

}  // namespace

std::vector<Interval> measure_step(const sim::Trace& trace, std::uint32_t rank,
                                   const Interval& step, StepResult& result) {
  std::vector<Interval> kernels = time_of(trace, sim::SpanKind::kernel, rank, step);
  const std::vector<Interval> collectives = time_of(trace, sim::SpanKind::collective, rank, step);
  result.compute = sim::length(kernels);
  result.communication = sim::length(collectives);
  result.exposed = sim::uncovered(collectives, kernels);
  const Duration whole = step.end - step.start;
  const Duration idle = whole - result.compute - result.exposed;
  const char* larger = result.exposed > idle ? "communication" : "host launches";
  result.bound_by = std::max(result.exposed, idle) * 10 > whole ? larger : "compute";
  return kernels;
}

}  // namespace railyard::scenarios
