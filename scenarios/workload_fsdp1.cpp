// fsdp1: a sharded training job, by PyTorch's FullyShardedDataParallel.
#include <fmt/format.h>

#include "models/fsdp/fsdp1.h"
#include "scenarios/training_job.h"
#include "scenarios/where.h"
#include "scenarios/workloads.h"

namespace railyard::scenarios {
namespace {

using models::ShardingStrategy;

struct Fsdp1Spec : TrainingSpec {
  ShardingStrategy sharding_strategy = ShardingStrategy::full_shard;
  models::BackwardPrefetch backward_prefetch = models::BackwardPrefetch::pre;
  bool forward_prefetch = false;
  bool limit_all_gathers = true;
  bool use_orig_params = false;
  std::optional<models::Dtype> param_dtype;
  std::optional<models::Dtype> reduce_dtype;
  std::optional<models::Dtype> buffer_dtype;
  std::string shard_group{kWorld};
  std::optional<std::string> replica_group;
  std::int64_t gradient_accumulation = 1;
  bool no_sync = false;
};

// Sizes of the groups come from the bound ranks.
Result<models::Fsdp1Options> options_of(const Fsdp1Spec& spec, Bound& bound) {
  models::Fsdp1Options options;
  options.layers = {.samples = spec.batch_per_gpu,
                    .recompute = spec.recompute,
                    .compute = compute_dtype(spec.precision)};
  options.strategy = spec.sharding_strategy;
  options.backward_prefetch = spec.backward_prefetch;
  options.forward_prefetch = spec.forward_prefetch;
  options.limit_all_gathers = spec.limit_all_gathers;
  options.use_orig_params = spec.use_orig_params;
  options.stored_dtype = parameter_dtype(spec.precision);
  options.param_dtype = spec.param_dtype.value_or(sent_dtype(spec.precision));
  options.reduce_dtype = spec.reduce_dtype.value_or(options.param_dtype);
  options.buffer_dtype = spec.buffer_dtype.value_or(models::Dtype::fp32);
  RAILYARD_ASSIGN(const std::size_t shards, group_size(bound, spec.shard_group));
  options.shards = static_cast<std::int64_t>(shards);
  if (spec.replica_group) {
    RAILYARD_ASSIGN(const std::size_t replicas, group_size(bound, *spec.replica_group));
    options.replicas = static_cast<std::int64_t>(replicas);
  }
  options.optimizer_bytes = cost_of(spec.optimizer).step_bytes;
  options.optimizer_states = cost_of(spec.optimizer).states;
  options.accumulation = spec.gradient_accumulation;
  options.no_sync = spec.no_sync;
  options.iterations = spec.iterations;
  return options;
}

// Every rank must be reached: FSDP takes the whole world, hybrid or not.
Result<void> check_groups(const Fsdp1Spec& spec, const models::Fsdp1Options& options,
                          std::size_t world) {
  if (options.shards * options.replicas == static_cast<std::int64_t>(world)) return {};
  if (!spec.replica_group)
    return sim::bad_input(
        fmt::format(
            "shard_group '{}' has {} of the world's {} ranks: without replicas (HYBRID_SHARD "
            "and replica_group) the others would train apart",
            spec.shard_group, options.shards, world),
        "shard_group");
  return sim::bad_input(
      fmt::format("{} shards (group '{}') x {} replicas (group '{}') are not the world's {} ranks",
                  options.shards, spec.shard_group, options.replicas, *spec.replica_group, world),
      "replica_group");
}

std::vector<MemoryRow> memory_rows(const models::Fsdp1Memory& memory) {
  std::vector<MemoryRow> rows{{"shards of parameters", memory.parameters},
                              {"of gradients", memory.gradients},
                              {"of optimizer state", memory.optimizer},
                              {"gathered units", memory.gathered},
                              {"whole gradients", memory.whole_gradients}};
  if (memory.buffers > 0) rows.push_back({"buffers", memory.buffers});
  return rows;
}

sim::Duration alone(const models::Fsdp1Program& program) {
  sim::Duration sum{};
  for (const auto* pass : {&program.forward, &program.backward})
    for (const models::Segment& segment : *pass) sum += models::alone(segment.kernels);
  return sum * program.options.accumulation + models::alone(program.optimizer);
}

double launches(const models::Fsdp1Program& program) {
  std::size_t kernels = 9 * program.units.size();
  for (const auto* pass : {&program.forward, &program.backward})
    for (const models::Segment& segment : *pass) kernels += segment.kernels.size();
  return static_cast<double>(kernels) * static_cast<double>(program.options.accumulation);
}

class Fsdp1 final : public TrainingWorkload {
 public:
  explicit Fsdp1(Fsdp1Spec spec) : spec_(std::move(spec)) {}

  std::string_view key() const override { return "fsdp1"; }
  std::vector<std::string> groups() const override {
    std::vector<std::string> names{spec_.shard_group};
    if (spec_.replica_group) names.push_back(*spec_.replica_group);
    return names;
  }

 private:
  Result<void> with_program(const Scenario& scenario, Bound& bound, sim::Trace& trace,
                            const Use& use) const override {
    RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(spec_));
    RAILYARD_ASSIGN(const models::Fsdp1Options options, options_of(spec_, bound));
    if (const auto valid = check_groups(spec_, options, bound.world.size()); !valid.ok())
      return at_path(scenario, "fsdp1", valid.error());
    const models::KernelModel kernels(bound.parameters.gpu, options.layers.compute);
    const auto built = models::build_fsdp1_program(network, options, kernels, trace);
    if (!built.ok()) return at_path(scenario, "fsdp1", built.error());
    const models::Fsdp1Program& program = built.value();
    TrainingProgram training;
    training.scheme = fmt::format("FSDP1, {}", sim::to_text(options.strategy));
    training.key = "fsdp1";
    training.spec = &spec_;
    training.network = &network;
    training.calls = &program.calls;
    training.groups = groups();
    training.streams.assign(models::kFsdp1Streams.begin(), models::kFsdp1Streams.end());
    training.start = [&](models::WorkloadRank& rank) { return models::run_fsdp1(program, rank); };
    training.samples_per_step =
        static_cast<double>(spec_.batch_per_gpu) * static_cast<double>(spec_.gradient_accumulation);
    training.data_ranks = static_cast<double>(bound.world.size());
    training.compute_alone = alone(program);
    training.memory = memory_rows(models::fsdp1_memory(network, options));
    training.launches = launches(program);
    return use(training);
  }

  Fsdp1Spec spec_;
};

Result<void> check_strategy(MapReader& reader, const Place& place, const Fsdp1Spec& spec) {
  const auto strategy = sim::to_text(spec.sharding_strategy);
  if (models::is_hybrid(spec.sharding_strategy) && !spec.replica_group)
    return place.error(fmt::format(
        "{} needs replica_group besides shard_group (PyTorch's default is the node, and its peers "
        "on other nodes: ranks: {{groups: {{shard: {{size: 8}}, replica: {{size: NODES, stride: "
        "8}}}}}})",
        strategy));
  if (!models::is_hybrid(spec.sharding_strategy) && spec.replica_group)
    return reader.find("replica_group")
        ->error(
            fmt::format("{} has no replicas: HYBRID_SHARD and _HYBRID_SHARD_ZERO2 do", strategy));
  return {};
}

}  // namespace

Result<std::shared_ptr<const Workload>> decode_fsdp1(const Place& place) {
  MapReader reader(place);
  Fsdp1Spec spec;
  read_training(reader, spec);
  reader.optional("sharding_strategy", spec.sharding_strategy);
  reader.optional("backward_prefetch", spec.backward_prefetch);
  reader.optional("forward_prefetch", spec.forward_prefetch);
  reader.optional("limit_all_gathers", spec.limit_all_gathers);
  reader.optional("use_orig_params", spec.use_orig_params);
  reader.optional("param_dtype", spec.param_dtype);
  reader.optional("reduce_dtype", spec.reduce_dtype);
  reader.optional("buffer_dtype", spec.buffer_dtype);
  reader.optional("shard_group", spec.shard_group);
  reader.optional("replica_group", spec.replica_group);
  reader.optional("gradient_accumulation", spec.gradient_accumulation, 1, 100'000);
  reader.optional("no_sync", spec.no_sync);
  RAILYARD_TRY(finish_training(reader, spec));
  RAILYARD_TRY(check_strategy(reader, place, spec));
  return std::shared_ptr<const Workload>(std::make_shared<Fsdp1>(std::move(spec)));
}

}  // namespace railyard::scenarios
