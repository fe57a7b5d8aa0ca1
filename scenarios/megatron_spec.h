// What `megatron:` says, and its two programs: data parallelism alone, and with model parallelism.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/megatron/data_parallel.h"
#include "models/megatron/stage_ops.h"
#include "scenarios/scenario.h"
#include "scenarios/training_result.h"
#include "scenarios/training_spec.h"
#include "scenarios/workload.h"

namespace railyard::scenarios {

// Megatron's own names and defaults.
struct MegatronSpec : TrainingSpec {
  std::string group{kWorld};  // data-parallel, where nothing else is
  bool use_distributed_optimizer = true;
  bool overlap_grad_reduce = false;
  bool overlap_param_gather = false;
  bool grad_reduce_in_fp32 = false;
  std::int64_t ddp_bucket_size = 0;
  std::int64_t gradient_accumulation = 1;
  std::optional<std::int64_t> global_batch_size;  // gives the number of micro-batches
  models::ParallelSizes sizes;
  models::ContextComm cp_comm_type = models::ContextComm::p2p;
  double moe_expert_capacity_factor = 0;       // 0: no token is dropped, none is padded
  std::vector<std::string> pipeline_schedule;  // by stage: "F0 F1 B0 B1"; empty: Megatron's
  bool overlap_p2p_comm = false;
  bool batch_p2p_sync = true;
  // Some other parallelism than that of the data.
  [[nodiscard]] bool model_parallel() const {
    return sizes.tensor > 1 || sizes.context > 1 || sizes.pipeline > 1 || sizes.expert > 1;
  }
};

// How many micro-batches a data-parallel rank computes per step. Error at global_batch_size.
sim::Result<std::int64_t> micro_batches(const MegatronSpec& spec, std::int64_t data_parallel);

models::MegatronOptions data_options(const MegatronSpec& spec, std::int64_t data_parallel,
                                     std::int64_t micro_batches);

// GB of a rank whose parameters, with padding, are so many, of which it owns some in the optimizer.
std::vector<MemoryRow> memory_of(double elements, double owned,
                                 const models::MegatronOptions& options);

std::shared_ptr<const Workload> make_model_parallel(MegatronSpec spec);

}  // namespace railyard::scenarios
