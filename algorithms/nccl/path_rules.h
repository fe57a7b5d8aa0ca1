// The rules by which NCCL changes direct paths into those its transports take: no P2P, GPUDirect
// over C2C, relays (PXN), no GPUDirect RDMA. Steps of NodeTopology::build; not for others.
#pragma once

#include <cstdint>

#include "algorithms/nccl/node_topology.h"

namespace railyard::algorithms::nccl {

class PathRules {
 public:
  explicit PathRules(NodeTopology& node) : node_(node) {}
  // Computes all paths anew.
  void run();

 private:
  void divert_without_p2p(std::int32_t to);
  void cut_unreachable(std::int32_t to);
  void prefer_c2c(std::int32_t gpu);
  void relay(std::int32_t gpu, std::int32_t net);
  void divert_without_gdr(std::int32_t gpu, std::int32_t net);
  // The path from -> via -> to takes the place of from -> to.
  void go_through(PathEnd from, PathEnd via, PathEnd to);

  NodeTopology& node_;
};

}  // namespace railyard::algorithms::nccl
