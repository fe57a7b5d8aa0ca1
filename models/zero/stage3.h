// ZeRO stage 3, step by step, as DeepSpeed runs it on every rank. Read next to
// deepspeed/runtime/zero/stage3.py, partitioned_param_coordinator.py, partition_parameters.py and
// deepspeed/runtime/comm/coalesced_collectives.py:
//
//   every module, forward and backward (models/zero/parameter_trace.h says which parameters)
//     fetch    one coalesced AllGather on the all-gather stream of what is needed and not there
//     wait     of every parameter on its way: at most three are not yet there before the HOST
//              waits for the oldest (memory); the all-gather stream waits, and copies out what
//              was gathered together with others; the compute stream waits for it
//     prefetch one coalesced AllGather, once the first pass has recorded the trace
//     kernels
//     release
//   gradients  as each arrives the reduce stream waits for the compute stream and copies it into
//              the open bucket; one that would overflow it reduces it first. At most three
//              reductions are under way before the host waits. Interleaved by owner, divided by
//              N, ReduceScatter; without reduce_scatter AllReduce. The rank's part is kept
//   end        of backward: the last bucket; the host waits for the reduce stream
//   step       norm (AllReduce of one fp32), the optimizer sub-group by sub-group, AllGather of
//              each persistent parameter
//
// overlap_comm (default) gives both streams of their own; without it all is on the compute stream.
// Both use the data-parallel group, so its communicator runs their collectives in order of issue.
//
// Sizes. A parameter of n elements has N parts of ceil(n / N). Per rank, with p and g the padded
// elements x sizes: AllGather p (N-1)/N per pass over parameters that are not there, so 2 p per
// micro-batch less what is persistent or reused within the reuse distance; ReduceScatter g (N-1)/N
// per micro-batch. hpZ: what forward released is gathered over h ranks until the step. qwZ: int8
// and an fp32 scale per 8000 elements, in two AllGathers. qgZ, for matrices whose elements divide
// by 2 N: int4 exchanged in the node (g4 (L-1)/L, g4 = n/2 bytes), reduced, then between M nodes
// (g4/L (M-1)/M).
//
// Stops being valid: offload, NVMe, leaf modules, parameters whose order changes, scales of qgZ.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/workload/rank.h"
#include "models/zero/options.h"
#include "models/zero/parameter_trace.h"

namespace railyard::models {

struct Stage3Program {
  // A coalesced AllGather.
  struct Gather {
    std::vector<sim::Kernel> before;
    std::vector<NamedCall> calls;
    std::vector<sim::Kernel> after;  // when it is waited for
  };
  struct Module {
    std::vector<std::uint32_t> fetch;     // gathers
    std::vector<std::uint32_t> waits;     // gathers, one entry per parameter waited for
    std::vector<std::uint32_t> prefetch;  // gathers
    std::vector<sim::Kernel> kernels;
    std::vector<sim::Kernel> after;  // second copies that hpZ keeps
  };
  struct PassPlan {
    std::vector<Gather> gathers;
    std::vector<Module> modules;
  };
  struct Arrival {
    sim::Kernel copy;
    std::optional<std::uint32_t> reduces;  // the bucket that must go before
  };
  struct Bucket {
    std::vector<sim::Kernel> before;
    std::vector<NamedCall> reduce;  // between two of qgZ the kernel that reduces
    std::vector<sim::Kernel> after;
    sim::Kernel accumulate;
  };
  std::array<PassPlan, 3> passes;  // by Pass
  std::size_t forward_modules = 0;
  std::vector<std::vector<Arrival>> arrivals;  // by module of backward
  std::vector<Bucket> buckets;
  std::vector<sim::Kernel> before_norm;
  NamedCall norm;
  NamedCall overflow;
  std::vector<sim::Kernel> optimizer;
  std::vector<NamedCall> persistent;  // AllGather of each
  CallTable calls;
  ZeroOptions options;
};

Result<Stage3Program> build_stage3_program(const NeuralNetwork& network, const ZeroOptions& options,
                                           const KernelModel& kernels, sim::Trace& trace);
ZeroMemory stage3_memory(const NeuralNetwork& network, const ZeroOptions& options);

// Streams that a rank adds to its own, in this order.
inline constexpr std::array<std::string_view, 2> kStage3Streams{"all-gather", "reduce"};

// The control flow of one rank. `program` and `rank` must outlive it.
sim::Task run_stage3(const Stage3Program& program, WorkloadRank& rank);

}  // namespace railyard::models
