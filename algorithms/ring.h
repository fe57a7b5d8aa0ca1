// Ring algorithms. Source: NCCL 2.30 device code (all_reduce, all_gather, reduce_scatter,
// broadcast, reduce). Per channel, p = distance from rank 0 around the ring; n >= 2 ranks:
//
//   AllReduce      send p-1; n-2 x recvReduceSend; recvReduceCopySend p; n-2 x recvCopySend; recv
//   ReduceScatter  send p-1; n-2 x recvReduceSend; recvReduceCopy p
//   AllGather      copySend p (in place: send); n-2 x recvCopySend; recv
//   Broadcast      chain from the root: copySend (in place: send); recvCopySend ...; recv
//   Reduce         chain that ends at the root: send; recvReduceSend ...; recvReduceCopy
//
// Bytes on each directed ring link, for a message of B bytes (AllGather, ReduceScatter: in all):
// AllReduce 2 (n-1)/n B; AllGather, ReduceScatter (n-1)/n B; Broadcast, Reduce B, and nothing on
// the link that closes the ring. Memory O(ranks x channels): all lanes of a ring share one program.
#pragma once

#include "algorithms/builder.h"
#include "sim/schedule.h"

namespace railyard::algorithms {

// `input` has at least two ranks and a ring collective (not AllToAll).
sim::Schedule ring_schedule(const BuildInput& input);

}  // namespace railyard::algorithms
