// ZeRO stages 1 and 2, step by step, as DeepSpeed runs them on every rank. Read next to
// deepspeed/runtime/zero/stage_1_and_2.py and all_gather_dp_groups in deepspeed/runtime/utils.py:
//
//   backward every gradient is copied into the open bucket (contiguous_gradients) as it arrives;
//            one that would overflow it reduces it first (models/zero/buckets.h). Stage 1
//            without overlap_comm does all of that behind backward, in registration order
//   reductionon the compute stream, or with overlap_comm on the reduction stream, and then the
//            compute stream first waits for the reduction before (two buffers: one is on its
//            way). Division by N, then by option: reduce_scatter and
//            use_multi_rank_bucket_allreduce (defaults), flattened and an AllReduce of the WHOLE
//            bucket, every rank keeps its part; reduce_scatter alone, a Reduce of each owner's
//            part to it; neither, AllReduce in place
//   end      of backward: the last bucket; with overlap_comm the host waits for the GPU
//   step     norm of the gradients (AllReduce of one fp32), the optimizer on the rank's part of
//            the fp32 master, cast, AllGather of the parameters
//
// Stage 1 reduces in the last micro-batch only; stage 2 keeps just its part of the gradients and so
// reduces in every one.
//
// Bytes per rank: the flat buffer is padded to P, a multiple of 2 N. AllGather p (N-1)/N with p = P
// x parameter size, per step: one call, or before PyTorch 1.13 pieces of allgather_bucket_size.
// Reductions of g bytes: AllReduce 2 g (N-1)/N. A true ReduceScatter (half of that) is not among
// DeepSpeed's ways, whatever the option is called: so the default moves 3 p, not 2 p.
//
// Stops being valid: offload, expert parameters, several parameter groups (each has a flat buffer
// and an AllGather of its own), pipeline parallelism. Kernels that touch a rank's part of a bucket
// are taken as the mean over the ranks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/workload/rank.h"
#include "models/zero/options.h"

namespace railyard::models {

struct Stage12Program {
  // A gradient is there: it joins the open bucket; `reduces` is the bucket that must go before.
  struct Arrival {
    sim::Kernel copy;  // no time: none
    std::optional<std::uint32_t> reduces;
  };
  struct Layer {
    std::vector<sim::Kernel> forward;
    std::vector<sim::Kernel> backward;
    sim::Kernel accumulate;  // stage 1: onto the gradients of earlier micro-batches
    std::vector<Arrival> arrivals;
  };
  struct Bucket {
    std::vector<sim::Kernel> before;
    std::vector<NamedCall> reduce;
    std::vector<sim::Kernel> after;
    sim::Kernel accumulate;  // stage 2: onto the partition of earlier micro-batches
  };
  std::vector<Layer> layers;  // execution order
  std::vector<Bucket> buckets;
  std::vector<Arrival> late;  // stage 1 without overlap: behind backward
  std::vector<sim::Kernel> before_norm;
  NamedCall norm;
  NamedCall overflow;  // invalid: not fp16
  std::vector<sim::Kernel> optimizer;
  std::vector<NamedCall> all_gather;
  CallTable calls;
  ZeroOptions options;
};

Result<Stage12Program> build_stage12_program(const NeuralNetwork& network,
                                             const ZeroOptions& options, const KernelModel& kernels,
                                             sim::Trace& trace);
ZeroMemory stage12_memory(const NeuralNetwork& network, const ZeroOptions& options);

// The stream that a rank adds to its own.
inline constexpr std::array<std::string_view, 1> kStage12Streams{"reduction"};

// The control flow of one rank. `program` and `rank` must outlive it.
sim::Task run_stage12(const Stage12Program& program, WorkloadRank& rank);

}  // namespace railyard::models
