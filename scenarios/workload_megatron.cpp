// megatron: Megatron-Core's parallelism, with its arguments' names. Data parallelism alone is here,
// the rest in megatron_parallel.cpp.
#include <fmt/format.h>

#include "scenarios/megatron_spec.h"
#include "scenarios/sections.h"
#include "scenarios/training_job.h"
#include "scenarios/where.h"
#include "scenarios/workloads.h"

namespace railyard::scenarios {
namespace {

constexpr std::int64_t kMostRanks = 1'000'000;
constexpr std::int64_t kMostBatches = 100'000'000;
constexpr double kLargestCapacity = 1000;

std::vector<MemoryRow> memory_rows(const models::NeuralNetwork& network,
                                   const models::MegatronOptions& options) {
  double elements = 0;
  for (const models::MegatronBucket& bucket : models::megatron_buckets(network, options))
    elements += static_cast<double>(bucket.elements);
  const double owned = options.use_distributed_optimizer
                           ? elements / static_cast<double>(options.data_parallel)
                           : elements;
  return memory_of(elements, owned, options);
}

sim::Duration alone(const models::MegatronProgram& program) {
  sim::Duration sum{};
  for (const models::MegatronProgram::Layer& layer : program.layers)
    sum += models::alone(layer.forward) + models::alone(layer.backward);
  return sum * program.accumulation + models::alone(program.scale) +
         models::alone(program.optimizer);
}

class Megatron final : public TrainingWorkload {
 public:
  explicit Megatron(MegatronSpec spec) : spec_(std::move(spec)) {}

  std::string_view key() const override { return "megatron"; }
  std::vector<std::string> groups() const override { return {spec_.group}; }

 private:
  Result<void> with_program(const Scenario& scenario, Bound& bound, sim::Trace& trace,
                            const Use& use) const override {
    RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(spec_));
    RAILYARD_ASSIGN(const std::size_t ranks, group_size(bound, spec_.group));
    const auto data_parallel = static_cast<std::int64_t>(ranks);
    const auto batches = micro_batches(spec_, data_parallel);
    if (!batches.ok()) return at_path(scenario, "megatron", batches.error());
    const models::MegatronOptions options = data_options(spec_, data_parallel, batches.value());
    const models::KernelModel kernels(bound.parameters.gpu, options.layers.compute);
    const auto built = models::build_megatron_program(network, options, kernels, trace);
    if (!built.ok()) return at_path(scenario, "megatron", built.error());
    const models::MegatronProgram& program = built.value();
    TrainingProgram training;
    training.scheme = spec_.use_distributed_optimizer ? "Megatron, distributed optimizer"
                                                      : "Megatron, data parallel";
    training.key = "megatron";
    training.spec = &spec_;
    training.network = &network;
    training.calls = &program.calls;
    training.groups = groups();
    training.start = [&](models::WorkloadRank& rank) {
      return models::run_megatron(program, rank);
    };
    training.samples_per_step = static_cast<double>(spec_.batch_per_gpu * batches.value());
    training.data_ranks = static_cast<double>(bound.world.size());
    training.compute_alone = alone(program);
    training.memory = memory_rows(network, options);
    training.launches = static_cast<double>(4 * network.layers().size() *
                                            static_cast<std::size_t>(program.accumulation));
    return use(training);
  }

  MegatronSpec spec_;
};

void read_data(MapReader& reader, MegatronSpec& spec) {
  reader.optional("group", spec.group);
  reader.optional("use_distributed_optimizer", spec.use_distributed_optimizer);
  reader.optional("overlap_grad_reduce", spec.overlap_grad_reduce);
  reader.optional("overlap_param_gather", spec.overlap_param_gather);
  reader.optional("grad_reduce_in_fp32", spec.grad_reduce_in_fp32);
  reader.optional("ddp_bucket_size", spec.ddp_bucket_size, 1, std::int64_t{1} << 53);
  reader.optional("gradient_accumulation", spec.gradient_accumulation, 1, 100'000);
  std::int64_t batch = 0;
  if (reader.optional("global_batch_size", batch, 1, kMostBatches)) spec.global_batch_size = batch;
}

void read_parallel(MapReader& reader, MegatronSpec& spec) {
  models::ParallelSizes& sizes = spec.sizes;
  reader.optional("tensor_model_parallel_size", sizes.tensor, 1, kMostRanks);
  reader.optional("pipeline_model_parallel_size", sizes.pipeline, 1, kMostRanks);
  reader.optional("virtual_pipeline_model_parallel_size", sizes.virtual_pipeline, 1, kMostRanks);
  reader.optional("context_parallel_size", sizes.context, 1, kMostRanks);
  reader.optional("expert_model_parallel_size", sizes.expert, 1, kMostRanks);
  sizes.expert_tensor = sizes.tensor;
  reader.optional("expert_tensor_parallel_size", sizes.expert_tensor, 1, kMostRanks);
  reader.optional("sequence_parallel", sizes.sequence_parallel);
  reader.optional("cp_comm_type", spec.cp_comm_type);
  reader.optional("moe_expert_capacity_factor", spec.moe_expert_capacity_factor, 0.01,
                  kLargestCapacity);
  reader.optional("pipeline_schedule", spec.pipeline_schedule);
  spec.overlap_p2p_comm = sizes.virtual_pipeline > 1;
  reader.optional("overlap_p2p_comm", spec.overlap_p2p_comm);
  reader.optional("batch_p2p_sync", spec.batch_p2p_sync);
}

Result<void> check(MapReader& reader, const MegatronSpec& spec) {
  // As megatron/training/arguments.py asserts.
  if (spec.overlap_param_gather && !(spec.use_distributed_optimizer && spec.overlap_grad_reduce))
    return reader.find("overlap_param_gather")
        ->error("needs use_distributed_optimizer and overlap_grad_reduce");
  if (spec.overlap_p2p_comm && spec.sizes.virtual_pipeline == 1)
    return reader.find("overlap_p2p_comm")
        ->error("needs virtual_pipeline_model_parallel_size above 1");
  const auto stages = static_cast<std::size_t>(spec.sizes.pipeline);
  if (!spec.pipeline_schedule.empty() &&
      (spec.sizes.virtual_pipeline > 1 || spec.pipeline_schedule.size() != stages))
    return reader.find("pipeline_schedule")
        ->error(fmt::format("one order for each of the {} stages is expected, without virtual ones",
                            stages));
  const auto accumulation = reader.find("gradient_accumulation");
  if (accumulation && spec.global_batch_size)
    return accumulation->error("global_batch_size says how many micro-batches there are");
  const auto group = reader.find("group");
  if (group && spec.model_parallel()) return group->error("model parallelism makes its own groups");
  return {};
}

}  // namespace

Result<std::int64_t> micro_batches(const MegatronSpec& spec, std::int64_t data_parallel) {
  if (!spec.global_batch_size) return spec.gradient_accumulation;
  const std::int64_t together = spec.batch_per_gpu * data_parallel;
  if (*spec.global_batch_size % together == 0) return *spec.global_batch_size / together;
  return sim::bad_input(
      fmt::format("{} is not a multiple of micro-batch {} x data parallel {} = {}",
                  *spec.global_batch_size, spec.batch_per_gpu, data_parallel, together),
      "global_batch_size");
}

models::MegatronOptions data_options(const MegatronSpec& spec, std::int64_t data_parallel,
                                     std::int64_t micro_batches) {
  models::MegatronOptions options;
  options.layers = {.samples = spec.batch_per_gpu,
                    .recompute = spec.recompute,
                    .compute = compute_dtype(spec.precision)};
  // Mixed precision keeps half parameters in the buffer and fp32 ones in the optimizer.
  options.param_dtype = sent_dtype(spec.precision);
  options.grad_dtype = spec.grad_reduce_in_fp32 ? models::Dtype::fp32 : options.param_dtype;
  options.use_distributed_optimizer = spec.use_distributed_optimizer;
  options.overlap_grad_reduce = spec.overlap_grad_reduce;
  options.overlap_param_gather = spec.overlap_param_gather;
  options.bucket_size = spec.ddp_bucket_size;
  options.data_parallel = data_parallel;
  options.optimizer_bytes = cost_of(spec.optimizer).step_bytes;
  options.optimizer_states = cost_of(spec.optimizer).states;
  options.accumulation = micro_batches;
  options.iterations = spec.iterations;
  return options;
}

std::vector<MemoryRow> memory_of(double elements, double owned,
                                 const models::MegatronOptions& options) {
  const bool master = options.param_dtype != models::Dtype::fp32;
  return {{"parameters", elements * static_cast<double>(element_size(options.param_dtype))},
          {"gradients", elements * static_cast<double>(element_size(options.grad_dtype))},
          {"optimizer state", owned * 4 * (options.optimizer_states + (master ? 1 : 0))}};
}

Result<std::shared_ptr<const Workload>> decode_megatron(const Place& place) {
  MapReader reader(place);
  MegatronSpec spec;
  const bool own_name = reader.find("micro_batch_size").has_value();
  read_training(reader, spec, own_name ? "micro_batch_size" : "batch_per_gpu");
  read_data(reader, spec);
  read_parallel(reader, spec);
  RAILYARD_TRY(finish_training(reader, spec));
  RAILYARD_TRY(check(reader, spec));
  if (spec.model_parallel()) return make_model_parallel(std::move(spec));
  return std::shared_ptr<const Workload>(std::make_shared<Megatron>(std::move(spec)));
}

}  // namespace railyard::scenarios
