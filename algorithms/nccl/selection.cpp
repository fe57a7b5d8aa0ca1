#include "algorithms/nccl/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include "algorithms/nccl/chunks.h"
#include "algorithms/nccl/constants.h"
#include "algorithms/nccl/group.h"
#include "algorithms/split.h"

namespace railyard::algorithms::nccl {
namespace {

constexpr std::int32_t kWarp = 32;
constexpr std::int32_t kAllThreads = 640;
constexpr float kLossyPenalty = 1024;  // fp8 rings of many ranks lose precision
constexpr std::int32_t kLossyRanks = 8;

bool is_fp8(DataType type) { return type == DataType::float8e4m3 || type == DataType::float8e5m2; }

bool nvls_reduces(DeviceOp op, DataType type) {
  switch (type) {
    case DataType::int32:
    case DataType::uint32:
    case DataType::int64:
    case DataType::uint64:
    case DataType::float16:
    case DataType::bfloat16: return op == DeviceOp::sum || op == DeviceOp::min_max;
    case DataType::float32:
    case DataType::float64: return op == DeviceOp::sum;
    case DataType::int8:
    case DataType::uint8:
    case DataType::float8e4m3:
    case DataType::float8e5m2: break;
  }
  return false;
}

// What the SHARP plugin reduces in the network; NCCL asks the plugin.
bool collnet_reduces(DeviceOp op, DataType type) {
  const bool narrow = type == DataType::int8 || type == DataType::uint8 || is_fp8(type);
  return op != DeviceOp::prod && !narrow;
}

bool usable(const CommInfo& info, const Task& task, Algorithm algorithm) {
  const bool gathers = task.function == Function::all_gather;
  const bool collnet = info.collnet && (gathers || task.function == Function::broadcast ||
                                        collnet_reduces(task.op, task.type));
  if (is_collnet(algorithm)) return collnet && info.max_local_ranks <= kDirectArity + 1;
  if (is_nvls(algorithm)) {
    const bool reduces = gathers || nvls_reduces(task.op, task.type);
    const bool fits =
        task.function == Function::all_reduce || info.local_ranks.front() <= kNvlsArity;
    const bool joined = algorithm == Algorithm::nvls_tree || info.nodes == 1 || collnet;
    return info.nvls_support && reduces && fits && joined;
  }
  const bool scales = task.op == DeviceOp::premul_sum || task.op == DeviceOp::sum_post_div;
  return algorithm != Algorithm::pat || task.function != Function::reduce_scatter || !scales;
}

PerAlgorithm<float> cost_table(const CommPlan& plan, const Task& task, std::uint64_t bytes,
                               std::int32_t pipe_ops) {
  PerAlgorithm<float> costs;
  for (auto& row : costs) row.fill(-1);
  for (const Algorithm a : kAllAlgorithms) {
    if (!usable(plan.info, task, a)) continue;
    const bool lossy = is_fp8(task.type) && a == Algorithm::ring && plan.info.ranks > kLossyRanks;
    for (const Protocol p : kAllProtocols) {
      float& cost = costs[index_of(a)][index_of(p)];
      cost = model_time(plan.info, plan.tuning,
                        {.function = task.function,
                         .algorithm = a,
                         .protocol = p,
                         .bytes = bytes,
                         .pipe_ops = pipe_ops});
      if (lossy) cost *= kLossyPenalty;
    }
  }
  return costs;
}

sim::Result<void> pick_cheapest(const CommPlan& plan, const Task& task, Choice& choice) {
  float best = std::numeric_limits<float>::max();
  bool found = false;
  for (const Algorithm a : kAllAlgorithms)
    for (const Protocol p : kAllProtocols) {
      const float cost = choice.costs[index_of(a)][index_of(p)];
      if (cost < 0 || cost >= best) continue;
      best = cost;
      found = true;
      choice.algorithm = a;
      choice.protocol = p;
    }
  choice.time_us = best;
  if (found) return {};
  return sim::bad_input(fmt::format("no algorithm and protocol available for {} of {}{}",
                                    sim::to_text(task.function), sim::to_text(task.type),
                                    plan.lists_text));
}

// CollNetDirect: halves what it asks of a thread at 1.5 times every power of two it passes.
std::int32_t direct_channels(const CommInfo& info, std::int64_t bytes, std::int64_t threads,
                             std::int64_t threshold) {
  std::int32_t channels = info.channels;
  const auto too_small = [&] { return bytes < channels * threads * info.direct_heads * threshold; };
  for (std::int32_t level = 16; level >= 1 && too_small(); level /= 2)
    while (channels > level && too_small()) {
      if (channels == level + level / 2) threshold /= 2;
      --channels;
    }
  return channels;
}

void set_launch(const CommPlan& plan, std::int64_t bytes, Choice& choice) {
  const CommInfo& info = plan.info;
  const Algorithm a = choice.algorithm;
  const std::int32_t threads = plan.tuning.max_threads[index_of(a)][index_of(choice.protocol)];
  const std::int64_t threshold =
      plan.tuning.thread_thresholds[index_of(a)][index_of(choice.protocol)];
  choice.max_channels = info.channels;
  choice.threads = threads;
  if (a == Algorithm::collnet_direct) {
    choice.max_channels = direct_channels(info, bytes, threads, threshold);
  } else if (is_nvls(a)) {
    const bool shared = info.nodes > 1 && a == Algorithm::nvls;
    choice.max_channels = shared ? std::min(info.nvls_channels, info.channels) : info.nvls_channels;
  } else {
    const LaunchShape launch = shrink_launch(
        {static_cast<std::uint32_t>(info.channels), static_cast<std::uint32_t>(threads)}, bytes,
        threshold);
    choice.max_channels = static_cast<std::int32_t>(launch.channels);
    choice.threads = static_cast<std::int32_t>(launch.threads);
  }
  const bool simple = choice.protocol == Protocol::simple;
  if (simple && a == Algorithm::ring) choice.threads += kWarp;  // the warp that waits and posts
  choice.threads = std::max(choice.threads / kWarp, 3) * kWarp;
  if (a == Algorithm::tree || a == Algorithm::pat) choice.threads = kAllThreads;
}

// `task`: one call, or several decided together with their counts added.
sim::Result<Choice> decide(const CommPlan& plan, const Task& task, std::int32_t pipe_ops) {
  Choice choice;
  const auto bytes = static_cast<std::uint64_t>(task_bytes(task, plan.info.ranks));
  choice.costs = cost_table(plan, task, bytes, pipe_ops);
  std::int32_t channels = 0;
  if (plan.inputs.tuner)
    channels = apply_tuner(*plan.inputs.tuner,
                           {.function = task.function,
                            .bytes = bytes,
                            .nodes = plan.info.nodes,
                            .ranks = plan.info.ranks,
                            .pipe_ops = pipe_ops},
                           choice.costs);
  RAILYARD_TRY(pick_cheapest(plan, task, choice));
  set_launch(plan, static_cast<std::int64_t>(bytes), choice);
  if (channels != 0) choice.max_channels = channels;
  choice.interleaved =
      is_collnet(choice.algorithm) || (choice.algorithm == Algorithm::nvls && plan.info.nodes > 1);
  return choice;
}

std::int64_t chunk_of(const CommPlan& plan, const Task& task, const Choice& choice,
                      std::int64_t bytes) {
  const std::int64_t all_ranks = is_gather_or_scatter(task.function) ? plan.info.ranks : 1;
  return chunk_bytes(plan, {.function = task.function,
                            .algorithm = choice.algorithm,
                            .protocol = choice.protocol,
                            .channels = choice.interleaved ? choice.max_channels : 1,
                            .bytes = bytes * all_ranks});
}

void set_parts(const CommPlan& plan, const Task& task, const std::vector<Part>& parts,
               Choice& choice) {
  choice.first_channel = static_cast<std::int32_t>(parts.front().channel);
  choice.channels = static_cast<std::int32_t>(parts.size());
  const auto share = [&](const Part& part) {
    return ChannelShare{part.size.raw(), chunk_of(plan, task, choice, part.size.raw())};
  };
  choice.lo = share(parts.front());
  if (parts.size() > 1) choice.hi = share(parts.back());
  if (parts.size() > 2) choice.mid = share(parts[1]);
}

// Calls of one kind, in NCCL's order, onto its channels.
void fill_channels(const CommPlan& plan, std::span<const Task> tasks, bool nvls,
                   std::vector<Choice>& choices) {
  std::vector<SplitTask> split;
  for (const Task& task : tasks) {
    const Choice& choice = choices[task.call];
    split.push_back({.size = sim::bytes(task.bytes),
                     .traffic_per_byte = traffic_per_byte(task.function, plan.info.ranks) *
                                         (choice.protocol == Protocol::ll ? 4 : 1),
                     .max_channels = static_cast<std::uint32_t>(choice.max_channels)});
  }
  const std::int32_t channels = nvls ? plan.info.nvls_channels : plan.info.channels;
  const auto parts = split_tasks(split, static_cast<std::uint32_t>(channels),
                                 launch_rules(plan.inputs.version).split);
  for (std::size_t i = 0; i < tasks.size(); ++i)
    set_parts(plan, tasks[i], parts[i], choices[tasks[i].call]);
}

void share_out(const CommPlan& plan, std::span<const Task> tasks, std::vector<Choice>& choices) {
  for (const bool nvls : {false, true}) {
    std::vector<Task> kind;
    for (const Task& task : tasks) {
      const Choice& choice = choices[task.call];
      if (!choice.interleaved && is_nvls(choice.algorithm) == nvls) kind.push_back(task);
    }
    if (!kind.empty()) fill_channels(plan, kind, nvls, choices);
  }
  for (const Task& task : tasks) {
    Choice& choice = choices[task.call];
    if (!choice.interleaved) continue;
    choice.channels = choice.max_channels;
    choice.lo = {task.bytes, chunk_of(plan, task, choice, task.bytes)};
  }
}

sim::Result<void> check_calls(const CommPlan& plan, std::span<const Call> calls) {
  std::set<std::int32_t> broadcast_roots;
  for (const Call& call : calls) {
    if (call.count < 0) return sim::bad_input("a negative count");
    if (call.root < 0 || call.root >= plan.info.ranks)
      return sim::bad_input(fmt::format("root {} of {} ranks", call.root, plan.info.ranks));
    if (call.function == Function::broadcast && call.count > 0) broadcast_roots.insert(call.root);
  }
  if (broadcast_roots.size() > 1)
    return sim::Error{sim::ErrorCode::unsupported,
                      "broadcasts of several roots in one group run as NCCL's AllGatherV, which is "
                      "not modelled: put them into groups of their own",
                      {}};
  return {};
}

Choice copy_on_one_rank() {
  Choice choice;
  for (auto& row : choice.costs) row.fill(-1);
  choice.costs[index_of(Algorithm::ring)][index_of(Protocol::simple)] = 0;
  choice.channels = 0;
  return choice;
}

}  // namespace

std::int64_t model_bytes(const Call& call, std::int32_t ranks) {
  return call.count * size_of(call.type) * (is_gather_or_scatter(call.function) ? ranks : 1);
}

sim::Result<std::vector<Choice>> choose_group(const CommPlan& plan, std::span<const Call> calls) {
  RAILYARD_TRY(check_calls(plan, calls));
  std::vector<Choice> choices(calls.size(), copy_on_one_rank());
  const std::vector<std::vector<Task>> bunches = bunch_calls(calls, plan.info.ranks);
  std::size_t count = 0;
  for (const std::vector<Task>& bunch : bunches) count += bunch.size();
  if (count == 0 || plan.info.ranks == 1) return choices;
  const auto pipe_ops =
      static_cast<std::int32_t>(div_up(static_cast<std::int64_t>(count), plan.info.channels));
  std::vector<Task> tasks;
  for (const std::vector<Task>& bunch : bunches) {
    Task together = bunch.front();
    for (std::size_t i = 1; i < bunch.size(); ++i) together.bytes += bunch[i].bytes;
    RAILYARD_ASSIGN(const Choice choice, decide(plan, together, pipe_ops));
    for (const Task& task : bunch) {
      choices[task.call] = choice;
      tasks.push_back(task);
    }
  }
  share_out(plan, tasks, choices);
  return choices;
}

sim::Result<Choice> choose(const CommPlan& plan, const Call& call) {
  RAILYARD_ASSIGN(const std::vector<Choice> choices, choose_group(plan, {&call, 1}));
  return choices.front();
}

}  // namespace railyard::algorithms::nccl
