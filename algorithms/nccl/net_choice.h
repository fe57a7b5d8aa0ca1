// NetChoice: the network devices in the order in which the search tries them: first those the GPUs
// prefer, then all others, nearest first. Answers are kept. Not for others.
#pragma once

#include <optional>
#include <vector>

#include "algorithms/nccl/node_topology.h"

namespace railyard::algorithms::nccl {

inline constexpr std::int32_t kAnyGpu = -1;
inline constexpr std::int32_t kPreferredOnly = -1;  // as the worst type

class NetChoice {
 public:
  explicit NetChoice(const NodeTopology& node);
  // For one GPU or all; `worst`: the number of the worst path type admitted.
  const std::vector<std::int32_t>& order(std::int32_t gpu, std::int32_t worst);

 private:
  [[nodiscard]] std::vector<std::int32_t> preferred(std::int32_t gpu) const;
  void add_others(std::vector<std::int32_t>& nets, std::int32_t gpu, std::int32_t worst) const;
  void add_at_distance(std::vector<std::int32_t>& nets, std::int32_t gpu, sim::PathType type,
                       std::size_t limit) const;

  const NodeTopology& node_;
  std::vector<std::vector<std::int32_t>> local_;                 // per GPU, by channel
  std::vector<std::optional<std::vector<std::int32_t>>> known_;  // per GPU and type
};

}  // namespace railyard::algorithms::nccl
