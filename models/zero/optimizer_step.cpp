#include "models/zero/optimizer_step.h"

#include <numeric>

namespace railyard::models {

OptimizerStep optimizer_step(const std::vector<std::int64_t>& parts, std::size_t tensors,
                             const ZeroOptions& options, const KernelModel& kernels,
                             sim::Trace& trace) {
  constexpr std::int64_t kMaster = 4;
  const std::int64_t param = element_size(options.param_dtype);
  const bool mixed = options.param_dtype != Dtype::fp32;
  const auto move = [&](std::int64_t bytes, const char* name) {
    return named(kernels.move(sim::bytes(bytes)), trace.name(name));
  };
  OptimizerStep out;
  const std::int64_t all = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  out.before_norm.push_back(move(all * param, "gradient norm"));
  for (const std::int64_t part : parts) {
    if (mixed) out.optimizer.push_back(move(part * (param + kMaster), "cast gradients"));
    out.optimizer.push_back(move(2 * part * kMaster, "unscale gradients"));
    const std::vector<sim::Kernel> step =
        optimizer_kernels(tensors, sim::bytes(part * options.optimizer_bytes), kernels, trace);
    out.optimizer.insert(out.optimizer.end(), step.begin(), step.end());
    if (mixed) out.optimizer.push_back(move(part * (param + kMaster), "cast parameters"));
  }
  return out;
}

}  // namespace railyard::models
