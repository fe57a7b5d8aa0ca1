#include "algorithms/split.h"

#include <algorithm>

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bytes;
using sim::Bytes;
using sim::Collective;
using sim::CollectiveCall;
using sim::Protocol;

constexpr std::uint32_t kMinThreads = 96;
constexpr std::uint32_t kTreeThreads = 640;  // of all but Ring
constexpr std::int64_t kCollnetBytesPerThread = 512;
constexpr std::uint32_t kRingSimpleExtraThreads = 32;  // the warp that posts and waits

bool counts_all_ranks(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::reduce_scatter;
}

std::int64_t bytes_per_thread(const CollectiveCall& call, const CommShape& shape) {
  if (call.algorithm == Algorithm::collnet_chain) return kCollnetBytesPerThread;
  if (call.protocol == Protocol::simple) return 64;
  const bool ring_ll = call.algorithm == Algorithm::ring && call.protocol == Protocol::ll;
  return ring_ll ? 8 * static_cast<std::int64_t>(shape.ranks) : 8;
}

std::uint32_t max_threads(const CollectiveCall& call, const LaunchLimits& limits) {
  if (call.protocol == Protocol::ll128 || call.algorithm == Algorithm::collnet_chain) return 640;
  const bool ring_simple = call.algorithm == Algorithm::ring && call.protocol == Protocol::simple;
  return ring_simple ? limits.ring_simple_threads : 512;
}

// One task in cells: `lo` on the current channel, then `mid_channels` of `mid`, then `hi`.
struct CellSplit {
  std::int64_t lo = 0;
  std::int64_t mid = 0;
  std::int64_t mid_channels = 0;
  std::int64_t hi = 0;
  bool skips_channel = false;  // nothing fits on the current channel any more
};

struct Budget {
  std::int64_t per_channel = 0;
  std::int64_t used = 0;  // on the current channel
  std::uint32_t channel = 0;
  std::uint32_t channels = 1;  // of the communicator: more than any task may ask for
};

CellSplit split_cells(std::int64_t cells, std::int64_t cell_traffic, const Budget& budget) {
  CellSplit split;
  const bool last_channel = budget.channel + 1 == budget.channels;
  split.mid = std::min(cells, div_up(budget.per_channel, cell_traffic));
  const std::int64_t room = std::max<std::int64_t>(budget.per_channel - budget.used, 0);
  split.lo = last_channel ? cells : std::min(cells, div_up(room, cell_traffic));
  const std::int64_t rest = cells - split.lo;
  split.mid_channels = rest / split.mid;
  split.hi = rest % split.mid;
  const std::int64_t wanted = (split.lo > 0 ? 1 : 0) + split.mid_channels + (split.hi > 0 ? 1 : 0);
  if (budget.channel + wanted > budget.channels) {  // the last channel takes what is too much
    split.mid_channels = std::int64_t{budget.channels} - budget.channel - 2;
    split.mid = rest / (split.mid_channels + 1);
    split.hi = split.mid + rest % (split.mid_channels + 1);
  }
  if (split.hi == 0 && split.mid_channels > 0) {
    split.hi = split.mid;
    --split.mid_channels;
  }
  if (split.lo == 0) {
    split.skips_channel = true;
    if (split.mid_channels == 0) {
      std::swap(split.lo, split.hi);
    } else {
      split.lo = split.mid;
      --split.mid_channels;
    }
  }
  return split;
}

std::vector<Part> to_parts(const CellSplit& split, std::uint32_t channel, Bytes cell, Bytes size) {
  std::vector<Part> parts;
  Bytes offset;
  const auto add = [&](std::int64_t cells) {
    const Bytes part = std::min(cell * cells, size - offset);
    if (part.raw() > 0) parts.push_back({channel++, offset, part});
    offset += part;
  };
  add(split.lo);
  for (std::int64_t i = 0; i < split.mid_channels; ++i) add(split.mid);
  add(split.hi);
  return parts;
}

// Moves the budget on to where the next task of the group starts.
void advance(const CellSplit& split, std::int64_t cell_traffic, Budget& budget) {
  if (split.hi > 0) {
    budget.channel += static_cast<std::uint32_t>(split.mid_channels + 1);
    budget.used = split.hi * cell_traffic;
  } else {
    budget.used = (split.skips_channel ? 0 : budget.used) + split.lo * cell_traffic;
  }
  if (budget.used >= budget.per_channel && budget.channel + 1 < budget.channels) {
    ++budget.channel;
    budget.used = 0;
  }
}

std::vector<Part> split_evenly(const CollectiveCall& call, std::uint32_t channels) {
  std::vector<Part> parts;
  const Bytes each = bytes(align_up(div_up(call.size.raw(), channels), call.element_size));
  for (Bytes offset; offset < call.size; offset += each) {
    const auto channel = static_cast<std::uint32_t>(parts.size());
    parts.push_back({channel, offset, std::min(each, call.size - offset)});
  }
  return parts;
}

// CollNetDirect: needs less per thread the fewer channels are left.
std::uint32_t collnet_direct_channels(std::int64_t size, const CommShape& shape,
                                      std::uint32_t channels) {
  std::int64_t threshold = kCollnetBytesPerThread;
  bool too_small = true;
  for (std::uint32_t floor = 16; floor >= 1 && too_small; floor /= 2) {
    const auto check = [&] {
      too_small = size < threshold * kTreeThreads * shape.heads * channels;
      return too_small;
    };
    while (check() && channels > floor) {
      if (channels == floor + floor / 2) threshold /= 2;
      --channels;
    }
  }
  return channels;
}

}  // namespace

std::int64_t traffic_per_byte(const CollectiveCall& call, const CommShape& shape) {
  std::int64_t traffic = 1;
  if (call.collective == Collective::all_reduce) traffic = 2;
  if (counts_all_ranks(call.collective)) traffic = shape.ranks;
  return call.protocol == Protocol::ll ? 4 * traffic : traffic;
}

LaunchShape shrink_launch(LaunchShape launch, std::int64_t size, std::int64_t bytes_per_thread) {
  const auto too_small = [&] { return size < bytes_per_thread * launch.threads * launch.channels; };
  while (launch.channels >= 2 && too_small()) --launch.channels;
  while (launch.threads % 128 == 0 && too_small()) launch.threads /= 2;
  return launch;
}

LaunchShape launch_shape(const CollectiveCall& call, const CommShape& shape, std::uint32_t channels,
                         const LaunchLimits& limits) {
  const std::int64_t size = call.size.raw() * (counts_all_ranks(call.collective) ? shape.ranks : 1);
  if (limits.chosen) return {channels, max_threads(call, limits)};
  if (call.algorithm == Algorithm::nvls || call.algorithm == Algorithm::nvls_tree)
    return {channels, kTreeThreads};
  if (call.algorithm == Algorithm::collnet_direct)
    return {collnet_direct_channels(size, shape, channels), kTreeThreads};
  LaunchShape launch =
      shrink_launch({channels, max_threads(call, limits)}, size, bytes_per_thread(call, shape));
  if (call.algorithm != Algorithm::ring) return {launch.channels, kTreeThreads};
  if (call.protocol == Protocol::simple) launch.threads += kRingSimpleExtraThreads;
  return {launch.channels, std::max(launch.threads, kMinThreads)};
}

std::vector<std::vector<Part>> split_tasks(std::span<const SplitTask> tasks, std::uint32_t channels,
                                           const SplitRule& rule) {
  std::int64_t total = 0;
  std::int64_t wanted = 0;
  for (const SplitTask& task : tasks) {
    total += std::max(rule.min_traffic, task.size.raw() * task.traffic_per_byte);
    wanted += task.max_channels;
  }
  Budget budget;
  budget.channels = channels;
  const std::int64_t shared = std::min<std::int64_t>(wanted, channels);
  if (shared > 0)
    budget.per_channel =
        rule.rounds_up ? align_up(total / shared, 16) : std::max(rule.min_traffic, total / shared);
  std::vector<std::vector<Part>> result;
  for (const SplitTask& task : tasks) {
    result.emplace_back();
    if (task.size.raw() == 0) continue;
    const std::int64_t cell = align_up(div_up(rule.min_traffic, task.traffic_per_byte), 16);
    const std::int64_t cell_traffic = cell * task.traffic_per_byte;
    const std::int64_t cells = div_up(task.size.raw(), cell);
    const CellSplit split = split_cells(cells, cell_traffic, budget);
    if (split.skips_channel) ++budget.channel;
    result.back() = to_parts(split, budget.channel, bytes(cell), task.size);
    advance(split, cell_traffic, budget);
  }
  return result;
}

std::vector<Part> split_call(const CollectiveCall& call, const CommShape& shape,
                             std::uint32_t channels, const LaunchLimits& limits) {
  if (call.max_channels > 0) channels = std::min(channels, call.max_channels);
  if (call.protocol == Protocol::plain) return split_evenly(call, channels);
  if (call.algorithm == Algorithm::collnet_direct || call.algorithm == Algorithm::collnet_chain)
    return split_evenly(call, launch_shape(call, shape, channels, limits).channels);
  const SplitTask task{.size = call.size,
                       .traffic_per_byte = traffic_per_byte(call, shape),
                       .max_channels = launch_shape(call, shape, channels, limits).channels};
  return split_tasks({&task, 1}, channels, limits.split).front();
}

}  // namespace railyard::algorithms
