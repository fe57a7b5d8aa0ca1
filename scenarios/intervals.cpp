#include "scenarios/intervals.h"

#include <algorithm>

namespace railyard::scenarios {

using sim::Duration;

std::vector<Interval> intervals(const sim::Trace& trace, sim::SpanKind kind, std::uint32_t rank,
                                const Interval& within) {
  std::vector<Interval> found;
  for (const sim::Span& span : trace.spans()) {
    if (span.kind != kind || span.rank != rank || span.end <= within.start ||
        span.start >= within.end)
      continue;
    found.push_back({std::max(span.start, within.start), std::min(span.end, within.end)});
  }
  std::ranges::sort(found, {}, &Interval::start);
  return found;
}

std::vector<Interval> merged(const std::vector<Interval>& sorted) {
  std::vector<Interval> joined;
  for (const Interval& each : sorted) {
    if (!joined.empty() && each.start <= joined.back().end)
      joined.back().end = std::max(joined.back().end, each.end);
    else
      joined.push_back(each);
  }
  return joined;
}

Duration total(const std::vector<Interval>& disjoint) {
  Duration sum{};
  for (const Interval& each : disjoint) sum += each.end - each.start;
  return sum;
}

Duration uncovered(const Interval& inner, const std::vector<Interval>& cover) {
  Duration left = inner.end - inner.start;
  auto first = std::ranges::lower_bound(cover, inner.start, {}, &Interval::end);
  for (; first != cover.end() && first->start < inner.end; ++first)
    left -=
        std::max(Duration{}, std::min(first->end, inner.end) - std::max(first->start, inner.start));
  return left;
}

std::vector<Interval> measure_step(const sim::Trace& trace, std::uint32_t rank,
                                   const Interval& step, StepResult& result) {
  std::vector<Interval> kernels = merged(intervals(trace, sim::SpanKind::kernel, rank, step));
  const std::vector<Interval> collectives = intervals(trace, sim::SpanKind::collective, rank, step);
  result.compute = total(kernels);
  result.communication = total(merged(collectives));
  for (const Interval& each : merged(collectives)) result.exposed += uncovered(each, kernels);
  std::vector<Interval> any = kernels;
  any.insert(any.end(), collectives.begin(), collectives.end());
  std::ranges::sort(any, {}, &Interval::start);
  const Duration idle = (step.end - step.start) - total(merged(any));
  const auto over_a_tenth = [&](Duration part) { return part * 10 > step.end - step.start; };
  result.bound_by = over_a_tenth(result.exposed) ? "communication"
                    : over_a_tenth(idle)         ? "host launches"
                                                 : "compute";
  return kernels;
}

}  // namespace railyard::scenarios
