// NVLS: sums and multicast in the NVSwitch (multimem.ld_reduce, multimem.st). NVLSTree: NVLS inside
// every node, a tree of the heads of one rail across nodes.
//
// Lanes of a channel, with h heads in a node of g ranks (weights of the flows in parentheses):
//   scatter    every rank: block k of its input into the buffer that head k sums, then all heads
//              are told at once                                                     (local copy)
//   reduce     head k: sum of block k over the node   (each GPU's uplink 1, the head's downlink 1),
//              NVLSTree: and of its children in the tree, to its parent; the root, or NVLS: stores
//              to all GPUs                        (head's uplink 1 more, each GPU's downlink 1
//              more)
//   broadcast  NVLSTree, head k below the root: what comes down, to all GPUs of the node and to its
//              children                               (the head's uplink 1, each GPU's downlink 1)
//   gather     every rank: block k from the buffer of head k to its output            (local copy)
// AllReduce of B bytes: each GPU sends B + B/g and receives B + B/g where all are heads.
// AllGather has no scatter and sums nothing, ReduceScatter has no gather; every rank is a head.
//
// CTA warps, of 20: NVLS AllReduce reduce 7 (g <= 6) or 5, the rest scatter (the odd one) and
// gather; AllGather gather 8; ReduceScatter scatter 8. NVLSTree: reduce 5, broadcast 4; the root
// reduce 7 or 5. NCCL moves all blocks of a scatter or gather in one operation; here each is one,
// at the same overhead in sum. Left out: registered buffers.
// Source: NCCL 2.30, all_reduce.h, all_gather.h, reduce_scatter.h, nvls.cc.
#pragma once

#include "algorithms/builder.h"
#include "algorithms/point_to_point.h"

namespace railyard::algorithms {

sim::Schedule nvls_schedule(const BuildInput& input);
// `layout`: for the NICs between nodes.
sim::Schedule nvls_tree_schedule(const BuildInput& input, const P2pLayout& layout);

}  // namespace railyard::algorithms
