#include "models/zero/stage12.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/zero/buckets.h"
#include "models/zero/optimizer_step.h"

namespace railyard::models {
namespace {

using sim::GpuEventId;
using sim::Task;

class Stage12 {
 public:
  Stage12(const Stage12Program& program, WorkloadRank& rank) : program_(program), rank_(rank) {
    const sim::StreamId own = rank.host->gpu().add_stream();
    reduction_ = program.options.overlap_comm ? own : rank.compute;
  }

  Task step() {
    co_await rank_.host->begin_iteration();
    WorkloadRank::Marks& marks = rank_.begin_iteration();
    for (std::int64_t micro = 0; micro < program_.options.accumulation; ++micro) {
      const bool last = micro + 1 == program_.options.accumulation;
      co_await forward();
      if (last) marks.forward_end = rank_.record(rank_.compute);
      co_await backward(micro, last);
    }
    marks.backward_end = rank_.record(rank_.compute);
    co_await optimizer_step();
    marks.end = rank_.record(rank_.compute);
    co_await rank_.host->end_iteration(rank_.compute);
  }

 private:
  Task forward() {
    for (const Stage12Program::Layer& layer : program_.layers)
      co_await rank_.launch_all(rank_.compute, layer.forward);
  }

  Task backward(std::int64_t micro, bool last) {
    const bool reduces = program_.options.stage == 2 || last;
    for (auto layer = program_.layers.rbegin(); layer != program_.layers.rend(); ++layer) {
      co_await rank_.launch_all(rank_.compute, layer->backward);
      if (micro > 0 && layer->accumulate.alone.count() > 0)
        co_await rank_.host->launch(rank_.compute, layer->accumulate);
      if (reduces) co_await arrive(layer->arrivals, micro);
    }
    if (!reduces) co_return;
    co_await arrive(program_.late, micro);
    if (!program_.buckets.empty())
      co_await reduce(static_cast<std::uint32_t>(program_.buckets.size() - 1), micro);
    // independent_gradient_partition_epilogue.
    if (program_.options.overlap_comm) {
      co_await rank_.host->synchronize(reduction_);
      co_await rank_.host->synchronize(rank_.compute);
    }
  }

  Task arrive(const std::vector<Stage12Program::Arrival>& arrivals, std::int64_t micro) {
    for (const Stage12Program::Arrival& arrival : arrivals) {
      if (arrival.reduces) co_await reduce(*arrival.reduces, micro);
      if (arrival.copy.alone.count() > 0) co_await rank_.host->launch(rank_.compute, arrival.copy);
    }
  }

  // reduce_ipg_grads and average_tensor.
  Task reduce(std::uint32_t index, std::int64_t micro) {
    const Stage12Program::Bucket& bucket = program_.buckets[index];
    if (program_.options.overlap_comm) {
      rank_.wait_stream(reduction_, rank_.compute);
      rank_.wait_stream(rank_.compute, reduction_);
    }
    co_await rank_.launch_all(reduction_, bucket.before);
    for (const NamedCall& call : bucket.reduce) co_await rank_.call_on(reduction_, call);
    co_await rank_.launch_all(reduction_, bucket.after);
    if (micro > 0 && bucket.accumulate.alone.count() > 0)
      co_await rank_.host->launch(reduction_, bucket.accumulate);
  }

  Task optimizer_step() {
    if (program_.overflow.call.valid()) {  // has_overflow().item()
      co_await rank_.call_on(rank_.compute, program_.overflow);
      co_await rank_.host->synchronize(rank_.compute);
    }
    co_await rank_.launch_all(rank_.compute, program_.before_norm);
    co_await rank_.call_on(rank_.compute, program_.norm);
    co_await rank_.launch_all(rank_.compute, program_.optimizer);
    for (const NamedCall& call : program_.all_gather) co_await rank_.call_on(rank_.compute, call);
  }

  const Stage12Program& program_;
  WorkloadRank& rank_;
  sim::StreamId reduction_;
};

struct Builder {
  const NeuralNetwork& network;
  const ZeroOptions& options;
  const KernelModel& kernels;
  sim::Trace& trace;
  Stage12Program& program;

  [[nodiscard]] std::int64_t param() const { return element_size(options.param_dtype); }
  [[nodiscard]] std::int64_t sent() const { return element_size(options.communication_data_type); }
  [[nodiscard]] sim::Kernel move(std::int64_t size, const std::string& name) const {
    return named(kernels.move(sim::bytes(size)), trace.name(name));
  }
  [[nodiscard]] NamedCall call(const GroupCall& what, const std::string& name) const {
    return {program.calls.add(what),
            trace.name(fmt::format("{} {}", sim::to_text(what.collective), name))};
  }
  [[nodiscard]] bool late() const { return options.stage == 1 && !options.overlap_comm; }
  void add_layers() const;
  void add_arrivals(const std::vector<ZeroBucket>& buckets) const;
  void add_bucket(const ZeroBucket& bucket, std::size_t number) const;
  void add_all_gather(std::int64_t part) const;
};

void Builder::add_layers() const {
  for (const Layer& layer : network.layers()) {
    Stage12Program::Layer& out = program.layers.emplace_back();
    add_forward(layer, options.layers, kernels, trace, out.forward);
    add_backward(layer, options.layers, kernels, trace, out.backward);
    std::int64_t elements = 0;
    for (const std::uint32_t p : layer.parameters) elements += network.parameters()[p].elements;
    if (options.stage == 1 && options.accumulation > 1 && elements > 0)
      out.accumulate = move(elements * 3 * param(), "accumulate " + layer.name);
  }
}

void Builder::add_arrivals(const std::vector<ZeroBucket>& buckets) const {
  std::vector<std::uint32_t> layer_of(network.parameters().size(), 0);
  for (const GradientOrder::Arrival& arrival : gradient_order(network).arrivals)
    layer_of[arrival.parameter] = arrival.layer;
  for (std::uint32_t b = 0; b < buckets.size(); ++b)
    for (const std::uint32_t p : buckets[b].parameters) {
      Stage12Program::Arrival arrival;
      const Parameter& parameter = network.parameters()[p];
      // A gradient larger than the bucket is reduced where it lies.
      if (options.contiguous_gradients && parameter.elements <= options.reduce_bucket_size)
        arrival.copy = move(2 * parameter.elements * param(), "to bucket " + parameter.name);
      if (b > 0 && p == buckets[b].parameters.front()) arrival.reduces = b - 1;
      (late() ? program.late : program.layers[layer_of[p]].arrivals).push_back(arrival);
    }
}

void Builder::add_bucket(const ZeroBucket& bucket, std::size_t number) const {
  using sim::Collective;
  const std::string name = fmt::format("bucket {}", number);
  Stage12Program::Bucket& out = program.buckets.emplace_back();
  const std::int64_t elements = bucket.elements;
  const std::int64_t owned = elements / options.data_parallel;
  const bool cast = options.communication_data_type != options.param_dtype;
  // Without the contiguous buffer the bucket is flattened first.
  if (!options.contiguous_gradients)
    out.before.push_back(move(2 * elements * param(), "flatten " + name));
  out.before.push_back(move(2 * elements * param(), "divide " + name));
  if (options.reduce_scatter) out.before.push_back(move(2 * elements * param(), "flatten " + name));
  if (cast) out.before.push_back(move(elements * (param() + sent()), "cast " + name));
  if (options.reduce_scatter && !options.use_multi_rank_bucket_allreduce) {
    for (const OwnedPart& part : owned_parts(network, bucket, options.data_parallel))
      out.reduce.push_back(call({kDataParallelGroup, Collective::reduce,
                                 sim::bytes(part.elements * sent()), sent(), part.rank},
                                fmt::format("{} to {}", name, part.rank)));
  } else {
    out.reduce.push_back(call(
        {kDataParallelGroup, Collective::all_reduce, sim::bytes(elements * sent()), sent()}, name));
  }
  if (cast) out.after.push_back(move(elements * (param() + sent()), "cast back " + name));
  if (options.reduce_scatter) out.after.push_back(move(2 * owned * param(), "unflatten " + name));
  if (options.stage == 2) out.after.push_back(move(2 * owned * param(), "to partition " + name));
  if (options.stage == 2 && options.accumulation > 1)
    out.accumulate = move(3 * owned * param(), "accumulate " + name);
}

// all_gather_dp_groups.
void Builder::add_all_gather(std::int64_t part) const {
  const auto add = [&](std::int64_t elements, const std::string& name) {
    program.all_gather.push_back(call(
        {kDataParallelGroup, sim::Collective::all_gather, sim::bytes(elements * param()), param()},
        name));
  };
  if (options.all_gather_into_tensor) return add(part, "parameters");
  constexpr std::int64_t kStartAlignment = 2;
  const std::int64_t pieces =
      std::max<std::int64_t>(1, part * options.data_parallel / options.allgather_bucket_size);
  std::int64_t piece = part / pieces;
  piece -= piece % kStartAlignment;
  for (std::int64_t i = 0; i < pieces; ++i)
    add(i + 1 == pieces ? part - i * piece : piece, fmt::format("parameters {}", i));
}

}  // namespace

Result<Stage12Program> build_stage12_program(const NeuralNetwork& network,
                                             const ZeroOptions& options, const KernelModel& kernels,
                                             sim::Trace& trace) {
  RAILYARD_TRY(check_batch(network, options.layers.samples));
  Stage12Program program;
  program.options = options;
  const Builder builder{network, options, kernels, trace, program};
  builder.add_layers();
  std::vector<std::uint32_t> order;
  if (builder.late()) {
    order = trained_parameters(network);
    const GradientOrder arrivals = gradient_order(network);
    for (const std::uint32_t unused : arrivals.unused) std::erase(order, unused);
  } else {
    for (const GradientOrder::Arrival& arrival : gradient_order(network).arrivals)
      order.push_back(arrival.parameter);
  }
  const std::vector<ZeroBucket> buckets = zero_buckets(network, order, options.reduce_bucket_size);
  builder.add_arrivals(buckets);
  for (std::size_t b = 0; b < buckets.size(); ++b) builder.add_bucket(buckets[b], b);
  const std::int64_t part = flat_elements(network, options.data_parallel) / options.data_parallel;
  const OptimizerStep step = optimizer_step({part}, 1, options, kernels, trace);
  program.before_norm = step.before_norm;
  program.optimizer = step.optimizer;
  program.norm = builder.call({kDataParallelGroup, sim::Collective::all_reduce, sim::bytes(4), 4},
                              "gradient norm");
  if (options.check_overflow)
    program.overflow = builder.call(
        {kDataParallelGroup, sim::Collective::all_reduce, sim::bytes(4), 4}, "overflow");
  if (options.data_parallel > 1) builder.add_all_gather(part);
  return program;
}

ZeroMemory stage12_memory(const NeuralNetwork& network, const ZeroOptions& options) {
  ZeroMemory memory;
  const auto flat = static_cast<double>(flat_elements(network, options.data_parallel));
  const double owned = flat / static_cast<double>(options.data_parallel);
  const auto param = static_cast<double>(element_size(options.param_dtype));
  memory.parameters = flat * param;
  memory.gradients = (options.stage == 1 ? flat : owned) * param;
  memory.optimizer = owned * 4 * (options.optimizer_states + 1);
  const auto bucket = static_cast<double>(options.reduce_bucket_size);
  if (options.contiguous_gradients)
    memory.buckets = bucket * param * (options.overlap_comm ? 2 : 1);
  return memory;
}

Task run_stage12(const Stage12Program& program, WorkloadRank& rank) {
  Stage12 state(program, rank);
  for (std::int64_t i = 0; i < program.options.iterations; ++i) co_await state.step();
  co_await rank.host->synchronize(rank.compute);
}

}  // namespace railyard::models
