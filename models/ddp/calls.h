// What DDP calls collectives with, for whoever turns calls into plans.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collective.h"
#include "sim/units.h"

namespace railyard::models {

struct DdpCall {
  sim::Collective collective = sim::Collective::all_reduce;
  sim::Bytes size{};
  std::int64_t element_size = 4;
  std::uint32_t root = 0;  // of a broadcast
};

// The calls of one iteration.
struct DdpCalls {
  std::vector<DdpCall> rebuild;
  std::vector<DdpCall> buffers;
  std::vector<std::vector<DdpCall>> buckets;  // several where a hook makes several
  std::vector<DdpCall> unused;
  std::vector<DdpCall> norm_forward;   // SyncBatchNorm, by its layers in execution order
  std::vector<DdpCall> norm_backward;  // the same layers
  std::vector<DdpCall> join;           // JoinCall's, none without join
  std::vector<DdpCall> final_model;    // join: broadcasts when all have joined

  // One after the other, for sums.
  [[nodiscard]] std::vector<DdpCall> all() const;
};

}  // namespace railyard::models
