// megatron: data parallelism with Megatron-Core's buffers and distributed optimizer.
#include "models/megatron/data_parallel.h"
#include "scenarios/training_job.h"
#include "scenarios/where.h"
#include "scenarios/workloads.h"

namespace railyard::scenarios {
namespace {

struct MegatronSpec : TrainingSpec {
  std::string group{kWorld};
  bool use_distributed_optimizer = true;
  bool overlap_grad_reduce = false;  // Megatron's own defaults
  bool overlap_param_gather = false;
  bool grad_reduce_in_fp32 = false;
  std::int64_t ddp_bucket_size = 0;
  std::int64_t gradient_accumulation = 1;
};

models::MegatronOptions options_of(const MegatronSpec& spec, std::size_t data_parallel) {
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
  options.data_parallel = static_cast<std::int64_t>(data_parallel);
  options.optimizer_bytes = cost_of(spec.optimizer).step_bytes;
  options.optimizer_states = cost_of(spec.optimizer).states;
  options.accumulation = spec.gradient_accumulation;
  options.iterations = spec.iterations;
  return options;
}

std::vector<MemoryRow> memory_of(const models::NeuralNetwork& network,
                                 const models::MegatronOptions& options) {
  double elements = 0;
  for (const models::MegatronBucket& bucket : models::megatron_buckets(network, options))
    elements += static_cast<double>(bucket.elements);
  const double owned = options.use_distributed_optimizer
                           ? elements / static_cast<double>(options.data_parallel)
                           : elements;
  const bool master = options.param_dtype != models::Dtype::fp32;
  return {{"parameters", elements * static_cast<double>(element_size(options.param_dtype))},
          {"gradients", elements * static_cast<double>(element_size(options.grad_dtype))},
          {"optimizer state", owned * 4 * (options.optimizer_states + (master ? 1 : 0))}};
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
    RAILYARD_ASSIGN(const std::size_t data_parallel, group_size(bound, spec_.group));
    const models::MegatronOptions options = options_of(spec_, data_parallel);
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
    training.samples_per_step =
        static_cast<double>(spec_.batch_per_gpu * spec_.gradient_accumulation);
    training.data_ranks = static_cast<double>(bound.world.size());
    training.compute_alone = alone(program);
    training.memory = memory_of(network, options);
    training.launches = static_cast<double>(4 * network.layers().size() *
                                            static_cast<std::size_t>(program.accumulation));
    return use(training);
  }

  MegatronSpec spec_;
};

}  // namespace

Result<std::shared_ptr<const Workload>> decode_megatron(const Place& place) {
  MapReader reader(place);
  MegatronSpec spec;
  read_training(reader, spec);
  reader.optional("group", spec.group);
  reader.optional("use_distributed_optimizer", spec.use_distributed_optimizer);
  reader.optional("overlap_grad_reduce", spec.overlap_grad_reduce);
  reader.optional("overlap_param_gather", spec.overlap_param_gather);
  reader.optional("grad_reduce_in_fp32", spec.grad_reduce_in_fp32);
  reader.optional("ddp_bucket_size", spec.ddp_bucket_size, 1, std::int64_t{1} << 53);
  reader.optional("gradient_accumulation", spec.gradient_accumulation, 1, 100'000);
  RAILYARD_TRY(finish_training(reader, spec));
  // As megatron/training/arguments.py asserts.
  if (spec.overlap_param_gather && !(spec.use_distributed_optimizer && spec.overlap_grad_reduce))
    return reader.find("overlap_param_gather")
        ->error("needs use_distributed_optimizer and overlap_grad_reduce");
  return std::shared_ptr<const Workload>(std::make_shared<Megatron>(std::move(spec)));
}

}  // namespace railyard::scenarios
