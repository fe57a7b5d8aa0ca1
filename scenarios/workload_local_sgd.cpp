// local_sgd: post-local SGD and DiLoCo.
#include <fmt/format.h>

#include "models/local_sgd/local_sgd.h"
#include "scenarios/training_job.h"
#include "scenarios/where.h"
#include "scenarios/workloads.h"

namespace railyard::scenarios {
namespace {

struct LocalSgdSpec : TrainingSpec {
  models::LocalSgd algorithm = models::LocalSgd::post_local_sgd;
  std::optional<std::string> subgroup;
  std::string average{kWorld};
  std::int64_t start = 0;
  std::int64_t period = 1;
  bool post_local_gradient_allreduce = true;
  bool broadcast_buffers = true;
  models::BucketOptions buckets;
};

models::LocalSgdOptions options_of(const LocalSgdSpec& spec) {
  models::LocalSgdOptions options;
  options.algorithm = spec.algorithm;
  options.layers = {
      .samples = spec.batch_per_gpu,
      .autocast = spec.precision == Precision::amp_fp16 || spec.precision == Precision::amp_bf16,
      .recompute = spec.recompute,
      .compute = compute_dtype(spec.precision)};
  options.buckets = spec.buckets;
  options.start = spec.start;
  options.period = spec.period;
  options.subgroup = spec.subgroup.has_value() && spec.post_local_gradient_allreduce;
  if (spec.average != kWorld) options.average_group = models::kAverageGroup;
  options.broadcast_buffers = spec.broadcast_buffers;
  options.optimizer_bytes = cost_of(spec.optimizer).step_bytes;
  options.iterations = spec.iterations;
  return options;
}

std::vector<MemoryRow> memory_of(const models::NeuralNetwork& network, const LocalSgdSpec& spec) {
  const auto parameters = static_cast<double>(models::parameter_bytes(network).raw());
  const auto gradients = static_cast<double>(models::gradient_bytes(network).raw());
  const bool diloco = spec.algorithm == models::LocalSgd::diloco;
  return {{"parameters", parameters},
          {"gradients", gradients},
          {"buckets", spec.buckets.gradient_as_bucket_view ? 0 : gradients},
          {"optimizer state", parameters * cost_of(spec.optimizer).states},
          // DiLoCo keeps the last averaged parameters and the outer momentum besides.
          {diloco ? "outer parameters, momentum and gradient" : "flat parameters",
           parameters * (diloco ? 3 : 1)}};
}

sim::Duration alone(const models::LocalSgdProgram& program, std::int64_t iteration) {
  sim::Duration sum = models::alone(program.forward) + models::alone(program.copy_in) +
                      models::alone(program.copy_out) + models::alone(program.optimizer) +
                      models::alone(program.flatten_buffers) * 2;
  for (const models::LocalSgdProgram::Pass& pass : program.backward)
    sum += models::alone(pass.kernels);
  if (const auto group = models::gradient_group(program.options, iteration))
    for (const models::LocalSgdProgram::Bucket& bucket :
         program
             .buckets[*group][static_cast<std::size_t>(std::min<std::int64_t>(iteration, 3) - 1)])
      sum += bucket.divide.alone;
  if (models::averages(program.options, iteration))
    sum += models::alone(program.before_average) + models::alone(program.after_average);
  return sum;
}

class LocalSgd final : public TrainingWorkload {
 public:
  explicit LocalSgd(LocalSgdSpec spec) : spec_(std::move(spec)) {}

  std::string_view key() const override { return "local_sgd"; }
  std::vector<std::string> groups() const override {
    std::vector<std::string> names = program_groups();
    std::erase(names, "");
    return names;
  }

 private:
  std::vector<std::string> program_groups() const {
    return {std::string(kWorld), spec_.subgroup.value_or(""),
            spec_.average == kWorld ? "" : spec_.average};
  }
  // What the shown iteration is one of.
  std::vector<std::string> notes(const models::LocalSgdOptions& options) const {
    std::int64_t averaging = 0;
    for (std::int64_t i = 1; i <= options.iterations; ++i)
      averaging += models::averages(options, i) ? 1 : 0;
    const bool last = models::averages(options, options.iterations);
    return {
        fmt::format("parameters were averaged in {} of {} iterations; the last one, which is "
                    "shown, is one {} averaging",
                    averaging, options.iterations, last ? "with" : "without")};
  }
  Result<void> with_program(const Scenario& scenario, Bound& bound, sim::Trace& trace,
                            const Use& use) const override {
    RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(spec_));
    const models::LocalSgdOptions options = options_of(spec_);
    const models::KernelModel kernels(bound.parameters.gpu, options.layers.compute);
    const auto built = models::build_local_sgd_program(network, options, kernels, trace);
    if (!built.ok()) return at_path(scenario, "local_sgd", built.error());
    const models::LocalSgdProgram& program = built.value();
    TrainingProgram training;
    training.scheme = spec_.algorithm == models::LocalSgd::diloco ? "DiLoCo" : "post-local SGD";
    training.key = "local_sgd";
    training.spec = &spec_;
    training.network = &network;
    training.calls = &program.calls;
    training.groups = program_groups();
    training.start = [&](models::WorkloadRank& rank) {
      return models::run_local_sgd(program, rank);
    };
    training.samples_per_step = static_cast<double>(spec_.batch_per_gpu);
    training.data_ranks = static_cast<double>(bound.world.size());
    training.compute_alone = alone(program, spec_.iterations);
    training.memory = memory_of(network, spec_);
    training.notes = [&] { return notes(options); };
    training.launches =
        static_cast<double>(3 * network.layers().size() + 3 * network.parameters().size());
    return use(training);
  }

  LocalSgdSpec spec_;
};

Result<void> check(MapReader& reader, const LocalSgdSpec& spec) {
  const bool diloco = spec.algorithm == models::LocalSgd::diloco;
  if (diloco && reader.has("start_localSGD_iter"))
    return reader.find("start_localSGD_iter")
        ->error("DiLoCo's workers train by themselves from the first iteration on");
  if (diloco && reader.has("post_local_gradient_allreduce"))
    return reader.find("post_local_gradient_allreduce")
        ->error("belongs to post_localSGD; DiLoCo reduces gradients where a subgroup is given");
  if (!diloco && !reader.has("start_localSGD_iter"))
    return reader.place().error(
        "start_localSGD_iter is missing: after which iteration gradients are "
        "reduced in the subgroup only");
  if (!diloco && !spec.subgroup && spec.post_local_gradient_allreduce)
    return reader.place().error(
        "subgroup is missing: the group of ranks.groups that reduces gradients in every step "
        "(PyTorch's default is the node), or post_local_gradient_allreduce: false");
  return {};
}

}  // namespace

Result<std::shared_ptr<const Workload>> decode_local_sgd(const Place& place) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  MapReader reader(place);
  LocalSgdSpec spec;
  double cap = 0;
  read_training(reader, spec);
  reader.required("algorithm", spec.algorithm);
  reader.required("period", spec.period, 1, kMost);
  reader.optional("start_localSGD_iter", spec.start, 0, kMost);
  reader.optional("subgroup", spec.subgroup);
  reader.optional("average_group", spec.average);
  reader.optional("post_local_gradient_allreduce", spec.post_local_gradient_allreduce);
  reader.optional("broadcast_buffers", spec.broadcast_buffers);
  reader.optional("gradient_as_bucket_view", spec.buckets.gradient_as_bucket_view);
  if (reader.optional("bucket_cap_mb", cap, 0.0, 1e6)) spec.buckets.bucket_cap_mb = cap;
  RAILYARD_TRY(finish_training(reader, spec));
  RAILYARD_TRY(check(reader, spec));
  return std::shared_ptr<const Workload>(std::make_shared<LocalSgd>(std::move(spec)));
}

}  // namespace railyard::scenarios
