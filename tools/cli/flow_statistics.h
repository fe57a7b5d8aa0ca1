// Completion times of independent flows in a few numbers.
#pragma once

#include <vector>

#include "scenarios/run.h"

namespace railyard::cli {

struct FlowStatistics {
  std::size_t flows = 0;
  sim::Bytes bytes{};
  sim::Duration makespan{};  // first start to last end
  sim::Duration mean{};      // of end - start, rounded to the picosecond
  sim::Duration p50{};       // nearest rank: the smallest that at least half do not exceed
  sim::Duration p99{};
  sim::Duration longest{};
};

FlowStatistics flow_statistics(const std::vector<scenarios::FlowResult>& flows);

// The indices of at most `n` flows, longest first; equal ones in the order given.
std::vector<std::size_t> slowest_flows(const std::vector<scenarios::FlowResult>& flows,
                                       std::size_t n);

}  // namespace railyard::cli
