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
  const auto over_a_tenth = [&](Duration part) { return part * 10 > whole; };
  result.bound_by = over_a_tenth(result.exposed) ? "communication"
                    : over_a_tenth(idle)         ? "host launches"
                                                 : "compute";
  return kernels;
}

}  // namespace railyard::scenarios
