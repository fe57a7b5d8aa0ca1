// PAT (parallel aggregated trees) AllGather and ReduceScatter, where every rank is a node of its
// own. One lane per rank and channel, with a connection for every dimension; the order of
// operations is that of algorithms/pat_order.h, once per chunk.
//
// Chunks: 512 KiB, halved while 32 (AllGather) or 16 (ReduceScatter) of them are more than the
// channel carries in total, down to 64 KiB. Bytes sent by a rank per channel part of b bytes per
// rank, n a power of two: (n - 1) b, of which 2^(log2 n - 1 - d) b on dimension d.
// Source: NCCL 2.30, all_gather.h, reduce_scatter.h, enqueue.cc.
#pragma once

#include "algorithms/builder.h"
#include "algorithms/point_to_point.h"

namespace railyard::algorithms {

// AllGather or ReduceScatter, at least two ranks.
sim::Schedule pat_schedule(const BuildInput& input, const P2pLayout& layout);

}  // namespace railyard::algorithms
