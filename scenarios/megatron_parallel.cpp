// Megatron with model parallelism: its groups and its stages' programs.
#include <fmt/format.h>

#include <algorithm>

#include "models/megatron/model_parallel.h"
#include "scenarios/megatron_spec.h"
#include "scenarios/training_job.h"
#include "scenarios/where.h"

namespace railyard::scenarios {
namespace {

// "TP8 PP4x2 DP2": as people write it.
std::string sizes_text(const models::ParallelSizes& sizes) {
  std::string text;
  const auto add = [&](const char* name, std::int64_t size) {
    if (size > 1) text += fmt::format(" {}{}", name, size);
  };
  add("TP", sizes.tensor);
  if (sizes.sequence_parallel) text += " SP";
  add("CP", sizes.context);
  add("EP", sizes.expert);
  add("PP", sizes.pipeline);
  if (sizes.virtual_pipeline > 1) text += fmt::format("x{}", sizes.virtual_pipeline);
  add("DP", sizes.data());
  return text;
}

// What the report calls a group: neither the stage nor the pair's number says anything to a rank.
std::string label_of(const models::ProgramGroup& group) {
  const std::string name = models::group_name(group.kind, group.number);
  if (group.kind != models::ParallelGroup::pair) return name.substr(0, name.find(' '));
  return group.backward ? "pp back" : "pp";
}

std::vector<MemoryRow> stage_memory(const models::StageProgram& stage,
                                    const models::MegatronOptions& options) {
  double elements = 0;
  double owned = 0;
  for (const models::GradientBucket& bucket : stage.buckets) {
    elements += static_cast<double>(bucket.elements);
    owned += static_cast<double>(bucket.elements) /
             static_cast<double>(options.use_distributed_optimizer ? bucket.ranks : 1);
  }
  return memory_of(elements, owned, options);
}

// Of the stage that needs most.
std::vector<MemoryRow> most_memory(const models::ModelParallelProgram& program,
                                   const models::MegatronOptions& options) {
  const auto sum = [](const std::vector<MemoryRow>& rows) {
    double bytes = 0;
    for (const MemoryRow& row : rows) bytes += row.bytes;
    return bytes;
  };
  std::vector<MemoryRow> most;
  for (const models::StageProgram& stage : program.stages)
    if (auto rows = stage_memory(stage, options); sum(rows) > sum(most)) most = std::move(rows);
  return most;
}

double launches(const models::ModelParallelProgram& program) {
  std::size_t most = 0;
  for (const models::StageProgram& stage : program.stages) {
    std::size_t ops = 0;
    for (const models::StageProgram::Chunk& chunk : stage.chunks)
      ops += chunk.forward.size() + chunk.backward.size();
    most = std::max(most, ops + 8 * stage.chunks.size());
  }
  return static_cast<double>(most) * static_cast<double>(program.micro_batches);
}

class ModelParallel final : public TrainingWorkload {
 public:
  explicit ModelParallel(MegatronSpec spec) : spec_(std::move(spec)) {}

  std::string_view key() const override { return "megatron"; }
  std::vector<std::string> groups() const override { return {}; }
  bool communicates() const override { return true; }
  Result<std::vector<NamedGroup>> own_groups(std::uint32_t world) const override {
    RAILYARD_ASSIGN(const models::ParallelSizes sizes, sizes_in(world));
    std::vector<NamedGroup> out;
    for (const models::RankGroup& group : models::parallel_groups(sizes))
      out.push_back({models::group_name(group.kind, group.number), {}, group.ranks});
    return out;
  }
  // Up to the first rank of the last stage.
  std::uint32_t traced_ranks(std::uint32_t world) const override {
    const auto stages = static_cast<std::uint32_t>(spec_.sizes.pipeline);
    return world / stages * (stages - 1) + 1;
  }

 private:
  [[nodiscard]] Result<models::ParallelSizes> sizes_in(std::size_t world) const {
    models::ParallelSizes sizes = spec_.sizes;
    sizes.world = static_cast<std::int64_t>(world);
    RAILYARD_TRY(models::check_sizes(sizes));
    return sizes;
  }

  [[nodiscard]] Result<models::ModelParallelOptions> options_in(std::size_t world) const {
    models::ModelParallelOptions options;
    RAILYARD_ASSIGN(options.stage.sizes, sizes_in(world));
    const std::int64_t data = options.stage.sizes.data();
    RAILYARD_ASSIGN(const std::int64_t batches, micro_batches(spec_, data));
    options.data = data_options(spec_, data, batches);
    options.stage.layers = options.data.layers;
    options.stage.activations = options.data.param_dtype;
    options.stage.context_comm = spec_.cp_comm_type;
    options.stage.capacity_factor = spec_.moe_expert_capacity_factor;
    options.schedule = spec_.pipeline_schedule;
    options.overlap_p2p = spec_.overlap_p2p_comm;
    options.batch_p2p_sync = spec_.batch_p2p_sync;
    return options;
  }

  Result<void> with_program(const Scenario& scenario, Bound& bound, sim::Trace& trace,
                            const Use& use) const override {
    RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(spec_));
    const auto options = options_in(bound.world.size());
    if (!options.ok()) return at_path(scenario, "megatron", options.error());
    const models::KernelModel kernels(bound.parameters.gpu, options.value().stage.layers.compute);
    const auto built = models::build_model_parallel(network, options.value(), kernels, trace);
    if (!built.ok()) return at_path(scenario, "megatron", built.error());
    const models::ModelParallelProgram& program = built.value();
    TrainingProgram training;
    training.scheme = "Megatron" + sizes_text(program.sizes);
    training.key = "megatron";
    training.spec = &spec_;
    training.network = &network;
    training.calls = &program.calls;
    for (const models::ProgramGroup& group : program.groups) {
      training.groups.push_back(models::group_name(group.kind, group.number));
      training.labels.push_back(label_of(group));
    }
    training.start = [&](models::WorkloadRank& rank) {
      return models::run_model_parallel(program, rank);
    };
    for (std::int64_t stage = 0; program.sizes.pipeline > 1 && stage < program.sizes.pipeline;
         ++stage)
      training.stages.push_back(static_cast<std::uint32_t>(stage * program.sizes.stage_ranks()));
    training.samples_per_step = static_cast<double>(spec_.batch_per_gpu * program.micro_batches);
    training.data_ranks = static_cast<double>(program.sizes.data());
    training.compute_alone = models::compute_alone(program.stages.front());
    training.memory = most_memory(program, options.value().data);
    training.launches = launches(program);
    return use(training);
  }

  MegatronSpec spec_;
};

}  // namespace

std::shared_ptr<const Workload> make_model_parallel(MegatronSpec spec) {
  return std::make_shared<ModelParallel>(std::move(spec));
}

}  // namespace railyard::scenarios
