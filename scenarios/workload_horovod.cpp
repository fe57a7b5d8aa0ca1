// horovod: Horovod's DistributedOptimizer.
#include "models/horovod/horovod.h"
#include "scenarios/training_job.h"
#include "scenarios/where.h"
#include "scenarios/workloads.h"

#include <fmt/format.h>

namespace railyard::scenarios {
namespace {

enum class Compression { none, fp16 };  // of hvd.Compression

struct HorovodSpec : TrainingSpec {
  double cycle_time_ms = 1;
  std::int64_t fusion_threshold = models::kDefaultFusionThreshold;
  sim::Duration controller_latency = models::HorovodOptions{}.controller_latency;
  bool fp16 = false;
  std::int64_t backward_passes_per_step = 1;
};

models::HorovodOptions options_of(const HorovodSpec& spec, std::size_t ranks) {
  models::HorovodOptions options;
  options.layers = {
      .samples = spec.batch_per_gpu,
      .autocast = spec.precision == Precision::amp_fp16 || spec.precision == Precision::amp_bf16,
      .recompute = spec.recompute,
      .compute = compute_dtype(spec.precision)};
  options.ranks = static_cast<std::int64_t>(ranks);
  options.cycle_time =
      sim::picoseconds(static_cast<std::int64_t>(spec.cycle_time_ms * 1'000'000'000));
  options.fusion_threshold = spec.fusion_threshold;
  options.controller_latency = spec.controller_latency;
  options.fp16_compression = spec.fp16;
  options.backward_passes_per_step = spec.backward_passes_per_step;
  options.optimizer_bytes = cost_of(spec.optimizer).step_bytes;
  options.iterations = spec.iterations;
  return options;
}

std::vector<MemoryRow> memory_of(const models::NeuralNetwork& network, const HorovodSpec& spec) {
  const auto parameters = static_cast<double>(models::parameter_bytes(network).raw());
  return {{"parameters", parameters},
          {"gradients", static_cast<double>(models::gradient_bytes(network).raw())},
          {"optimizer state", parameters * cost_of(spec.optimizer).states},
          {"fusion buffer", static_cast<double>(spec.fusion_threshold)}};
}

// Every pass of a step, all copies of tensors as if each travelled alone, and the optimizer.
sim::Duration alone(const models::HorovodProgram& program) {
  sim::Duration pass = models::alone(program.forward);
  for (const models::HorovodProgram::Pass& layer : program.backward)
    pass += models::alone(layer.kernels);
  const std::int64_t passes = program.options.backward_passes_per_step;
  return pass * passes + models::alone(program.accumulate) * (passes - 1) +
         models::alone(program.compress) + models::alone(program.decompress) +
         models::alone(program.optimizer);
}

class Horovod final : public TrainingWorkload {
 public:
  explicit Horovod(HorovodSpec spec) : spec_(std::move(spec)) {}

  std::string_view key() const override { return "horovod"; }
  std::vector<std::string> groups() const override { return {std::string(kWorld)}; }

 private:
  Result<void> with_program(const Scenario& scenario, Bound& bound, sim::Trace& trace,
                            const Use& use) const override {
    RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(spec_));
    const models::HorovodOptions options = options_of(spec_, bound.world.size());
    const models::KernelModel kernels(bound.parameters.gpu, options.layers.compute);
    models::CallTable calls;
    const auto built = models::build_horovod_program(network, options, kernels, trace, calls);
    if (!built.ok()) return at_path(scenario, "horovod", built.error());
    const models::HorovodProgram& program = built.value();
    models::HorovodJob job(program);
    TrainingProgram training;
    training.scheme = "Horovod";
    training.key = "horovod";
    training.spec = &spec_;
    training.network = &network;
    training.calls = training.open_calls = &calls;
    training.groups = groups();
    training.start = [&](models::WorkloadRank& rank) { return job.start(rank); };
    training.samples_per_step = static_cast<double>(spec_.batch_per_gpu) *
                                static_cast<double>(spec_.backward_passes_per_step);
    training.data_ranks = static_cast<double>(bound.world.size());
    training.compute_alone = alone(program);
    training.memory = memory_of(network, spec_);
    training.launches = static_cast<double>(
        4 * network.layers().size() * static_cast<std::size_t>(spec_.backward_passes_per_step));
    training.notes = [&] {
      return std::vector{fmt::format(
          "Horovod reduced {} tensors in {} buffers, agreed on in {} cycles of {} ms or more",
          program.arrival.size(), job.last_buffers().size(), job.last_cycles(),
          spec_.cycle_time_ms)};
    };
    RAILYARD_TRY(use(training));
    if (job.failure()) return *job.failure();
    return {};
  }

  HorovodSpec spec_;
};

}  // namespace
}  // namespace railyard::scenarios

template <>
struct railyard::sim::EnumTable<railyard::scenarios::Compression> {
  using Compression = railyard::scenarios::Compression;
  static constexpr std::string_view kind = "compression";
  static constexpr std::array entries{EnumEntry{Compression::none, "none"},
                                      EnumEntry{Compression::fp16, "fp16"}};
};

namespace railyard::scenarios {

Result<std::shared_ptr<const Workload>> decode_horovod(const Place& place) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  MapReader reader(place);
  HorovodSpec spec;
  Compression compression = Compression::none;
  read_training(reader, spec);
  reader.optional("HOROVOD_CYCLE_TIME", spec.cycle_time_ms, 0.001, 10'000.0);
  reader.optional("HOROVOD_FUSION_THRESHOLD", spec.fusion_threshold, 0, kMost);
  reader.optional("controller_latency", spec.controller_latency);
  reader.optional("compression", compression);
  reader.optional("backward_passes_per_step", spec.backward_passes_per_step, 1, 100'000);
  RAILYARD_TRY(finish_training(reader, spec));
  spec.fp16 = compression == Compression::fp16;
  return std::shared_ptr<const Workload>(std::make_shared<Horovod>(std::move(spec)));
}

}  // namespace railyard::scenarios
