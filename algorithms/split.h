// How one call is divided among channels. Source: NCCL 2.30, topoGetAlgoInfo (how many channels and
// threads at most) and scheduleCollTasksToPlan (which channel carries what).
//
// The message is cut into contiguous parts. Parts are counted in cells of about 32 KiB of traffic
// (before NCCL 2.29: 16 KiB); traffic = bytes * (AllReduce 2; AllGather, ReduceScatter n; else 1) *
// (LL 4, else 1). The first
// ("lo") and last ("hi") channel may carry less than those between, and small calls use few
// channels.
//
// Example (8 ranks, 24 channels, fp32): AllReduce of 1 MiB, Ring LL = 23 x 45056 B + 12288 B;
// of 64 KiB, Tree LL = 16 x 4096 B.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/shape.h"
#include "sim/collective.h"
#include "sim/units.h"

namespace railyard::algorithms {

struct Part {
  std::uint32_t channel = 0;
  sim::Bytes offset;  // in the unit of CollectiveCall::size
  sim::Bytes size;    // > 0
};

// Most channels a call may use, and threads of its CTAs on those channels.
struct LaunchShape {
  std::uint32_t channels = 1;
  std::uint32_t threads = 96;
};

// Leaves out channels, then halves threads, until every thread has `bytes_per_thread` of `size`.
LaunchShape shrink_launch(LaunchShape launch, std::int64_t size, std::int64_t bytes_per_thread);

// How much traffic a channel gets at least, and so a cell has.
struct SplitRule {
  std::int64_t min_traffic = 32'768;
  bool rounds_up = true;  // the share of a channel to 16 bytes; else it is at least min_traffic
};

struct LaunchLimits {
  // 256 where the ring's bandwidth (search bandwidth x channels) is at most 12 GB/s.
  std::uint32_t ring_simple_threads = 512;
  // NVLS and NVLSTree use so many channels, if there are: Hopper 16; Blackwell 24, several
  // nodes 32.
  std::uint32_t nvls_channels = 16;
  // A chooser has decided: a call uses the channels it is given, however small it is.
  bool chosen = false;
  SplitRule split{};
};

// A call may use fewer channels than it is given: small ones leave channels out until every thread
// has a minimum of bytes (LL and LL128 8, Simple 64, Ring LL 8 n, CollNet 512; CollNetDirect per
// head, and less where few channels are left). NVLS and NVLSTree always use all.
LaunchShape launch_shape(const sim::CollectiveCall& call, const CommShape& shape,
                         std::uint32_t channels, const LaunchLimits& limits);

struct SplitTask {
  sim::Bytes size;
  std::int64_t traffic_per_byte = 1;
  std::uint32_t max_channels = 1;
};
std::int64_t traffic_per_byte(const sim::CollectiveCall& call, const CommShape& shape);

// The parts of each task of one group, in order: what a task leaves of a channel's budget the next
// one uses. `channels`: of the communicator. O(tasks + parts).
std::vector<std::vector<Part>> split_tasks(std::span<const SplitTask> tasks, std::uint32_t channels,
                                           const SplitRule& rule = {});

// The parts of a call that is alone: the rules above (CollNet: equal parts, where NCCL deals out
// chunks in turns); Protocol::plain takes every channel allowed
// and gives each ceil(size / channels), rounded up to an element. No parts for 0 bytes.
std::vector<Part> split_call(const sim::CollectiveCall& call, const CommShape& shape,
                             std::uint32_t channels, const LaunchLimits& limits);

}  // namespace railyard::algorithms
