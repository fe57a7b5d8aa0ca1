#include "scenarios/ddp_job.h"

#include <fmt/format.h>

#include "models/ddp/memory.h"
#include "scenarios/bind.h"

namespace railyard::scenarios {
namespace {

std::string gigabytes(double bytes) { return fmt::format("{:.1f} GB", bytes * 1e-9); }

}  // namespace

Result<models::DdpOptions> ddp_options(const DdpSpec& spec, std::size_t ranks) {
  models::DdpOptions options;
  options.ranks = static_cast<std::int64_t>(ranks);
  options.sync_batchnorm = spec.convert_sync_batchnorm;
  if (!spec.join.empty()) options.join.assign(ranks, spec.iterations);
  for (const JoinInputs& inputs : spec.join) {
    if (inputs.rank >= ranks)
      return sim::bad_input(fmt::format("join names rank {} of a job of {} ranks (0 to {})",
                                        inputs.rank, ranks, ranks - 1));
    options.join[inputs.rank] = inputs.iterations;
  }
  options.buckets = spec.buckets;
  options.batch_per_gpu = spec.batch_per_gpu;
  options.compute = compute_dtype(spec.precision);
  options.autocast = spec.precision == Precision::amp_fp16 || spec.precision == Precision::amp_bf16;
  options.recompute = spec.recompute;
  options.broadcast_buffers = spec.broadcast_buffers;
  options.optimizer_bytes = cost_of(spec.optimizer).step_bytes;
  options.optimizer_states = cost_of(spec.optimizer).states;
  options.iterations = spec.iterations;
  options.accumulation = spec.gradient_accumulation;
  options.hook = spec.hook;
  options.hook.optimizer_bytes = options.optimizer_bytes;
  options.measured = spec.measured;
  return options;
}

Result<sim::CollectiveCall> choose_ddp(const Scenario& scenario, const Communication& world,
                                       const models::DdpCall& call) {
  RAILYARD_ASSIGN(sim::CollectiveCall chosen,
                  choose(scenario, world, {call.collective, call.size, call.element_size}));
  chosen.root = call.root;
  chosen.in_place = call.collective != sim::Collective::all_gather;
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
