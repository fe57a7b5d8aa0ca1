// How many channels a communicator has, and how large its buffers are. Called by merge_nodes().
//
// Collective channels: twice the search's; half as many again for CollNet whose chains are faster
// inside a node than between nodes; twice again below 16 channels from Hopper on between nodes,
// where the ring has more than 45 GB/s inside a node, and for networks that unpack on the device.
// Then at most the maxima, then at least the minima asked for. NVLS has a count of its own.
#pragma once

#include <cstdint>

#include "algorithms/nccl/environment.h"

namespace railyard::algorithms::nccl {

struct CommInputs;
struct CommInfo;

// NCCL_MIN_CTAS and NCCL_MAX_CTAS as ncclConfig's fields end up: 1 to 64, the minimum not above.
struct CtaLimits {
  std::int32_t min = 1;
  std::int32_t max = 64;
};
CtaLimits cta_limits(const Environment& env);

void count_channels(const CommInputs& inputs, const Environment& env, CommInfo& info);

}  // namespace railyard::algorithms::nccl
