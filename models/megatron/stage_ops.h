// What a stage does for one micro-batch of a model chunk: kernels on the compute stream, and the
// collectives of tensor, sequence, context and expert parallelism between them. Read next to
// core/tensor_parallel (mappings.py, layers.py, cross_entropy.py), core/transformer/moe
// (token_dispatcher.py, MoEAlltoAllTokenDispatcher) and Transformer Engine's context_parallel.py.
//
// T = b s / c tokens of a micro-batch, h elements of a token, e bytes of one; t, c, E, et as in
// parallel_ranks.h. Blocking unless said otherwise: the compute stream waits at once.
//
//   forward        row          AllReduce T h e; with sequence parallelism (SP) ReduceScatter
//                  column       SP: AllGather T h e before it
//                  embedding    AllReduce, SP without learned positions ReduceScatter
//                  loss         three AllReduce of 4 T bytes (maximum, logit, sum of exponentials)
//   backward       column       AllReduce of the input's gradient beside wgrad; SP: AllGather of
//   the
//                               input beside dgrad, then ReduceScatter beside wgrad
//                  row          SP: AllGather
//                  embedding    SP: AllGather
//   context        p2p          ring: K and V (2 b s/c kv/t e bytes) to the next rank beside the
//                               attention of the block at hand, c - 1 times; in backward c - 1
//                               times K and V and c - 1 times their gradients
//                  all_gather   AllGather of K and V; in backward again, and ReduceScatter of their
//                               gradients
//                  a2a          (Ulysses) AllToAll of Q, K and V, then of the output; in backward
//                  the
//                               same
//   experts        dispatch     AllToAll of k T/t h e (times the capacity factor); AllGather over
//                               tp where et > 1
//                  combine      ReduceScatter over tp where et > 1; AllToAll; both again in
//                  backward
//
// A block that is recomputed runs its forward again, collectives included, before its backward.
// Left out: the router's exchange of token counts and the host's wait for it; uneven load;
// fused_a2a; the causal imbalance that Transformer Engine's 2c chunks even out.
#pragma once

#include <string_view>
#include <vector>

#include "models/megatron/parallel_ranks.h"
#include "models/megatron/shard.h"
#include "models/workload/layers.h"
#include "models/workload/rank.h"
#include "sim/enum_table.h"

namespace railyard::models {

enum class ContextComm : std::uint8_t { p2p, all_gather, a2a };  // cp_comm_type

// The program's groups that a rank of a stage is in; a rank alone has none.
struct StageGroups {
  std::uint32_t tensor = 0;
  std::uint32_t context = 0;
  std::uint32_t expert = 0;
};

struct StageOptions {
  ParallelSizes sizes;
  LayerOptions layers;  // samples: the micro-batch
  Dtype activations = Dtype::bf16;
  ContextComm context_comm = ContextComm::p2p;
  double capacity_factor = 0;
  StageGroups groups;
  std::int64_t uses = 1;  // how often an iteration makes a call of it, on one communicator
};

struct StageOp {
  enum class Kind : std::uint8_t { kernel, issue, wait, gather, reduce };
  Kind kind = Kind::kernel;
  sim::Kernel kernel{};
  NamedCall call{};        // issue
  std::uint32_t slot = 0;  // issue, wait: which call; gather, reduce: which bucket
};

// Appends the operations of units to `forward` and `backward`. Units are added in execution order
// to forward; for backward in the reverse order.
class StageOps {
 public:
  StageOps(const ShardedModel& model, const StageOptions& options, const KernelModel& kernels,
           sim::Trace& trace, CallTable& calls)
      : model_(model), options_(options), kernels_(kernels), trace_(trace), calls_(calls) {}

  void forward(const LayerShard& unit, bool again, std::vector<StageOp>& out);
  void backward(const LayerShard& unit, std::vector<StageOp>& out);

  // Bytes between stages for one micro-batch.
  [[nodiscard]] sim::Bytes boundary() const;

 private:
  using Ops = std::vector<StageOp>;
  [[nodiscard]] bool tensor() const { return options_.sizes.tensor > 1; }
  [[nodiscard]] bool sequence() const { return options_.sizes.sequence_parallel; }
  [[nodiscard]] std::int64_t element() const { return element_size(options_.activations); }
  [[nodiscard]] std::int64_t tokens() const;
  [[nodiscard]] std::int64_t activation() const;  // T h e
  [[nodiscard]] std::int64_t routed() const;      // k T/t h e, with the capacity factor
  [[nodiscard]] sim::Bytes key_block() const;     // K and V of a rank's tokens

  void kernel(const KernelTime& time, const std::string& name, Ops& out);
  void dgrad(const LayerShard& unit, Ops& out);
  void wgrad(const LayerShard& unit, Ops& out);
  void issue(const GroupCall& call, const std::string& what, std::uint32_t slot, Ops& out);
  void block(const GroupCall& call, const std::string& what, Ops& out);
  static void wait(std::uint32_t slot, Ops& out);
  [[nodiscard]] GroupCall whole(sim::Collective collective) const;  // over tp, of T h e

  void attention(const LayerShard& unit, const std::string& name, Ops& out);
  void ring_forward(const KernelTime& time, const std::string& name, Ops& out);
  void ring_backward(const KernelTime& time, const std::string& name, Ops& out);
  void attention_backward(const LayerShard& unit, Ops& out);
  void heads_to_tokens(const std::string& name, bool inputs, Ops& out);
  void column_backward(const LayerShard& unit, Ops& out);
  void dispatch(const std::string& what, Ops& out);
  void combine(const std::string& what, Ops& out);
  void loss(const LayerShard& unit, const std::string& name, Ops& out);
  void embedded(const LayerShard& unit, Ops& out);

  const ShardedModel& model_;
  StageOptions options_;
  KernelModel kernels_;
  sim::Trace& trace_;
  CallTable& calls_;
};

}  // namespace railyard::models

template <>
struct railyard::sim::EnumTable<railyard::models::ContextComm> {
  using ContextComm = railyard::models::ContextComm;
  static constexpr std::string_view kind = "cp_comm_type";
  static constexpr std::array entries{EnumEntry{ContextComm::p2p, "p2p"},
                                      EnumEntry{ContextComm::all_gather, "all_gather"},
                                      EnumEntry{ContextComm::a2a, "a2a"}};
};
