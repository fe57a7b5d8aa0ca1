// SearchMemory: which searches need not be repeated. A demand that admits no path that a stricter
// one did not admit already leads to the same visits; if those found nothing better than the best
// graph known, and that has not changed since, neither will these. Not for others.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "algorithms/nccl/node_topology.h"
#include "algorithms/nccl/search_graph.h"

namespace railyard::algorithms::nccl {

class SearchMemory {
 public:
  explicit SearchMemory(const NodeTopology& node);

  // The budget an equal search left that found nothing; nullopt: unknown.
  [[nodiscard]] std::optional<std::int32_t> fruitless(const SearchGraph& wanted) const;
  // After a search.
  void note(const SearchGraph& wanted, bool improved, std::int32_t budget);

 private:
  static constexpr std::size_t kTypes = sim::EnumTable<sim::PathType>::entries.size();
  using Present = std::array<bool, kTypes>;
  // What decides a search, path types rounded down to one that some path has.
  using Key = std::tuple<sim::GraphPattern, bool, std::int32_t, std::size_t, std::size_t, float,
                         float, std::int32_t, std::int32_t>;
  [[nodiscard]] Key key(const SearchGraph& wanted) const;

  Present intra_{};
  Present inter_{};
  std::map<Key, std::int32_t> fruitless_;
};

}  // namespace railyard::algorithms::nccl
