#include "algorithms/nccl/search.h"

#include <doctest/doctest.h>

#include "tests/algorithms/nccl/small_hosts.h"

namespace railyard::tests {
namespace {

namespace nccl = algorithms::nccl;
using sim::ChannelGraph;
using sim::GraphKind;
using sim::GraphPattern;
using sim::PathType;
using Order = std::vector<std::int32_t>;

std::vector<ChannelGraph> graphs_of(const nccl::NodeTopology& node,
                                    const nccl::GraphOptions& options = {}) {
  auto graphs = nccl::find_graphs(node, options);
  REQUIRE_MESSAGE(graphs.ok(), graphs.error().text());
  return std::move(graphs).value();
}

sim::Hardware nvlink_pair(std::int32_t sm, std::uint32_t links) {
  sim::Hardware host;
  host.cpus = {
      intel(0, {gpu(0, sm, {nvlink_to_gpu(1, links)}), gpu(1, sm, {nvlink_to_gpu(0, links)})})};
  return host;
}

sim::Hardware switched(std::int32_t sm, std::int32_t gpus, std::int32_t gbit) {
  sim::Hardware host;
  std::vector<sim::HardwarePci> list;
  for (std::int32_t i = 0; i < gpus; ++i) {
    std::vector<sim::HardwarePci> below{gpu(i, sm, {nvlink_to_switch(18)}, kGen5)};
    if (gbit > 0) below.push_back(nic(i, gbit, kGen5));
    list.push_back(pci_switch("0000:0" + std::to_string(i + 1) + ":00.0", below, kGen5));
  }
  host.cpus = {intel(0, std::move(list), 0x8F)};
  return host;
}

TEST_CASE("two A100 with four NVLinks: two rings of 40 become four of 20, trees twice as fast") {
  // 80 GB/s each way. Ring: 40 is the fastest candidate, 80 / 40 = 2 channels use both directions;
  // doubled because 40 is more than 25. Tree: one direction per channel, so 2 x 80 / 40 = 4.
  const sim::Hardware host = nvlink_pair(80, 4);
  const auto graphs = graphs_of(node_of(one_host(host, 2, 2)));
  REQUIRE(graphs.size() == 2);
  const ChannelGraph& ring = graphs[0];
  CHECK(ring.kind == GraphKind::ring);
  CHECK(ring.channels.size() == 4);
  CHECK(ring.bw_intra == doctest::Approx(20));
  CHECK(ring.same_channels);
  CHECK(ring.type_intra == PathType::nvl);
  CHECK(ring.channels[3].gpus == Order{0, 1});
  CHECK(ring.channels[3].nets == std::array<std::int64_t, 2>{-1, -1});
  const ChannelGraph& tree = graphs[1];
  CHECK(tree.pattern == GraphPattern::balanced_tree);
  CHECK(tree.channels.size() == 4);
  CHECK(tree.bw_intra == doctest::Approx(40));
  CHECK(!tree.same_channels);
}

TEST_CASE("two H100 on NVSwitches") {
  // facts 1.10: ring 12 x 30, tree 12 x 60.
  const sim::Hardware host = switched(90, 2, 0);
  const auto graphs = graphs_of(node_of(one_host(host, 2, 2)));
  CHECK(graphs[0].channels.size() == 12);
  CHECK(graphs[0].bw_intra == doctest::Approx(30));
  CHECK(graphs[1].channels.size() == 12);
  CHECK(graphs[1].bw_intra == doctest::Approx(60));
}

TEST_CASE("one H100 per node with a 400 Gbit/s NIC: 1 x 48 becomes 2 x 24") {
  // facts 3.5
  const sim::Hardware host = switched(90, 1, 400);
  const auto graphs = graphs_of(node_of(one_host(host, 1, 2)));
  CHECK(graphs[0].channels.size() == 2);
  CHECK(graphs[0].bw_inter == doctest::Approx(24));
  CHECK(graphs[0].channels[1].nets == std::array<std::int64_t, 2>{0, 0});
  CHECK(graphs[1].pattern == GraphPattern::tree);
}

TEST_CASE("NVLS heads: all GPUs in one node, one per NIC between nodes") {
  const sim::Hardware host = switched(90, 4, 400);
  nccl::Capabilities multicast;
  multicast.multicast = true;
  const nccl::NodeTopology alone = node_of(one_host(host, 4, 4), {}, multicast);
  CHECK(nccl::nvls_available(alone, variables()));
  CHECK(!nccl::nvls_available(alone, variables({{"NCCL_NVLS_ENABLE", "0"}})));
  const nccl::NodeTopology plain = node_of(one_host(host, 4, 4));
  CHECK(!nccl::nvls_available(plain, variables()));
  CHECK(nccl::nvls_available(plain, variables({{"NCCL_NVLS_ENABLE", "1"}})));
  nccl::GraphOptions options;
  options.nvls = true;
  const auto inside = graphs_of(alone, options);
  REQUIRE(inside.size() == 3);
  // facts 1.10: 4 x 60.
  CHECK(inside[2].channels.size() == 4);
  CHECK(inside[2].bw_intra == doctest::Approx(60));
  CHECK(inside[2].channels[2].gpus == Order{2});

  const auto between = graphs_of(node_of(one_host(host, 4, 8), {}, multicast), options);
  CHECK(between[2].channels.size() == 4);
  CHECK(between[2].channels[3].nets == std::array<std::int64_t, 2>{3, 3});

  // Before Hopper, and without NVSwitches, there is nothing to find.
  const sim::Hardware older = switched(80, 4, 200);
  CHECK(graphs_of(node_of(one_host(older, 4, 4)), options)[2].channels.empty());
  const sim::Hardware bridged = nvlink_pair(90, 4);
  CHECK(graphs_of(node_of(one_host(bridged, 2, 2)), options)[2].channels.empty());
}

TEST_CASE("rings cross NICs in pairs where keeping to one would overload NVLinks") {
  // A ring that comes back to its NIC by PXN takes one more NVLink hop: 8 x 48 > 370.8 GB/s per
  // GPU, so eight channels fit only if they end at the neighbour's NIC; 4 x 48 do not need to.
  const sim::Hardware eight = switched(90, 8, 400);
  const auto crossing = graphs_of(node_of(one_host(eight, 8, 16)));
  CHECK(crossing[0].cross_nic == 2);
  REQUIRE(crossing[0].channels.size() == 8);
  // Every second channel is the one before it backwards.
  CHECK(crossing[0].channels[1].nets[0] == crossing[0].channels[0].nets[1]);
  CHECK(crossing[0].channels[1].nets[1] == crossing[0].channels[0].nets[0]);
  const auto straight = graphs_of(node_of(one_host(eight, 8, 16), {{"NCCL_CROSS_NIC", "0"}}));
  CHECK(straight[0].cross_nic == 0);
  for (const auto& channel : straight[0].channels) CHECK(channel.nets[0] == channel.nets[1]);

  const sim::Hardware four = switched(90, 4, 400);
  const auto few = graphs_of(node_of(one_host(four, 4, 8)));
  CHECK(few[0].cross_nic == 0);
  CHECK(few[0].type_inter == PathType::pxn);
}

TEST_CASE("collective networks: chains and heads use their NICs only") {
  sim::Hardware host = switched(90, 4, 400);
  for (const std::size_t i : {0, 1}) host.cpus[0].pci[i].children[1].nics[0].nets[0].collnet = true;
  nccl::GraphOptions options;
  options.collnet = true;
  const auto graphs = graphs_of(node_of(one_host(host, 4, 8)), options);
  REQUIRE(graphs.size() == 4);
  CHECK(graphs[2].kind == GraphKind::collnet_chain);
  CHECK(graphs[3].kind == GraphKind::collnet_direct);
  // Two heads of 48 GB/s, doubled.
  REQUIRE(graphs[3].channels.size() == 4);
  CHECK(graphs[3].bw_inter == doctest::Approx(24));
  CHECK(graphs[3].channels[0].gpus == Order{0});
  CHECK(graphs[3].channels[1].gpus == Order{1});
  for (const auto& channel : graphs[2].channels) CHECK(channel.nets[0] <= 1);
}

TEST_CASE("PCIe without P2P across two sockets: one channel at the socket link's speed") {
  // Skylake: 10 GB/s each way, a ring crosses once each way.
  sim::Hardware host;
  host.cpus = {intel(0, {gpu(0, 80), gpu(1, 80)}), intel(1, {gpu(2, 80), gpu(3, 80)})};
  const auto graphs = graphs_of(node_of(one_host(host, 4, 4)));
  CHECK(graphs[0].type_intra == PathType::sys);
  CHECK(graphs[0].channels.size() == 1);
  CHECK(graphs[0].bw_intra == doctest::Approx(10));
  CHECK(graphs[0].channels[0].gpus == Order{0, 1, 2, 3});
}

TEST_CASE("where nothing fits: one slow channel in file order") {
  // A Gen1 x1 link to each GPU, 0.1875 GB/s, and no candidate below 3 GB/s inside a node.
  sim::Hardware host;
  host.cpus = {intel(0, {gpu(0, 80), gpu(1, 80)})};
  for (sim::HardwarePci& pci : host.cpus[0].pci) {
    pci.link_speed = "2.5 GT/s PCIe";
    pci.link_width = 1;
  }
  const auto graphs = graphs_of(node_of(one_host(host, 2, 2)));
  CHECK(graphs[0].channels.size() == 1);
  CHECK(graphs[0].bw_intra == doctest::Approx(0.1));
  CHECK(graphs[0].type_intra == PathType::sys);
  CHECK(graphs[0].channels[0].gpus == Order{0, 1});
}

TEST_CASE("a graph file replaces the search for its kinds") {
  const sim::Hardware host = nvlink_pair(80, 4);
  const nccl::NodeTopology node = node_of(one_host(host, 2, 2));
  ChannelGraph given;
  given.bw_intra = 12;
  given.channels = {{{1, 0}, {-1, -1}}};
  const std::vector<ChannelGraph> file{given};
  nccl::GraphOptions options;
  options.file = &file;
  const auto graphs = graphs_of(node, options);
  CHECK(graphs[0].bw_intra == doctest::Approx(12));
  CHECK(graphs[0].channels[0].gpus == Order{1, 0});
  // The tree is still searched for, with the ring's channel count.
  CHECK(graphs[1].channels.size() == 1);

  // Device numbers become ranks.
  nccl::NodeRequest request = one_host(host, 2, 12);
  request.inputs.ranks = {{10, 0, 0}, {11, 0, 1}};
  request.rank = 10;
  request.comm_ranks = 2;
  CHECK(graphs_of(node_of(request), options)[0].channels[0].gpus == Order{11, 10});

  // One that crosses NICs is not taken where that is forbidden.
  std::vector<ChannelGraph> crossing{given};
  crossing[0].cross_nic = 1;
  options.file = &crossing;
  const nccl::NodeTopology strict = node_of(one_host(host, 2, 2), {{"NCCL_CROSS_NIC", "0"}});
  CHECK(graphs_of(strict, options)[0].bw_intra == doctest::Approx(20));

  std::vector<ChannelGraph> elsewhere{given};
  elsewhere[0].channels[0].gpus = {0, 5};
  options.file = &elsewhere;
  const auto refused = nccl::find_graphs(node, options);
  REQUIRE(!refused.ok());
  CHECK(refused.error().text() == "graph file: ring has GPU 5, which is not in the node");
  options.file_has_ranks = true;
  CHECK(nccl::find_graphs(node, options).error().text() ==
        "graph file: ring has rank 5, which is not in the node");
}

TEST_CASE("a node that must reach others needs a network device") {
  const sim::Hardware host = nvlink_pair(80, 4);
  const auto graphs = nccl::find_graphs(node_of(one_host(host, 2, 4)), {});
  REQUIRE(!graphs.ok());
  CHECK(graphs.error().text() ==
        "GPU 0 (rank 0) reaches no network device, but the communicator has ranks in other nodes");
}

}  // namespace
}  // namespace railyard::tests
