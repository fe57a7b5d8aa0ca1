// FullyShardedDataParallel (FSDP1), step by step, as PyTorch runs it on every rank. Read next to
// torch/distributed/fsdp/_runtime_utils.py, _flat_param.py and _limiter_utils.py:
//
//   forward, per unit
//     pre_forward  unshard unless prefetched: cast of the shard on the pre-unshard stream; the
//                  rate limiter: while two freed units are in its queue the HOST waits for the
//                  older one's free event; AllGather behind the unshard stream. The compute
//                  stream waits for the unshard stream; forward_prefetch: the next unit's
//                  unshard
//     kernels      on views of the flat parameter: no copy-out
//     post_forward reshard: FULL_SHARD and HYBRID_SHARD free all but the root
//   backward, per unit
//     pre_backward unshard unless prefetched, wait; BACKWARD_PRE: the unshard of the unit that
//                  backward enters next, before this one's kernels
//     kernels      then the split's backward gathers the gradients into one tensor
//     post_backwardreshard; BACKWARD_POST: the next unshard, behind this unit's kernels but
//                  still before its ReduceScatter. On the post-backward stream: cast to
//                  reduce_dtype, padding, predivide, ReduceScatter, postdivide, cast back.
//                  Hybrid: AllReduce of the shard and what follows on the all-reduce stream.
//                  NO_SHARD: AllReduce of the whole gradient
//   end of backward     the compute stream waits for the post-backward and all-reduce streams
//   step                the optimizer on the shards
//
// no_sync(): all micro-batches but the last reduce nothing and keep whole gradients; parameters are
// gathered all the same (_HYBRID_SHARD_ZERO2 and SHARD_GRAD_OP leave them whole).
//
// Sizes. A unit is one FlatParameter of n elements (use_orig_params: each parameter starts at a
// multiple of 16 bytes), padded as a whole to P = N ceil(n / N); FSDP2 pads every parameter. Per
// unit and rank, with p = P x parameter size and g = P x reduce size: AllGather p (N-1)/N, twice
// where forward reshards; ReduceScatter g (N-1)/N; AllReduce 2 (g/N) (R-1)/R over R replicas;
// NO_SHARD AllReduce 2 n x reduce size (N-1)/N. Gradients of W = N R ranks are divided by f before
// the reduction and by W/f behind it, a kernel each where not 1: f doubles from 1 while it divides
// W and is below W/f (default_hooks.DefaultState).
//
// Stops being valid: CPU offload, communication hooks, units used more than once in forward,
// clipping (one small AllReduce).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/fsdp/units.h"
#include "models/workload/rank.h"
#include "sim/enum_table.h"

namespace railyard::models {

// As torch.distributed.fsdp spells them.
enum class ShardingStrategy : std::uint8_t {
  full_shard,
  shard_grad_op,
  no_shard,
  hybrid_shard,
  hybrid_shard_zero2
};
enum class BackwardPrefetch : std::uint8_t { pre, post, none };

constexpr bool is_hybrid(ShardingStrategy strategy) {
  return strategy == ShardingStrategy::hybrid_shard ||
         strategy == ShardingStrategy::hybrid_shard_zero2;
}
// RESHARD_AFTER_FORWARD_HANDLE_STRATEGIES.
constexpr bool reshards_after_forward(ShardingStrategy strategy) {
  return strategy == ShardingStrategy::full_shard || strategy == ShardingStrategy::hybrid_shard;
}

struct Fsdp1Options {
  LayerOptions layers;
  ShardingStrategy strategy = ShardingStrategy::full_shard;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::pre;
  bool forward_prefetch = false;
  bool limit_all_gathers = true;
  bool use_orig_params = false;
  Dtype param_dtype = Dtype::bf16;    // of AllGather and compute
  Dtype reduce_dtype = Dtype::bf16;   // of the reductions
  Dtype buffer_dtype = Dtype::fp32;   // registered buffers are cast once
  Dtype stored_dtype = Dtype::fp32;   // of the flat parameter
  std::int64_t shards = 1;            // N; of NO_SHARD: ranks that reduce
  std::int64_t replicas = 1;          // R
  std::int64_t optimizer_bytes = 28;  // HBM traffic per parameter and step; 0 = no optimizer
  int optimizer_states = 2;
  std::int64_t accumulation = 1;
  bool no_sync = false;  // around all micro-batches but the last
  std::int64_t iterations = 3;
};

// Elements of a unit's FlatParameter, and of it padded for N shards (NO_SHARD pads nothing).
struct FlatSize {
  std::int64_t elements = 0;
  std::int64_t padded = 0;
};
FlatSize flat_size(const NeuralNetwork& network, const ShardUnit& unit,
                   const Fsdp1Options& options);

// DefaultState._get_gradient_predivide_factor.
std::int64_t predivide_factor(std::int64_t ranks);

// Kernels that a program does not need take no time and are not launched.
struct Fsdp1Program {
  struct Unit {
    std::string name;
    sim::Kernel cast;        // the shard to param_dtype
    sim::Kernel flatten;     // the parameters' gradients into the flat parameter's
    sim::Kernel accumulate;  // onto whole gradients left by no_sync()
    std::vector<sim::Kernel> before_reduce;
    std::vector<sim::Kernel> after_reduce;
    sim::Kernel accumulate_shard;  // onto the shard of an earlier micro-batch
    NamedCall all_gather;          // invalid for NO_SHARD
    NamedCall reduce;              // ReduceScatter; NO_SHARD: AllReduce
    NamedCall all_reduce;          // over the replicas; invalid without
  };
  std::vector<Unit> units;
  std::vector<Segment> forward;
  std::vector<Segment> backward;
  std::vector<std::uint32_t> forward_order;   // units, as pre_forward runs
  std::vector<std::uint32_t> backward_order;  // as pre_backward runs: post_forward's order reversed
  std::vector<sim::Kernel> optimizer;
  CallTable calls;
  Fsdp1Options options;
};

// Bytes that a rank holds, without activations and workspaces.
struct Fsdp1Memory {
  double parameters = 0;  // shards
  double gradients = 0;   // shards
  double optimizer = 0;
  double gathered = 0;         // units that are whole at one time, at most
  double whole_gradients = 0;  // on their way to a reduction; no_sync: all
  double buffers = 0;
};

Result<Fsdp1Program> build_fsdp1_program(const NeuralNetwork& network, const Fsdp1Options& options,
                                         const KernelModel& kernels, sim::Trace& trace);
Fsdp1Memory fsdp1_memory(const NeuralNetwork& network, const Fsdp1Options& options);

// Streams that a rank adds to its own, in this order.
inline constexpr std::array<std::string_view, 4> kFsdp1Streams{"pre-unshard", "unshard",
                                                               "post-backward", "all-reduce"};

// The control flow of one rank. `program` and `rank` must outlive it.
sim::Task run_fsdp1(const Fsdp1Program& program, WorkloadRank& rank);

}  // namespace railyard::models

template <>
struct railyard::sim::EnumTable<railyard::models::ShardingStrategy> {
  using Strategy = railyard::models::ShardingStrategy;
  static constexpr std::string_view kind = "sharding strategy";
  static constexpr std::array entries{
      EnumEntry{Strategy::full_shard, "FULL_SHARD"},
      EnumEntry{Strategy::shard_grad_op, "SHARD_GRAD_OP"},
      EnumEntry{Strategy::no_shard, "NO_SHARD"}, EnumEntry{Strategy::hybrid_shard, "HYBRID_SHARD"},
      EnumEntry{Strategy::hybrid_shard_zero2, "_HYBRID_SHARD_ZERO2"}};
};
template <>
struct railyard::sim::EnumTable<railyard::models::BackwardPrefetch> {
  using Prefetch = railyard::models::BackwardPrefetch;
  static constexpr std::string_view kind = "backward prefetch";
  static constexpr std::array entries{EnumEntry{Prefetch::pre, "BACKWARD_PRE"},
                                      EnumEntry{Prefetch::post, "BACKWARD_POST"},
                                      EnumEntry{Prefetch::none, "none"}};
};
