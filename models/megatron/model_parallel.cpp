#include "models/megatron/model_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace railyard::models {
namespace {

using sim::Collective;

// One bucket for all: more elements than any buffer has.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

class Builder {
 public:
  Builder(const NeuralNetwork& network, const ModelParallelOptions& options,
          const KernelModel& kernels, sim::Trace& trace)
      : network_(network),
        options_(options),
        sizes_(options.stage.sizes),
        kernels_(kernels),
        trace_(trace) {}

  Result<ModelParallelProgram> run() && {
    RAILYARD_TRY(check_sizes(sizes_));
    RAILYARD_TRY(check_batch(network_, options_.stage.layers.samples));
    const std::int64_t m = options_.data.accumulation;
    if (sizes_.virtual_pipeline > 1 && m % sizes_.pipeline != 0)
      return sim::bad_input(
          fmt::format("the interleaved schedule wants micro-batches in groups of {} (pipeline "
                      "stages), and there are {}",
                      sizes_.pipeline, m),
          "virtual_pipeline_model_parallel_size");
    RAILYARD_ASSIGN(model_, shard(network_, {sizes_, options_.stage.capacity_factor}));
    if (model_.experts > 0 && sizes_.tensor > 1 && !sizes_.sequence_parallel)
      return sim::bad_input("experts beside tensor parallelism need sequence_parallel: true",
                            "tensor_model_parallel_size");
    add_groups();
    for (std::int64_t stage = 0; stage < sizes_.pipeline; ++stage) RAILYARD_TRY(add_stage(stage));
    set_options();
    return std::move(program_);
  }

 private:
  void set_options() {
    const MegatronOptions& data = options_.data;
    program_.sizes = sizes_;
    program_.overlap_grad_reduce = data.overlap_grad_reduce;
    program_.distributed_optimizer = data.use_distributed_optimizer;
    program_.overlap_param_gather = data.overlap_param_gather && data.use_distributed_optimizer;
    program_.overlap_p2p = options_.overlap_p2p;
    program_.batch_p2p_sync = options_.batch_p2p_sync;
    program_.micro_batches = data.accumulation;
    program_.iteration_count = data.iterations;
  }

  void add_groups() {
    std::set<std::pair<ParallelGroup, std::int64_t>> known;
    for (const RankGroup& group : parallel_groups(sizes_)) {
      if (!known.insert({group.kind, group.number}).second) continue;
      program_.groups.push_back({group.kind, group.number});
      if (group.kind == ParallelGroup::pair)
        program_.groups.push_back({group.kind, group.number, true});
    }
    StageGroups& groups = options_.stage.groups;
    groups.tensor = group(ParallelGroup::tensor);
    groups.context = group(ParallelGroup::context);
    groups.expert = group(ParallelGroup::expert);
    // Every stage adds the calls of its own, and a communicator belongs to one.
    options_.stage.uses = (options_.data.accumulation + sizes_.pipeline - 1) / sizes_.pipeline;
  }

  // 0 where there is none: nobody then calls on it.
  [[nodiscard]] std::uint32_t group(ParallelGroup kind, std::int64_t number = 0,
                                    bool backward = false) const {
    const auto found = std::ranges::find_if(program_.groups, [&](const ProgramGroup& g) {
      return g.kind == kind && g.number == number && g.backward == backward;
    });
    return found == program_.groups.end()
               ? 0
               : static_cast<std::uint32_t>(found - program_.groups.begin());
  }

  Result<std::vector<PipelineStep>> schedule_of(std::int64_t stage) const {
    const PipelineShape shape{sizes_.pipeline, sizes_.virtual_pipeline, options_.data.accumulation,
                              options_.overlap_p2p};
    if (options_.schedule.empty()) return pipeline_schedule(shape, stage);
    auto stated = stated_schedule(shape, stage, options_.schedule[static_cast<std::size_t>(stage)]);
    if (stated.ok()) return stated;
    return sim::bad_input(fmt::format("stage {}: {}", stage, stated.error().message),
                          "pipeline_schedule");
  }

  Result<void> add_stage(std::int64_t stage) {
    StageProgram out;
    RAILYARD_ASSIGN(out.schedule, schedule_of(stage));
    for (std::int64_t chunk = 0; chunk < sizes_.virtual_pipeline; ++chunk)
      add_chunk(stage, chunk, out);
    add_messages(stage, out);
    add_finish(stage, out);
    std::int64_t owned = 0;
    std::size_t tensors = 0;
    for (const GradientBucket& bucket : out.buckets)
      owned += options_.data.use_distributed_optimizer ? bucket.elements / bucket.ranks
                                                       : bucket.elements;
    for (const LayerShard& unit : model_.units)
      if (stage_of_block(unit.block) == stage) tensors += unit.parameters.size();
    out.optimizer = optimizer_kernels(tensors, sim::bytes(owned * options_.data.optimizer_bytes),
                                      kernels_, trace_);
    program_.stages.push_back(std::move(out));
    return {};
  }

  // Chunk j of stage i holds the (j q + i)-th of q v equal runs of blocks; what stands before and
  // behind the blocks goes with the first and the last.
  [[nodiscard]] std::int64_t run_of_block(std::int64_t block) const {
    const std::int64_t runs = sizes_.pipeline * sizes_.virtual_pipeline;
    return std::clamp<std::int64_t>(block, 0, model_.blocks - 1) / (model_.blocks / runs);
  }
  [[nodiscard]] std::int64_t stage_of_block(std::int64_t block) const {
    return run_of_block(block) % sizes_.pipeline;
  }

  void add_chunk(std::int64_t stage, std::int64_t chunk, StageProgram& out) {
    std::vector<const LayerShard*> units;
    for (const LayerShard& unit : model_.units)
      if (run_of_block(unit.block) == chunk * sizes_.pipeline + stage) units.push_back(&unit);
    const bool one_bucket = stage > 0 || chunk > 0;
    std::map<std::uint32_t, std::uint32_t> bucket_of;  // by parameter
    for (const bool expert : {false, true}) add_buckets(units, expert, one_bucket, bucket_of, out);
    StageOps ops(model_, options_.stage, kernels_, trace_, program_.calls);
    StageProgram::Chunk made;
    add_forward(units, bucket_of, ops, made.forward);
    add_backward(units, bucket_of, ops, made.backward);
    out.chunks.push_back(std::move(made));
  }

  // The buffer of dense or expert parameters of a chunk.
  void add_buckets(const std::vector<const LayerShard*>& units, bool expert, bool one_bucket,
                   std::map<std::uint32_t, std::uint32_t>& bucket_of, StageProgram& out) {
    std::map<std::uint32_t, std::int64_t> elements;  // registration order
    for (const LayerShard* unit : units)
      for (const ParameterShard& p : unit->parameters)
        if (p.expert == expert && network_.parameters()[p.index].requires_grad)
          elements[p.index] = p.elements;
    std::vector<std::uint32_t> index;
    std::vector<std::int64_t> counts;
    for (const auto& [parameter, count] : elements) {
      index.push_back(parameter);
      counts.push_back(count);
    }
    MegatronOptions options = options_.data;
    options.data_parallel = expert ? sizes_.expert_data() : sizes_.data() * sizes_.context;
    if (one_bucket && options.overlap_grad_reduce) options.bucket_size = kNoLimit;
    const std::int64_t stage = static_cast<std::int64_t>(program_.stages.size());
    for (const MegatronBucket& bucket : megatron_buckets(counts, options)) {
      for (const std::uint32_t p : bucket.parameters)
        bucket_of[index[p]] = static_cast<std::uint32_t>(out.buckets.size());
      const std::string name =
          fmt::format("{}bucket {}.{}", expert ? "expert " : "", stage, out.buckets.size());
      out.buckets.push_back(bucket_calls(bucket.elements, expert, options.data_parallel, name));
    }
  }

  GradientBucket bucket_calls(std::int64_t elements, bool expert, std::int64_t ranks,
                              const std::string& name) {
    const std::int64_t grad = element_size(options_.data.grad_dtype);
    const std::int64_t param = element_size(options_.data.param_dtype);
    GradientBucket out{elements, expert, ranks, {}, {}, {}};
    out.scale = named(kernels_.move(sim::bytes(2 * elements * grad)), trace_.name("scale " + name));
    if (ranks == 1) return out;
    const auto stage = static_cast<std::int64_t>(program_.stages.size());
    const std::uint32_t on =
        group(expert ? ParallelGroup::expert_data : ParallelGroup::data, stage);
    const bool sharded = options_.data.use_distributed_optimizer;
    const std::int64_t part = sharded ? elements / ranks : elements;
    const Collective reduce = sharded ? Collective::reduce_scatter : Collective::all_reduce;
    out.reduce = call({on, reduce, sim::bytes(part * grad), grad}, name);
    if (sharded)
      out.gather = call({on, Collective::all_gather, sim::bytes(part * param), param}, name);
    return out;
  }

  NamedCall call(const GroupCall& group_call, const std::string& what) {
    return {program_.calls.add(group_call),
            trace_.name(fmt::format("{} {}", sim::to_text(group_call.collective), what))};
  }

  static void add_forward(const std::vector<const LayerShard*>& units,
                          const std::map<std::uint32_t, std::uint32_t>& bucket_of, StageOps& ops,
                          std::vector<StageOp>& out) {
    std::set<std::uint32_t> seen;
    for (const LayerShard* unit : units) {
      for (const ParameterShard& p : unit->parameters)
        if (const auto found = bucket_of.find(p.index);
            found != bucket_of.end() && seen.insert(found->second).second)
          out.push_back({.kind = StageOp::Kind::gather, .slot = found->second});
      ops.forward(*unit, false, out);
    }
  }

  using Units = std::vector<const LayerShard*>;

  void add_backward(const Units& units, const std::map<std::uint32_t, std::uint32_t>& bucket_of,
                    StageOps& ops, std::vector<StageOp>& out) const {
    std::map<std::uint32_t, std::size_t> left, uses;  // by bucket, by parameter
    for (const auto& [parameter, bucket] : bucket_of) ++left[bucket];
    for (const LayerShard* unit : units)
      for (const ParameterShard& p : unit->parameters) ++uses[p.index];
    std::int64_t open = -2;  // the block whose backward is under way
    for (auto at = units.rbegin(); at != units.rend(); ++at) {
      const LayerShard& unit = **at;
      if (std::exchange(open, unit.block) != unit.block) recompute(unit, units, ops, out);
      ops.backward(unit, out);
      for (const ParameterShard& p : unit.parameters) {
        const auto found = bucket_of.find(p.index);
        const bool complete = found != bucket_of.end() && --uses[p.index] == 0;
        if (complete && --left[found->second] == 0)
          out.push_back({.kind = StageOp::Kind::reduce, .slot = found->second});
      }
    }
  }

  // The block of `unit` runs forward again, where it does.
  void recompute(const LayerShard& unit, const Units& units, StageOps& ops,
                 std::vector<StageOp>& out) const {
    if (!options_.stage.layers.recompute || !is_block(unit)) return;
    for (const LayerShard* again : units)
      if (again->block == unit.block) ops.forward(*again, true, out);
  }

  [[nodiscard]] bool is_block(const LayerShard& unit) const {
    return unit.block >= 0 && unit.block < model_.blocks;
  }

  // The first of a pair is the stage that sends activations.
  void add_messages(std::int64_t stage, StageProgram& out) {
    const std::int64_t q = sizes_.pipeline;
    out.odd = stage % 2 == 1;
    if (q == 1) return;
    StageOps ops(model_, options_.stage, kernels_, trace_, program_.calls);
    const bool ring = sizes_.virtual_pipeline > 1;
    const auto message = [&](std::int64_t from, bool backward, const char* what) {
      const std::uint32_t on = group(ParallelGroup::pair, pair_number(sizes_, from), backward);
      const GroupCall sent{on, Collective::scatter, ops.boundary(),
                           element_size(options_.stage.activations), backward ? 1U : 0U};
      return NamedCall{program_.calls.add(sent, options_.stage.uses * sizes_.virtual_pipeline),
                       trace_.name(what)};
    };
    const std::int64_t before = (stage + q - 1) % q;
    if (ring || stage + 1 < q) {
      out.send_forward = message(stage, false, "send_forward");
      out.recv_backward = message(stage, true, "recv_backward");
    }
    if (ring || stage > 0) {
      out.recv_forward = message(before, false, "recv_forward");
      out.send_backward = message(before, true, "send_backward");
    }
  }

  void add_finish(std::int64_t stage, StageProgram& out) {
    const std::int64_t grad = element_size(options_.data.grad_dtype);
    std::int64_t whole = 0;
    std::int64_t vocabulary = 0;
    for (const LayerShard& unit : model_.units)
      for (const ParameterShard& p : unit.parameters) {
        if (p.sequence && stage_of_block(unit.block) == stage) whole += p.elements;
        if (unit.role == ShardRole::embedding) vocabulary = p.elements;
      }
    if (sizes_.sequence_parallel && whole > 0)
      out.finish.push_back(call(
          {group(ParallelGroup::tensor), Collective::all_reduce, sim::bytes(whole * grad), grad},
          "gradients of norms"));
    const bool ends = stage == 0 || stage + 1 == sizes_.pipeline;
    if (model_.tied && sizes_.pipeline > 1 && ends)
      out.finish.push_back(call({group(ParallelGroup::embedding), Collective::all_reduce,
                                 sim::bytes(vocabulary * grad), grad},
                                "gradient of tied embeddings"));
  }

  const NeuralNetwork& network_;
  ModelParallelOptions options_;
  ParallelSizes sizes_;
  const KernelModel& kernels_;
  sim::Trace& trace_;
  ShardedModel model_;
  ModelParallelProgram program_;
};

}  // namespace

Result<ModelParallelProgram> build_model_parallel(const NeuralNetwork& network,
                                                  const ModelParallelOptions& options,
                                                  const KernelModel& kernels, sim::Trace& trace) {
  return Builder(network, options, kernels, trace).run();
}

sim::Duration compute_alone(const StageProgram& stage) {
  sim::Duration sum = alone(stage.optimizer);
  const auto add = [&](const std::vector<StageOp>& ops) {
    for (const StageOp& op : ops)
      if (op.kind == StageOp::Kind::kernel) sum += op.kernel.alone;
  };
  for (const PipelineStep& step : stage.schedule) {
    const auto chunk = static_cast<std::size_t>(step.chunk);
    if (step.action == PipelineAction::forward) add(stage.chunks[chunk].forward);
    if (step.action == PipelineAction::backward) add(stage.chunks[chunk].backward);
  }
  for (const GradientBucket& bucket : stage.buckets) sum += bucket.scale.alone;
  return sum;
}

}  // namespace railyard::models
