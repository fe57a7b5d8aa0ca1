// The operations that are timed. Sizes are counted as nccl-tests counts them, in bytes per rank:
//
//   AllReduce, Broadcast, SendRecv   the message; every rank sends to the next in SendRecv
//   AllGather, ReduceScatter         the whole vector, of which a rank has 1/n
//   AlltoAll                         what a rank sends to all ranks together
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/probes/nccl/ranks.h"

namespace railyard::probe::nccl {

struct Operation {
  const char* name;
  bool divided;  // into one part per rank
  void (*enqueue)(const Ranks& ranks, LocalRank& rank, std::size_t count);
};

const std::vector<Operation>& operations();
const Operation& operation_of(const std::string& name);  // throws UsageError

// Elements (floats) of one call for `bytes`; 0 when there is less than one per rank.
std::size_t count_of(const Operation& operation, std::int64_t bytes, int world);

// One call on every local rank, as one group.
void enqueue(const Operation& operation, const Ranks& ranks, std::size_t count);

// What NCCL's own model says of that call, microseconds; negative when it says nothing.
double estimate(const Operation& operation, const Ranks& ranks, std::size_t count);

}  // namespace railyard::probe::nccl
