// fully_shard (FSDP2), step by step, as PyTorch runs it on every rank. Read next to
// torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py and _fsdp_collectives.py:
//
//   forward, per unit   pre_forward   unshard: copy-in of the shards on the copy-in stream,
//   AllGather
//                                     on the group's; the compute stream waits for it and copies
//                                     out. The previous unit's AllGather output lives until this
//                                     copy-out, so the copy-in of the unit after next waits for it
//                                     (two units are resident, and the next AllGather runs beside
//                                     this compute)
//                       kernels
//                       post_forward  reshard: the unit is gathered again in backward
//   backward, per unit  pre_backward  unshard unless prefetched; wait; copy-out; prefetch: the
//                                     AllGather of the unit that comes next in backward is issued
//                       kernels
//                       post_backward the compute stream waits for the previous unit's
//                       ReduceScatter
//                                     (at most one is outstanding), copies the gradients into the
//                                     ReduceScatter's input; ReduceScatter; with replicas AllReduce
//                                     of the shard on the replicas' own stream; view-out behind it
//   end of backward     the compute stream waits for every ReduceScatter (and AllReduce)
//   step                the optimizer on the shards
//
// Sizes. A parameter of d0 rows is padded to ceil(d0 / N) x N rows; a rank sends its N-th part in
// AllGather. With p = padded elements x parameter size and g = padded elements x reduce size, per
// unit and rank: AllGather p (N-1)/N (twice with reshard_after_forward), ReduceScatter g (N-1)/N,
// AllReduce 2 (g/N) (R-1)/R over R replicas.
//
// Not modelled: the root's parameters that a rank leaves unused, gradient clipping (one small
// AllReduce), offloading to the host.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/fsdp/units.h"
#include "models/workload/rank.h"

namespace railyard::models {

// Of reshard_after_forward = a number; the others are those of units.h.
inline constexpr std::uint32_t kReshardGroup = 2;

struct Fsdp2Options {
  LayerOptions layers;
  Dtype param_dtype = Dtype::bf16;     // of AllGather and compute
  Dtype reduce_dtype = Dtype::fp32;    // of ReduceScatter
  Dtype stored_dtype = Dtype::fp32;    // of the shards that the optimizer works on
  bool reshard_after_forward = true;   // never the root's
  std::int64_t reshard_ranks = 0;      // not 0: it reshards to a group of so many
  std::int64_t shards = 1;             // N
  std::int64_t replicas = 1;           // R
  std::int64_t optimizer_bytes = 28;   // HBM traffic per parameter and step; 0 = no optimizer
  int optimizer_states = 2;            // tensors as large as the shard that it keeps
  std::int64_t accumulation = 1;       // micro-batches per step
  bool sync_every_micro_batch = true;  // false: set_requires_gradient_sync only for the last
  bool reshard_after_backward = true;  // false: micro-batches but the last leave them whole
  std::int64_t iterations = 3;
};

struct Fsdp2Program {
  struct Unit {
    std::string name;
    sim::Kernel copy_in;         // shards into the AllGather's input
    sim::Kernel copy_out;        // its output into the parameters
    sim::Kernel reduce_copy_in;  // gradients into the ReduceScatter's input
    sim::Kernel view_out;        // its output into the sharded gradients, cast
    sim::Kernel reshard;         // the part that a smaller group keeps; no time without one
    NamedCall all_gather;
    NamedCall backward_all_gather;
    NamedCall reduce_scatter;
    NamedCall all_reduce;  // invalid call without replicas
    bool reshard_after_forward = true;
  };
  std::vector<Unit> units;
  std::vector<Segment> forward;
  std::vector<Segment> backward;
  std::vector<std::uint32_t> backward_order;  // units, as backward enters them
  std::vector<sim::Kernel> optimizer;
  CallTable calls;
  std::int64_t accumulation = 1;
  bool sync_every_micro_batch = true;
  bool reshard_after_backward = true;
  std::int64_t iteration_count = 0;
};

// Bytes that a rank holds, without activations and workspaces.
struct ShardMemory {
  double parameters = 0;  // shards
  double gradients = 0;   // shards
  double optimizer = 0;
  double gathered = 0;   // units that are whole at one time, at most
  double reduction = 0;  // inputs of ReduceScatter
  [[nodiscard]] double total() const {
    return parameters + gradients + optimizer + gathered + reduction;
  }
};

Result<Fsdp2Program> build_fsdp2_program(const NeuralNetwork& network, const Fsdp2Options& options,
                                         const KernelModel& kernels, sim::Trace& trace);
ShardMemory fsdp2_memory(const NeuralNetwork& network, const Fsdp2Options& options);

// Elements of a unit over N shards, the padding of every parameter included. FSDP2 pads the first
// dimension of each.
std::int64_t padded_elements(const NeuralNetwork& network, const ShardUnit& unit,
                             std::int64_t shards);

// Streams that a rank adds to its own, in this order.
inline constexpr std::array<std::string_view, 2> kFsdp2Streams{"copy-in", "post-reduce"};

// The control flow of one rank. `program` and `rank` must outlive it.
sim::Task run_fsdp2(const Fsdp2Program& program, WorkloadRank& rank);

}  // namespace railyard::models
