// A communicator of one rank: every collective is a copy from input to output (NCCL: one
// cudaMemcpyAsync), and nothing at all in place or for 0 bytes.
#pragma once

#include "sim/collective.h"
#include "sim/schedule.h"

namespace railyard::algorithms {

sim::Schedule local_copy_schedule(const sim::CollectiveCall& call);

}  // namespace railyard::algorithms
