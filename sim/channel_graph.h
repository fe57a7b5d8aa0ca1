// Channel graph: what NCCL's search finds for one communication pattern on one node, and what its
// graph XML (NCCL_GRAPH_FILE, NCCL_GRAPH_DUMP_FILE) holds. topologies/ reads and writes the file,
// algorithms/nccl searches and uses the value. Bandwidths in GB/s (1e9 B/s) of one channel.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/enum_table.h"

namespace railyard::sim {

// The worst link on a path, best first (NCCL's order and numbers).
enum class PathType { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, sys, net, dis };
template <>
struct EnumTable<PathType> {
  static constexpr std::string_view kind = "path type";
  static constexpr std::array entries{
      EnumEntry{PathType::loc, "LOC"}, EnumEntry{PathType::nvl, "NVL"},
      EnumEntry{PathType::nvb, "NVB"}, EnumEntry{PathType::c2c, "C2C"},
      EnumEntry{PathType::pix, "PIX"}, EnumEntry{PathType::pxb, "PXB"},
      EnumEntry{PathType::p2c, "P2C"}, EnumEntry{PathType::pxn, "PXN"},
      EnumEntry{PathType::phb, "PHB"}, EnumEntry{PathType::sys, "SYS"},
      EnumEntry{PathType::net, "NET"}, EnumEntry{PathType::dis, "DIS"}};
};

// NCCL's numbers. Balanced tree: the NIC's GPU has the parent and one child node, the next GPU the
// other; split tree: parent on one, both children on the next; tree: all on the first.
enum class GraphPattern {
  balanced_tree = 1,
  split_tree = 2,
  tree = 3,
  ring = 4,
  nvls = 5,
  collnet_direct = 6
};
template <>
struct EnumTable<GraphPattern> {
  static constexpr std::string_view kind = "graph pattern";
  static constexpr std::array entries{EnumEntry{GraphPattern::balanced_tree, "BALANCED_TREE"},
                                      EnumEntry{GraphPattern::split_tree, "SPLIT_TREE"},
                                      EnumEntry{GraphPattern::tree, "TREE"},
                                      EnumEntry{GraphPattern::ring, "RING"},
                                      EnumEntry{GraphPattern::nvls, "NVLS"},
                                      EnumEntry{GraphPattern::collnet_direct, "COLLNET_DIRECT"}};
};

// The graph's id in the XML.
enum class GraphKind { ring = 0, tree = 1, collnet_chain = 2, nvls = 3, collnet_direct = 4 };
template <>
struct EnumTable<GraphKind> {
  static constexpr std::string_view kind = "graph";
  static constexpr std::array entries{
      EnumEntry{GraphKind::ring, "ring"}, EnumEntry{GraphKind::tree, "tree"},
      EnumEntry{GraphKind::collnet_chain, "collnetChain"}, EnumEntry{GraphKind::nvls, "nvls"},
      EnumEntry{GraphKind::collnet_direct, "collnetDirect"}};
};

struct ChannelGraph {
  struct Channel {
    std::vector<std::int32_t> gpus;  // ranks in order (a file: device numbers); NVLS: the head only
    // Entry and exit: NCCL's net id (plugin device number; the node number in the upper half where
    // several hosts share a topology); -1 where there is none.
    std::array<std::int64_t, 2> nets{-1, -1};
  };

  GraphKind kind = GraphKind::ring;
  GraphPattern pattern = GraphPattern::ring;
  std::int32_t cross_nic = 0;
  bool same_channels = false;
  double bw_intra = 0;
  double bw_inter = 0;
  double latency_inter = 0;  // microseconds
  PathType type_intra = PathType::loc;
  PathType type_inter = PathType::loc;
  std::vector<Channel> channels;
};

}  // namespace railyard::sim
