// Tree AllReduce. Source: NCCL 2.30, runTreeSplit. Each channel pushes its part chunk by chunk up
// its tree and the sum down again; every tree edge carries the channel's part once each way.
//
//   root    one lane: recvReduceCopySend from and to all children
//   others  two lanes of one CTA, which run at the same time:
//             up    leaf send; inner recvReduceSend from the children to the parent
//             down  leaf recv; inner recvCopySend from the parent to the children
//
// Share of the CTA's threads: Simple 384 of 640 up (60 %), LL and LL128 70 % up; plain has no copy
// cost, 50 %. Memory O(ranks x channels); five programs at most.
#pragma once

#include "algorithms/builder.h"
#include "sim/schedule.h"

namespace railyard::algorithms {

// `input` has at least two ranks and channels with trees.
sim::Schedule tree_schedule(const BuildInput& input);

}  // namespace railyard::algorithms
