// Hierarchical AllReduce, an algorithm of our own (NCCL has none of two levels in this form):
// ReduceScatter around a ring inside each of N nodes of L ranks, AllReduce of every rank's part
// around a ring of the ranks with the same place in all nodes, AllGather inside the nodes.
//
// The three are lanes of one channel and a third of its CTA each. They work in the output and hand
// over chunk by chunk (signals), so the phases of successive chunks overlap. Every loop covers L
// chunks; a chunk is N sub-chunks of at most 512 KiB, at most 2 MiB in all, halved while a block
// has fewer than 4 chunks and a sub-chunk more than 32 KiB.
//
// Bytes a rank sends of B: 2 (L-1)/L B inside its node, 2 (N-1)/N B/L to other nodes.
#pragma once

#include "algorithms/builder.h"
#include "algorithms/point_to_point.h"

namespace railyard::algorithms {

sim::Schedule hierarchical_schedule(const BuildInput& input, const P2pLayout& layout);

}  // namespace railyard::algorithms
