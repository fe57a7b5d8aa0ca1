// What a rank's spans say about a step.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/run.h"
#include "sim/intervals.h"
#include "sim/trace.h"

namespace railyard::scenarios {

using Interval = sim::Interval<sim::Time>;

// Fills in compute, communication, exposed and bound_by of the step that a rank did in `step`,
// whose spans the trace must hold; returns the time of its kernels, disjoint and ascending.
//
//   communication  one of its streams is in a collective
//   exposed        one is, and no kernel runs
//   bound by       communication if over 10 % of the step is exposed; else the host if for over 10
//   %
//                  no stream runs anything; else compute
std::vector<Interval> measure_step(const sim::Trace& trace, std::uint32_t rank,
                                   const Interval& step, StepResult& result);

}  // namespace railyard::scenarios
