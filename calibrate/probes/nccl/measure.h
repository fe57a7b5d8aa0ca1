// The measurements of one process of probe_nccl, under the environment it was started with. Rows:
//
//   nccl.comm_create  making the communicators; label nth: 1 with everything loaded lazily, then 2
//   nccl.operation    labels operation, ranks: time of one call of many enqueued back to back,
//                     the slowest rank's; moved_bytes = bytes as operations.h counts them
//   nccl.estimate     what ncclGroupSimulateEnd says of the same call, as a time of one sample
#pragma once

#include <functional>

#include "calibrate/probes/common/report.h"
#include "calibrate/probes/nccl/operations.h"

namespace railyard::probe::nccl {

struct Plan {
  Sizes sizes{8, 1024, 8192, 65536, 262144, 1048576, 4194304, 16777216, 67108864, 268435456};
  std::vector<std::string> operations;
  double seconds = 0.1;  // of each cell
};

using HandOver = std::function<void(Report&)>;

void measure_creation(Ranks& ranks, Report& report);  // leaves the communicators made
// Calls `hand_over` after every operation, so that one that hangs loses no more than itself.
void measure_operations(const Ranks& ranks, const Plan& plan, Report& report,
                        const HandOver& hand_over);

}  // namespace railyard::probe::nccl
