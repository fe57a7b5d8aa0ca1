#include "scenarios/ddp_job.h"

#include <fmt/format.h>

#include "models/ddp/memory.h"
#include "models/nn/catalogue.h"
#include "scenarios/bind.h"

namespace railyard::scenarios {
namespace {

// HBM bytes that one step moves per parameter, and tensors of state that stay.
struct OptimizerCost {
  std::int64_t step_bytes = 0;
  int states = 0;
};

OptimizerCost cost_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::none: return {0, 0};
    case Optimizer::sgd: return {12, 0};
    case Optimizer::sgd_momentum: return {20, 1};
    case Optimizer::adam:
    case Optimizer::adamw: return {28, 2};
  }
  return {};
}

std::string gigabytes(double bytes) { return fmt::format("{:.1f} GB", bytes * 1e-9); }

}  // namespace

models::DdpOptions ddp_options(const DdpSpec& spec) {
  models::DdpOptions options;
  options.buckets = spec.buckets;
  options.batch_per_gpu = spec.batch_per_gpu;
  options.compute = compute_dtype(spec.precision);
  options.autocast = spec.precision == Precision::amp_fp16 || spec.precision == Precision::amp_bf16;
  options.recompute = spec.recompute;
  options.broadcast_buffers = spec.broadcast_buffers;
  options.optimizer_bytes = cost_of(spec.optimizer).step_bytes;
  options.optimizer_states = cost_of(spec.optimizer).states;
  options.iterations = spec.iterations;
  return options;
}

Result<models::NeuralNetwork> network_of(const Scenario& scenario) {
  const DdpSpec& ddp = *scenario.ddp;
  if (ddp.network) return models::validate(*ddp.network);
  models::ModelOptions options;
  options.sequence_length = ddp.sequence_length;
  options.image_size = ddp.image_size;
  options.parameter_dtype = parameter_dtype(ddp.precision);
  return models::build_model(ddp.model, options);
}

Result<sim::CollectiveCall> choose_ddp(const Scenario& scenario, const Communication& world,
                                       const models::DdpCall& call) {
  RAILYARD_ASSIGN(sim::CollectiveCall chosen,
                  choose(scenario, world, {call.collective, call.size, call.element_size}));
  chosen.in_place = true;
  return chosen;
}

std::string memory_warning(const models::NeuralNetwork& network, const models::DdpOptions& options,
                           sim::Bytes capacity) {
  const models::DdpMemory memory = models::ddp_memory(network, options);
  const auto available = static_cast<double>(capacity.raw());
  if (available <= 0 || memory.total() <= available) return {};
  return fmt::format(
      "out of memory: parameters {}, gradients {}, buckets {} and optimizer state {} are {} per "
      "GPU without any activations, and it has {} (gpu.hbm_capacity)",
      gigabytes(memory.parameters), gigabytes(memory.gradients), gigabytes(memory.buckets),
      gigabytes(memory.optimizer), gigabytes(memory.total()), gigabytes(available));
}

}  // namespace railyard::scenarios
