// How Megatron-Core divides the ranks of a job: which ranks are tensor-, context-, expert-, data-
// and pipeline-parallel with each other. Read next to RankGenerator in core/parallel_state.py, with
// its default order tp-cp-ep-dp-pp.
//
// N ranks, t x c x q divides them, d = N / (t c q). A pipeline stage is a run of B = N / q ranks;
// the x-th rank of a stage is
//
//   dense layers    x = tp + t (cp + c dp)
//   MoE experts     x = etp + et (ep + E edp)     et = expert_tensor_parallel_size, t by default
//
// and rank s B + x stands in stage s. Ranks that differ in one coordinate only form a group;
// gradients of dense parameters are reduced over dp and cp together, those of experts over edp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/result.h"

namespace railyard::models {

struct ParallelSizes {
  std::int64_t tensor = 1;            // t
  std::int64_t context = 1;           // c
  std::int64_t pipeline = 1;          // q
  std::int64_t virtual_pipeline = 1;  // v: model chunks per stage
  std::int64_t expert = 1;            // E
  std::int64_t expert_tensor = 1;     // et: t or 1
  bool sequence_parallel = false;
  // Of the world, by check_sizes().
  std::int64_t world = 1;
  [[nodiscard]] std::int64_t stage_ranks() const { return world / pipeline; }
  [[nodiscard]] std::int64_t data() const { return stage_ranks() / (tensor * context); }
  [[nodiscard]] std::int64_t expert_data() const {
    return stage_ranks() / (expert * expert_tensor);
  }
};

// Error, with the key of Megatron's argument as its place: the sizes do not divide the world, or
// Megatron asserts against them.
sim::Result<void> check_sizes(const ParallelSizes& sizes);

// The stage of a rank of the world.
std::int64_t stage_of(const ParallelSizes& sizes, std::uint32_t rank);

// What a group is for. Stages reduce their own gradients, so those groups are kept apart by stage;
// the pairs of neighbouring stages are numbered so that no rank is in two pairs of one number.
enum class ParallelGroup : std::uint8_t {
  tensor,
  context,
  expert,
  data,         // dp x cp, by stage
  expert_data,  // by stage
  pair,         // of stages i and i + 1 (mod q), by pair_number()
  embedding     // first and last stage
};

struct RankGroup {
  ParallelGroup kind = ParallelGroup::tensor;
  std::int64_t number = 0;           // the stage, the pair's number; else 0
  std::vector<std::uint32_t> ranks;  // in group-rank order; a pair: the earlier stage first
};

// Pairs (0, 1), (2, 3), ... have number 0, (1, 2), (3, 4), ... number 1, and the pair that closes a
// ring of an odd number of stages has number 2.
std::int64_t pair_number(const ParallelSizes& sizes, std::int64_t stage);

// All groups of two or more ranks, by kind, number and first rank.
std::vector<RankGroup> parallel_groups(const ParallelSizes& sizes);

// "tp", "cp", "ep", "dp 0", "edp 0", "pp 0", "embd": equal for groups of one kind and number.
std::string group_name(ParallelGroup kind, std::int64_t number);

}  // namespace railyard::models
