// zero: data-parallel training with DeepSpeed's ZeRO, stages 1 to 3.
#include <fmt/format.h>

#include <array>

#include "models/zero/stage12.h"
#include "models/zero/stage3.h"
#include "scenarios/training_job.h"
#include "scenarios/where.h"
#include "scenarios/workloads.h"

namespace railyard::scenarios {
namespace {

constexpr double kMaxElements = 9'007'199'254'740'992.0;
constexpr std::string_view kSecondaryName = "hpz";

struct ZeroSpec : TrainingSpec {
  models::ZeroOptions options;  // what the file says of them
  std::optional<models::Dtype> communication_data_type;
  std::string group{kWorld};
  std::optional<std::string> intra_node_group;
  std::optional<std::string> inter_node_group;
  std::vector<std::string> notes;
};

// The rest of the options comes with the ranks.
Result<models::ZeroOptions> options_of(const ZeroSpec& spec, Bound& bound) {
  models::ZeroOptions options = spec.options;
  options.layers = {.samples = spec.batch_per_gpu,
                    .recompute = spec.recompute,
                    .compute = compute_dtype(spec.precision)};
  options.param_dtype = sent_dtype(spec.precision);
  options.communication_data_type = spec.communication_data_type.value_or(options.param_dtype);
  options.check_overflow = options.param_dtype == models::Dtype::fp16;
  RAILYARD_ASSIGN(const std::size_t ranks, group_size(bound, spec.group));
  options.data_parallel = static_cast<std::int64_t>(ranks);
  if (spec.intra_node_group) {
    RAILYARD_ASSIGN(const std::size_t local, group_size(bound, *spec.intra_node_group));
    options.ranks_per_node = static_cast<std::int64_t>(local);
    RAILYARD_ASSIGN(const std::size_t nodes, group_size(bound, *spec.inter_node_group));
    if (local * nodes != ranks)
      return sim::bad_input(
          fmt::format("{} ranks of a node x {} nodes are not the {} ranks of group '{}'", local,
                      nodes, ranks, spec.group),
          "inter_node_group");
  }
  options.optimizer_bytes = cost_of(spec.optimizer).step_bytes;
  options.optimizer_states = cost_of(spec.optimizer).states;
  options.iterations = spec.iterations;
  return options;
}

std::vector<MemoryRow> memory_rows(const models::ZeroMemory& memory, int stage) {
  std::vector<MemoryRow> rows;
  rows.push_back({stage == 3 ? "shards of parameters" : "parameters", memory.parameters});
  if (stage == 3) rows.push_back({"gathered parameters", memory.gathered});
  rows.push_back({stage == 1 ? "gradients" : "shards of gradients", memory.gradients});
  rows.push_back({"shards of fp32 parameters and optimizer state", memory.optimizer});
  rows.push_back({"gradient buckets", memory.buckets});
  return rows;
}

sim::Duration alone(const models::Stage12Program& program) {
  sim::Duration sum{};
  for (const models::Stage12Program::Layer& layer : program.layers)
    sum += models::alone(layer.forward) + models::alone(layer.backward);
  return sum * program.options.accumulation + models::alone(program.optimizer);
}

sim::Duration alone(const models::Stage3Program& program) {
  sim::Duration sum{};
  for (const models::Stage3Program::Module& module : program.passes[1].modules)
    sum += models::alone(module.kernels);
  return sum * program.options.accumulation + models::alone(program.optimizer);
}

class Zero final : public TrainingWorkload {
 public:
  explicit Zero(ZeroSpec spec) : spec_(std::move(spec)) {}

  std::string_view key() const override { return "zero"; }
  std::vector<std::string> groups() const override {
    std::vector<std::string> names{spec_.group};
    for (const auto* group : {&spec_.intra_node_group, &spec_.inter_node_group})
      if (*group) names.push_back(**group);
    return names;
  }
  Result<std::vector<NamedGroup>> own_groups(std::uint32_t world) const override {
    std::vector<NamedGroup> groups;
    const auto size = static_cast<std::uint32_t>(spec_.options.zero_hpz_partition_size);
    if (size == 1) return groups;
    if (world % size != 0)
      return Error{sim::ErrorCode::bad_input,
                   fmt::format("{} ranks are not divided by {}", world, size),
                   "zero_hpz_partition_size"};
    const std::string name(kSecondaryName);
    groups.push_back({name, topologies::SubGroupSpec{.name = name, .size = size, .stride = 1}, {}});
    return groups;
  }

 private:
  Result<void> with_program(const Scenario& scenario, Bound& bound, sim::Trace& trace,
                            const Use& use) const override {
    RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(spec_));
    const auto options = options_of(spec_, bound);
    if (!options.ok()) return at_path(scenario, "zero", options.error());
    const models::KernelModel kernels(bound.parameters.gpu, options.value().layers.compute);
    TrainingProgram training;
    training.scheme = fmt::format("ZeRO-{}", options.value().stage);
    training.key = "zero";
    training.spec = &spec_;
    training.network = &network;
    training.groups = program_groups();
    const std::int64_t micro_batches = options.value().accumulation;
    training.samples_per_step =
        static_cast<double>(spec_.batch_per_gpu) * static_cast<double>(micro_batches);
    training.data_ranks = static_cast<double>(bound.world.size());
    // Per layer and micro-batch: kernels, casts, copies into buckets, fetches.
    training.launches =
        static_cast<double>(network.layers().size()) * 10 * static_cast<double>(micro_batches);
    training.notes = [this] { return spec_.notes; };
    if (options.value().stage < 3) {
      const auto built = models::build_stage12_program(network, options.value(), kernels, trace);
      if (!built.ok()) return at_path(scenario, "zero", built.error());
      training.streams.assign(models::kStage12Streams.begin(), models::kStage12Streams.end());
      training.start = [&](models::WorkloadRank& rank) {
        return models::run_stage12(built.value(), rank);
      };
      complete(built.value(), models::stage12_memory(network, options.value()), training);
      return use(training);
    }
    const auto built = models::build_stage3_program(network, options.value(), kernels, trace);
    if (!built.ok()) return at_path(scenario, "zero", built.error());
    training.streams.assign(models::kStage3Streams.begin(), models::kStage3Streams.end());
    training.start = [&](models::WorkloadRank& rank) {
      return models::run_stage3(built.value(), rank);
    };
    complete(built.value(), models::stage3_memory(network, options.value()), training);
    return use(training);
  }

  template <typename Program>
  static void complete(const Program& program, const models::ZeroMemory& memory,
                       TrainingProgram& training) {
    training.calls = &program.calls;
    training.compute_alone = alone(program);
    training.memory = memory_rows(memory, program.options.stage);
  }

  // By models::kDataParallelGroup and its siblings.
  std::vector<std::string> program_groups() const {
    std::vector<std::string> names{
        spec_.group,
        spec_.options.zero_hpz_partition_size > 1 ? std::string(kSecondaryName) : std::string(),
        spec_.intra_node_group.value_or(""), spec_.inter_node_group.value_or("")};
    while (names.back().empty()) names.pop_back();
    return names;
  }

  ZeroSpec spec_;
};

// DeepSpeed's counts are whole numbers, but 5e8 is how its files write them.
void read_count(MapReader& reader, std::string_view key, std::int64_t& out, double least = 1) {
  double value = 0;
  if (!reader.optional(key, value, least, kMaxElements)) return;
  out = static_cast<std::int64_t>(value);
  if (static_cast<double>(out) != value)
    reader.take(reader.find(key)->error("a whole number of elements is expected"));
}

void read_stage3(MapReader& reader, models::ZeroOptions& out) {
  constexpr std::array<std::string_view, 8> kKeys{"stage3_prefetch_bucket_size",
                                                  "stage3_param_persistence_threshold",
                                                  "stage3_max_live_parameters",
                                                  "stage3_max_reuse_distance",
                                                  "sub_group_size",
                                                  "zero_hpz_partition_size",
                                                  "zero_quantized_weights",
                                                  "zero_quantized_gradients"};
  if (out.stage != 3)
    for (const std::string_view key : kKeys)
      if (const auto place = reader.find(key))
        reader.take(place->error(fmt::format("belongs to stage 3, not to stage {}", out.stage)));
  read_count(reader, kKeys[0], out.stage3_prefetch_bucket_size, 0);
  read_count(reader, kKeys[1], out.stage3_param_persistence_threshold, 0);
  read_count(reader, kKeys[2], out.stage3_max_live_parameters, 0);
  read_count(reader, kKeys[3], out.stage3_max_reuse_distance, 0);
  read_count(reader, kKeys[4], out.sub_group_size);
  reader.optional(kKeys[5], out.zero_hpz_partition_size, 1, 1'000'000);
  reader.optional(kKeys[6], out.zero_quantized_weights);
  reader.optional(kKeys[7], out.zero_quantized_gradients);
}

void read_zero(MapReader& reader, ZeroSpec& spec) {
  models::ZeroOptions& out = spec.options;
  std::int64_t stage = 0;
  reader.required("stage", stage, 1, 3);
  out.stage = static_cast<int>(stage);
  out.overlap_comm = out.stage == 3;  // DeepSpeed's default depends on the stage
  read_count(reader, "reduce_bucket_size", out.reduce_bucket_size);
  reader.optional("all_gather_into_tensor", out.all_gather_into_tensor);
  read_count(reader, "allgather_bucket_size", out.allgather_bucket_size);
  if (reader.has("allgather_bucket_size") && out.all_gather_into_tensor && out.stage < 3)
    spec.notes.emplace_back(
        "allgather_bucket_size has no effect: DeepSpeed gathers the parameters in one "
        "all_gather_into_tensor (all_gather_into_tensor: false is PyTorch before 1.13)");
  reader.optional("overlap_comm", out.overlap_comm);
  reader.optional("contiguous_gradients", out.contiguous_gradients);
  reader.optional("reduce_scatter", out.reduce_scatter);
  reader.optional("use_multi_rank_bucket_allreduce", out.use_multi_rank_bucket_allreduce);
  reader.optional("communication_data_type", spec.communication_data_type);
  reader.optional("gradient_accumulation", out.accumulation, 1, 100'000);
  reader.optional("group", spec.group);
  reader.optional("intra_node_group", spec.intra_node_group);
  reader.optional("inter_node_group", spec.inter_node_group);
  read_stage3(reader, out);
}

Result<void> check_groups(MapReader& reader, const Place& place, const ZeroSpec& spec) {
  const bool both = spec.intra_node_group && spec.inter_node_group;
  if (spec.options.zero_quantized_gradients && !both)
    return reader.find("zero_quantized_gradients")
        ->error("needs intra_node_group and inter_node_group: its two exchanges");
  if (!spec.options.zero_quantized_gradients && (spec.intra_node_group || spec.inter_node_group))
    return place.error("intra_node_group and inter_node_group belong to zero_quantized_gradients");
  if (spec.options.zero_hpz_partition_size > 1 && spec.group != kWorld)
    return reader.find("zero_hpz_partition_size")->error("needs group: world");
  return {};
}

}  // namespace

Result<std::shared_ptr<const Workload>> decode_zero(const Place& place) {
  MapReader reader(place);
  ZeroSpec spec;
  read_training(reader, spec);
  read_zero(reader, spec);
  RAILYARD_TRY(finish_training(reader, spec));
  RAILYARD_TRY(check_groups(reader, place, spec));
  return std::shared_ptr<const Workload>(std::make_shared<Zero>(std::move(spec)));
}

}  // namespace railyard::scenarios
