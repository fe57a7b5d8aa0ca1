// The kernels of DeepSpeed's optimizer step on a rank's part of the parameters: cast of the
// gradients to fp32, their norm, scaling, the optimizer on the fp32 master, cast back.
#pragma once

#include <vector>

#include "models/zero/options.h"

namespace railyard::models {

struct OptimizerStep {
  std::vector<sim::Kernel> before_norm;
  std::vector<sim::Kernel> optimizer;  // of all sub-groups, one after the other
};

// `parts`: elements of the rank's part of every sub-group, of `tensors` tensors each for the
// optimizer.
OptimizerStep optimizer_step(const std::vector<std::int64_t>& parts, std::size_t tensors,
                             const ZeroOptions& options, const KernelModel& kernels,
                             sim::Trace& trace);

}  // namespace railyard::models
