// The calls that `collectives:` makes: nccl-tests' sizes turned into NCCL's counts, with the
// algorithm and protocol of the scenario's choice.
#pragma once

#include <cstddef>
#include <string>

#include "scenarios/bind.h"
#include "scenarios/scenario.h"
#include "sim/collective.h"

namespace railyard::scenarios {

struct PlannedCall {
  std::size_t run = 0;  // index into Scenario::collectives
  sim::Bytes size{};    // nccl-tests' size column, after rounding
  sim::CollectiveCall call;
  bool other_protocol = false;  // than the choice names: AllToAll has no LL128
};

// A size of collectives[run]. Errors: those of choose().
Result<PlannedCall> planned_call(const Scenario& scenario, std::size_t run, sim::Bytes size,
                                 const Communication& communication);

// An error of building the call's schedule, at the line that it is about.
Error at_planned(const Scenario& scenario, const PlannedCall& planned, const Error& error);

}  // namespace railyard::scenarios
