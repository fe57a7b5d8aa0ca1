// CollNet AllReduce: the sum across nodes is made in fabric switches (SHARP). The heads of all
// nodes send what their node summed to the switch in which they meet, and receive the total: every
// NIC carries B / heads each way.
//
// Direct (NVSwitch nodes). Lanes of a channel: scatter, every rank sends block k to head k of its
//   node, starting with the next head; up, head k sums what it gets and its own and sends it to the
//   switch; down, head k copies the total to its output and to the other ranks; gather. CTA
//   threads, of 640: scatter 128, gather 96, down 128, up the rest; a head alone in its node 224
//   down, the rest up; a rank that is no head 320 scatter, 192 gather.
// Chain. Channel c has one head, c mod heads. Up: a chain of the node's ranks that ends at the
// head;
//   down: back. Half of the CTA each.
//
// One more lane per head stands for the switch, with the head of the first node as its rank. NCCL
// deals out chunks to channels in turns; here every channel has a contiguous part.
// Source: NCCL 2.30, all_reduce.h, coll_net.cc, connect.cc.
#pragma once

#include "algorithms/builder.h"
#include "algorithms/point_to_point.h"

namespace railyard::algorithms {

sim::Schedule collnet_direct_schedule(const BuildInput& input, const P2pLayout& layout);
sim::Schedule collnet_chain_schedule(const BuildInput& input, const P2pLayout& layout);

}  // namespace railyard::algorithms
