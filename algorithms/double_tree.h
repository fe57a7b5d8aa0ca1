// NCCL's double binary tree over nodes 0..n-1: two trees such that an inner node of one is (mostly)
// a leaf of the other. Source: NCCL 2.30 trees.cc; Sanders, Speck, Traeff 2009.
//
// Tree 0: root 0, whose only child is the largest power of two below n. For i > 0 with lowest set
// bit b: parent (i ^ b) | 2b if that is < n, else i ^ b; children i - b/2 and i + b/2, where the
// second halves its step until it is < n.
//
// Tree 1: n even: tree 0 mirrored (i -> n-1-i); n odd: tree 0 shifted (i -> i+1 mod n).
//
// Example, n = 4: tree 0 is 0-2, 2-{1,3}; tree 1 is 3-1, 1-{2,0}.
#pragma once

#include <array>
#include <cstdint>

namespace railyard::algorithms {

inline constexpr std::int32_t kNoNeighbour = -1;

struct NodeTreeEdges {
  std::int32_t parent = kNoNeighbour;
  std::array<std::int32_t, 2> children{kNoNeighbour, kNoNeighbour};
};

// Neighbours of node `id` (< nodes) in tree `tree` (0 or 1). O(log nodes).
NodeTreeEdges double_tree(std::uint32_t tree, std::uint32_t id, std::uint32_t nodes);

}  // namespace railyard::algorithms
