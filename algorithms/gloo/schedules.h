// Gloo's collectives as schedules: those of its current interface, which PyTorch's Gloo back end
// calls. n ranks; a rank r has lanes of role gloo_reduce (the caller adds up what arrives) and
// gloo_move (data arrive where they belong); phases are batches, since a rank begins the next one
// when it has done with the one before.
//
//   AllReduce  ring: segments (segments.h) go from r to r - 1. First n - 1 chunks are summed on
//              their way, beginning with chunk r + 1, so that r ends with the sum of its own; then
//              n - 1 chunks are passed on. In step i a rank finishes what it received in step
//              i - 2, then sends: two segments are on their way at once
//   Reduce     the same first phase, in which, as in the library, count - 2 segments are sent
//              rather than count - k (those beyond are never used); then every rank sends its
//              chunk to the root in one message
//   AllGather  ring from r to r + 1, each rank's block in two halves; first a copy into place
//   Broadcast  binomial tree: in round i those of distance below 2^i from the root send the whole
//              buffer to the rank 2^i further on
//   AllReduce, bcube  ranks fall into groups of two, the last of what is left (6 = 2 x 3): members
//              of a group are 1, 2, 4, ... apart. In each step a member sends every other one its
//              part of the region at hand, adds up its own part and goes on with that; then the
//              same backwards with the sums
//
// Source: pytorch/gloo, allreduce.cc, reduce.cc, allgather.cc, broadcast.cc. A receiver asks for a
// segment before it is sent, which is the credit of a connection with `kInFlight` slots.
// Not modelled: a receiver that comes late is sent its first two segments all the same, where the
// library would wait for it; empty segments cost a message. Gloo has no ReduceScatter here (PyTorch
// makes it of an AllReduce), and its AllToAll, Gather and Scatter are left out.
// Cost: O(ranks) lanes; a ring's programs have O(segments) operations, shared by all ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collective.h"
#include "sim/ids.h"
#include "sim/schedule.h"

namespace railyard::algorithms::gloo {

// A call on at least two ranks; references outlive the build.
struct GlooInput {
  const sim::CollectiveCall& call;
  std::uint32_t ranks = 2;
  const std::vector<sim::DeviceId>& nics;   // by rank: the one interface of its host; or invalid
  const std::vector<std::uint32_t>& hosts;  // by rank
};

sim::Schedule ring_all_reduce(const GlooInput& input);
sim::Schedule bcube_all_reduce(const GlooInput& input);
sim::Schedule ring_all_gather(const GlooInput& input);
sim::Schedule tree_broadcast(const GlooInput& input);
sim::Schedule ring_reduce(const GlooInput& input);

}  // namespace railyard::algorithms::gloo
