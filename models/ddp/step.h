// DistributedDataParallel, step by step, as PyTorch runs it on every rank. Read next to
// torch/nn/parallel/distributed.py and torch/csrc/distributed/c10d/reducer.cpp:
//
//   forward    rebuild of the buckets (once: two broadcasts and a host sync), broadcast of buffers
//              (coalesced by type in pieces of 250 MiB, two at a time), then the layers' kernels
//   backward   per layer dgrad, wgrad; per parameter, in arrival order, the hook: one kernel that
//              scales the gradient into its bucket; a bucket that is full is launched if it is next
//              in order, with all complete ones behind it: an event on the compute stream, the
//              group's stream waits for it, one AllReduce
//   finalize   per bucket the compute stream waits for its AllReduce, then one copy kernel per
//              parameter back into the gradient (none with gradient_as_bucket_view). The bitmap of
//              find_unused_parameters, and of a static graph's first iteration, is waited for at
//              the end; at the first parameter that went unused the host itself waits for it
//   step       the optimizer, behind all of that on the compute stream
//   no_sync    with gradient accumulation, all micro-batches but the last run inside no_sync(): the
//              hooks return at once, gradients are added up, nothing is copied or reduced, and the
//              next forward broadcasts no buffers
//   hook       comm_hook.h: copies into the bucket do not divide; the first kernels of a hook run
//   on
//              the compute stream, those behind a collective in the future's callback, on a stream
//              of its own. PowerSGD's last callback waits for the whole GPU
//   optimizer  in backward: every parameter's step follows its bucket's AllReduce on a stream of
//              its own; nothing is copied back, and the end of backward waits for that stream
//   norm       SyncBatchNorm: sync_batch_norm.h
//   join       uneven inputs: join.h
//
//   measured   with host times from a trace: those of the layers, and DdpMeasured's for what stands
//              around them. Then launches cost nothing on top, and kernels that flatten buffers are
//              part of `start`
//
// All of these collectives are in place. Not modelled: the kernel that zeroes the bucket's part of
// an unused parameter; pieces of buffers end at 250 MiB, where PyTorch's end with a whole tensor.
// The host never waits in a steady iteration without unused parameters; it runs ahead of the GPU
// until the launch queue is full, or is the bottleneck itself. All ranks run the same program; they
// differ in what their GPU and host cost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/compute/kernels.h"
#include "models/ddp/buckets.h"
#include "models/ddp/calls.h"
#include "models/ddp/comm_hook.h"
#include "models/ddp/sync_batch_norm.h"
#include "models/nn/network.h"
#include "sim/collective_runner.h"
#include "sim/gpu.h"
#include "sim/host.h"
#include "sim/parameters.h"
#include "sim/trace.h"

namespace railyard::models {

// What a step of a trace took outside of its layers; host times per gradient and per collective.
struct DdpMeasured {
  MeasuredPass start;          // before the buffers' broadcast
  MeasuredPass optimizer;      // behind the last bucket; in place of a modelled one
  sim::Duration hook{};        // a gradient's hook, the launch of its copy into the bucket included
  sim::Duration collective{};  // a collective's launch
  sim::Duration copy_back{};   // the launch of a gradient's copy out of its bucket
};

struct DdpOptions {
  BucketOptions buckets;
  std::int64_t batch_per_gpu = 1;
  Dtype compute = Dtype::fp32;  // of the kernels
  bool autocast = false;        // casts of fp32 weights before each layer
  bool recompute = false;       // activation checkpointing: each layer's forward runs again
  bool broadcast_buffers = true;
  std::int64_t optimizer_bytes = 20;  // HBM traffic per parameter and step; 0 = no optimizer
  int optimizer_states = 1;           // tensors as large as the parameters that it keeps
  std::int64_t iterations = 3;
  std::int64_t accumulation = 1;  // micro-batches per step, all but the last inside no_sync()
  HookOptions hook;
  bool sync_batchnorm = false;  // convert_sync_batchnorm: all batch norms
  std::int64_t ranks = 1;       // of the job
  // DDP.join: how many iterations each rank has inputs for; empty = no join(). At least one has all
  // of `iterations`, none has less than one.
  std::vector<std::int64_t> join;
  std::optional<DdpMeasured> measured;
};

// What DDP puts on the wire in one iteration.
struct DdpCollectives {
  std::vector<sim::PlanId> rebuild;               // broadcasts before the forward, host waits
  std::vector<sim::PlanId> buffers;               // broadcasts before the forward
  std::vector<std::vector<sim::PlanId>> buckets;  // in launch order; invalid = of no bytes
  std::vector<sim::PlanId> unused;                // find_unused_parameters: the bitmap's AllReduce
  std::vector<sim::PlanId> norm_forward;
  std::vector<sim::PlanId> norm_backward;
  std::vector<sim::PlanId> join;         // by JoinCall
  std::vector<sim::PlanId> final_model;  // join: when all have joined
};

// The program of all ranks: kernels with their times, what arrives after which, and the
// collectives. Built once, shared, not changed while it runs.
struct DdpProgram {
  // Kernels and the host's own time around their launches.
  struct Launches {
    std::vector<sim::Kernel> kernels;
    sim::Duration before{};
    sim::Duration after{};
    std::vector<NormSync> syncs;  // ascending
  };
  struct BackwardStep : Launches {          // recomputed forward, dgrad, wgrad
    std::vector<std::uint32_t> parameters;  // whose gradients are then complete (DDP indices)
  };
  Launches start;  // of the iteration
  std::vector<Launches> forward;
  std::vector<BackwardStep> backward;
  std::vector<sim::Kernel> copy_in;     // by DDP index: gradient -> bucket
  std::vector<sim::Kernel> copy_out;    // by DDP index: bucket -> gradient; empty with bucket views
  std::vector<sim::Kernel> accumulate;  // by DDP index: gradient += new one
  std::int64_t accumulation = 1;
  // By entry of `distinct` and bucket.
  std::vector<std::vector<BucketHook>> hooks;
  bool callback_stream = false;                 // some hook has kernels behind a collective
  std::vector<std::vector<sim::Kernel>> zeros;  // join: as `hooks`, of a rank that joined
  Launches optimizer;
  std::vector<sim::Kernel> flatten_buffers;  // as many as DdpCollectives::buffers, or none
  sim::Duration hook{};                      // host, before every gradient's copy into its bucket
  sim::Duration copy_back{};                 // host, before every copy out
  std::vector<std::uint32_t> unused;         // DDP indices
  BucketPlan plan;
  std::int64_t iteration_count = 0;
  std::vector<std::int64_t> distinct;      // iterations that differ: each serves those up to the
                                           // next, ascending from 1
  std::vector<DdpCollectives> iterations;  // by entry of `distinct`
  std::vector<std::int64_t> join;          // of DdpOptions
  [[nodiscard]] std::size_t kind_of(std::int64_t iteration) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(distinct, iteration) -
                                    distinct.begin()) -
           1;
  }
  [[nodiscard]] const DdpCollectives& of_iteration(std::int64_t iteration) const {
    return iterations[kind_of(iteration)];
  }
  std::uint32_t bucket_name = 0;  // Trace names of the collectives
  std::uint32_t buffer_name = 0;
  std::uint32_t rebuild_name = 0;
  std::uint32_t unused_name = 0;
  std::uint32_t norm_name = 0;
  std::uint32_t join_name = 0;
  std::uint32_t final_name = 0;
};

// Iterations that differ from the ones before them, ascending from 1: the buckets are rebuilt
// before the third at the latest, a hook may begin to compress, ranks may join.
std::vector<std::int64_t> distinct_iterations(const DdpOptions& options);

// The calls of iteration `iteration` (from 1).
DdpCalls ddp_calls(const NeuralNetwork& network, const BucketPlan& plan, const DdpOptions& options,
                   std::int64_t iteration);

// Everything but `iterations` (the plans), which the caller fills in.
Result<DdpProgram> build_ddp_program(const NeuralNetwork& network, const DdpOptions& options,
                                     const KernelModel& kernels, sim::Trace& trace);

// Host costs under which a job runs: where they were measured, the program has them itself.
sim::HostParameters ddp_host(const sim::HostParameters& of_profile, const DdpOptions& options);

// One rank: its host, GPU and streams, and the events that mark its iterations.
struct DdpRank {
  struct Marks {
    sim::GpuEventId forward_end, backward_end, end;  // on the compute stream
    std::vector<sim::GpuEventId> bucket_ready;       // by bucket
    std::vector<std::uint32_t> bucket_calls;  // number of the runner's first call of each bucket
  };
  sim::HostThread* host = nullptr;
  sim::StreamId compute;
  sim::StreamId communication;
  sim::StreamId callback;  // of a hook's futures; an optimizer's in backward
  sim::CollectiveRunner* runner = nullptr;
  std::uint32_t group_rank = 0;
  std::uint32_t launched = 0;  // collectives so far: the number of the next one
  std::vector<Marks> marks;    // by iteration
};

// The control flow of one rank. `program` and `rank` must outlive it.
sim::Task run_ddp(const DdpProgram& program, DdpRank& rank);

}  // namespace railyard::models
