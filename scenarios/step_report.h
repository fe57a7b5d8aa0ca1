// What a finished DDP job says about its steps.
//
//   step time      from the end of the previous iteration's optimizer to the end of this one's, the
//   last
//                  rank counting
//   communication  rank 0's communication stream is in a collective
//   exposed        it is, and no compute kernel of rank 0 runs
//   a bucket's exposed part is the exposed time in which its collective was the running one
// Bound by: communication if over 10 % of the step is exposed; else the host if for over 10 %
// neither stream runs anything; else compute.
#pragma once

#include <memory>
#include <vector>

#include "models/ddp/step.h"
#include "scenarios/run.h"
#include "sim/collective_runner.h"
#include "sim/trace.h"

namespace railyard::scenarios {

struct StepReportInput {
  const models::DdpProgram& program;
  const std::vector<std::unique_ptr<models::DdpRank>>& ranks;
  const sim::CollectiveRunner& runner;
  const sim::Trace& trace;
};

// The trace must hold the spans of rank 0.
DdpResult report_steps(const StepReportInput& input);

}  // namespace railyard::scenarios
