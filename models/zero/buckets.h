// DeepSpeed's "independent partition gradient" buckets: gradients in the order in which they
// arrive, and after which of them a bucket is reduced. Read next to
// reduce_independent_p_g_buckets_and_remove_grads in deepspeed/runtime/zero/stage_1_and_2.py and
// stage3.py:
//
//   a gradient that would take the open bucket over reduce_bucket_size elements reduces it first;
//   the rest is reduced at the end of backward. A tensor is never cut.
//
// The flat buffer of all parameters that stages 1 and 2 partition is padded to a multiple of 2 N
// elements; rank r owns [r, r + 1) of N equal parts, whatever parameters they cut.
#pragma once

#include <cstdint>
#include <vector>

#include "models/nn/network.h"

namespace railyard::models {

struct ZeroBucket {
  std::vector<std::uint32_t> parameters;  // arrival order
  std::int64_t elements = 0;
};

// `arrivals`: indices of parameters. Cost: O(arrivals).
std::vector<ZeroBucket> zero_buckets(const NeuralNetwork& network,
                                     const std::vector<std::uint32_t>& arrivals,
                                     std::int64_t reduce_bucket_size);

// Parameters that are trained, in registration order, and the elements of their padded flat buffer.
std::vector<std::uint32_t> trained_parameters(const NeuralNetwork& network);
std::int64_t flat_elements(const NeuralNetwork& network, std::int64_t ranks);

// What of a bucket each rank owns, without empty parts, by ascending rank.
struct OwnedPart {
  std::uint32_t rank = 0;
  std::int64_t elements = 0;
};
std::vector<OwnedPart> owned_parts(const NeuralNetwork& network, const ZeroBucket& bucket,
                                   std::int64_t ranks);

}  // namespace railyard::models
