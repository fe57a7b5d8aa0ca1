// Training that averages over all ranks only now and then.
//
// post-local SGD, as PyTorch has it (ddp_comm_hooks/post_localSGD_hook.py,
// model_averaging/averagers .py, optim/post_localSGD_optimizer.py): DDP with a hook that reduces
// every bucket
//   over all ranks       in the first `start` iterations (start_localSGD_iter)
//   over the subgroup    after them; without post_local_gradient_allreduce over nobody
// and behind the optimizer of iteration start + 1 + k period (k = 0, 1, ...) the parameters are
// averaged: flattened, divided, the HOST waits for the whole GPU, one AllReduce, views of it after.
//
// DiLoCo: workers, each one subgroup (or one rank), that train by themselves with DDP inside;
// behind the optimizer of every period-th iteration the outer gradient, parameters at the last
// averaging minus those now, is reduced over the ranks of `average` and an outer step with Nesterov
// momentum taken, which also overwrites the worker's parameters. One flat AllReduce; nothing
// overlaps it.
//
// Streams and buckets are those of DDP (../ddp): gradients are copied into buckets undivided and
// divided there, buffers broadcast in every forward over DDP's own group (all ranks; DiLoCo: the
// subgroup). Bytes per rank in a local iteration, g of gradients over a subgroup of n: 2 g (n-1)/n;
// every period-th 2 p (N-1)/N more, p of parameters.
//
// Not modelled: gradient accumulation, find_unused_parameters, HierarchicalModelAverager, streaming
// or compressed outer gradients.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/ddp/buckets.h"
#include "models/workload/layers.h"
#include "models/workload/rank.h"
#include "sim/enum_table.h"

namespace railyard::models {

enum class LocalSgd : std::uint8_t { post_local_sgd, diloco };

// Groups of the program, as GroupCall::group counts them.
inline constexpr std::uint32_t kAllGroup = 0;
inline constexpr std::uint32_t kSubgroup = 1;  // only where there is one
inline constexpr std::uint32_t kAverageGroup = 2;

struct LocalSgdOptions {
  LocalSgd algorithm = LocalSgd::post_local_sgd;
  LayerOptions layers;
  BucketOptions buckets;
  std::int64_t start = 0;  // start_localSGD_iter; 0 for DiLoCo
  std::int64_t period = 4;
  bool subgroup = false;                    // gradients are reduced in one after `start`
  std::uint32_t average_group = kAllGroup;  // or kAverageGroup, where that is another
  bool broadcast_buffers = true;
  std::int64_t optimizer_bytes = 20;
  std::int64_t iterations = 3;
};

// Over which group iteration `iteration` (from 1) reduces gradients, and whether it averages.
std::optional<std::uint32_t> gradient_group(const LocalSgdOptions& options, std::int64_t iteration);
bool averages(const LocalSgdOptions& options, std::int64_t iteration);

struct LocalSgdProgram {
  struct Pass {
    std::vector<sim::Kernel> kernels;
    std::vector<std::uint32_t> parameters;  // whose gradients are then complete (DDP indices)
  };
  std::vector<sim::Kernel> forward;
  std::vector<Pass> backward;
  std::vector<sim::Kernel> copy_in;  // by DDP index
  std::vector<sim::Kernel> copy_out;
  BucketPlan plan;
  // By group, then as `plan`: the division of each bucket and its AllReduce.
  struct Bucket {
    sim::Kernel divide;
    NamedCall call;
  };
  std::array<std::array<std::vector<Bucket>, 3>, 2> buckets;
  std::vector<NamedCall> rebuild;
  std::vector<NamedCall> buffers;
  std::vector<sim::Kernel> flatten_buffers;  // as many
  std::vector<sim::Kernel> optimizer;
  std::vector<sim::Kernel> before_average;
  NamedCall average;
  std::vector<sim::Kernel> after_average;
  CallTable calls;
  LocalSgdOptions options;
};

Result<LocalSgdProgram> build_local_sgd_program(const NeuralNetwork& network,
                                                const LocalSgdOptions& options,
                                                const KernelModel& kernels, sim::Trace& trace);

// The control flow of one rank. `program` and `rank` must outlive it.
sim::Task run_local_sgd(const LocalSgdProgram& program, WorkloadRank& rank);

}  // namespace railyard::models

template <>
struct railyard::sim::EnumTable<railyard::models::LocalSgd> {
  using LocalSgd = railyard::models::LocalSgd;
  static constexpr std::string_view kind = "algorithm";
  static constexpr std::array entries{EnumEntry{LocalSgd::post_local_sgd, "post_localSGD"},
                                      EnumEntry{LocalSgd::diloco, "DiLoCo"}};
};
