// Which host a channel adapter belongs to, read off its node description.
//
//   "host028 mlx5_0"                            host host028, device mlx5_0
//   "host471 HCA-1"                             host host471, device HCA-1
//   "MT4129 ConnectX7   Mellanox Technologies"  a card nobody named: its host is its system GUID
//   "Mellanox Technologies Aggregation Node"    SHARP inside a switch: no host at all
#pragma once

#include <string>

#include "topologies/import/fabric_graph.h"

namespace railyard::topologies {

struct HostAndDevice {
  std::string host;
  std::string device;  // empty if the description has none
  bool named = true;   // false: the description is the card's own
};

HostAndDevice split_description(const GraphNode& adapter);
bool is_aggregation_node(const GraphNode& adapter);

// Digits in names count as numbers: mlx5_9 before mlx5_10.
bool natural_less(const std::string& a, const std::string& b);

}  // namespace railyard::topologies
