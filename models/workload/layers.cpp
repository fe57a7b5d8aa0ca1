#include "models/workload/layers.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard::models {
namespace {

// Parameters per launch of a multi-tensor optimizer kernel (its argument table holds about so
// many).
constexpr std::size_t kTensorsPerOptimizerLaunch = 48;

}  // namespace

sim::Kernel named(const KernelTime& time, std::uint32_t name) {
  return {time.time, time.bound, name};
}

void add_forward(const Layer& layer, const LayerOptions& options, const KernelModel& kernels,
                 sim::Trace& trace, std::vector<sim::Kernel>& out) {
  if (options.autocast && layer.work.weight_elements > 0)
    out.push_back(
        named(kernels.move(sim::bytes(layer.work.weight_elements *
                                      (element_size(Dtype::fp32) + element_size(options.compute)))),
              trace.name("cast weights")));
  const KernelTime time = kernels.forward(layer, options.samples);
  if (!layer.measured || time.time.count() > 0) out.push_back(named(time, trace.name(layer.name)));
}

void add_backward(const Layer& layer, const LayerOptions& options, const KernelModel& kernels,
                  sim::Trace& trace, std::vector<sim::Kernel>& out) {
  if (options.recompute)
    out.push_back(
        named(kernels.forward(layer, options.samples), trace.name("recompute " + layer.name)));
  if (const KernelTime time = kernels.dgrad(layer, options.samples);
      layer.has_dgrad && time.time.count() > 0)
    out.push_back(named(time, trace.name("dgrad " + layer.name)));
  const std::string last = layer.measured ? "backward " : "wgrad ";
  if (const KernelTime time = kernels.wgrad(layer, options.samples); time.time.count() > 0)
    out.push_back(named(time, trace.name(last + layer.name)));
}

sim::Duration alone(const std::vector<sim::Kernel>& kernels) {
  sim::Duration sum{};
  for (const sim::Kernel& kernel : kernels) sum += kernel.alone;
  return sum;
}

std::vector<sim::Kernel> optimizer_kernels(std::size_t tensors, Bytes traffic,
                                           const KernelModel& kernels, sim::Trace& trace) {
  std::vector<sim::Kernel> out;
  if (traffic.raw() == 0 || tensors == 0) return out;
  const auto launches = static_cast<std::int64_t>((tensors + kTensorsPerOptimizerLaunch - 1) /
                                                  kTensorsPerOptimizerLaunch);
  for (std::int64_t i = 0; i < launches; ++i)
    out.push_back(named(kernels.move(traffic / launches), trace.name("optimizer")));
  return out;
}

Result<void> check_batch(const NeuralNetwork& network, std::int64_t samples) {
  sim::Int128 elements = 0, measured = 0;
  for (const Layer& layer : network.layers())
    elements += sim::Int128(layer.work.forward_elements) + layer.work.dgrad_elements +
                layer.work.wgrad_elements;
  for (const Layer& layer : network.layers())
    if (layer.measured)
      measured +=
          sim::Int128(layer.measured->forward.time.count()) + layer.measured->backward.time.count();
  const sim::Int128 most =
      std::max({elements * 8, measured, sim::Int128(training_flops(network).raw())});
  if (most * samples < sim::Int128(1) << 62) return {};
  return sim::bad_input(fmt::format("batch_per_gpu {} is too large: the work of one step of {} "
                                    "does not fit 62 bits",
                                    samples, network.name()),
                        "batch_per_gpu");
}

}  // namespace railyard::models
