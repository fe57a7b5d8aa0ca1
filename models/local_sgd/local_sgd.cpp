#include "models/local_sgd/local_sgd.h"

#include <algorithm>

#include "models/ddp/reducer.h"

namespace railyard::models {
namespace {

using sim::Collective;
using sim::GpuEventId;
using sim::Kernel;
using sim::Task;

constexpr std::int64_t kBroadcastBytes = std::int64_t{250} << 20;
constexpr std::int64_t kOuterBytes = 20;  // SGD with momentum, per parameter: as OptimizerCost

std::size_t list_of(std::int64_t iteration) {
  return static_cast<std::size_t>(std::min<std::int64_t>(iteration, 3) - 1);
}

class LocalSgdRank {
 public:
  LocalSgdRank(const LocalSgdProgram& program, WorkloadRank& rank)
      : program_(program), rank_(rank) {}

  Task step(std::int64_t iteration) {
    sim::HostThread& host = *rank_.host;
    co_await host.begin_iteration();
    rank_.begin_iteration();
    if (program_.plan.rebuild_before_iteration == iteration)
      for (const NamedCall& call : program_.rebuild) {
        GpuEventId done;
        co_await rank_.issue(call, rank_.record(rank_.compute), done);
        co_await host.until(done);  // the sizes are copied to the host
      }
    co_await broadcast_buffers();
    co_await rank_.launch_all(rank_.compute, program_.forward);
    rank_.marks.back().forward_end = rank_.record(rank_.compute);
    co_await backward(iteration);
    rank_.marks.back().backward_end = rank_.record(rank_.compute);
    co_await finalize(iteration);
    co_await rank_.launch_all(rank_.compute, program_.optimizer);
    if (averages(program_.options, iteration)) co_await average();
    rank_.marks.back().end = rank_.record(rank_.compute);
    co_await host.end_iteration(rank_.compute);
  }

 private:
  Task broadcast_buffers() {
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      co_await rank_.host->launch(rank_.compute, program_.flatten_buffers[i]);
      co_await rank_.call_on(rank_.compute, program_.buffers[i]);
      co_await rank_.host->launch(rank_.compute, program_.flatten_buffers[i]);
    }
  }

  Task backward(std::int64_t iteration) {
    sim::HostThread& host = *rank_.host;
    const BucketList& buckets = program_.plan.of_iteration(iteration);
    Reducer reducer(program_.copy_in.size(), buckets);
    for (const std::uint32_t unused : program_.plan.unused) reducer.mark_ready(unused);
    done_.clear();
    for (const LocalSgdProgram::Pass& pass : program_.backward) {
      co_await rank_.launch_all(rank_.compute, pass.kernels);
      for (const std::uint32_t parameter : pass.parameters) {
        co_await host.launch(rank_.compute, program_.copy_in[parameter]);
        co_await host.busy(host.costs().grad_hook);
        reducer.mark_ready(parameter);
        while (reducer.next_is_complete()) co_await reduce(iteration, reducer.take_next());
      }
    }
    while (reducer.next_is_complete()) co_await reduce(iteration, reducer.take_next());
  }

  Task reduce(std::int64_t iteration, std::size_t bucket) {
    const std::optional<std::uint32_t> group = gradient_group(program_.options, iteration);
    GpuEventId& done = done_.emplace_back();
    if (!group) co_return;
    const LocalSgdProgram::Bucket& what = program_.buckets[*group][list_of(iteration)][bucket];
    co_await rank_.host->launch(rank_.compute, what.divide);
    co_await rank_.issue(what.call, rank_.record(rank_.compute), done);
  }

  Task finalize(std::int64_t iteration) {
    const BucketList& buckets = program_.plan.of_iteration(iteration);
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      rank_.wait(rank_.compute, done_[b]);
      for (const std::uint32_t parameter : buckets[b].parameters)
        if (!program_.copy_out.empty())
          co_await rank_.host->launch(rank_.compute, program_.copy_out[parameter]);
    }
  }

  Task average() {
    co_await rank_.launch_all(rank_.compute, program_.before_average);
    if (program_.options.algorithm == LocalSgd::post_local_sgd)
      co_await rank_.host->synchronize(rank_.compute);
    co_await rank_.call_on(rank_.compute, program_.average);
    co_await rank_.launch_all(rank_.compute, program_.after_average);
  }

  const LocalSgdProgram& program_;
  WorkloadRank& rank_;
  std::vector<GpuEventId> done_;  // by bucket
};

struct Builder {
  const NeuralNetwork& network;
  const LocalSgdOptions& options;
  const KernelModel& kernels;
  sim::Trace& trace;
  LocalSgdProgram& program;

  [[nodiscard]] Kernel move(Bytes traffic, const char* name) const {
    return named(kernels.move(traffic), trace.name(name));
  }
  [[nodiscard]] NamedCall call(const GroupCall& what, const char* name) const {
    return {program.calls.add(what), trace.name(name)};
  }
  // DDP's own group, which DiLoCo's workers have each for themselves.
  [[nodiscard]] std::optional<std::uint32_t> ddp_group() const {
    if (options.algorithm == LocalSgd::post_local_sgd) return kAllGroup;
    return options.subgroup ? std::optional(kSubgroup) : std::nullopt;
  }
  void add_layers() const;
  void add_copies() const;
  void add_buckets() const;
  void add_ddp_broadcasts() const;
  void add_average() const;
};

void Builder::add_layers() const {
  const BucketInputs inputs = bucket_inputs(network);
  const GradientOrder order = gradient_order(network);
  std::vector<std::vector<std::uint32_t>> arrive(network.layers().size());
  for (std::size_t i = 0; i < order.arrivals.size(); ++i)
    arrive[order.arrivals[i].layer].push_back(inputs.arrival[i]);
  for (const Layer& layer : network.layers())
    add_forward(layer, options.layers, kernels, trace, program.forward);
  for (std::size_t l = network.layers().size(); l-- > 0;) {
    LocalSgdProgram::Pass& pass = program.backward.emplace_back();
    add_backward(network.layers()[l], options.layers, kernels, trace, pass.kernels);
    pass.parameters = arrive[l];
  }
}

void Builder::add_copies() const {
  std::int64_t elements = 0;
  const BucketInputs inputs = bucket_inputs(network);
  for (const BucketTensor& tensor : inputs.tensors) {
    const Bytes size = sim::bytes(tensor.elements * element_size(tensor.dtype));
    program.copy_in.push_back(move(size * 2, "copy gradient into bucket"));
    if (!options.buckets.gradient_as_bucket_view)
      program.copy_out.push_back(move(size * 2, "copy gradient out of bucket"));
    elements += tensor.elements;
  }
  program.optimizer = optimizer_kernels(
      inputs.tensors.size(), sim::bytes(elements * options.optimizer_bytes), kernels, trace);
}

void Builder::add_buckets() const {
  const BucketInputs inputs = bucket_inputs(network);
  for (std::int64_t i = 1; i <= std::min<std::int64_t>(options.iterations, 3); ++i)
    for (const std::uint32_t group : {kAllGroup, kSubgroup}) {
      // Only what some iteration with these buckets will call.
      const std::int64_t last = i < 3 ? i : options.iterations;
      bool used = false;
      for (std::int64_t each = i; each <= last && !used; ++each)
        used = gradient_group(options, each) == group;
      if (!used) continue;
      for (const Bucket& bucket : program.plan.of_iteration(i)) {
        const std::int64_t element = element_size(inputs.tensors[bucket.parameters.front()].dtype);
        program.buckets[group][list_of(i)].push_back(
            {move(bucket.size * 2, "divide bucket"),
             call({group, Collective::all_reduce, bucket.size, element, 0}, "AllReduce bucket")});
      }
    }
}

void Builder::add_ddp_broadcasts() const {
  const auto group = ddp_group();
  if (!group) return;
  const auto add = [&](std::int64_t elements, std::int64_t element) {
    for (std::int64_t left = elements * element; left > 0; left -= kBroadcastBytes) {
      const Bytes size = sim::bytes(std::min(left, kBroadcastBytes));
      program.buffers.push_back(
          call({*group, Collective::broadcast, size, element, 0}, "Broadcast buffers"));
      program.flatten_buffers.push_back(move(size * 2, "flatten buffers"));
    }
  };
  if (options.broadcast_buffers) {
    add(network.buffers().fp32_elements, 4);
    add(network.buffers().int64_elements, 8);
  }
  if (!program.plan.rebuild_before_iteration ||
      *program.plan.rebuild_before_iteration > options.iterations)
    return;
  // All indices and the bucket count, then the bucket sizes, as int32.
  for (const std::size_t values : {program.copy_in.size() + 1, program.plan.iterations[2].size()})
    program.rebuild.push_back(call(
        {*group, Collective::broadcast, sim::bytes(static_cast<std::int64_t>(values) * 4), 4, 0},
        "Broadcast bucket layout"));
}

void Builder::add_average() const {
  // torch.cat of several types has the widest.
  std::int64_t elements = 0;
  std::int64_t element = 1;
  for (const BucketTensor& tensor : bucket_inputs(network).tensors) {
    elements += tensor.elements;
    element = std::max(element, element_size(tensor.dtype));
  }
  const Bytes size = sim::bytes(elements * element);
  program.average = call({options.average_group, Collective::all_reduce, size, element, 0},
                         "AllReduce parameters");
  if (options.algorithm == LocalSgd::post_local_sgd) {
    program.before_average = {move(size * 2, "flatten parameters"),
                              move(size * 2, "divide parameters")};
    return;
  }
  program.before_average = {move(size * 3, "outer gradient"),
                            move(size * 2, "divide outer gradient")};
  program.after_average = {move(sim::bytes(elements * kOuterBytes), "outer optimizer"),
                           move(size * 2, "copy to worker")};
}

}  // namespace

std::optional<std::uint32_t> gradient_group(const LocalSgdOptions& options,
                                            std::int64_t iteration) {
  if (iteration <= options.start) return kAllGroup;
  return options.subgroup ? std::optional(kSubgroup) : std::nullopt;
}

// PeriodicModelAverager counts steps from 0: (step - warmup_steps) % period == 0. DiLoCo averages
// behind `period` steps of its own.
bool averages(const LocalSgdOptions& options, std::int64_t iteration) {
  if (options.algorithm == LocalSgd::diloco) return iteration % options.period == 0;
  const std::int64_t step = iteration - 1;
  return step >= options.start && (step - options.start) % options.period == 0;
}

Result<LocalSgdProgram> build_local_sgd_program(const NeuralNetwork& network,
                                                const LocalSgdOptions& options,
                                                const KernelModel& kernels, sim::Trace& trace) {
  RAILYARD_TRY(check_batch(network, options.layers.samples));
  LocalSgdProgram program;
  program.options = options;
  RAILYARD_ASSIGN(program.plan, plan_buckets(network, options.buckets));
  const Builder builder{network, options, kernels, trace, program};
  builder.add_layers();
  builder.add_copies();
  builder.add_buckets();
  builder.add_ddp_broadcasts();
  builder.add_average();
  return program;
}

Task run_local_sgd(const LocalSgdProgram& program, WorkloadRank& rank) {
  LocalSgdRank state(program, rank);
  for (std::int64_t i = 1; i <= program.options.iterations; ++i) co_await state.step(i);
  co_await rank.host->synchronize(rank.compute);
}

}  // namespace railyard::models
