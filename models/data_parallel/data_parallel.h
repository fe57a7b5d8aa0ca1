// nn.DataParallel: one process, N GPUs, everything through GPU 0. Read next to
// torch/nn/parallel/data_parallel.py, replicate.py, parallel_apply.py and comm.py:
//
//   main thread   scatter of the inputs from GPU 0; replicate: parameters, then buffers, broadcast
//                 from GPU 0 in coalesced pieces of 10 MiB, in EVERY forward
//   N threads     forward of every replica. Python holds one lock (the GIL): of each launch's host
//                 time, `gil_fraction` is spent holding it, first come, first served
//   main thread   gather of the outputs to GPU 0, loss there, scatter of the outputs' gradients
//   N threads     backward, by autograd's own thread of each GPU: no lock
//   main thread   all gradients reduced to GPU 0 in coalesced pieces, when ALL of them are there:
//                 Broadcast is one node of the graph. Then the optimizer, on GPU 0 alone
//
// NCCL in one process: the main thread opens a group, calls it for every GPU, and pays
// collective_launch for each. Pieces: broadcast_coalesced appends a tensor, then closes a piece of
// 10 MiB or more; reduce_add_coalesced closes a piece that the next tensor would push above 10 MiB.
// A piece of several tensors is flattened first: before a broadcast on GPU 0, before a reduce on
// all. The broadcasts of BN's buffers are cut at 10 MiB, as their tensors are not known one by one.
//
// Bytes through GPU 0 per step, p of parameters, b of buffers, x and y of the inputs and outputs of
// the other GPUs: p + b out, p in, x + y out, y in.
//
// Copies between GPUs (scatter, gather) are taken as NCCL's sends and receives; PyTorch uses peer
// copies, which need no SM. Replicating the modules themselves costs the main thread
// `replicate_module` per layer and GPU, which nothing here knows: 0 unless given.
// Not valid for: find_unused replicas, chunks of unequal size, several nodes.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "models/workload/layers.h"
#include "models/workload/rank.h"

namespace railyard::models {

struct DataParallelOptions {
  LayerOptions layers;       // samples per GPU
  std::int64_t devices = 1;  // N
  Bytes input_per_sample{};
  Bytes output_per_sample{};
  std::int64_t optimizer_bytes = 20;  // HBM traffic per parameter and step; 0 = no optimizer
  double gil_fraction = 1;
  sim::Duration replicate_module{};
  std::int64_t iterations = 3;
};

// Tensors that travel together; `flattened` where there are several.
struct CoalescedPiece {
  std::vector<std::uint32_t> parameters;  // indices, registration order
  Bytes size{};
  std::int64_t element_size = 4;
};

inline constexpr std::int64_t kCoalescedBytes = 10'485'760;

// As torch/csrc/utils/tensor_flatten.cpp's take_tensors and torch/_utils.py's _take_tensors cut.
std::vector<CoalescedPiece> broadcast_pieces(const NeuralNetwork& network);
std::vector<CoalescedPiece> reduce_pieces(const NeuralNetwork& network);

struct DataParallelProgram {
  struct Piece {
    NamedCall call;
    std::vector<sim::Kernel> flatten;  // one or none
  };
  NamedCall scatter_inputs;
  NamedCall gather_outputs;
  NamedCall scatter_gradients;
  std::vector<Piece> replicate;
  std::vector<Piece> reduce;
  std::vector<sim::Kernel> forward;
  std::vector<sim::Kernel> loss;  // and its backward
  std::vector<sim::Kernel> backward;
  std::vector<sim::Kernel> optimizer;
  CallTable calls;
  sim::Duration replicate_host{};
  double gil_fraction = 1;
  std::int64_t iteration_count = 0;
};

Result<DataParallelProgram> build_data_parallel_program(const NeuralNetwork& network,
                                                        const DataParallelOptions& options,
                                                        const KernelModel& kernels,
                                                        sim::Trace& trace);

// The process: what its threads share. One per run.
class DataParallelProcess {
 public:
  DataParallelProcess(const DataParallelProgram& program, std::int64_t devices);
  // The thread of a GPU; the main thread is also that of GPU 0. All are made before one runs.
  sim::Task thread(WorkloadRank& rank);

 private:
  struct Step {  // of one iteration
    sim::HostFlag forward, backward;
    std::deque<sim::HostFlag> forward_done, backward_done;  // by GPU
  };
  sim::Task run(WorkloadRank& rank);
  sim::Task main_step(Step& step);
  sim::Task replica_step(WorkloadRank& rank, Step& step);
  sim::Task forward(WorkloadRank& rank, sim::HostFlag& done);
  sim::Task backward(WorkloadRank& rank, sim::HostFlag& done);
  // One NCCL group over all GPUs, behind their compute streams, which wait for it.
  sim::Task collective(NamedCall call);
  sim::Task pieces(const std::vector<DataParallelProgram::Piece>& pieces, bool flatten_everywhere);
  WorkloadRank& main_rank() const { return *ranks_.front(); }

  const DataParallelProgram& program_;
  std::vector<WorkloadRank*> ranks_;  // by GPU
  std::deque<Step> steps_;
  sim::Time gil_free_{};
};

}  // namespace railyard::models
