#include "algorithms/double_tree.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

namespace railyard::algorithms {
namespace {

// "0>2 1<2,...": every parent of every node, by id.
std::vector<std::int32_t> parents(std::uint32_t tree, std::uint32_t nodes) {
  std::vector<std::int32_t> result;
  for (std::uint32_t id = 0; id < nodes; ++id)
    result.push_back(double_tree(tree, id, nodes).parent);
  return result;
}

TEST_CASE("double tree: the example of four nodes") {
  CHECK(parents(0, 4) == std::vector<std::int32_t>{-1, 2, 0, 2});
  CHECK(parents(1, 4) == std::vector<std::int32_t>{1, 3, 1, -1});
  CHECK(double_tree(0, 0, 4).children == std::array<std::int32_t, 2>{-1, 2});
  CHECK(double_tree(0, 2, 4).children == std::array<std::int32_t, 2>{1, 3});
  CHECK(double_tree(1, 1, 4).children == std::array<std::int32_t, 2>{2, 0});
}

TEST_CASE("double tree: two, three and eight nodes") {
  CHECK(parents(0, 1) == std::vector<std::int32_t>{-1});
  CHECK(parents(0, 2) == std::vector<std::int32_t>{-1, 0});
  CHECK(parents(1, 2) == std::vector<std::int32_t>{1, -1});
  CHECK(parents(0, 3) == std::vector<std::int32_t>{-1, 2, 0});
  CHECK(parents(1, 3) == std::vector<std::int32_t>{1, -1, 0});  // shifted by one
  CHECK(parents(0, 8) == std::vector<std::int32_t>{-1, 2, 4, 2, 0, 6, 4, 6});
}

bool is_leaf(const NodeTreeEdges& edges) {
  return edges.children[0] == kNoNeighbour && edges.children[1] == kNoNeighbour;
}

// Depth below the root, following parents; fails if it does not end.
std::uint32_t depth(std::uint32_t tree, std::uint32_t id, std::uint32_t nodes) {
  std::uint32_t steps = 0;
  for (std::int32_t at = static_cast<std::int32_t>(id);; ++steps) {
    REQUIRE(steps <= nodes);
    at = double_tree(tree, static_cast<std::uint32_t>(at), nodes).parent;
    if (at == kNoNeighbour) return steps;
  }
}

TEST_CASE("double tree: one root, agreeing edges, logarithmic depth") {
  for (std::uint32_t nodes = 2; nodes <= 70; ++nodes)
    for (std::uint32_t tree = 0; tree < 2; ++tree) {
      CAPTURE(nodes);
      CAPTURE(tree);
      std::uint32_t roots = 0;
      std::uint32_t children = 0;
      for (std::uint32_t id = 0; id < nodes; ++id) {
        const NodeTreeEdges edges = double_tree(tree, id, nodes);
        roots += edges.parent == kNoNeighbour;
        for (const std::int32_t child : edges.children) {
          if (child == kNoNeighbour) continue;
          ++children;
          CHECK(double_tree(tree, static_cast<std::uint32_t>(child), nodes).parent ==
                static_cast<std::int32_t>(id));
        }
        CHECK((1u << depth(tree, id, nodes)) <= 2 * nodes);
      }
      CHECK(roots == 1);
      CHECK(children == nodes - 1);
    }
}

TEST_CASE("double tree: tree 1 is tree 0 mirrored or shifted") {
  for (std::uint32_t nodes = 2; nodes <= 9; ++nodes) {
    const auto map = [&](std::int32_t id) {
      const auto n = static_cast<std::int32_t>(nodes);
      if (id == kNoNeighbour) return id;
      return n % 2 == 0 ? n - 1 - id : (id + 1) % n;
    };
    for (std::uint32_t id = 0; id < nodes; ++id) {
      const NodeTreeEdges first = double_tree(0, id, nodes);
      const NodeTreeEdges second =
          double_tree(1, static_cast<std::uint32_t>(map(static_cast<std::int32_t>(id))), nodes);
      CHECK(second.parent == map(first.parent));
      CHECK(second.children[0] == map(first.children[0]));
      CHECK(second.children[1] == map(first.children[1]));
    }
  }
}

TEST_CASE("double tree: no node but one is inner in both trees") {
  for (std::uint32_t nodes = 2; nodes <= 40; ++nodes) {
    std::uint32_t inner_in_both = 0;
    for (std::uint32_t id = 0; id < nodes; ++id)
      inner_in_both += !is_leaf(double_tree(0, id, nodes)) && !is_leaf(double_tree(1, id, nodes));
    CAPTURE(nodes);
    CHECK(inner_in_both <= 1);
  }
}

}  // namespace
}  // namespace railyard::algorithms
