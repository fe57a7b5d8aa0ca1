// The calls of one ncclGroupStart/End as NCCL sorts and bunches them before it decides anything.
//
// Order: by traffic in coarse bins (units of 1 KiB, four bins per power of two, all above 1 GiB in
// one), ascending; in a bin as called. Bunch: consecutive calls of one (function, reduction, type)
// whose traffic is less than 4 times the first one's. AllGather and Broadcast count bytes, whatever
// the type. Calls of 0 elements take no part.
//
// Source: NCCL 2.30.7 comm.h (ncclTaskCollSorter), enqueue.cc (ncclPrepareTasks).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/nccl/names.h"

namespace railyard::algorithms::nccl {

struct Call;

// What the kernels know of a reduction.
enum class DeviceOp { sum, prod, min_max, premul_sum, sum_post_div };
DeviceOp device_op(Reduction reduction, DataType type);

struct Task {
  std::size_t call = 0;  // index into the group
  Function function = Function::all_reduce;
  DeviceOp op = DeviceOp::sum;
  DataType type = DataType::float32;
  std::int64_t bytes = 0;  // count x size of the type
};

// Bytes moved per byte of a call: AllReduce 2, AllGather and ReduceScatter the ranks, else 1.
std::int64_t traffic_per_byte(Function function, std::int32_t ranks);

// Bytes the cost model counts: AllGather and ReduceScatter of all ranks.
std::int64_t task_bytes(const Task& task, std::int32_t ranks);

// Calls that are decided together, in the order in which they take channels.
std::vector<std::vector<Task>> bunch_calls(std::span<const Call> calls, std::int32_t ranks);

}  // namespace railyard::algorithms::nccl
