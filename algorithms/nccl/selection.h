// What NCCL does with a call, or with the calls of one group: algorithm, protocol, channels and
// threads, how much each channel carries and in what chunks.
//
// 1. Calls of a group are sorted by traffic, coarsely; those of equal (function, reduction, type)
//    whose traffic is less than 4 times the smallest of a bunch are decided as one call.
// 2. Cost of every candidate (tuning.h), minus what this call cannot use; a tuner file may edit it.
// 3. The cheapest; on a tie the first in NCCL's order.
// 4. Channels and threads shrink while threads have little to do.
// 5. Channels are filled one after the other (algorithms/split.h); CollNet, and NVLS between nodes,
//    use all theirs together, chunk by chunk.
//
// Left out, since they need buffers registered with NCCL: symmetric-memory kernels, copy-engine
// collectives, NCCL_CTA_POLICY. A group's calls make one plan (NCCL starts another kernel when a
// group has more work than fits its argument space).
//
// Source: NCCL 2.30.7 enqueue.cc (ncclPrepareTasks, ncclGetAlgoInfo, scheduleCollTasksToPlan,
// calcCollChunking), comm.h (the sorter).
//
//   RAILYARD_ASSIGN(const CommPlan plan, make_comm_plan(inputs, env));
//   RAILYARD_ASSIGN(const Choice choice, choose(plan, {.function = Function::all_reduce,
//                                                      .count = 1 << 20}));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithms/nccl/plan.h"

namespace railyard::algorithms::nccl {

struct Call {
  Function function = Function::all_reduce;
  std::int64_t count = 0;  // NCCL's: AllGather sent, ReduceScatter received by ONE rank
  DataType type = DataType::float32;
  Reduction reduction = Reduction::sum;
  std::int32_t root = 0;
};

struct ChannelShare {
  std::int64_t bytes = 0;  // in the unit of Call::count x size of the type
  std::int64_t chunk = 0;
};

struct Choice {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  float time_us = 0;  // by the model, of the calls decided together
  std::int32_t max_channels = 1;
  std::int32_t threads = 96;
  // Channels first_channel .. first_channel + channels - 1: the first carries `lo`, the last (if
  // there are two or more) `hi`, those between `mid` each.
  std::int32_t first_channel = 0;
  std::int32_t channels = 1;
  ChannelShare lo, mid, hi;
  // All channels together, chunk after chunk: lo.bytes is the whole message.
  bool interleaved = false;
  PerAlgorithm<float> costs{};  // microseconds; negative: no candidate
};

// Errors (NCCL would fail too): nothing left to choose from; a negative count; broadcasts of
// several roots in one group, which NCCL runs as an AllGatherV (unsupported here).
sim::Result<Choice> choose(const CommPlan& plan, const Call& call);
sim::Result<std::vector<Choice>> choose_group(const CommPlan& plan, std::span<const Call> calls);

// Bytes the model counts: of all ranks for AllGather and ReduceScatter.
std::int64_t model_bytes(const Call& call, std::int32_t ranks);

}  // namespace railyard::algorithms::nccl
