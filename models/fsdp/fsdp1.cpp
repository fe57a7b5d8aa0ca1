#include "models/fsdp/fsdp1.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace railyard::models {
namespace {

using sim::GpuEventId;
using sim::Task;

// _FreeEventQueue._max_num_inflight_all_gathers.
constexpr std::size_t kAllGathersInFlight = 2;
constexpr std::int64_t kParameterAlignment = 16;  // bytes, with use_orig_params

// One rank's flat parameters and what the root's state shares.
class Fsdp1 {
 public:
  Fsdp1(const Fsdp1Program& program, WorkloadRank& rank)
      : program_(program), rank_(rank), handles_(program.units.size()) {
    for (sim::StreamId* stream : {&pre_unshard_, &unshard_, &post_backward_, &all_reduce_})
      *stream = rank.host->gpu().add_stream();
    for (std::size_t i = 0; i < program.forward_order.size(); ++i)
      handles_[program.forward_order[i]].forward_place = i;
    for (std::size_t i = 0; i < program.backward_order.size(); ++i)
      handles_[program.backward_order[i]].backward_place = i;
  }

  Task step(bool first_iteration) {
    co_await rank_.host->begin_iteration();
    WorkloadRank::Marks& marks = rank_.begin_iteration();
    const std::int64_t micro_batches = program_.options.accumulation;
    for (micro_ = 0; micro_ < micro_batches; ++micro_) {
      const bool last = micro_ + 1 == micro_batches;
      sync_ = last || !program_.options.no_sync;
      order_known_ = !first_iteration || micro_ > 0;
      co_await forward();
      if (last) marks.forward_end = rank_.record(rank_.compute);
      co_await backward();
      if (last) marks.backward_end = rank_.record(rank_.compute);
      finish_backward();
    }
    co_await rank_.launch_all(rank_.compute, program_.optimizer);
    marks.end = rank_.record(rank_.compute);
    co_await rank_.host->end_iteration(rank_.compute);
  }

 private:
  using Unit = Fsdp1Program::Unit;
  struct Handle {
    bool whole = false;       // its flat parameter is unsharded
    bool prefetched = false;  // unshard was called ahead of its turn
    bool needed = false;      // its turn in this pass is yet to come
    std::size_t forward_place = 0;
    std::size_t backward_place = 0;
  };

  const Unit& unit(std::uint32_t index) const { return program_.units[index]; }
  bool sharded() const { return program_.options.strategy != ShardingStrategy::no_shard; }

  // _unshard. The limiter's wait comes even where nothing is left to gather.
  Task unshard(std::uint32_t index) {
    Handle& handle = handles_[index];
    const Unit& of = unit(index);
    if (of.cast.alone.count() > 0 && !handle.whole) {
      co_await rank_.host->launch(pre_unshard_, of.cast);
      rank_.wait_stream(unshard_, pre_unshard_);
    }
    if (program_.options.limit_all_gathers && free_events_.size() >= kAllGathersInFlight) {
      const GpuEventId freed = free_events_.front();
      free_events_.pop_front();
      co_await rank_.host->until(freed);
    }
    if (!sharded() || handle.whole) co_return;
    handle.whole = true;
    co_await rank_.call_on(unshard_, of.all_gather);
  }

  // _reshard.
  void reshard(std::uint32_t index, bool free) {
    Handle& handle = handles_[index];
    handle.prefetched = false;
    if (!free) return;
    handle.whole = false;
    if (program_.options.limit_all_gathers) free_events_.push_back(rank_.record(rank_.compute));
  }

  Task enter(std::uint32_t index) {
    handles_[index].needed = false;
    if (!handles_[index].prefetched) co_await unshard(index);
    rank_.wait_stream(rank_.compute, unshard_);
  }

  // _prefetch_handles.
  Task prefetch(const std::vector<std::uint32_t>& order, std::size_t place) {
    if (place + 1 >= order.size()) co_return;
    const std::uint32_t next = order[place + 1];
    if (handles_[next].prefetched || !handles_[next].needed) co_return;
    handles_[next].prefetched = true;
    co_await unshard(next);
  }

  void begin_pass() {
    for (Handle& handle : handles_) handle.needed = true;
  }

  Task forward() {
    begin_pass();
    // _root_pre_forward: behind the optimizer's last step.
    rank_.wait_stream(unshard_, rank_.compute);
    rank_.wait_stream(pre_unshard_, rank_.compute);
    for (const Segment& segment : program_.forward) {
      if (segment.enters) {
        co_await enter(segment.unit);
        if (program_.options.forward_prefetch && order_known_)
          co_await prefetch(program_.forward_order, handles_[segment.unit].forward_place);
      }
      co_await rank_.launch_all(rank_.compute, segment.kernels);
      constexpr std::uint32_t kRoot = 0;
      if (segment.leaves)
        reshard(segment.unit,
                segment.unit != kRoot && reshards_after_forward(program_.options.strategy));
    }
  }

  Task backward() {
    begin_pass();
    for (const Segment& segment : program_.backward) {
      const std::size_t place = handles_[segment.unit].backward_place;
      if (segment.enters) {
        co_await enter(segment.unit);
        if (program_.options.backward_prefetch == BackwardPrefetch::pre)
          co_await prefetch(program_.backward_order, place);
      }
      co_await rank_.launch_all(rank_.compute, segment.kernels);
      if (!segment.leaves) continue;
      co_await collect_gradients(segment.unit);
      reshard(segment.unit,
              sharded() && (sync_ || reshards_after_forward(program_.options.strategy)));
      if (program_.options.backward_prefetch == BackwardPrefetch::post)
        co_await prefetch(program_.backward_order, place);
      if (sync_) co_await reduce_gradient(segment.unit);
    }
  }

  // What autograd does before the post-backward hook: SplitWithSizesBackward, AccumulateGrad.
  Task collect_gradients(std::uint32_t index) {
    co_await rank_.host->launch(rank_.compute, unit(index).flatten);
    if (program_.options.no_sync && micro_ > 0)
      co_await rank_.host->launch(rank_.compute, unit(index).accumulate);
  }

  // _reduce_grad and _reduce_grad_no_shard.
  Task reduce_gradient(std::uint32_t index) {
    const Unit& of = unit(index);
    rank_.wait_stream(post_backward_, rank_.compute);
    co_await rank_.launch_all(post_backward_, of.before_reduce);
    co_await rank_.call_on(post_backward_, of.reduce);
    sim::StreamId stream = post_backward_;
    if (of.all_reduce.call.valid()) {
      stream = all_reduce_;
      rank_.wait_stream(all_reduce_, post_backward_);
      co_await rank_.call_on(all_reduce_, of.all_reduce);
    }
    co_await rank_.launch_all(stream, of.after_reduce);
    if (!program_.options.no_sync && micro_ > 0 && of.accumulate_shard.alone.count() > 0)
      co_await rank_.host->launch(stream, of.accumulate_shard);
  }

  // _post_backward_final_callback.
  void finish_backward() {
    if (sync_) {
      rank_.wait_stream(rank_.compute, post_backward_);
      rank_.wait_stream(rank_.compute, all_reduce_);
    }
    for (Handle& handle : handles_) handle.prefetched = false;
  }

  const Fsdp1Program& program_;
  WorkloadRank& rank_;
  sim::StreamId pre_unshard_, unshard_, post_backward_, all_reduce_;
  std::vector<Handle> handles_;  // by unit
  std::deque<GpuEventId> free_events_;
  std::int64_t micro_ = 0;
  bool sync_ = true;
  bool order_known_ = false;  // forward's, after the first
};

struct UnitBuilder {
  const Fsdp1Options& options;
  const KernelModel& kernels;
  sim::Trace& trace;
  CallTable& calls;
  std::string name;
  FlatSize size{};

  [[nodiscard]] sim::Kernel move(std::int64_t bytes, std::string_view what) const {
    return named(kernels.move(sim::bytes(bytes)), trace.name(fmt::format("{} {}", what, name)));
  }
  [[nodiscard]] NamedCall call(std::uint32_t group, sim::Collective collective,
                               std::int64_t elements, Dtype dtype) const {
    const std::int64_t element = element_size(dtype);
    return {calls.add({group, collective, sim::bytes(elements * element), element}),
            trace.name(fmt::format("{} {}", sim::to_text(collective), name))};
  }
  [[nodiscard]] Fsdp1Program::Unit build() const;
  void add_reduction(Fsdp1Program::Unit& unit) const;
};

void UnitBuilder::add_reduction(Fsdp1Program::Unit& unit) const {
  using sim::Collective;
  const bool sharded = options.strategy != ShardingStrategy::no_shard;
  const std::int64_t stored = element_size(options.stored_dtype);
  const std::int64_t param = element_size(options.param_dtype);
  const std::int64_t reduce = element_size(options.reduce_dtype);
  const std::int64_t reduced = sharded ? size.padded / options.shards : size.elements;
  const std::int64_t ranks = options.shards * options.replicas;
  const std::int64_t before = predivide_factor(ranks);
  if (options.reduce_dtype != options.param_dtype)
    unit.before_reduce.push_back(move(size.elements * (param + reduce), "reduce cast"));
  if (size.padded != size.elements)
    unit.before_reduce.push_back(move((size.elements + size.padded) * reduce, "pad gradient"));
  if (before > 1) unit.before_reduce.push_back(move(2 * size.padded * reduce, "predivide"));
  unit.reduce = call(kShardGroup, sharded ? Collective::reduce_scatter : Collective::all_reduce,
                     reduced, options.reduce_dtype);
  if (is_hybrid(options.strategy) && options.replicas > 1)
    unit.all_reduce = call(kReplicaGroup, Collective::all_reduce, reduced, options.reduce_dtype);
  if (ranks > before) unit.after_reduce.push_back(move(2 * reduced * reduce, "postdivide"));
  if (options.reduce_dtype != options.stored_dtype)
    unit.after_reduce.push_back(move(reduced * (reduce + stored), "cast gradient"));
  if (options.accumulation > 1) unit.accumulate_shard = move(reduced * 3 * stored, "accumulate");
}

Fsdp1Program::Unit UnitBuilder::build() const {
  const bool sharded = options.strategy != ShardingStrategy::no_shard;
  const std::int64_t stored = element_size(options.stored_dtype);
  const std::int64_t param = element_size(options.param_dtype);
  const std::int64_t shard = sharded ? size.padded / options.shards : size.elements;
  Fsdp1Program::Unit unit;
  unit.name = name;
  if (options.param_dtype != options.stored_dtype)
    unit.cast = move(shard * (stored + param), "cast shard");
  if (sharded)
    unit.all_gather = call(kShardGroup, sim::Collective::all_gather, shard, options.param_dtype);
  unit.flatten = move(size.elements * 2 * param, "flatten gradients");
  unit.accumulate = move(size.elements * 3 * param, "accumulate");
  add_reduction(unit);
  return unit;
}

}  // namespace

std::int64_t predivide_factor(std::int64_t ranks) {
  std::int64_t factor = 1;
  while (ranks % factor == 0 && ranks / factor > factor) factor *= 2;
  return factor;
}

FlatSize flat_size(const NeuralNetwork& network, const ShardUnit& unit,
                   const Fsdp1Options& options) {
  FlatSize size;
  const std::int64_t aligned = kParameterAlignment / element_size(options.param_dtype);
  const auto round_up = [](std::int64_t value, std::int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
  };
  for (const std::uint32_t p : unit.parameters) {
    if (options.use_orig_params) size.elements = round_up(size.elements, aligned);
    size.elements += network.parameters()[p].elements;
  }
  if (options.use_orig_params) size.elements = round_up(size.elements, options.shards);
  size.padded = options.strategy == ShardingStrategy::no_shard
                    ? size.elements
                    : round_up(size.elements, options.shards);
  return size;
}

Result<Fsdp1Program> build_fsdp1_program(const NeuralNetwork& network, const Fsdp1Options& options,
                                         const KernelModel& kernels, sim::Trace& trace) {
  RAILYARD_ASSIGN(ShardedLayers layers, shard_layers(network, options.layers, kernels, trace));
  Fsdp1Program program;
  program.options = options;
  std::int64_t owned = 0;
  for (const ShardUnit& unit : layers.units) {
    const UnitBuilder builder{options,       kernels,   trace,
                              program.calls, unit.name, flat_size(network, unit, options)};
    program.units.push_back(builder.build());
    owned += options.strategy == ShardingStrategy::no_shard ? builder.size.elements
                                                            : builder.size.padded / options.shards;
  }
  program.forward = std::move(layers.forward);
  program.backward = std::move(layers.backward);
  for (const Segment& segment : program.forward)
    if (segment.enters) program.forward_order.push_back(segment.unit);
  for (auto segment = program.forward.rbegin(); segment != program.forward.rend(); ++segment)
    if (segment->leaves) program.backward_order.push_back(segment->unit);
  // One tensor per unit, unless the optimizer was given the original ones.
  const std::size_t tensors =
      options.use_orig_params ? network.parameters().size() : program.units.size();
  program.optimizer =
      optimizer_kernels(tensors, sim::bytes(owned * options.optimizer_bytes), kernels, trace);
  return program;
}

Fsdp1Memory fsdp1_memory(const NeuralNetwork& network, const Fsdp1Options& options) {
  Fsdp1Memory memory;
  const bool sharded = options.strategy != ShardingStrategy::no_shard;
  const auto stored = static_cast<double>(element_size(options.stored_dtype));
  const auto param = static_cast<double>(element_size(options.param_dtype));
  double all = 0, root = 0, largest = 0;
  const std::vector<ShardUnit> units = shard_units(network);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const auto padded = static_cast<double>(flat_size(network, units[u], options).padded);
    all += padded;
    if (u == 0)
      root = padded;
    else
      largest = std::max(largest, padded);
  }
  const double owned = sharded ? all / static_cast<double>(options.shards) : all;
  memory.parameters = owned * stored;
  memory.gradients = owned * stored;
  memory.optimizer = owned * stored * options.optimizer_states;
  // With the limiter the one that computes and the next; without it the host allocates ahead.
  if (sharded)
    memory.gathered = reshards_after_forward(options.strategy) && options.limit_all_gathers
                          ? (root + 2 * largest) * param
                          : all * param;
  else if (options.param_dtype != options.stored_dtype)
    memory.gathered = all * param;
  memory.whole_gradients =
      options.no_sync && options.accumulation > 1
          ? all * param
          : largest * (param + static_cast<double>(element_size(options.reduce_dtype)));
  memory.buffers = static_cast<double>(network.buffers().fp32_elements) *
                       static_cast<double>(element_size(options.buffer_dtype)) +
                   static_cast<double>(network.buffers().int64_elements) * 8;
  return memory;
}

Task run_fsdp1(const Fsdp1Program& program, WorkloadRank& rank) {
  Fsdp1 state(program, rank);
  for (std::int64_t i = 0; i < program.options.iterations; ++i) co_await state.step(i == 0);
  co_await rank.host->synchronize(rank.compute);
}

}  // namespace railyard::models
