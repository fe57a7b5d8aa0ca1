// What a DDP step is made of, built once for all ranks; step.cpp runs it.
#include <fmt/format.h>

#include <algorithm>

#include "models/ddp/join.h"
#include "models/ddp/step.h"
#include "models/ddp/step_parts.h"
#include "models/workload/layers.h"

namespace railyard::models {
namespace {

// DistributedDataParallel.broadcast_bucket_size.
constexpr std::int64_t kBroadcastBytes = std::int64_t{250} << 20;

// The broadcasts of the buffers, by type.
std::vector<DdpCall> buffer_pieces(const Buffers& buffers) {
  std::vector<DdpCall> pieces;
  add_pieces(buffers.fp32_elements, 4, 0, pieces);
  add_pieces(buffers.int64_elements, 8, 0, pieces);
  return pieces;
}

// By layer: the number of its norm, or none.
Result<std::vector<std::optional<std::uint32_t>>> norm_numbers(const NeuralNetwork& network,
                                                               const DdpOptions& options,
                                                               std::vector<SyncedNorm>& norms) {
  std::vector<std::optional<std::uint32_t>> number(network.layers().size());
  if (!options.sync_batchnorm) return number;
  RAILYARD_ASSIGN(norms, synced_norms(network));
  for (std::uint32_t n = 0; n < norms.size(); ++n) number[norms[n].layer] = n;
  return number;
}

struct LayerWriter {
  const DdpOptions& options;
  const KernelModel& kernels;
  sim::Trace& trace;
  const NeuralNetwork& network;
  std::vector<SyncedNorm> norms{};
  std::vector<std::optional<std::uint32_t>> number{};  // by layer, of its synced norm

  [[nodiscard]] LayerOptions each() const {
    return {options.batch_per_gpu, options.autocast, options.recompute, options.compute};
  }
  [[nodiscard]] NormWriter norm_writer() const {
    return {each(), &kernels, &trace, options.ranks, options.buckets.version};
  }
  void forward(std::size_t l, DdpProgram::Launches& out) const {
    const Layer& layer = network.layers()[l];
    if (number[l])
      norm_writer().forward(layer, norms[*number[l]].channels, *number[l],
                            {out.kernels, out.syncs});
    else
      add_forward(layer, each(), kernels, trace, out.kernels);
    pace(layer.measured ? &layer.measured->forward : nullptr, out);
  }
  void backward(std::size_t l, DdpProgram::Launches& out) const {
    const Layer& layer = network.layers()[l];
    pace(layer.measured ? &layer.measured->backward : nullptr, out);
    if (!number[l]) return add_backward(layer, each(), kernels, trace, out.kernels);
    const std::int64_t channels = norms[*number[l]].channels;
    if (options.recompute)
      norm_writer().forward(layer, channels, *number[l], {out.kernels, out.syncs});
    norm_writer().backward(layer, channels, *number[l], {out.kernels, out.syncs});
  }
  static void pace(const MeasuredPass* measured, DdpProgram::Launches& out) {
    if (measured == nullptr) return;
    out.before = measured->before;
    out.after = measured->after;
  }
};

// Kernels of the layers, forward in execution order and backward reversed.
Result<void> add_layers(const NeuralNetwork& network, const DdpOptions& options,
                        const KernelModel& kernels, sim::Trace& trace, DdpProgram& program) {
  const BucketInputs inputs = bucket_inputs(network);
  const GradientOrder order = gradient_order(network);
  const std::size_t layers = network.layers().size();
  std::vector<std::vector<std::uint32_t>> arrive(layers);
  for (std::size_t i = 0; i < order.arrivals.size(); ++i)
    arrive[order.arrivals[i].layer].push_back(inputs.arrival[i]);

  LayerWriter writer{options, kernels, trace, network};
  RAILYARD_ASSIGN(writer.number, norm_numbers(network, options, writer.norms));
  for (std::size_t l = 0; l < layers; ++l) writer.forward(l, program.forward.emplace_back());
  for (std::size_t l = layers; l-- > 0;) {
    DdpProgram::BackwardStep& step = program.backward.emplace_back();
    writer.backward(l, step);
    step.parameters = arrive[l];
  }
  return {};
}

void add_copies(const NeuralNetwork& network, const DdpOptions& options, const KernelModel& kernels,
                sim::Trace& trace, DdpProgram& program) {
  const BucketInputs inputs = bucket_inputs(network);
  const std::uint32_t in =
      trace.name(options.hook.any() ? "copy gradient into bucket" : "scale gradient into bucket");
  const std::uint32_t add = trace.name("accumulate gradient");
  const std::uint32_t out = trace.name("copy gradient out of bucket");
  // The optimizer in backward reads the bucket; PyTorch then skips the copies back.
  const bool copies_back =
      !options.buckets.gradient_as_bucket_view && !options.hook.optimizer_in_backward;
  Bytes optimizer{};
  for (std::uint32_t index = 0; index < inputs.tensors.size(); ++index) {
    const BucketTensor& tensor = inputs.tensors[index];
    const Bytes size = sim::bytes(tensor.elements * element_size(tensor.dtype));
    program.copy_in.push_back(named(kernels.move(size * 2), in));
    program.accumulate.push_back(named(kernels.move(size * 3), add));
    if (copies_back) program.copy_out.push_back(named(kernels.move(size * 2), out));
    if (!std::ranges::binary_search(program.unused, index))  // no gradient, no step
      optimizer += sim::bytes(tensor.elements * options.optimizer_bytes);
  }
  for (const DdpCall& piece : buffer_pieces(network.buffers()))
    program.flatten_buffers.push_back(
        named(kernels.move(piece.size * 2), trace.name("flatten buffers")));
  if (!options.hook.optimizer_in_backward)
    program.optimizer.kernels = optimizer_kernels(inputs.tensors.size(), optimizer, kernels, trace);
}

DdpProgram::Launches measured_launches(const MeasuredPass& pass, std::uint32_t name) {
  DdpProgram::Launches out{{}, pass.before, pass.after, {}};
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

HookBucket hook_bucket(const NeuralNetwork& network, const BucketInputs& inputs,
                       const Bucket& bucket) {
  HookBucket out;
  out.element_size = element_size(inputs.tensors[bucket.parameters.front()].dtype);
  out.elements = bucket.size.raw() / out.element_size;
  for (const std::uint32_t index : bucket.parameters) {
    const Parameter& parameter = network.parameters()[inputs.to_network[index]];
    out.shapes.push_back(parameter.shape.empty() ? std::vector{parameter.elements}
                                                 : parameter.shape);
  }
  return out;
}

void add_hooks(const NeuralNetwork& network, const DdpOptions& options, const KernelModel& kernels,
               sim::Trace& trace, DdpProgram& program) {
  const BucketInputs inputs = bucket_inputs(network);
  for (const std::int64_t iteration : program.distinct) {
    std::vector<BucketHook>& hooks = program.hooks.emplace_back();
    std::vector<sim::Kernel>& zeros = program.zeros.emplace_back();
    for (const Bucket& bucket : program.plan.of_iteration(iteration)) {
      hooks.push_back(bucket_hook(hook_bucket(network, inputs, bucket), options.hook, iteration,
                                  kernels, trace));
      const BucketHook& hook = hooks.back();
      program.callback_stream |= hook.before.size() > 1 || !hook.after.empty();
      zeros.push_back(named(kernels.move(bucket.size), trace.name("zero bucket")));
    }
  }
}

Result<void> check_options(const DdpOptions& options) {
  if (options.hook.optimizer_in_backward && options.hook.kind != CommHook::none)
    return sim::bad_input(
        "an optimizer in backward is a communication hook of its own, and DDP takes one: comm_hook "
        "must be none");
  if (options.hook.optimizer_in_backward && options.buckets.version < TorchVersion{2, 0})
    return sim::bad_input("an optimizer in backward needs PyTorch 2.0 or later");
  if (options.hook.kind == CommHook::power_sgd || options.hook.kind == CommHook::batched_power_sgd)
    RAILYARD_TRY(check(options.hook.power_sgd));
  return check_join(options);
}

void name_calls(sim::Trace& trace, DdpProgram& program) {
  program.bucket_name = trace.name("AllReduce bucket");
  program.buffer_name = trace.name("Broadcast buffers");
  program.rebuild_name = trace.name("Broadcast bucket layout");
  program.unused_name = trace.name("AllReduce used parameters");
  program.norm_name = trace.name("SyncBatchNorm statistics");
  program.join_name = trace.name("AllReduce join");
  program.final_name = trace.name("Broadcast final model");
}

}  // namespace

void add_pieces(std::int64_t elements, std::int64_t element_size, std::uint32_t root,
                std::vector<DdpCall>& out) {
  for (std::int64_t left = elements * element_size; left > 0; left -= kBroadcastBytes)
    out.push_back({sim::Collective::broadcast, sim::bytes(std::min(left, kBroadcastBytes)),
                   element_size, root});
}

std::vector<std::int64_t> distinct_iterations(const DdpOptions& options) {
  std::vector<std::int64_t> all{1, 2, 3, 4};
  const std::int64_t start = options.hook.power_sgd.start_iter;
  if (options.hook.kind == CommHook::power_sgd || options.hook.kind == CommHook::batched_power_sgd)
    all.insert(all.end(), {start + 1, start + 2});
  for (const std::int64_t inputs : options.join) all.push_back(inputs + 1);
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());  // clang 14 has no ranges::unique
  std::erase_if(all, [&](std::int64_t i) { return i > options.iterations || i < 1; });
  return all;
}

DdpCalls ddp_calls(const NeuralNetwork& network, const BucketPlan& plan, const DdpOptions& options,
                   std::int64_t iteration) {
  using sim::Collective;
  DdpCalls calls;
  const BucketInputs inputs = bucket_inputs(network);
  const BucketList& buckets = plan.of_iteration(iteration);
  const auto tensors = static_cast<std::int64_t>(inputs.tensors.size());
  if (plan.rebuild_before_iteration == iteration) {
    // All indices and the bucket count, then the bucket sizes, as int32.
    calls.rebuild.push_back({Collective::broadcast, sim::bytes((tensors + 1) * 4), 4});
    calls.rebuild.push_back(
        {Collective::broadcast, sim::bytes(static_cast<std::int64_t>(buckets.size()) * 4), 4});
  }
  if (options.broadcast_buffers) calls.buffers = buffer_pieces(network.buffers());
  for (const Bucket& bucket : buckets)
    calls.buckets.push_back(
        hook_calls(hook_bucket(network, inputs, bucket), options.hook, iteration));
  const bool static_first = options.buckets.static_graph && iteration == 1;
  if ((options.buckets.find_unused_parameters && !options.buckets.static_graph) || static_first)
    calls.unused.push_back({Collective::all_reduce, sim::bytes(tensors * 4), 4});
  if (options.sync_batchnorm)
    if (const auto norms = synced_norms(network); norms.ok())
      for (const SyncedNorm& norm : norms.value()) {
        calls.norm_forward.push_back(norm_forward_call(norm));
        calls.norm_backward.push_back(norm_backward_call(norm));
      }
  add_join_calls(network, options, iteration, calls);
  return calls;
}

Result<DdpProgram> build_ddp_program(const NeuralNetwork& network, const DdpOptions& options,
                                     const KernelModel& kernels, sim::Trace& trace) {
  RAILYARD_TRY(check_batch(network, options.batch_per_gpu));
  RAILYARD_TRY(check_options(options));
  DdpProgram program;
  program.iteration_count = options.iterations;
  program.accumulation = options.accumulation;
  program.distinct = distinct_iterations(options);
  program.join = options.join;
  RAILYARD_ASSIGN(program.plan, plan_buckets(network, options.buckets));
  program.unused = program.plan.unused;
  RAILYARD_TRY(add_layers(network, options, kernels, trace, program));
  add_copies(network, options, kernels, trace, program);
  add_hooks(network, options, kernels, trace, program);
  add_measured(options, trace, program);
  name_calls(trace, program);
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

}  // namespace railyard::models
