// What a finished DDP job says about its steps.
//
//   step time      from the end of the previous iteration's optimizer to the end of this one's, the
//   last
//                  rank counting
//   a bucket's exposed part is the exposed time in which its collective was the running one
// The rest as in measure_step.h, of rank 0.
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
