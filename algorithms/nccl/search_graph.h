// SearchGraph: a channel graph while it is searched for. Assigned as a whole, counters included,
// because later passes of NCCL's search go on from the counters of the best one. Not for others.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/channel_graph.h"

namespace railyard::algorithms::nccl {

struct SearchGraph {
  sim::GraphKind kind = sim::GraphKind::ring;
  sim::GraphPattern pattern = sim::GraphPattern::ring;
  bool collnet = false;
  std::int32_t min_channels = 1;
  std::int32_t max_channels = 1;

  std::int32_t cross_nic = 0;
  std::int32_t channels = 0;
  float intra_bandwidth = 0;
  float inter_bandwidth = 0;
  float inter_latency = 0;
  sim::PathType intra_type = sim::PathType::loc;
  sim::PathType inter_type = sim::PathType::loc;
  bool same_channels = false;
  std::int32_t hops = 0;
  std::vector<std::int32_t> gpus;  // ranks, channel after channel
  std::vector<std::int64_t> nets;  // ids, two per channel

  [[nodiscard]] std::int64_t& net(std::int32_t channel, std::int32_t side) {
    return nets[static_cast<std::size_t>(channel * 2 + side)];
  }
  [[nodiscard]] std::int64_t net(std::int32_t channel, std::int32_t side) const {
    return nets[static_cast<std::size_t>(channel * 2 + side)];
  }
};

}  // namespace railyard::algorithms::nccl
