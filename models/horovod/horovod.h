// Horovod's DistributedOptimizer under PyTorch. Read next to horovod/torch/optimizer.py and
// horovod/common/operations.cc, controller.cc, ops/nccl_operations.cc:
//
//   training thread    backward; per gradient its hook: with compression a cast, then the tensor is
//                      put into the queue with an event of the compute stream. In step() the HOST
//                      waits for every tensor, the compute stream casts back, then the optimizer
//   background thread  wakes every cycle_time (HOROVOD_CYCLE_TIME), counted from the last wake-up,
//   or
//                      as soon as the work of the last cycle allows. All ranks' bit-vectors of
//                      ready tensors are combined on the CPU, so all ranks' cycles meet: a cycle
//                      begins with the latest rank. A tensor goes ahead when all ranks have it; one
//                      that misses a cycle waits for the next. Order is rank 0's in the first
//                      iteration, kept by the response cache. Then, buffer by buffer (fusion.h),
//                      the HOST waits until the tensors are there on its GPU, and launches on
//                      Horovod's own stream: copy into the fusion buffer, AllReduce, copy out with
//                      the division. A single tensor is reduced and divided in place
//
// The first backward_passes_per_step - 1 passes accumulate gradients and send nothing.
//
// The bit-vectors' AllReduce takes ceil(log2 ranks) messages of `controller_latency` (recursive
// doubling over MPI or Gloo); in the first iteration, before the cache knows the tensors, requests
// are gathered on rank 0 and responses broadcast: twice as many again. Neither loads the network.
// Not modelled: hierarchical AllReduce, autotuning, grouped AllReduce, broadcast of the parameters
// at the start, a stream per thread for finalising.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/horovod/fusion.h"
#include "models/workload/layers.h"
#include "models/workload/rank.h"

namespace railyard::models {

struct HorovodOptions {
  LayerOptions layers;
  std::int64_t ranks = 1;
  sim::Duration cycle_time = sim::microseconds(1000);  // HOROVOD_CYCLE_TIME
  std::int64_t fusion_threshold = kDefaultFusionThreshold;
  sim::Duration controller_latency = sim::microseconds(25);
  bool fp16_compression = false;  // hvd.Compression.fp16
  std::int64_t backward_passes_per_step = 1;
  std::int64_t optimizer_bytes = 20;
  std::int64_t iterations = 3;
};

struct HorovodProgram {
  struct Pass {
    std::vector<sim::Kernel> kernels;
    std::vector<std::uint32_t> tensors;  // whose gradients are then complete
  };
  std::vector<sim::Kernel> forward;
  std::vector<Pass> backward;
  std::vector<HorovodTensor> tensors;  // parameters with a gradient, registration order
  std::vector<std::uint32_t> arrival;  // all of them that get one, in gradient order
  std::vector<sim::Kernel> compress;   // by tensor; empty without compression
  std::vector<sim::Kernel> decompress;
  std::vector<sim::Kernel> accumulate;  // by tensor
  std::vector<sim::Kernel> divide;      // by tensor, in place
  std::vector<sim::Kernel> optimizer;
  HorovodOptions options;
  KernelModel kernels;
  std::uint32_t copy_in = 0;  // trace names
  std::uint32_t copy_out = 0;
  std::uint32_t all_reduce = 0;
};

// `calls` gets what a step would make if every tensor were ready in one cycle: what it really makes
// shows while it runs.
Result<HorovodProgram> build_horovod_program(const NeuralNetwork& network,
                                             const HorovodOptions& options,
                                             const KernelModel& kernels, sim::Trace& trace,
                                             CallTable& calls);

// How long the combination of the ranks' bit-vectors takes once the last of them is there.
sim::Duration negotiation_time(const HorovodOptions& options, bool cached);

// All ranks of a run: what their controllers agree on. Must outlive it.
class HorovodJob {
 public:
  explicit HorovodJob(const HorovodProgram& program);
  ~HorovodJob();
  // The program of a rank; all are made before one runs.
  sim::Task start(WorkloadRank& rank);
  // An AllReduce that could not be planned; the job then stopped.
  [[nodiscard]] const std::optional<sim::Error>& failure() const;
  // Buffers of the last iteration, over all cycles, and cycles in which something was reduced.
  [[nodiscard]] const std::vector<FusedTensors>& last_buffers() const;
  [[nodiscard]] std::int64_t last_cycles() const;

 private:
  class Controller;
  class Process;
  const HorovodProgram& program_;
  std::unique_ptr<Controller> controller_;
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace railyard::models
