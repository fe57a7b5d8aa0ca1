// Intervals of simulated time, and what a rank's spans say about a step.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/run.h"
#include "sim/trace.h"

namespace railyard::scenarios {

struct Interval {
  sim::Time start{};
  sim::Time end{};
};

// Spans of one kind on a rank within [from, to], in time order.
std::vector<Interval> intervals(const sim::Trace& trace, sim::SpanKind kind, std::uint32_t rank,
                                const Interval& within);

// Sorted intervals joined where they touch.
std::vector<Interval> merged(const std::vector<Interval>& sorted);
sim::Duration total(const std::vector<Interval>& disjoint);
// Time of `inner` not covered by `cover` (sorted, disjoint).
sim::Duration uncovered(const Interval& inner, const std::vector<Interval>& cover);

// Fills in compute, communication, exposed and bound_by of the step that a rank did in `step`,
// whose spans the trace must hold; returns the merged intervals of its kernels.
//
//   communication  one of its streams is in a collective
//   exposed        one is, and no kernel runs
//   bound by       communication if over 10 % of the step is exposed; else the host if for over 10
//   %
//                  no stream runs anything; else compute
std::vector<Interval> measure_step(const sim::Trace& trace, std::uint32_t rank,
                                   const Interval& step, StepResult& result);

}  // namespace railyard::scenarios
