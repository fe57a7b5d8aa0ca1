#include "algorithms/nccl/group.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "algorithms/nccl/selection.h"

namespace railyard::algorithms::nccl {
namespace {

// A logarithm with two bits after the point: 0..3 as they are, then four steps per power of two.
std::int32_t coarse_log(std::uint64_t n) {
  if (n < 4) return static_cast<std::int32_t>(n);
  const auto power = static_cast<std::int32_t>(std::bit_width(n)) - 1;
  const auto fraction = static_cast<std::int32_t>((n >> (power - 2)) & 3U);
  return (power - 1) * 4 + fraction;
}

std::int64_t traffic(const Task& task, std::int32_t ranks) {
  return task.bytes * traffic_per_byte(task.function, ranks);
}

std::int32_t size_bin(const Task& task, std::int32_t ranks) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 30;
  return coarse_log(static_cast<std::uint64_t>(std::min(traffic(task, ranks), kLargest)) >> 10);
}

auto key_of(const Task& task) { return std::tuple(task.function, task.op, task.type); }

std::vector<Task> to_tasks(std::span<const Call> calls) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    if (call.count == 0) continue;
    Task task{.call = i,
              .function = call.function,
              .op = device_op(call.reduction, call.type),
              .type = call.type,
              .bytes = call.count * size_of(call.type)};
    if (call.function == Function::all_gather || call.function == Function::broadcast) {
      task.op = DeviceOp::sum;
      task.type = DataType::int8;
    }
    tasks.push_back(task);
  }
  return tasks;
}

}  // namespace

DeviceOp device_op(Reduction reduction, DataType type) {
  switch (reduction) {
    case Reduction::sum: return DeviceOp::sum;
    case Reduction::prod: return DeviceOp::prod;
    case Reduction::max:
    case Reduction::min: return DeviceOp::min_max;
    case Reduction::premul_sum: return DeviceOp::premul_sum;
    case Reduction::avg: break;
  }
  return type <= DataType::uint64 ? DeviceOp::sum_post_div : DeviceOp::premul_sum;
}

std::int64_t traffic_per_byte(Function function, std::int32_t ranks) {
  if (function == Function::all_reduce) return 2;
  return is_gather_or_scatter(function) ? ranks : 1;
}

std::int64_t task_bytes(const Task& task, std::int32_t ranks) {
  return task.bytes * (is_gather_or_scatter(task.function) ? ranks : 1);
}

std::vector<std::vector<Task>> bunch_calls(std::span<const Call> calls, std::int32_t ranks) {
  std::vector<Task> tasks = to_tasks(calls);
  std::ranges::stable_sort(tasks, {}, [&](const Task& task) { return size_bin(task, ranks); });
  std::vector<Task> keys;  // one of each kind, largest first: NCCL meets them in that order
  for (std::size_t i = tasks.size(); i-- > 0;)
    if (std::ranges::find(keys, key_of(tasks[i]), key_of) == keys.end()) keys.push_back(tasks[i]);
  std::vector<std::vector<Task>> bunches;
  for (const Task& key : keys) {
    bool open = false;
    for (const Task& task : tasks) {
      if (key_of(task) != key_of(key)) continue;
      if (!open || traffic(task, ranks) >= 4 * traffic(bunches.back().front(), ranks))
        bunches.emplace_back();
      bunches.back().push_back(task);
      open = true;
    }
  }
  return bunches;
}

}  // namespace railyard::algorithms::nccl
