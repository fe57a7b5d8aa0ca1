// The order in which PAT (parallel aggregated trees) handles one chunk of every block.
//
// Dimension d joins ranks that are 2^d apart. AllGather: a block travels from its owner r to the
// ranks r - s for every distance s < n; it reaches distance s on the dimension of s's lowest set
// bit, so every rank sends to r - 2^d and receives from r + 2^d. ReduceScatter is the reverse in
// time and direction: the partial sum for the rank at distance s leaves on that dimension to
// r + 2^d. Distances are written a * delta + low with delta a power of two:
//
//   AllGather      far:  scale = spread/2, spread/4, ..., 1: distances (2a + 1) * scale * delta
//                  near: low in a walk of the binomial tree over 1 .. delta - 1, deep first; for
//                        each all a < spread; an odd low is passed on, then received
//   ReduceScatter  near: low = delta - 1 down to 1; odd: own blocks go out on dimension 0, what
//                        comes in on it is added; even: what comes in on the others is added
//                  far:  scale = 1, 2, ..., spread/2; last the rank's own block
//
// One message holds `aggregate` blocks where they are small; `spread` is larger by up to 8, so that
// so many messages are open at once (the FIFO's depth). Distances of n and more are left out; in
// ReduceScatter's messages, whose places are fixed, they leave gaps.
//
// Source: NCCL 2.30 src/include/collectives.h; arXiv 2506.20252. Left out: successive operations in
// parallel warps. A partial sum to which nobody else adds is begun by the operation that sends it.
//
// Example, n = 8, aggregate 4: AllGather on dimensions 2; 1, 1; 0, 0, 0, 0: three messages.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule.h"
#include "sim/units.h"

namespace railyard::algorithms {

struct PatShape {
  std::uint32_t ranks = 2;
  std::uint32_t aggregate = 1;  // blocks in one message
  std::uint32_t spread = 1;     // distances with the same low part
  std::uint32_t delta = 2;      // spread * delta: ranks, up to a power of two
};

// For blocks of `part` bytes, moved `chunk` bytes at a time over FIFOs of `steps` steps.
PatShape pat_shape(std::uint32_t ranks, sim::Bytes chunk, sim::Bytes part, std::uint32_t steps);

inline constexpr std::int32_t kNoDimension = -1;

struct PatStep {
  std::int32_t recv_dimension = kNoDimension;
  std::int32_t send_dimension = kNoDimension;
  sim::MessagePart recv;
  sim::MessagePart send;
  std::uint32_t distance = 0;  // the block is that of the rank so far above
};

std::uint32_t pat_dimensions(std::uint32_t ranks);  // ceil(log2 ranks)
std::vector<PatStep> pat_all_gather_order(const PatShape& shape);
std::vector<PatStep> pat_reduce_scatter_order(const PatShape& shape);

}  // namespace railyard::algorithms
