// fsdp: a sharded training job, by PyTorch's fully_shard.
#include "models/fsdp/fsdp2.h"
#include "scenarios/training_job.h"
#include "scenarios/where.h"
#include "scenarios/workloads.h"

namespace railyard::scenarios {
namespace {

struct FsdpSpec : TrainingSpec {
  std::optional<models::Dtype> param_dtype;
  std::optional<models::Dtype> reduce_dtype;
  bool reshard_after_forward = true;
  std::optional<std::string> reshard_group;  // of reshard_after_forward = a group
  std::string shard_group{kWorld};
  std::optional<std::string> replica_group;
  std::int64_t gradient_accumulation = 1;
  bool requires_gradient_sync = true;  // false: all micro-batches but the last go without
  bool reshard_after_backward = true;  // the same for set_reshard_after_backward
};

std::vector<std::string> group_names(const FsdpSpec& spec) {
  std::vector<std::string> names{spec.shard_group};
  names.push_back(spec.replica_group.value_or(""));
  names.push_back(spec.reshard_group.value_or(""));
  while (names.back().empty()) names.pop_back();
  return names;
}

// Sizes of the groups come from the bound ranks.
Result<models::Fsdp2Options> options_of(const FsdpSpec& spec, Bound& bound) {
  models::Fsdp2Options options;
  options.layers = {.samples = spec.batch_per_gpu,
                    .recompute = spec.recompute,
                    .compute = compute_dtype(spec.precision)};
  options.stored_dtype = parameter_dtype(spec.precision);
  options.param_dtype = spec.param_dtype.value_or(sent_dtype(spec.precision));
  options.reduce_dtype = spec.reduce_dtype.value_or(options.param_dtype);
  options.reshard_after_forward = spec.reshard_after_forward;
  const auto size_of = [&](const std::string& group) { return group_size(bound, group); };
  RAILYARD_ASSIGN(const std::size_t shards, size_of(spec.shard_group));
  options.shards = static_cast<std::int64_t>(shards);
  if (spec.replica_group) {
    RAILYARD_ASSIGN(const std::size_t replicas, size_of(*spec.replica_group));
    options.replicas = static_cast<std::int64_t>(replicas);
  }
  if (spec.reshard_group) {
    RAILYARD_ASSIGN(const std::size_t reshard, size_of(*spec.reshard_group));
    options.reshard_ranks = static_cast<std::int64_t>(reshard);
  }
  options.optimizer_bytes = cost_of(spec.optimizer).step_bytes;
  options.optimizer_states = cost_of(spec.optimizer).states;
  options.accumulation = spec.gradient_accumulation;
  options.sync_every_micro_batch = spec.requires_gradient_sync;
  options.reshard_after_backward = spec.reshard_after_backward;
  options.iterations = spec.iterations;
  return options;
}

std::vector<MemoryRow> memory_rows(const models::ShardMemory& memory) {
  return {{"shards of parameters", memory.parameters},
          {"of gradients", memory.gradients},
          {"of optimizer state", memory.optimizer},
          {"gathered units", memory.gathered},
          {"reduction buffers", memory.reduction}};
}

sim::Duration alone(const models::Fsdp2Program& program) {
  sim::Duration sum{};
  for (const auto* pass : {&program.forward, &program.backward})
    for (const models::Segment& segment : *pass) sum += models::alone(segment.kernels);
  return sum * program.accumulation + models::alone(program.optimizer);
}

double launches(const models::Fsdp2Program& program) {
  std::size_t kernels = 7 * program.units.size();
  for (const auto* pass : {&program.forward, &program.backward})
    for (const models::Segment& segment : *pass) kernels += segment.kernels.size();
  return static_cast<double>(kernels) * static_cast<double>(program.accumulation);
}

class Fsdp final : public TrainingWorkload {
 public:
  explicit Fsdp(FsdpSpec spec) : spec_(std::move(spec)) {}

  std::string_view key() const override { return "fsdp"; }
  std::vector<std::string> groups() const override {
    std::vector<std::string> names = group_names(spec_);
    std::erase(names, "");
    return names;
  }

 private:
  Result<void> with_program(const Scenario& scenario, Bound& bound, sim::Trace& trace,
                            const Use& use) const override {
    RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(spec_));
    RAILYARD_ASSIGN(const models::Fsdp2Options options, options_of(spec_, bound));
    const models::KernelModel kernels(bound.parameters.gpu, options.layers.compute);
    const auto built = models::build_fsdp2_program(network, options, kernels, trace);
    if (!built.ok()) return at_path(scenario, "fsdp", built.error());
    const models::Fsdp2Program& program = built.value();
    TrainingProgram training;
    training.scheme = options.replicas > 1 ? "FSDP2, hybrid" : "FSDP2";
    training.key = "fsdp";
    training.spec = &spec_;
    training.network = &network;
    training.calls = &program.calls;
    training.groups = group_names(spec_);
    training.streams.assign(models::kFsdp2Streams.begin(), models::kFsdp2Streams.end());
    training.start = [&](models::WorkloadRank& rank) { return models::run_fsdp2(program, rank); };
    training.samples_per_step =
        static_cast<double>(spec_.batch_per_gpu) * static_cast<double>(spec_.gradient_accumulation);
    training.data_ranks = static_cast<double>(bound.world.size());
    training.compute_alone = alone(program);
    training.memory = memory_rows(models::fsdp2_memory(network, options));
    training.launches = launches(program);
    return use(training);
  }

  FsdpSpec spec_;
};

// true, false, or the group that it reshards to (PyTorch takes its size).
Result<void> decode_reshard(const Place& place, FsdpSpec& out) {
  const bool flag = place.node->scalar == "true" || place.node->scalar == "false";
  if (place.node->kind == Node::Kind::scalar && !flag)
    return decode(place, out.reshard_group.emplace());
  return decode(place, out.reshard_after_forward);
}

}  // namespace

Result<std::shared_ptr<const Workload>> decode_fsdp(const Place& place) {
  MapReader reader(place);
  FsdpSpec spec;
  read_training(reader, spec);
  reader.optional("param_dtype", spec.param_dtype);
  reader.optional("reduce_dtype", spec.reduce_dtype);
  if (const auto reshard = reader.find("reshard_after_forward"))
    reader.take(decode_reshard(*reshard, spec));
  reader.optional("shard_group", spec.shard_group);
  reader.optional("replica_group", spec.replica_group);
  reader.optional("gradient_accumulation", spec.gradient_accumulation, 1, 100'000);
  reader.optional("requires_gradient_sync", spec.requires_gradient_sync);
  reader.optional("reshard_after_backward", spec.reshard_after_backward);
  RAILYARD_TRY(finish_training(reader, spec));
  return std::shared_ptr<const Workload>(std::make_shared<Fsdp>(std::move(spec)));
}

}  // namespace railyard::scenarios
