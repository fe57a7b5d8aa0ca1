#include "models/fsdp/fsdp2.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard::models {
namespace {

using sim::GpuEventId;
using sim::Task;

// One rank's parameter groups and what FSDPCommContext holds.
class Fsdp2 {
 public:
  Fsdp2(const Fsdp2Program& program, WorkloadRank& rank)
      : program_(program), rank_(rank), gathers_(program.units.size()) {
    copy_in_ = rank.host->gpu().add_stream();
    post_reduce_ = rank.host->gpu().add_stream();
  }

  Task step() {
    co_await rank_.host->begin_iteration();
    WorkloadRank::Marks& marks = rank_.begin_iteration();
    for (std::int64_t micro = 0; micro < program_.accumulation; ++micro) {
      const bool last = micro + 1 == program_.accumulation;
      co_await forward();
      if (last) marks.forward_end = rank_.record(rank_.compute);
      co_await backward(last || program_.sync_every_micro_batch,
                        !last && !program_.reshard_after_backward);
    }
    marks.backward_end = rank_.record(rank_.compute);
    finish_backward();
    co_await rank_.launch_all(rank_.compute, program_.optimizer);
    marks.end = rank_.record(rank_.compute);
    co_await rank_.host->end_iteration(rank_.compute);
  }

 private:
  using Unit = Fsdp2Program::Unit;
  struct Gather {
    bool pending = false;  // issued, its output not yet copied out
    bool whole = false;    // the parameters are unsharded
    bool resharded_small = false;
    GpuEventId done{};
  };

  const Unit& unit(std::uint32_t index) const { return program_.units[index]; }

  // FSDPParamGroup.unshard: copy-in on its stream, AllGather behind it. The copy-in waits for what
  // the AllGather streams were told to wait for.
  Task unshard(std::uint32_t index, bool backward) {
    Gather& gather = gathers_[index];
    if (gather.whole || gather.pending) co_return;
    const Unit& of = unit(index);
    rank_.wait(copy_in_, gather_streams_wait_);
    gather_streams_wait_ = {};
    // The shards are the optimizer's: foreach_all_gather's streams wait for the root's first entry.
    rank_.wait(copy_in_, step_start_);
    co_await rank_.host->launch(copy_in_, of.copy_in);
    const NamedCall& call =
        backward && gather.resharded_small ? of.backward_all_gather : of.all_gather;
    co_await rank_.issue(call, rank_.record(copy_in_), gather.done);
    gather.pending = true;
  }

  // FSDPParamGroup.wait_for_unshard: in forward the previous output is freed behind this copy-out,
  // in backward the streams wait for this one at once.
  Task wait_for_unshard(std::uint32_t index, bool backward) {
    Gather& gather = gathers_[index];
    if (!gather.pending) co_return;
    rank_.wait(rank_.compute, gather.done);
    if (!backward) {
      gather_streams_wait_ = previous_copy_out_;
      previous_copy_out_ = {};
    }
    co_await rank_.host->launch(rank_.compute, unit(index).copy_out);
    const GpuEventId copied = rank_.record(rank_.compute);
    (backward ? gather_streams_wait_ : previous_copy_out_) = copied;
    gather.pending = false;
    gather.whole = true;
  }

  Task forward() {
    step_start_ = rank_.record(rank_.compute);  // behind the optimizer's last step
    for (const Segment& segment : program_.forward) {
      Gather& gather = gathers_[segment.unit];
      if (segment.enters) {
        co_await unshard(segment.unit, false);
        co_await wait_for_unshard(segment.unit, false);
      }
      co_await rank_.launch_all(rank_.compute, segment.kernels);
      if (!segment.leaves || !unit(segment.unit).reshard_after_forward) continue;
      gather.whole = false;
      if (unit(segment.unit).reshard.alone.count() > 0) {
        co_await rank_.host->launch(rank_.compute, unit(segment.unit).reshard);
        gather.resharded_small = true;
      }
    }
  }

  Task backward(bool reduce, bool keep_whole) {
    gather_streams_wait_ = previous_copy_out_;
    previous_copy_out_ = {};
    std::size_t entered = 0;
    for (const Segment& segment : program_.backward) {
      if (segment.enters) {
        co_await unshard(segment.unit, true);
        co_await wait_for_unshard(segment.unit, true);
        if (++entered < program_.backward_order.size())
          co_await unshard(program_.backward_order[entered], true);
      }
      co_await rank_.launch_all(rank_.compute, segment.kernels);
      if (!segment.leaves) continue;
      gathers_[segment.unit].whole = keep_whole;
      gathers_[segment.unit].resharded_small = false;
      if (reduce) co_await reduce_gradients(segment.unit);
    }
  }

  // foreach_reduce.
  Task reduce_gradients(std::uint32_t index) {
    const Unit& of = unit(index);
    rank_.wait(rank_.compute, outstanding_reduce_);
    co_await rank_.host->launch(rank_.compute, of.reduce_copy_in);
    GpuEventId done;
    co_await rank_.issue(of.reduce_scatter, rank_.record(rank_.compute), done);
    outstanding_reduce_ = done;
    if (of.all_reduce.call.valid()) co_await rank_.issue(of.all_reduce, done, done);
    rank_.wait(post_reduce_, done);
    co_await rank_.host->launch(post_reduce_, of.view_out);
    reduced_.push_back(rank_.record(post_reduce_));
  }

  // The root's final callback.
  void finish_backward() {
    for (const GpuEventId event : reduced_) rank_.wait(rank_.compute, event);
    reduced_.clear();
    outstanding_reduce_ = {};
    gather_streams_wait_ = {};
    for (Gather& gather : gathers_) gather.whole = false;
  }

  const Fsdp2Program& program_;
  WorkloadRank& rank_;
  sim::StreamId copy_in_;
  sim::StreamId post_reduce_;
  std::vector<Gather> gathers_;       // by unit
  GpuEventId step_start_{};           // parameters are up to date
  GpuEventId previous_copy_out_{};    // forward: frees the previous unit's AllGather output
  GpuEventId gather_streams_wait_{};  // what the next copy-in waits for
  GpuEventId outstanding_reduce_{};
  std::vector<GpuEventId> reduced_;
};

struct UnitBuilder {
  const Fsdp2Options& options;
  const KernelModel& kernels;
  sim::Trace& trace;
  CallTable& calls;

  [[nodiscard]] sim::Kernel move(std::int64_t size, const std::string& name) const {
    return named(kernels.move(sim::bytes(size)), trace.name(name));
  }
  [[nodiscard]] NamedCall call(std::uint32_t group, sim::Collective collective,
                               std::int64_t elements, Dtype dtype, const std::string& name) const {
    const std::int64_t size = element_size(dtype);
    return {calls.add({group, collective, sim::bytes(elements * size), size}),
            trace.name(fmt::format("{} {}", sim::to_text(collective), name))};
  }
  [[nodiscard]] Fsdp2Program::Unit build(const std::string& name, std::int64_t elements,
                                         std::int64_t padded, bool root) const;
};

Fsdp2Program::Unit UnitBuilder::build(const std::string& name, std::int64_t elements,
                                      std::int64_t padded, bool root) const {
  using sim::Collective;
  const std::int64_t stored = element_size(options.stored_dtype);
  const std::int64_t param = element_size(options.param_dtype);
  const std::int64_t reduce = element_size(options.reduce_dtype);
  const std::int64_t shard = padded / options.shards;
  Fsdp2Program::Unit unit;
  unit.name = name;
  unit.copy_in = move(shard * (stored + param), "copy-in " + name);
  unit.copy_out = move(elements * 2 * param, "copy-out " + name);
  unit.reduce_copy_in = move(elements * param + padded * reduce, "reduce copy-in " + name);
  unit.view_out = move(shard * (reduce + stored), "view-out " + name);
  unit.all_gather = call(kShardGroup, Collective::all_gather, shard, options.param_dtype, name);
  unit.backward_all_gather = unit.all_gather;
  unit.reduce_scatter =
      call(kShardGroup, Collective::reduce_scatter, shard, options.reduce_dtype, name);
  if (options.replicas > 1)
    unit.all_reduce =
        call(kReplicaGroup, Collective::all_reduce, shard, options.reduce_dtype, name);
  unit.reshard_after_forward = options.reshard_after_forward && !root;
  if (options.reshard_ranks > 0 && !root) {
    const std::int64_t part = (padded + options.reshard_ranks - 1) / options.reshard_ranks;
    unit.reshard = move(part * 2 * param, "reshard " + name);
    unit.backward_all_gather =
        call(kReshardGroup, Collective::all_gather, part, options.param_dtype, name);
  }
  return unit;
}

std::int64_t unit_elements(const NeuralNetwork& network, const ShardUnit& unit) {
  std::int64_t sum = 0;
  for (const std::uint32_t p : unit.parameters) sum += network.parameters()[p].elements;
  return sum;
}

}  // namespace

std::int64_t padded_elements(const NeuralNetwork& network, const ShardUnit& unit,
                             std::int64_t shards) {
  std::int64_t sum = 0;
  for (const std::uint32_t p : unit.parameters) {
    const Parameter& parameter = network.parameters()[p];
    const std::int64_t rows =
        parameter.shape.empty() ? parameter.elements : parameter.shape.front();
    const std::int64_t padded = (rows + shards - 1) / shards * shards;
    sum += parameter.elements / rows * padded;
  }
  return sum;
}

Result<Fsdp2Program> build_fsdp2_program(const NeuralNetwork& network, const Fsdp2Options& options,
                                         const KernelModel& kernels, sim::Trace& trace) {
  RAILYARD_ASSIGN(ShardedLayers layers, shard_layers(network, options.layers, kernels, trace));
  Fsdp2Program program;
  const UnitBuilder builder{options, kernels, trace, program.calls};
  std::int64_t shard = 0;
  for (std::size_t u = 0; u < layers.units.size(); ++u) {
    const ShardUnit& unit = layers.units[u];
    const std::int64_t padded = padded_elements(network, unit, options.shards);
    program.units.push_back(builder.build(unit.name, unit_elements(network, unit), padded, u == 0));
    shard += padded / options.shards;
  }
  program.forward = std::move(layers.forward);
  program.backward = std::move(layers.backward);
  for (const Segment& segment : program.backward)
    if (segment.enters) program.backward_order.push_back(segment.unit);
  program.optimizer = optimizer_kernels(
      network.parameters().size(), sim::bytes(shard * options.optimizer_bytes), kernels, trace);
  program.accumulation = options.accumulation;
  program.sync_every_micro_batch = options.sync_every_micro_batch;
  program.reshard_after_backward = options.reshard_after_backward;
  program.iteration_count = options.iterations;
  return program;
}

ShardMemory fsdp2_memory(const NeuralNetwork& network, const Fsdp2Options& options) {
  ShardMemory memory;
  const std::vector<ShardUnit> units = shard_units(network);
  const auto stored = static_cast<double>(element_size(options.stored_dtype));
  const auto param = static_cast<double>(element_size(options.param_dtype));
  double shard = 0;
  double largest = 0;
  double root = 0;
  double all = 0;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const auto padded = static_cast<double>(padded_elements(network, units[u], options.shards));
    shard += padded / static_cast<double>(options.shards);
    all += padded;
    if (u == 0)
      root = padded;
    else
      largest = std::max(largest, padded);
  }
  memory.parameters = shard * stored;
  memory.gradients = shard * stored;
  memory.optimizer = shard * stored * options.optimizer_states;
  // The root, and of the blocks the one that computes and the one that is gathered meanwhile, each
  // beside its AllGather's output.
  memory.gathered = options.reshard_after_forward && options.reshard_ranks == 0
                        ? (root + 3 * largest) * param
                        : (all + largest) * param;
  memory.reduction = 2 * largest * static_cast<double>(element_size(options.reduce_dtype));
  return memory;
}

Task run_fsdp2(const Fsdp2Program& program, WorkloadRank& rank) {
  Fsdp2 state(program, rank);
  for (std::int64_t i = 0; i < program.iteration_count; ++i) co_await state.step();
  co_await rank.host->synchronize(rank.compute);
}

}  // namespace railyard::models
