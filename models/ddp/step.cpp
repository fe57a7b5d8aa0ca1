#include "models/ddp/step.h"

#include <algorithm>

#include "models/workload/layers.h"

namespace railyard::models {
namespace {

using sim::GpuEventId;
using sim::Kernel;
using sim::Task;

// DistributedDataParallel.broadcast_bucket_size, and how many of them c10d's coalesced broadcast
// starts before it waits for the first.
constexpr std::int64_t kBroadcastBytes = std::int64_t{250} << 20;
constexpr std::size_t kBroadcastsInFlight = 2;

// The part of a backward pass that decides when a bucket is launched.
class Reducer {
 public:
  Reducer(const DdpProgram& program, const BucketList& buckets) : pending_(buckets.size()) {
    bucket_of_.resize(program.copy_in.size());
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      pending_[b] = buckets[b].parameters.size();
      for (const std::uint32_t parameter : buckets[b].parameters) bucket_of_[parameter] = b;
    }
  }
  void mark_ready(std::uint32_t parameter) { --pending_[bucket_of_[parameter]]; }
  // Launch order is strictly 0, 1, 2, ...: a complete bucket behind an incomplete one waits.
  bool next_is_complete() const { return next_ < pending_.size() && pending_[next_] == 0; }
  std::size_t take_next() { return next_++; }

 private:
  std::vector<std::size_t> bucket_of_;
  std::vector<std::size_t> pending_;
  std::size_t next_ = 0;
};

// The group's stream waits for what the compute stream has done so far, then runs the collective.
Task launch_collective(DdpRank& rank, sim::PlanId plan, std::uint32_t name, GpuEventId& ready) {
  sim::HostThread& host = *rank.host;
  co_await host.busy(host.costs().collective_launch);
  ready = host.gpu().record(rank.compute);
  host.gpu().wait(rank.communication, ready);
  host.gpu().launch_collective(rank.communication, *rank.runner, rank.group_rank, plan, name);
  ++rank.launched;
}

Task rebuild_buckets(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls) {
  for (const sim::PlanId plan : calls.rebuild) {
    GpuEventId ready;
    co_await launch_collective(rank, plan, program.rebuild_name, ready);
    co_await rank.host->synchronize(rank.communication);  // the sizes are copied to the host
  }
}

Task unflatten_buffers(const DdpProgram& program, DdpRank& rank, std::size_t piece,
                       GpuEventId broadcast_over) {
  rank.host->gpu().wait(rank.compute, broadcast_over);
  if (!program.flatten_buffers.empty())
    co_await rank.host->launch(rank.compute, program.flatten_buffers[piece]);
}

Task broadcast_buffers(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls) {
  sim::HostThread& host = *rank.host;
  std::vector<GpuEventId> over;
  for (std::size_t i = 0; i < calls.buffers.size(); ++i) {
    if (i >= kBroadcastsInFlight) {
      const std::size_t done = i - kBroadcastsInFlight;
      co_await unflatten_buffers(program, rank, done, over[done]);
    }
    if (!program.flatten_buffers.empty())
      co_await host.launch(rank.compute, program.flatten_buffers[i]);
    GpuEventId ready;
    co_await launch_collective(rank, calls.buffers[i], program.buffer_name, ready);
    over.push_back(host.gpu().record(rank.communication));
  }
  const std::size_t open = std::min(over.size(), kBroadcastsInFlight);
  for (std::size_t i = over.size() - open; i < over.size(); ++i)
    co_await unflatten_buffers(program, rank, i, over[i]);
}

// The reductions of one iteration: when each is over on the communication stream.
struct Reductions {
  std::vector<GpuEventId> buckets;
  std::vector<GpuEventId> unused;  // the bitmap's
};

// Of the iteration under way.
const Kernel& hook_kernel(const std::vector<std::vector<Kernel>>& kernels, const DdpRank& rank,
                          std::size_t bucket) {
  return kernels[std::min(rank.marks.size(), kernels.size()) - 1][bucket];
}

Task launch_complete_buckets(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls,
                             Reducer& reducer, Reductions& done) {
  while (reducer.next_is_complete()) {
    const std::size_t bucket = reducer.take_next();
    DdpRank::Marks& marks = rank.marks.back();
    if (bucket == 0) marks.first_bucket_call = rank.launched;
    if (!program.compress.empty())
      co_await rank.host->launch(rank.compute, hook_kernel(program.compress, rank, bucket));
    co_await launch_collective(rank, calls.buckets[bucket], program.bucket_name,
                               marks.bucket_ready[bucket]);
    GpuEventId reduced = rank.host->gpu().record(rank.communication);
    if (!program.decompress.empty()) {
      rank.host->gpu().wait(rank.callback, reduced);
      co_await rank.host->launch(rank.callback, hook_kernel(program.decompress, rank, bucket));
      reduced = rank.host->gpu().record(rank.callback);
    }
    done.buckets.push_back(reduced);
  }
}

Task launch_bitmap(const DdpProgram& program, DdpRank& rank, const DdpCollectives& calls,
                   Reductions& done) {
  for (const sim::PlanId plan : calls.unused) {
    GpuEventId ready;
    co_await launch_collective(rank, plan, program.unused_name, ready);
    done.unused.push_back(rank.host->gpu().record(rank.communication));
  }
}

Task launch_all(const DdpProgram::Launches& launches, DdpRank& rank) {
  sim::HostThread& host = *rank.host;
  co_await host.busy(launches.before);
  for (const Kernel& kernel : launches.kernels) co_await host.launch(rank.compute, kernel);
  co_await host.busy(launches.after);
}

Task forward(const DdpProgram& program, DdpRank& rank) {
  for (const DdpProgram::Launches& layer : program.forward) co_await launch_all(layer, rank);
}

// Forward and backward of a micro-batch inside no_sync(); the first finds no gradient to add to.
Task accumulate(const DdpProgram& program, DdpRank& rank, bool first) {
  sim::HostThread& host = *rank.host;
  co_await forward(program, rank);
  for (const DdpProgram::BackwardStep& step : program.backward) {
    co_await launch_all(step, rank);
    for (const std::uint32_t parameter : step.parameters)
      if (!first) co_await host.launch(rank.compute, program.accumulate[parameter]);
  }
}

Task backward(const DdpProgram& program, DdpRank& rank, std::int64_t iteration, Reductions& done) {
  sim::HostThread& host = *rank.host;
  const BucketList& buckets = program.plan.of_iteration(iteration);
  const DdpCollectives& calls = program.of_iteration(iteration);
  const bool at_end = iteration == 1 && program.plan.first_iteration_at_end;
  Reducer reducer(program, buckets);
  rank.marks.back().bucket_ready.resize(buckets.size());
  for (const std::uint32_t parameter : program.unused) reducer.mark_ready(parameter);
  for (const DdpProgram::BackwardStep& step : program.backward) {
    co_await launch_all(step, rank);
    for (const std::uint32_t parameter : step.parameters) {
      co_await host.busy(program.hook);
      if (program.accumulation > 1)
        co_await host.launch(rank.compute, program.accumulate[parameter]);
      if (!at_end) co_await host.launch(rank.compute, program.copy_in[parameter]);
      co_await host.busy(host.costs().grad_hook);
      reducer.mark_ready(parameter);
      if (!at_end && reducer.next_is_complete())
        co_await launch_complete_buckets(program, rank, calls, reducer, done);
    }
  }
  // A static graph's first iteration sends the bitmap before it copies anything.
  if (at_end) co_await launch_bitmap(program, rank, calls, done);
  for (std::size_t p = 0; at_end && p < program.copy_in.size(); ++p)
    co_await host.launch(rank.compute, program.copy_in[p]);
  co_await launch_complete_buckets(program, rank, calls, reducer, done);
  if (!at_end) co_await launch_bitmap(program, rank, calls, done);
}

// The bitmap tells whether others used what this rank did not: the host needs it to go on.
Task read_bitmap(DdpRank& rank, Reductions& done) {
  for (const GpuEventId event : done.unused) rank.host->gpu().wait(rank.compute, event);
  if (!done.unused.empty()) co_await rank.host->synchronize(rank.compute);
  done.unused.clear();
}

Task finalize(const DdpProgram& program, DdpRank& rank, std::int64_t iteration, Reductions& done) {
  sim::HostThread& host = *rank.host;
  const BucketList& buckets = program.plan.of_iteration(iteration);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    host.gpu().wait(rank.compute, done.buckets[b]);
    for (const std::uint32_t parameter : buckets[b].parameters) {
      if (std::ranges::binary_search(program.unused, parameter))
        co_await read_bitmap(rank, done);  // unused by all ranks: its gradient stays as it is
      else if (!program.copy_out.empty()) {
        co_await host.busy(program.copy_back);
        co_await host.launch(rank.compute, program.copy_out[parameter]);
      }
    }
  }
  for (const GpuEventId event : done.unused) host.gpu().wait(rank.compute, event);
}

// The broadcasts of the buffers, by type.
std::vector<DdpCall> buffer_pieces(const Buffers& buffers) {
  std::vector<DdpCall> pieces;
  const auto add = [&](std::int64_t elements, std::int64_t element) {
    for (std::int64_t left = elements * element; left > 0; left -= kBroadcastBytes)
      pieces.push_back(
          {sim::Collective::broadcast, sim::bytes(std::min(left, kBroadcastBytes)), element});
  };
  add(buffers.fp32_elements, 4);
  add(buffers.int64_elements, 8);
  return pieces;
}

// Kernels of the layers, forward in execution order and backward reversed.
void add_layers(const NeuralNetwork& network, const DdpOptions& options, const KernelModel& kernels,
                sim::Trace& trace, DdpProgram& program) {
  const BucketInputs inputs = bucket_inputs(network);
  const GradientOrder order = gradient_order(network);
  const std::vector<Layer>& layers = network.layers();
  std::vector<std::vector<std::uint32_t>> arrive(layers.size());
  for (std::size_t i = 0; i < order.arrivals.size(); ++i)
    arrive[order.arrivals[i].layer].push_back(inputs.arrival[i]);

  const LayerOptions each{options.batch_per_gpu, options.autocast, options.recompute,
                          options.compute};
  const auto pace = [](const std::optional<MeasuredLayer>& measured, auto pass,
                       DdpProgram::Launches& out) {
    if (!measured) return;
    out.before = ((*measured).*pass).before;
    out.after = ((*measured).*pass).after;
  };
  for (const Layer& layer : layers) {
    DdpProgram::Launches& step = program.forward.emplace_back();
    add_forward(layer, each, kernels, trace, step.kernels);
    pace(layer.measured, &MeasuredLayer::forward, step);
  }
  for (std::size_t l = layers.size(); l-- > 0;) {
    DdpProgram::BackwardStep step;
    pace(layers[l].measured, &MeasuredLayer::backward, step);
    add_backward(layers[l], each, kernels, trace, step.kernels);
    step.parameters = arrive[l];
    program.backward.push_back(std::move(step));
  }
}

void add_copies(const NeuralNetwork& network, const DdpOptions& options, const KernelModel& kernels,
                sim::Trace& trace, DdpProgram& program) {
  const BucketInputs inputs = bucket_inputs(network);
  const std::uint32_t in = trace.name(options.hook == CommHook::none ? "scale gradient into bucket"
                                                                     : "copy gradient into bucket");
  const std::uint32_t add = trace.name("accumulate gradient");
  const std::uint32_t out = trace.name("copy gradient out of bucket");
  Bytes optimizer{};
  for (std::uint32_t index = 0; index < inputs.tensors.size(); ++index) {
    const BucketTensor& tensor = inputs.tensors[index];
    const Bytes size = sim::bytes(tensor.elements * element_size(tensor.dtype));
    program.copy_in.push_back(named(kernels.move(size * 2), in));
    program.accumulate.push_back(named(kernels.move(size * 3), add));
    if (!options.buckets.gradient_as_bucket_view)
      program.copy_out.push_back(named(kernels.move(size * 2), out));
    if (!std::ranges::binary_search(program.unused, index))  // no gradient, no step
      optimizer += sim::bytes(tensor.elements * options.optimizer_bytes);
  }
  for (const DdpCall& piece : buffer_pieces(network.buffers()))
    program.flatten_buffers.push_back(
        named(kernels.move(piece.size * 2), trace.name("flatten buffers")));
  program.optimizer.kernels = optimizer_kernels(inputs.tensors.size(), optimizer, kernels, trace);
}

DdpProgram::Launches measured_launches(const MeasuredPass& pass, std::uint32_t name) {
  DdpProgram::Launches out{{}, pass.before, pass.after};
  if (pass.time.count() > 0) out.kernels.push_back({pass.time, sim::KernelBound::memory, name});
  return out;
}

void add_measured(const DdpOptions& options, sim::Trace& trace, DdpProgram& program) {
  if (!options.measured) return;
  program.start = measured_launches(options.measured->start, trace.name("start of step"));
  program.optimizer = measured_launches(options.measured->optimizer, trace.name("optimizer"));
  program.hook = options.measured->hook;
  program.copy_back = options.measured->copy_back;
  program.flatten_buffers.clear();
}

// Elements of a bucket in bytes, as they are and as a hook sends them.
Bytes sent_size(const Bucket& bucket, std::int64_t element, CommHook hook) {
  constexpr std::int64_t kHalf = 2;
  if (hook == CommHook::none || element <= kHalf) return bucket.size;
  return bucket.size / element * kHalf;
}

void add_hook(const NeuralNetwork& network, const DdpOptions& options, const KernelModel& kernels,
              sim::Trace& trace, DdpProgram& program) {
  program.accumulation = options.accumulation;
  if (options.hook == CommHook::none) return;
  const BucketInputs inputs = bucket_inputs(network);
  const std::uint32_t before = trace.name("compress bucket");
  const std::uint32_t after = trace.name("decompress bucket");
  for (std::int64_t i = 1; i <= std::min(options.iterations, kDistinctIterations); ++i) {
    program.compress.emplace_back();
    program.decompress.emplace_back();
    for (const Bucket& bucket : program.plan.of_iteration(i)) {
      const std::int64_t element = element_size(inputs.tensors[bucket.parameters.front()].dtype);
      const Bytes half = sent_size(bucket, element, options.hook);
      // The cast reads and writes once, the division the half size once more.
      program.compress.back().push_back(named(kernels.move(bucket.size + half * 3), before));
      program.decompress.back().push_back(named(kernels.move(bucket.size + half), after));
    }
  }
}

}  // namespace

DdpCalls ddp_calls(const NeuralNetwork& network, const BucketPlan& plan, const DdpOptions& options,
                   std::int64_t iteration) {
  using sim::Collective;
  DdpCalls calls;
  const BucketInputs inputs = bucket_inputs(network);
  const BucketList& buckets = plan.of_iteration(iteration);
  if (plan.rebuild_before_iteration == iteration) {
    // All indices and the bucket count, then the bucket sizes, as int32.
    calls.rebuild.push_back({Collective::broadcast,
                             sim::bytes(static_cast<std::int64_t>(inputs.tensors.size() + 1) * 4),
                             4});
    calls.rebuild.push_back(
        {Collective::broadcast, sim::bytes(static_cast<std::int64_t>(buckets.size()) * 4), 4});
  }
  if (options.broadcast_buffers) calls.buffers = buffer_pieces(network.buffers());
  for (const Bucket& bucket : buckets) {
    const std::int64_t element = element_size(inputs.tensors[bucket.parameters.front()].dtype);
    const bool half = options.hook != CommHook::none && element > 2;
    calls.buckets.push_back({Collective::all_reduce, sent_size(bucket, element, options.hook),
                             half ? std::int64_t{2} : element});
  }
  const bool static_first = options.buckets.static_graph && iteration == 1;
  if ((options.buckets.find_unused_parameters && !options.buckets.static_graph) || static_first)
    calls.unused.push_back({Collective::all_reduce,
                            sim::bytes(static_cast<std::int64_t>(inputs.tensors.size()) * 4), 4});
  return calls;
}

Result<DdpProgram> build_ddp_program(const NeuralNetwork& network, const DdpOptions& options,
                                     const KernelModel& kernels, sim::Trace& trace) {
  RAILYARD_TRY(check_batch(network, options.batch_per_gpu));
  DdpProgram program;
  program.iteration_count = options.iterations;
  RAILYARD_ASSIGN(program.plan, plan_buckets(network, options.buckets));
  program.unused = program.plan.unused;
  add_layers(network, options, kernels, trace, program);
  add_copies(network, options, kernels, trace, program);
  add_hook(network, options, kernels, trace, program);
  add_measured(options, trace, program);
  program.bucket_name = trace.name("AllReduce bucket");
  program.buffer_name = trace.name("Broadcast buffers");
  program.rebuild_name = trace.name("Broadcast bucket layout");
  program.unused_name = trace.name("AllReduce used parameters");
  return program;
}

sim::HostParameters ddp_host(const sim::HostParameters& of_profile, const DdpOptions& options) {
  sim::HostParameters host = of_profile;
  if (!options.measured) return host;
  host.op_launch = {};
  host.grad_hook = {};
  host.collective_launch = options.measured->collective;
  return host;
}

Task run_ddp(const DdpProgram& program, DdpRank& rank) {
  sim::HostThread& host = *rank.host;
  for (std::int64_t iteration = 1; iteration <= program.iteration_count; ++iteration) {
    const DdpCollectives& calls = program.of_iteration(iteration);
    co_await host.begin_iteration();
    rank.marks.emplace_back();
    co_await launch_all(program.start, rank);
    co_await rebuild_buckets(program, rank, calls);
    co_await broadcast_buffers(program, rank, calls);
    for (std::int64_t micro = 1; micro < program.accumulation; ++micro)
      co_await accumulate(program, rank, micro == 1);
    co_await forward(program, rank);
    rank.marks.back().forward_end = host.gpu().record(rank.compute);
    Reductions done;
    co_await backward(program, rank, iteration, done);
    rank.marks.back().backward_end = host.gpu().record(rank.compute);
    co_await finalize(program, rank, iteration, done);
    co_await launch_all(program.optimizer, rank);
    rank.marks.back().end = host.gpu().record(rank.compute);
    co_await host.end_iteration(rank.compute);
  }
  co_await host.synchronize(rank.compute);
}

}  // namespace railyard::models
