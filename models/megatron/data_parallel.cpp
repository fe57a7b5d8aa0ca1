#include "models/megatron/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

namespace railyard::models {
namespace {

using sim::GpuEventId;
using sim::Task;

constexpr std::int64_t kParameterAlignment = 64;  // elements
constexpr std::int64_t kBucketAlignment = 128;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::int64_t bucket_limit(const MegatronOptions& options) {
  if (!options.overlap_grad_reduce) return 0;  // one bucket
  if (options.bucket_size > 0) return options.bucket_size;
  return std::max<std::int64_t>(40'000'000, 1'000'000 * options.data_parallel);
}

class Megatron {
 public:
  Megatron(const MegatronProgram& program, WorkloadRank& rank)
      : program_(program), rank_(rank), gathered_(program.scale.size()) {}

  Task step(bool first) {
    co_await rank_.host->begin_iteration();
    WorkloadRank::Marks& marks = rank_.begin_iteration();
    // The first iteration finds its parameters in place.
    gathering_ = program_.overlap_param_gather && !first;
    next_gather_ = 0;
    if (gathering_) co_await issue_gather();
    for (std::int64_t micro = 0; micro < program_.accumulation; ++micro) {
      const bool last = micro + 1 == program_.accumulation;
      co_await forward();
      if (last) marks.forward_end = rank_.record(rank_.compute);
      co_await backward(last);
    }
    marks.backward_end = rank_.record(rank_.compute);
    for (const GpuEventId event : reduced_) rank_.wait(rank_.compute, event);
    reduced_.clear();
    co_await rank_.launch_all(rank_.compute, program_.optimizer);
    if (!program_.overlap_param_gather) co_await gather_all();
    marks.end = rank_.record(rank_.compute);
    co_await rank_.host->end_iteration(rank_.compute);
  }

 private:
  // The next AllGather in forward's order, behind the optimizer.
  Task issue_gather() {
    if (next_gather_ == program_.gather_order.size()) co_return;
    const std::uint32_t bucket = program_.gather_order[next_gather_++];
    co_await rank_.issue(program_.all_gather[bucket], rank_.record(rank_.compute),
                         gathered_[bucket]);
  }

  Task gather_all() {
    std::vector<GpuEventId> done(program_.all_gather.size());
    for (std::size_t b = 0; b < done.size(); ++b)
      co_await rank_.issue(program_.all_gather[b], rank_.record(rank_.compute), done[b]);
    for (const GpuEventId event : done) rank_.wait(rank_.compute, event);
  }

  Task forward() {
    for (const MegatronProgram::Layer& layer : program_.layers) {
      for (const std::uint32_t bucket : layer.needs) {
        if (!gathering_ || !gathered_[bucket].valid()) continue;
        co_await issue_gather();  // of the one after
        rank_.wait(rank_.compute, std::exchange(gathered_[bucket], GpuEventId()));
      }
      co_await rank_.launch_all(rank_.compute, layer.forward);
    }
  }

  Task backward(bool last) {
    for (auto layer = program_.layers.rbegin(); layer != program_.layers.rend(); ++layer) {
      co_await rank_.launch_all(rank_.compute, layer->backward);
      if (!last || !program_.overlap_grad_reduce) continue;
      for (const std::uint32_t bucket : layer->completes) co_await reduce(bucket);
    }
    if (!last || program_.overlap_grad_reduce) co_return;
    for (std::uint32_t bucket = 0; bucket < program_.reduce.size(); ++bucket)
      co_await reduce(bucket);
  }

  Task reduce(std::uint32_t bucket) {
    co_await rank_.host->launch(rank_.compute, program_.scale[bucket]);
    co_await rank_.issue(program_.reduce[bucket], rank_.record(rank_.compute),
                         reduced_.emplace_back());
  }

  const MegatronProgram& program_;
  WorkloadRank& rank_;
  std::vector<GpuEventId> gathered_;  // by bucket: on its way, not yet waited for
  std::deque<GpuEventId> reduced_;    // stable addresses: filled in by coroutines
  std::size_t next_gather_ = 0;
  bool gathering_ = false;
};

// Where forward reads a bucket first, and behind which layer's backward its gradients are there.
void place_buckets(const NeuralNetwork& network, const std::vector<MegatronBucket>& buckets,
                   MegatronProgram& program) {
  std::vector<std::uint32_t> bucket_of(network.parameters().size(), 0);
  for (std::uint32_t b = 0; b < buckets.size(); ++b)
    for (const std::uint32_t p : buckets[b].parameters) bucket_of[p] = b;
  std::vector<std::size_t> left;
  for (const MegatronBucket& bucket : buckets) left.push_back(bucket.parameters.size());
  std::vector<bool> seen(buckets.size(), false);
  const std::vector<Layer>& layers = network.layers();
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (const std::uint32_t p : layers[l].parameters) {
      const std::uint32_t bucket = bucket_of[p];
      if (seen[bucket]) continue;
      seen[bucket] = true;
      program.layers[l].needs.push_back(bucket);
      program.gather_order.push_back(bucket);
    }
  const GradientOrder order = gradient_order(network);
  for (const std::uint32_t p : order.unused) --left[bucket_of[p]];
  for (const GradientOrder::Arrival& arrival : order.arrivals)
    if (--left[bucket_of[arrival.parameter]] == 0)
      program.layers[arrival.layer].completes.push_back(bucket_of[arrival.parameter]);
}

}  // namespace

std::vector<MegatronBucket> megatron_buckets(const NeuralNetwork& network,
                                             const MegatronOptions& options) {
  std::vector<std::int64_t> elements;
  for (const Parameter& parameter : network.parameters())
    elements.push_back(parameter.requires_grad ? parameter.elements : 0);
  return megatron_buckets(elements, options);
}

std::vector<MegatronBucket> megatron_buckets(const std::vector<std::int64_t>& elements,
                                             const MegatronOptions& options) {
  const bool aligned = options.use_distributed_optimizer;
  const std::int64_t limit = bucket_limit(options);
  const std::int64_t end = std::lcm(options.data_parallel, kBucketAlignment);
  std::vector<MegatronBucket> buckets;
  std::int64_t begin = 0;  // of the open bucket
  std::int64_t at = 0;     // in the buffer
  const auto close = [&] {
    if (aligned) at = round_up(at, end);
    buckets.back().elements = at - begin;
    begin = at;
  };
  bool open = false;
  for (std::size_t p = elements.size(); p-- > 0;) {
    if (elements[p] == 0) continue;
    if (!open) buckets.emplace_back();
    open = true;
    if (aligned) at = round_up(at, kParameterAlignment);
    at += elements[p];
    buckets.back().parameters.push_back(static_cast<std::uint32_t>(p));
    if (limit == 0 || at - begin < limit) continue;
    close();
    open = false;
  }
  if (open) close();
  return buckets;
}

Result<MegatronProgram> build_megatron_program(const NeuralNetwork& network,
                                               const MegatronOptions& options,
                                               const KernelModel& kernels, sim::Trace& trace) {
  using sim::Collective;
  RAILYARD_TRY(check_batch(network, options.layers.samples));
  MegatronProgram program;
  program.layers.resize(network.layers().size());
  for (std::size_t l = 0; l < program.layers.size(); ++l) {
    const Layer& layer = network.layers()[l];
    add_forward(layer, options.layers, kernels, trace, program.layers[l].forward);
    add_backward(layer, options.layers, kernels, trace, program.layers[l].backward);
  }
  const std::vector<MegatronBucket> buckets = megatron_buckets(network, options);
  place_buckets(network, buckets, program);
  const std::int64_t grad = element_size(options.grad_dtype);
  const std::int64_t param = element_size(options.param_dtype);
  const std::int64_t n = options.data_parallel;
  std::int64_t owned = 0;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const std::int64_t elements = buckets[b].elements;
    const std::string name = fmt::format("bucket {}", b);
    program.scale.push_back(
        named(kernels.move(sim::bytes(2 * elements * grad)), trace.name("scale " + name)));
    const bool sharded = options.use_distributed_optimizer;
    const std::int64_t part = sharded ? elements / n : elements;
    owned += part;
    const Collective reduce = sharded ? Collective::reduce_scatter : Collective::all_reduce;
    program.reduce.push_back({program.calls.add({0, reduce, sim::bytes(part * grad), grad}),
                              trace.name(fmt::format("{} {}", sim::to_text(reduce), name))});
    if (sharded)
      program.all_gather.push_back(
          {program.calls.add({0, Collective::all_gather, sim::bytes(part * param), param}),
           trace.name("AllGather " + name)});
  }
  program.optimizer = optimizer_kernels(
      network.parameters().size(), sim::bytes(owned * options.optimizer_bytes), kernels, trace);
  program.overlap_grad_reduce = options.overlap_grad_reduce;
  program.overlap_param_gather = options.overlap_param_gather && options.use_distributed_optimizer;
  program.accumulation = options.accumulation;
  program.iteration_count = options.iterations;
  return program;
}

Task run_megatron(const MegatronProgram& program, WorkloadRank& rank) {
  Megatron state(program, rank);
  for (std::int64_t i = 0; i < program.iteration_count; ++i) co_await state.step(i == 0);
  co_await rank.host->synchronize(rank.compute);
}

}  // namespace railyard::models
