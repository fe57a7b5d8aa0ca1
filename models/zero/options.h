// What DeepSpeed's zero_optimization block says, with its names and its defaults
// (deepspeed/runtime/zero/config.py). Sizes of buckets are ELEMENTS.
#pragma once

#include <cstdint>

#include "models/workload/layers.h"

namespace railyard::models {

// Groups of the program, as GroupCall::group counts them. The last two are there where a
// configuration uses them, in this order.
inline constexpr std::uint32_t kDataParallelGroup = 0;
inline constexpr std::uint32_t kSecondaryGroup = 1;  // of zero_hpz_partition_size ranks
inline constexpr std::uint32_t kIntraNodeGroup = 2;  // of zero_quantized_gradients' first exchange
inline constexpr std::uint32_t kInterNodeGroup = 3;  // of its second

struct ZeroOptions {
  LayerOptions layers;
  int stage = 0;
  Dtype param_dtype = Dtype::bf16;              // of the whole model
  Dtype communication_data_type = Dtype::bf16;  // of reductions
  std::int64_t reduce_bucket_size = 500'000'000;
  std::int64_t allgather_bucket_size = 500'000'000;
  bool all_gather_into_tensor = true;  // PyTorch has it (1.13): allgather_bucket_size is not used
  bool overlap_comm = false;           // stage 3: true
  bool contiguous_gradients = true;
  bool reduce_scatter = true;
  bool use_multi_rank_bucket_allreduce = true;
  std::int64_t stage3_prefetch_bucket_size = 50'000'000;
  std::int64_t stage3_param_persistence_threshold = 100'000;
  std::int64_t stage3_max_live_parameters = 1'000'000'000;
  std::int64_t stage3_max_reuse_distance = 1'000'000'000;
  std::int64_t sub_group_size = 1'000'000'000;
  std::int64_t zero_hpz_partition_size = 1;
  bool zero_quantized_weights = false;
  bool zero_quantized_gradients = false;
  bool check_overflow = false;  // fp16: the host reads whether a gradient is inf or nan
  std::int64_t data_parallel = 1;
  std::int64_t ranks_per_node = 1;    // of zero_quantized_gradients
  std::int64_t optimizer_bytes = 28;  // HBM traffic per fp32 parameter and step; 0 = no optimizer
  int optimizer_states = 2;
  std::int64_t accumulation = 1;
  std::int64_t iterations = 3;
};

// Bytes that a rank holds, without activations and workspaces.
struct ZeroMemory {
  double parameters = 0;  // whole, or shards
  double gathered = 0;    // stage 3: persistent parameters and those that are live at one time
  double gradients = 0;
  double optimizer = 0;  // fp32 master and states
  double buckets = 0;    // of gradients on their way
};

}  // namespace railyard::models
