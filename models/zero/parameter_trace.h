// Which parameters ZeRO-3 gathers at which module: the decisions of PartitionedParameterCoordinator
// (deepspeed/runtime/zero/partitioned_param_coordinator.py), made once for every module of a
// forward and backward pass. They depend on the trace alone, not on time.
//
//   fetch   at a module: what it needs and is not there
//   prefetchbehind that, with a complete trace: the next parameters of the queue, until
//           prefetch_bucket_size elements or max_live_parameters are reached; the last one may
//           go over. Parameters that are there already are skipped and marked
//   release behind a module: its parameters, except persistent ones, those a prefetch has
//           skipped, and those that a module needs again within max_reuse_distance elements of
//           the trace
//
// The first pass records the trace: it prefetches nothing and releases everything. hpZ: what
// forward released has a second copy, sharded over the smaller group, until the optimizer's step.
//
// Elements everywhere. Cost: O(uses x modules within the reuse distance).
#pragma once

#include <cstdint>
#include <vector>

namespace railyard::models {

struct TraceLimits {
  std::int64_t prefetch_bucket_size = 50'000'000;
  std::int64_t max_live_parameters = 1'000'000'000;
  std::int64_t max_reuse_distance = 1'000'000'000;
};

struct TracedModel {
  std::vector<std::int64_t> elements;               // by parameter
  std::vector<bool> persistent;                     // by parameter
  std::vector<std::vector<std::uint32_t>> modules;  // parameters in use, ascending; execution order
  std::size_t forward_modules = 0;                  // the rest are backward's
};

enum class Pass : std::uint8_t {
  recording,  // the very first
  first,      // of a step
  later       // of a step's further micro-batches
};

// Parameters gathered together, over the whole group or the smaller one.
struct GatherSet {
  std::vector<std::uint32_t> parameters;  // ascending
  bool secondary = false;
};

struct FetchStep {
  std::vector<GatherSet> fetch;      // at most one of each kind
  std::vector<std::uint32_t> waits;  // parameters that are on their way and needed now
  std::vector<GatherSet> prefetch;
  std::vector<std::uint32_t> keeps_secondary;  // released here, with a second copy
};

struct TracePlan {
  std::vector<FetchStep> steps;  // by module
  std::int64_t most_live = 0;    // elements whole at one time, persistent ones not counted
};

// `secondary`: whether there is a smaller group. Passes of one step see what earlier ones left:
// `has_secondary` (by parameter) is read and brought up to date.
TracePlan plan_trace(const TracedModel& model, const TraceLimits& limits, Pass pass, bool secondary,
                     std::vector<bool>& has_secondary);

}  // namespace railyard::models
