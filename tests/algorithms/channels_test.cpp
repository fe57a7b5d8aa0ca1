#include "algorithms/channels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/algorithms/clusters.h"

namespace railyard::algorithms {
namespace {

using sim::Channel;
using sim::Channels;
using sim::DeviceId;
using sim::Topology;
using List = std::vector<std::uint32_t>;

Channels channels_of(const Topology& topology, const ChannelOptions& options = {}) {
  auto result = default_channels(topology, test::everyone(topology), options);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  CHECK(check_channels(topology, test::everyone(topology).size(), result.value()).ok());
  return result.value();
}

std::uint32_t rail_of(const Topology& topology, DeviceId nic) {
  return topology.devices[nic.index()].local_index;
}

const sim::NetEdge* find_edge(const Channel& channel, std::uint32_t from, std::uint32_t to) {
  for (const sim::NetEdge& edge : channel.net_edges)
    if (edge.from == from && edge.to == to) return &edge;
  return nullptr;
}

TEST_CASE("channels: rings in one node turn by channel") {
  const Topology topology = test::cluster({.gpus = 4, .nics = 4});
  const Channels channels = channels_of(topology, {.count = 6, .rails = 0});
  CHECK(channels[0].ring == List{0, 1, 2, 3});
  CHECK(channels[1].ring == List{1, 2, 3, 0});
  CHECK(channels[5].ring == List{1, 2, 3, 0});
  CHECK(channels[0].net_edges.empty());
}

TEST_CASE("channels: one NIC per GPU: odd nodes run backwards") {
  const Topology topology = test::cluster({.nodes = 2, .gpus = 4, .nics = 4});
  const Channels channels = channels_of(topology, {.count = 4, .rails = 0});
  // In by rail 1 on node 0, out by rail 0 (GPU 0), which is where node 1 is entered.
  CHECK(channels[1].ring == List{1, 2, 3, 0, 4, 7, 6, 5});
  const sim::NetEdge* there = find_edge(channels[1], 0, 4);
  REQUIRE(there != nullptr);
  CHECK(there->nic_out == topology.nodes[0].nics[0]);
  CHECK(there->nic_in == topology.nodes[1].nics[0]);
  const sim::NetEdge* back = find_edge(channels[1], 5, 1);
  REQUIRE(back != nullptr);
  CHECK(back->nic_out == topology.nodes[1].nics[1]);
  CHECK(back->nic_in == topology.nodes[0].nics[1]);
}

TEST_CASE("channels: two GPUs per NIC: in and out on the channel's rail") {
  const Topology topology =
      test::cluster({.nodes = 3, .gpus = 4, .nics = 2, .gpus_per_pcie_switch = 2});
  const Channels channels = channels_of(topology, {.count = 2, .rails = 0});
  CHECK(channels[0].ring == List{1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8});
  CHECK(channels[1].ring == List{3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10});
  for (std::uint32_t c = 0; c < 2; ++c)
    for (const sim::NetEdge& edge : channels[c].net_edges) {
      CHECK(rail_of(topology, edge.nic_out) == c);
      CHECK(rail_of(topology, edge.nic_in) == c);
    }
}

struct RailCase {
  std::uint32_t nodes, gpus, nics, per_switch;
};
const RailCase kRailCases[] = {{2, 8, 8, 1}, {3, 8, 8, 1}, {4, 8, 4, 2}, {5, 4, 4, 1},
                               {6, 8, 2, 4}, {7, 1, 1, 1}, {4, 2, 1, 2}};

TEST_CASE("channels: every edge between nodes stays on one rail") {
  for (const RailCase& one : kRailCases) {
    const Topology topology = test::cluster({.nodes = one.nodes,
                                             .gpus = one.gpus,
                                             .nics = one.nics,
                                             .gpus_per_pcie_switch = one.per_switch});
    for (const Channel& channel : channels_of(topology, {.count = 16, .rails = 0})) {
      CHECK_FALSE(channel.net_edges.empty());
      for (const sim::NetEdge& edge : channel.net_edges) {
        CHECK(rail_of(topology, edge.nic_out) == rail_of(topology, edge.nic_in));
        CHECK(topology.devices[edge.nic_out.index()].node == edge.from / one.gpus);
        CHECK(topology.devices[edge.nic_in.index()].node == edge.to / one.gpus);
      }
    }
  }
}

TEST_CASE("channels: ring edges leave by the nearest NIC, but for the closing edge of odd rings") {
  for (const RailCase& one : kRailCases) {
    const Topology topology = test::cluster({.nodes = one.nodes,
                                             .gpus = one.gpus,
                                             .nics = one.nics,
                                             .gpus_per_pcie_switch = one.per_switch});
    for (const Channel& channel : channels_of(topology, {.count = 8, .rails = 0})) {
      const std::size_t n = channel.ring.size();
      std::uint32_t far = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t from = channel.ring[i];
        const std::uint32_t to = channel.ring[(i + 1) % n];
        if (from / one.gpus == to / one.gpus) continue;
        const sim::NetEdge* edge = find_edge(channel, from, to);
        REQUIRE(edge != nullptr);
        const auto nearest = [&](std::uint32_t rank) {
          return rank % one.gpus / one.per_switch * one.per_switch * one.nics / one.gpus;
        };
        CHECK(rail_of(topology, edge->nic_in) == nearest(to));
        far += rail_of(topology, edge->nic_out) != nearest(from);
      }
      CHECK(far <= one.nodes % 2);
    }
  }
}

TEST_CASE("channels: GPUs with two NICs each use all of them alike") {
  for (const std::uint32_t gpus : {1u, 2u}) {
    const Topology topology = test::cluster({.nodes = 4, .gpus = gpus, .nics = 2 * gpus});
    std::vector<std::uint32_t> edges(2 * gpus);
    for (Channel channel : channels_of(topology, {.count = 2 * gpus, .rails = 0})) {
      for (std::size_t i = 0; i < 4 * gpus; ++i) {
        const sim::NetEdge* edge =
            find_edge(channel, channel.ring[i], channel.ring[(i + 1) % (4 * gpus)]);
        if (edge == nullptr) continue;
        CHECK(rail_of(topology, edge->nic_out) == rail_of(topology, edge->nic_in));
        ++edges[rail_of(topology, edge->nic_out)];
      }
    }
    CHECK(edges == std::vector<std::uint32_t>(2 * gpus, 4));
  }
}

TEST_CASE("channels: all rails carry the same number of ring edges each way") {
  const Topology topology = test::cluster({.nodes = 4, .gpus = 8, .nics = 8});
  std::vector<std::uint32_t> out(8), in(8);
  for (const Channel& channel : channels_of(topology, {.count = 8, .rails = 0}))
    for (std::size_t i = 0; i < 32; ++i) {
      const sim::NetEdge* edge = find_edge(channel, channel.ring[i], channel.ring[(i + 1) % 32]);
      if (edge == nullptr) continue;
      ++out[rail_of(topology, edge->nic_out)];
      ++in[rail_of(topology, edge->nic_in)];
    }
  CHECK(out == std::vector<std::uint32_t>(8, 4));
  CHECK(in == std::vector<std::uint32_t>(8, 4));
}

TEST_CASE("channels: trees: double tree over the heads, chains below") {
  const Topology topology = test::cluster({.nodes = 4, .gpus = 2, .nics = 2});
  const Channels channels = channels_of(topology, {.count = 4, .rails = 0});
  // Channel 0: heads 0 2 4 6, tree 0: 0-2, 2-{1,3} over nodes. Channel 3: heads 1 3 5 7, tree 1.
  CHECK(channels[0].tree[0].up == -1);
  CHECK(channels[0].tree[4].up == 0);
  CHECK(channels[0].tree[2].up == 4);
  CHECK(channels[0].tree[6].up == 4);
  CHECK(channels[0].tree[5].up == 4);  // the chain
  CHECK(channels[0].tree[4].down == std::array<std::int32_t, 3>{5, 2, 6});
  CHECK(channels[3].tree[7].up == -1);
  CHECK(channels[3].tree[3].up == 7);
  CHECK(channels[3].tree[3].down == std::array<std::int32_t, 3>{2, 5, 1});
  const sim::NetEdge* up = find_edge(channels[3], 3, 7);
  REQUIRE(up != nullptr);
  CHECK(rail_of(topology, up->nic_out) == 1);
  CHECK(find_edge(channels[3], 7, 3) != nullptr);
}

TEST_CASE("channels: the tree of one node is a chain from the channel's GPU") {
  const Topology topology = test::cluster({.gpus = 4, .nics = 4});
  const Channel channel = channels_of(topology, {.count = 2, .rails = 0})[1];
  CHECK(channel.tree[1].up == -1);
  CHECK(channel.tree[2].up == 1);
  CHECK(channel.tree[3].up == 2);
  CHECK(channel.tree[0].up == 3);
}

TEST_CASE("channels: at most two children over nodes, for 2 to 9 nodes") {
  for (std::uint32_t nodes = 2; nodes <= 9; ++nodes) {
    const Topology topology = test::cluster({.nodes = nodes, .gpus = 2, .nics = 2});
    for (const Channel& channel : channels_of(topology, {.count = 4, .rails = 0})) {
      std::uint32_t between = 0;
      for (std::uint32_t rank = 0; rank < 2 * nodes; ++rank) {
        std::uint32_t away = 0;
        for (const std::int32_t child : channel.tree[rank].down)
          away += child >= 0 && static_cast<std::uint32_t>(child) / 2 != rank / 2;
        CHECK(away <= 2);
        between += away;
      }
      CHECK(between == nodes - 1);
    }
  }
}

TEST_CASE("channels: GPUs on a switch have no NIC edges") {
  const Topology topology = test::gpus_on_a_switch(8);
  const Channels channels = channels_of(topology);
  REQUIRE(channels.size() == 1);
  CHECK(channels[0].ring == List{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(channels[0].net_edges.empty());
}

TEST_CASE("channels: fewer rails on request") {
  const Topology topology =
      test::cluster({.nodes = 2, .gpus = 8, .nics = 4, .gpus_per_pcie_switch = 2});
  for (const Channel& channel : channels_of(topology, {.count = 8, .rails = 2}))
    for (const sim::NetEdge& edge : channel.net_edges) CHECK(rail_of(topology, edge.nic_out) < 2);
}

TEST_CASE("channels: default counts") {
  const auto count = [](const Topology& topology) {
    const auto result = default_channel_count(topology, test::everyone(topology));
    return result.ok() ? result.value() : 0;
  };
  CHECK(count(test::cluster({})) == 24);
  CHECK(count(test::cluster({.nodes = 2, .gpus = 8, .nics = 8})) == 16);
  CHECK(count(test::cluster({.nodes = 2, .gpus = 8, .nics = 4})) == 16);
  CHECK(count(test::cluster({.nodes = 4, .gpus = 1, .nics = 1})) == 4);
  CHECK(count(test::cluster({.gpus = 4, .nvswitch = false})) == 2);
  CHECK(count(test::cluster({.nodes = 2, .gpus = 4, .nics = 2, .nvswitch = false})) == 4);
  CHECK(count(test::cluster({.nodes = 2, .gpus = 4, .nics = 1, .nvswitch = false})) == 2);
  CHECK(count(test::gpus_on_a_switch(16)) == 1);
}

TEST_CASE("channels: a rack of two trays is one node") {
  const Topology topology =
      test::cluster({.nodes = 4, .gpus = 2, .nics = 2, .nodes_per_domain = 2});
  const Channels channels = channels_of(topology, {.count = 4, .rails = 0});
  CHECK(channels[0].ring == List{0, 1, 2, 3, 7, 6, 5, 4});
  CHECK(find_edge(channels[0], 3, 7)->nic_out == topology.nodes[1].nics[1]);
  CHECK(find_edge(channels[0], 1, 2) == nullptr);  // over NVLink
}

TEST_CASE("channels: errors of default_channels") {
  const Topology topology = test::cluster({.nodes = 2, .gpus = 2, .nics = 2});
  const auto error = [&](const ChannelOptions& options) {
    const auto result = default_channels(topology, test::everyone(topology), options);
    return result.ok() ? std::string() : result.error().text();
  };
  CHECK(error({.count = 65, .rails = 0}) == "65 channels; at most 64 are possible");
  CHECK(error({.count = 2, .rails = 3}) == "3 rails asked for; the nodes of this group have 2");
}

std::string check_error(Channels channels) {
  const Topology topology = test::cluster({.gpus = 4});
  const auto result = check_channels(topology, 4, channels);
  return result.ok() ? std::string() : result.error().text();
}

TEST_CASE("channels: errors of rings and edges from elsewhere") {
  Channels good = channels_of(test::cluster({.gpus = 4}), {.count = 2, .rails = 0});
  CHECK(check_error(good).empty());
  CHECK(check_error({}) == "0 channels; expected 1 to 64");
  Channels bad = good;
  bad[1].ring.pop_back();
  CHECK(check_error(bad) == "channel 1: the ring has 3 ranks; expected 4");
  bad = good;
  bad[0].ring = {0, 1, 2, 2};
  CHECK(check_error(bad) == "channel 0: rank 2 is in the ring twice");
  bad[0].ring = {0, 1, 2, 4};
  CHECK(check_error(bad) == "channel 0: the ring names rank 4, which is none");
  bad = good;
  bad[0].net_edges.push_back({0, 1, {}, {}});
  CHECK(check_error(bad) == "channel 0: the edge from rank 0 to rank 1 has an end that is no NIC");
  bad[0].net_edges = {{0, 9, {}, {}}};
  CHECK(check_error(bad) ==
        "channel 0: the edge from rank 0 to rank 9 leaves the group of 4 ranks");
  const Topology topology = test::cluster({.gpus = 4});
  sim::NetEdge edge;
  edge.to = 1;
  edge.host.in = topology.nodes[0].gpus[2];
  bad[0].net_edges = {edge};
  CHECK(check_error(bad) ==
        "channel 0: the edge from rank 0 to rank 1 stops in the memory of what is no CPU");
  edge.host.in = {};  // without a stop it needs NICs
  bad[0].net_edges = {edge};
  CHECK(check_error(bad) == "channel 0: the edge from rank 0 to rank 1 has an end that is no NIC");
}

TEST_CASE("channels: errors of trees from elsewhere") {
  const Channels good = channels_of(test::cluster({.gpus = 4}), {.count = 2, .rails = 0});
  Channels bad = good;
  bad[1].tree.clear();
  CHECK(check_error(bad) == "channel 1: some channels have a tree and some have none");
  bad = good;
  bad[0].tree.pop_back();
  CHECK(check_error(bad) == "channel 0: the tree has 3 ranks; expected 4");
  bad = good;  // the chain 0 1 2 3
  bad[0].tree[2].up = 0;
  CHECK(check_error(bad) == "channel 0: the tree has rank 2 below rank 1, but its parent is 0");
  bad = good;
  bad[0].tree[3].down[0] = 7;
  CHECK(check_error(bad) == "channel 0: the tree names rank 7, which is none");
  bad = good;
  bad[0].tree[1] = {};
  bad[0].tree[0].down[0] = -1;
  CHECK(check_error(bad) == "channel 0: the tree has 2 roots; expected 1");
  bad = good;
  bad[0].tree[1].down[0] = -1;
  CHECK(check_error(bad) == "channel 0: the tree reaches 2 of 4 ranks from its root");
  for (Channel& channel : bad) channel.tree.clear();
  CHECK(check_error(bad).empty());
}

}  // namespace
}  // namespace railyard::algorithms
