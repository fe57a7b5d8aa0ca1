// data_parallel: nn.DataParallel, one process with a thread for each GPU.
#include <fmt/format.h>

#include <algorithm>

#include "models/data_parallel/data_parallel.h"
#include "scenarios/training_job.h"
#include "scenarios/where.h"
#include "scenarios/workloads.h"

namespace railyard::scenarios {
namespace {

struct DataParallelSpec : TrainingSpec {
  sim::Bytes input_per_sample;
  sim::Bytes output_per_sample;
  double gil_fraction = 1;
  sim::Duration replicate_module{};
};

models::DataParallelOptions options_of(const DataParallelSpec& spec, std::size_t devices) {
  models::DataParallelOptions options;
  options.layers = {
      .samples = spec.batch_per_gpu,
      .autocast = spec.precision == Precision::amp_fp16 || spec.precision == Precision::amp_bf16,
      .recompute = spec.recompute,
      .compute = compute_dtype(spec.precision)};
  options.devices = static_cast<std::int64_t>(devices);
  options.input_per_sample = spec.input_per_sample;
  options.output_per_sample = spec.output_per_sample;
  options.optimizer_bytes = cost_of(spec.optimizer).step_bytes;
  options.gil_fraction = spec.gil_fraction;
  options.replicate_module = spec.replicate_module;
  options.iterations = spec.iterations;
  return options;
}

// GPU 0 holds more than the others: gradients, optimizer state, and everybody's outputs.
std::vector<MemoryRow> memory_of(const models::NeuralNetwork& network,
                                 const models::DataParallelOptions& options,
                                 const OptimizerCost& optimizer) {
  const auto parameters = static_cast<double>(models::parameter_bytes(network).raw());
  return {{"parameters", parameters},
          {"gradients of GPU 0, and its reduced ones", 2 * parameters},
          {"optimizer state", parameters * optimizer.states},
          {"outputs of all GPUs",
           static_cast<double>((options.output_per_sample * options.layers.samples).raw()) *
               static_cast<double>(options.devices)}};
}

class DataParallel final : public TrainingWorkload {
 public:
  explicit DataParallel(DataParallelSpec spec) : spec_(std::move(spec)) {}

  std::string_view key() const override { return "data_parallel"; }
  std::vector<std::string> groups() const override { return {std::string(kWorld)}; }

 private:
  Result<void> with_program(const Scenario& scenario, Bound& bound, sim::Trace& trace,
                            const Use& use) const override {
    const auto elsewhere = std::ranges::find_if(bound.world, [&](const sim::Member& member) {
      return member.node != bound.world.front().node;
    });
    if (elsewhere != bound.world.end())
      return at_path(scenario, "data_parallel",
                     sim::bad_input(fmt::format(
                         "nn.DataParallel is one process, and rank {} is on another node than rank "
                         "{}: place all ranks on one node (ranks.count)",
                         elsewhere->rank.value(), bound.world.front().rank.value())));
    RAILYARD_ASSIGN(const models::NeuralNetwork network, network_of(spec_));
    const models::DataParallelOptions options = options_of(spec_, bound.world.size());
    const models::KernelModel kernels(bound.parameters.gpu, options.layers.compute);
    const auto built = models::build_data_parallel_program(network, options, kernels, trace);
    if (!built.ok()) return at_path(scenario, "data_parallel", built.error());
    const models::DataParallelProgram& program = built.value();
    models::DataParallelProcess process(program, options.devices);
    TrainingProgram training;
    training.scheme = "nn.DataParallel";
    training.key = "data_parallel";
    training.spec = &spec_;
    training.network = &network;
    training.calls = &program.calls;
    training.groups = groups();
    training.start = [&](models::WorkloadRank& rank) { return process.thread(rank); };
    training.samples_per_step = static_cast<double>(spec_.batch_per_gpu);
    training.data_ranks = static_cast<double>(bound.world.size());
    training.compute_alone = models::alone(program.forward) + models::alone(program.loss) +
                             models::alone(program.backward) + models::alone(program.optimizer);
    for (const auto* pieces : {&program.replicate, &program.reduce})
      for (const models::DataParallelProgram::Piece& piece : *pieces)
        training.compute_alone += models::alone(piece.flatten);
    training.memory = memory_of(network, options, cost_of(spec_.optimizer));
    training.launches = static_cast<double>(program.forward.size() + program.backward.size() +
                                            2 * (program.replicate.size() + program.reduce.size()));
    return use(training);
  }

  DataParallelSpec spec_;
};

}  // namespace

Result<std::shared_ptr<const Workload>> decode_data_parallel(const Place& place) {
  MapReader reader(place);
  DataParallelSpec spec;
  read_training(reader, spec);
  reader.required("input_per_sample", spec.input_per_sample);
  reader.required("output_per_sample", spec.output_per_sample);
  reader.optional("gil_fraction", spec.gil_fraction, 0.0, 1.0);
  reader.optional("replicate_module", spec.replicate_module);
  RAILYARD_TRY(finish_training(reader, spec));
  for (const char* key : {"input_per_sample", "output_per_sample"}) {
    const sim::Bytes size = std::string_view(key) == "input_per_sample" ? spec.input_per_sample
                                                                        : spec.output_per_sample;
    constexpr std::int64_t kMost = std::int64_t{1} << 50;
    if (size.raw() < 1 || size.raw() > kMost / spec.batch_per_gpu)
      return reader.find(key)->error("a sample has at least one byte, and a batch at most 1 PiB");
  }
  return std::shared_ptr<const Workload>(std::make_shared<DataParallel>(std::move(spec)));
}

}  // namespace railyard::scenarios
