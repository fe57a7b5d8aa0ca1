// Megatron-Core's data parallelism: gradient buffers, overlapped reduction and the distributed
// optimizer, as every rank runs them. Read next to
// megatron/core/distributed/param_and_grad_buffer.py and distributed_data_parallel.py:
//
//   buffer     parameters in reverse order; with the distributed optimizer each starts at a
//   multiple of
//              64 elements, and a bucket ends at one of lcm(data-parallel size, 128). A bucket is
//              full when it has bucket_size elements or more; with overlap_grad_reduce off there is
//              one
//   forward    overlap_param_gather: the AllGather of bucket k + 1 is issued when bucket k is
//   waited for,
//              in the order in which forward needs them; else all was gathered behind the last step
//   backward   GEMMs add into the buffer themselves: no copies. In the last micro-batch a bucket
//   whose
//              gradients are all there is scaled and reduced: ReduceScatter with the distributed
//              optimizer, else AllReduce. Without overlap_grad_reduce all of that comes at the end
//   step       the compute stream waits for the reductions; the optimizer on the shard (or the
//   whole);
//              without overlap_param_gather the AllGathers, and the compute stream waits for them
//
// Bytes per rank and step (g, p = padded elements x size of the gradient's, the parameter's type):
// ReduceScatter g (N-1)/N + AllGather p (N-1)/N, or AllReduce 2 g (N-1)/N.
//
// Not modelled: several optimizer instances, expert parameters' own buffers, fp8 buckets.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/layers.h"
#include "models/workload/rank.h"

namespace railyard::models {

struct MegatronOptions {
  LayerOptions layers;
  Dtype param_dtype = Dtype::bf16;
  Dtype grad_dtype = Dtype::fp32;  // grad_reduce_in_fp32
  bool use_distributed_optimizer = true;
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;  // needs the two above
  std::int64_t bucket_size = 0;      // elements; 0: max(40,000,000, 1,000,000 x data-parallel size)
  std::int64_t data_parallel = 1;
  std::int64_t optimizer_bytes = 28;
  int optimizer_states = 2;
  std::int64_t accumulation = 1;
  std::int64_t iterations = 3;
};

struct MegatronBucket {
  std::vector<std::uint32_t> parameters;  // in the order of the buffer
  std::int64_t elements = 0;              // padding included
};

// The buckets in the order in which backward fills them. Cost: O(parameters).
std::vector<MegatronBucket> megatron_buckets(const NeuralNetwork& network,
                                             const MegatronOptions& options);
// The same of parameters with so many elements, in registration order; 0 = needs no gradient.
std::vector<MegatronBucket> megatron_buckets(const std::vector<std::int64_t>& elements,
                                             const MegatronOptions& options);

struct MegatronProgram {
  struct Layer {
    std::vector<sim::Kernel> forward;
    std::vector<sim::Kernel> backward;
    std::vector<std::uint32_t> needs;      // buckets whose parameters forward reads here first
    std::vector<std::uint32_t> completes;  // buckets whose gradients are all there behind backward
  };
  std::vector<Layer> layers;                // execution order
  std::vector<sim::Kernel> scale;           // by bucket
  std::vector<NamedCall> reduce;            // by bucket
  std::vector<NamedCall> all_gather;        // by bucket; empty without the distributed optimizer
  std::vector<std::uint32_t> gather_order;  // buckets as forward needs them
  std::vector<sim::Kernel> optimizer;
  CallTable calls;
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;
  std::int64_t accumulation = 1;
  std::int64_t iteration_count = 0;
};

Result<MegatronProgram> build_megatron_program(const NeuralNetwork& network,
                                               const MegatronOptions& options,
                                               const KernelModel& kernels, sim::Trace& trace);

// The control flow of one rank. `program` and `rank` must outlive it.
sim::Task run_megatron(const MegatronProgram& program, WorkloadRank& rank);

}  // namespace railyard::models
