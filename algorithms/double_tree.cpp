#include "algorithms/double_tree.h"

#include "algorithms/shape.h"
#include "sim/check.h"

namespace railyard::algorithms {
namespace {

std::int32_t to_id(std::uint32_t id) { return static_cast<std::int32_t>(id); }

NodeTreeEdges binary_tree(std::uint32_t id, std::uint32_t nodes) {
  NodeTreeEdges edges;
  if (id == 0) {
    if (nodes > 1) edges.children[1] = to_id(power_of_two_up(nodes) / 2);
    return edges;
  }
  const std::uint32_t low = id & (~id + 1);
  const std::uint32_t parent = (id ^ low) | (low << 1);
  edges.parent = to_id(parent < nodes ? parent : id ^ low);
  if (low == 1) return edges;
  edges.children[0] = to_id(id - low / 2);
  std::uint32_t step = low / 2;
  while (step > 0 && id + step >= nodes) step /= 2;
  if (step > 0) edges.children[1] = to_id(id + step);
  return edges;
}

}  // namespace

NodeTreeEdges double_tree(std::uint32_t tree, std::uint32_t id, std::uint32_t nodes) {
  RAILYARD_CHECK(tree < 2 && id < nodes, "no such tree or node");
  if (tree == 0) return binary_tree(id, nodes);
  const bool mirror = nodes % 2 == 0;
  const auto map = [&](std::int32_t node) {
    if (node == kNoNeighbour) return node;
    const auto n = to_id(nodes);
    return mirror ? n - 1 - node : (node + 1) % n;
  };
  NodeTreeEdges edges = binary_tree(mirror ? nodes - 1 - id : (id + nodes - 1) % nodes, nodes);
  edges.parent = map(edges.parent);
  for (std::int32_t& child : edges.children) child = map(child);
  return edges;
}

}  // namespace railyard::algorithms
