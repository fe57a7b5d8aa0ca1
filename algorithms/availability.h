// Which algorithm exists for which collective, and what it needs of the communicator.
//
//   Ring           AllReduce, AllGather, ReduceScatter, Broadcast, Reduce
//   Tree           AllReduce; channels with trees
//   NVLS           AllReduce, AllGather, ReduceScatter; one node with an NVSwitch, 2 to 32 heads;
//                  all but AllReduce: every rank is a head
//   NVLSTree       AllReduce; at least two nodes, NVSwitches
//   CollNetDirect  AllReduce; NVSwitches; as CollNetChain
//   CollNetChain   AllReduce; at least two nodes that meet in a fabric switch, at most 8 ranks each
//   PAT            AllGather, ReduceScatter; one rank per node
//   Hierarchical   AllReduce; at least two nodes of as many ranks, at least 2
// AllToAll, Gather, Scatter and SendRecv are sends and receives and ask for Ring (the default).
// All but Ring and Tree have Simple (and plain) only. Source: NCCL 2.30, tuning.cc.
#pragma once

#include "algorithms/shape.h"
#include "sim/collective.h"
#include "sim/result.h"

namespace railyard::algorithms {

inline constexpr std::size_t kMaxNvlsHeads = 32;
inline constexpr std::size_t kMaxCollnetRanksPerNode = 8;

// Whether there is such an algorithm at all.
bool has_algorithm(sim::Collective collective, sim::Algorithm algorithm);

// For a group of at least two ranks. Errors say what is missing.
sim::Result<void> check_algorithm(const sim::CollectiveCall& call, const CommShape& shape,
                                  const sim::Channels& channels);

}  // namespace railyard::algorithms
