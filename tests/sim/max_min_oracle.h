// Progressive filling from the definition in sim/network.h alone: slow, obvious, and shares no code
// with the solver. Rates and capacities are integers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace railyard::tests {

struct OracleFlow {
  std::vector<std::pair<std::size_t, std::int64_t>> uses;  // resource, weight * multiplicity
  std::int64_t cap = 0;                                    // 0 = none
  std::int64_t share = 1;
};

inline std::vector<std::int64_t> max_min_rates(const std::vector<std::int64_t>& capacity,
                                               const std::vector<OracleFlow>& flows) {
  std::vector<std::int64_t> level(flows.size(), -1);  // -1 = unfixed
  for (;;) {
    // A cap is a resource of its own that only this flow uses.
    std::int64_t smallest = -1;
    const auto lower = [&](std::int64_t value) {
      if (smallest < 0 || value < smallest) smallest = value;
    };
    std::vector<std::int64_t> resource_level(capacity.size(), -1);
    for (std::size_t r = 0; r < capacity.size(); ++r) {
      std::int64_t left = capacity[r];
      std::int64_t load = 0;
      for (std::size_t f = 0; f < flows.size(); ++f)
        for (const auto& [resource, weight] : flows[f].uses)
          if (resource == r) {
            if (level[f] >= 0)
              left -= level[f] * flows[f].share * weight;
            else
              load += flows[f].share * weight;
          }
      if (load > 0) lower(resource_level[r] = left / load);
    }
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (level[f] < 0 && flows[f].cap > 0) lower(flows[f].cap / flows[f].share);
    if (smallest < 0) break;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (level[f] >= 0) continue;
      bool now = flows[f].cap > 0 && flows[f].cap / flows[f].share == smallest;
      for (const auto& use : flows[f].uses) now = now || resource_level[use.first] == smallest;
      if (now) level[f] = smallest;
    }
  }
  std::vector<std::int64_t> rates;
  for (std::size_t f = 0; f < flows.size(); ++f) rates.push_back(level[f] * flows[f].share);
  return rates;
}

}  // namespace railyard::tests
