// What every workload's estimate is made of.
#pragma once

#include "scenarios/bind.h"
#include "scenarios/run.h"

namespace railyard::scenarios {

// A call that is simulated so many times.
Result<void> add_call(const sim::CollectiveCall& call, double times, Communication& communication,
                      Estimate& estimate);

// Launches of a rank and iteration.
void add_launches(double launches, double ranks, double iterations, Estimate& estimate);

}  // namespace railyard::scenarios
