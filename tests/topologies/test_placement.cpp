#include <doctest/doctest.h>

#include "tests/topologies/support.h"
#include "topologies/placement.h"

namespace railyard::topologies {
namespace {

using test::cluster;
using test::must_build;

sim::Topology four_nodes() { return must_build(cluster("gh200-4", 4, FabricKind::one_switch)); }

// "node.gpu" of every rank.
std::string text(const sim::Group& group) {
  std::string out;
  for (const sim::Member& member : group)
    out += (out.empty() ? "" : " ") + std::to_string(member.node) + "." +
           std::to_string(member.local_index);
  return out;
}

std::string place(const PlacementSpec& spec) {
  const auto world = place_world(four_nodes(), spec);
  return world.ok() ? text(world.value()) : world.error().text();
}

std::vector<std::uint32_t> ranks_of(const sim::Group& group) {
  std::vector<std::uint32_t> ranks;
  for (const sim::Member& member : group) ranks.push_back(member.rank.value());
  return ranks;
}

TEST_CASE("host-major and round-robin order") {
  CHECK(place({.gpus_per_node = 2}) == "0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1");
  CHECK(place({.order = PlacementOrder::round_robin, .gpus_per_node = 2}) ==
        "0.0 1.0 2.0 3.0 0.1 1.1 2.1 3.1");
  CHECK(place({.ranks = 5}) == "0.0 0.1 0.2 0.3 1.0");
  CHECK(place({.order = PlacementOrder::round_robin, .ranks = 5}) == "0.0 1.0 2.0 3.0 0.1");
}

TEST_CASE("explicit GPUs and nodes, in their order") {
  CHECK(place({.gpus = {3, 0}, .nodes = {2, 1}}) == "2.3 2.0 1.3 1.0");
  CHECK(place({.gpus_per_node = 1, .nodes = {3}}) == "3.0");
}

TEST_CASE("members name rank, GPU, node and local index") {
  const auto topology = four_nodes();
  const auto world = place_world(topology, {});
  REQUIRE(world.ok());
  REQUIRE(world.value().size() == 16);
  for (std::size_t r = 0; r < 16; ++r) {
    const sim::Member& member = world.value()[r];
    CHECK(member.rank == sim::Rank(r));
    const sim::Device& gpu = topology.devices[member.gpu.index()];
    CHECK(gpu.name ==
          "node" + std::to_string(member.node) + "/gpu" + std::to_string(member.local_index));
  }
}

TEST_CASE("placements that do not fit are refused") {
  CHECK(place({.ranks = 17}) == "the world has 17 ranks, but 4 nodes x 4 GPUs are 16 GPUs");
  CHECK(place({.gpus_per_node = 5}) == "placement.gpus_per_node is 5, but node0 has 4 GPUs");
  CHECK(place({.gpus = {0, 4}}) == "placement.gpus names GPU 4, but node0 has GPUs 0..3");
  CHECK(place({.gpus = {1, 1}}) == "placement.gpus names GPU 1 twice");
  CHECK(place({.gpus_per_node = 3, .gpus = {0, 1}}) ==
        "placement.gpus lists 2 GPUs, but gpus_per_node is 3");
  CHECK(place({.nodes = {0, 4}}) == "placement.nodes names node 4, but the cluster has nodes 0..3");
  CHECK(place({.nodes = {2, 2}}) == "placement.nodes names node 2 twice");
}

TEST_CASE("strided groups partition the world") {
  const auto world = place_world(four_nodes(), {}).value();
  const auto tensor = sub_groups(world, {.name = "tp", .size = 4});
  REQUIRE(tensor.ok());
  REQUIRE(tensor.value().size() == 4);
  CHECK(ranks_of(tensor.value()[1]) == std::vector<std::uint32_t>{4, 5, 6, 7});
  const auto data = sub_groups(world, {.name = "dp", .size = 4, .stride = 4});
  REQUIRE(data.ok());
  REQUIRE(data.value().size() == 4);
  CHECK(ranks_of(data.value()[1]) == std::vector<std::uint32_t>{1, 5, 9, 13});
  const auto pairs = sub_groups(world, {.size = 2, .stride = 2});
  REQUIRE(pairs.ok());
  std::vector<bool> seen(16, false);
  for (const sim::Group& group : pairs.value())
    for (const std::uint32_t rank : ranks_of(group)) {
      CHECK_FALSE(seen[rank]);
      seen[rank] = true;
    }
  CHECK(ranks_of(pairs.value()[2]) == std::vector<std::uint32_t>{4, 6});
}

TEST_CASE("groups that do not divide the world are refused") {
  const auto world = place_world(four_nodes(), {}).value();
  const auto error = [&](const SubGroupSpec& spec) {
    return sub_groups(world, spec).error().text();
  };
  CHECK(error({.name = "dp", .size = 3}) ==
        "group 'dp': the world's 16 ranks do not divide by size 3 x stride 1 = 3");
  CHECK(error({.name = "dp", .size = 8, .stride = 4}) ==
        "group 'dp': the world's 16 ranks do not divide by size 8 x stride 4 = 32");
  CHECK(error({.name = "dp", .size = 17}) == "group 'dp': size 17 exceeds the world's 16 ranks");
  CHECK(error({.name = "", .size = 0}) == "group: size is 0");
  CHECK(error({.name = "x", .size = 2, .stride = 0}) == "group 'x': stride is 0");
}

TEST_CASE("ranks picked by number") {
  const auto world = place_world(four_nodes(), {}).value();
  CHECK(ranks_of(pick_ranks(world, {5, 2}).value()) == std::vector<std::uint32_t>{5, 2});
  CHECK(pick_ranks(world, {16}).error().text() == "rank 16 is not in the world of 16 ranks");
  CHECK(pick_ranks(world, {3, 3}).error().text() == "rank 3 is named twice");
  CHECK(pick_ranks(world, {}).error().text() == "a group needs at least one rank");
}

}  // namespace
}  // namespace railyard::topologies
