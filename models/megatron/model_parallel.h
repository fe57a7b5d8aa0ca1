// A step of Megatron-Core with model parallelism: the stages' programs, and the control flow of a
// rank. parallel_ranks.h says who is in a group with whom, shard.h what a rank computes,
// stage_ops.h what it does for a micro-batch, pipeline_schedule.h in which order; data_parallel.h
// has the buckets.
//
//   pipeline      the schedule's steps. Messages are sent and received on the pipeline group's one
//                 stream (batch_isend_irecv: one launch, no batch before the one before it has
//                 ended), for which the compute stream waits; with batch_p2p_sync the host waits
//                 for the device as well. With overlap_p2p_comm every pair of ranks has a stream of
//                 its own, and stages send and receive in turns (_p2p_ops)
//   gradients     dense ones over dp x cp, experts' over edp: a bucket when it is full, in the last
//                 micro-batch; one bucket per chunk on all stages but the first and for all chunks
//                 but the first. Without overlap_grad_reduce at the end
//   afterwards    with sequence parallelism AllReduce over tp of the gradients of what is not
//                 divided (norms, router); tied embeddings: AllReduce between first and last stage;
//                 optimizer; AllGathers where they do not overlap with the next forward
//
// Left out: the norm of the gradients (AllReduce of one number), align_param_gather, the encoder,
// defer_embedding_wgrad_compute, tp_comm_overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/megatron/data_parallel.h"
#include "models/megatron/pipeline_schedule.h"
#include "models/megatron/stage_ops.h"

namespace railyard::models {

struct ModelParallelOptions {
  StageOptions stage;    // sizes, micro-batch, cp_comm_type; its groups are set here
  MegatronOptions data;  // buckets, types, optimizer; accumulation: micro-batches per step
  std::vector<std::string> schedule{};  // by stage, an order of one's own; empty: Megatron's
  bool overlap_p2p = false;
  bool batch_p2p_sync = true;
};

// A group that the program makes calls on.
struct ProgramGroup {
  ParallelGroup kind = ParallelGroup::tensor;
  std::int64_t number = 0;
  bool backward = false;  // pairs have one for each direction, so that messages match in order
};

struct GradientBucket {
  std::int64_t elements = 0;  // padding included
  bool expert = false;
  std::int64_t ranks = 1;  // that share it
  sim::Kernel scale{};
  NamedCall reduce{};
  NamedCall gather{};
};

struct StageProgram {
  struct Chunk {
    std::vector<StageOp> forward;
    std::vector<StageOp> backward;
  };
  std::vector<PipelineStep> schedule;
  std::vector<Chunk> chunks;
  std::vector<GradientBucket> buckets;  // of all chunks, in backward's order
  std::vector<NamedCall> finish;        // behind the reductions
  std::vector<sim::Kernel> optimizer;
  NamedCall send_forward{}, recv_forward{}, send_backward{}, recv_backward{};
  bool odd = false;  // its turn to receive first
};

struct ModelParallelProgram {
  std::vector<StageProgram> stages;
  std::vector<ProgramGroup> groups;  // by the calls' group
  CallTable calls;
  ParallelSizes sizes;
  bool overlap_grad_reduce = false;
  bool overlap_param_gather = false;
  bool distributed_optimizer = true;
  bool overlap_p2p = false;
  bool batch_p2p_sync = true;
  std::int64_t micro_batches = 1;
  std::int64_t iteration_count = 0;
};

// Error: see shard(); micro-batches that the interleaved schedule cannot divide; a schedule that
// leaves something out.
Result<ModelParallelProgram> build_model_parallel(const NeuralNetwork& network,
                                                  const ModelParallelOptions& options,
                                                  const KernelModel& kernels, sim::Trace& trace);

// Kernels of one iteration of a stage, alone.
sim::Duration compute_alone(const StageProgram& stage);

// The control flow of one rank (WorkloadRank::index). `program` and `rank` must outlive it.
sim::Task run_model_parallel(const ModelParallelProgram& program, WorkloadRank& rank);

}  // namespace railyard::models
