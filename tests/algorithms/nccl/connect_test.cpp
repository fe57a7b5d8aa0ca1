// Rings, trees, NVLS heads and NICs across nodes, worked out by hand; channel counts and the errors
// of the inputs.
#include "algorithms/nccl/connect.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "algorithms/nccl/channel_counts.h"
#include "tests/algorithms/nccl/machines.h"

namespace railyard::algorithms::nccl {
namespace {

using sim::GraphPattern;

std::string text(const std::vector<std::uint32_t>& ranks) {
  return fmt::format("{}", fmt::join(ranks, " "));
}

std::string text(const sim::TreeEdges& edges) {
  return fmt::format("{} {}", edges.up, fmt::join(edges.down, " "));
}

// Two GPUs per node; channel 0 is 0 1, channel 1 is 1 0.
MachineSpec pairs(std::int32_t nodes, GraphPattern pattern) {
  return {.nodes = nodes,
          .gpus = 2,
          .capability = 80,
          .ring = {2, 20, 20},
          .tree = {2, 20, 20, pattern}};
}

TEST_CASE("NCCL rings: node after node, exchanged in pairs on odd nodes with crossNic 2") {
  MachineSpec spec = pairs(3, GraphPattern::tree);
  const CommPlan straight = plan_of(machine(spec));
  CHECK(text(straight.connections.rings[0]) == "0 1 2 3 4 5");
  CHECK(text(straight.connections.rings[1]) == "0 3 2 5 4 1");
  CHECK(straight.connections.rings[2] == straight.connections.rings[0]);
  spec.cross_nic = 2;
  const CommPlan crossed = plan_of(machine(spec));
  CHECK(text(crossed.connections.rings[0]) == "0 1 3 2 4 5");
  CHECK(text(crossed.connections.rings[1]) == "0 2 3 5 4 1");
  // On rails: 1 leaves by the NIC of GPU 1, 3 enters by it; 2 leaves by GPU 0's, 4 enters by it.
  const auto hops = net_hops(crossed.inputs, crossed.info, crossed.connections, Algorithm::ring, 0);
  REQUIRE(hops.size() == 3);
  CHECK(fmt::format("{}-{} by {} {}", hops[0].from, hops[0].to, hops[0].net_out, hops[0].net_in) ==
        "1-3 by 1 1");
  CHECK(fmt::format("{}-{} by {} {}", hops[1].from, hops[1].to, hops[1].net_out, hops[1].net_in) ==
        "2-4 by 0 0");
}

TEST_CASE("NCCL trees: who has the edges between nodes, by pattern") {
  // Nodes 0 to 3; tree 0: 0 - 2, 2 - {1, 3}. Node n has GPUs 2n (on top) and 2n + 1. Node 2 is the
  // root's second child; nodes 1 and 3 are first and second child of node 2.
  const auto tree = [](GraphPattern pattern, std::size_t channel) {
    return plan_of(machine(pairs(4, pattern))).connections.trees[channel];
  };
  const auto plain = tree(GraphPattern::tree, 0);
  CHECK(text(plain[0]) == "-1 1 4 -1");
  CHECK(text(plain[4]) == "0 5 2 6");
  CHECK(text(plain[5]) == "4 -1 -1 -1");
  const auto balanced = tree(GraphPattern::balanced_tree, 0);
  CHECK(text(balanced[0]) == "-1 1 4 -1");
  CHECK(text(balanced[4]) == "0 5 6 -1");
  CHECK(text(balanced[5]) == "4 2 -1 -1");
  CHECK(text(balanced[2]) == "5 3 -1 -1");
  const auto split = tree(GraphPattern::split_tree, 0);
  CHECK(text(split[0]) == "-1 1 -1 -1");
  CHECK(text(split[1]) == "0 4 -1 -1");
  CHECK(text(split[4]) == "1 5 -1 -1");
  CHECK(text(split[5]) == "4 2 6 -1");
  // Channel 1 turns the node's order; channels 2 and 3 are tree 1: 3 - 1, 1 - {2, 0}.
  CHECK(text(tree(GraphPattern::tree, 1)[1]) == "-1 0 5 -1");
  CHECK(text(tree(GraphPattern::tree, 2)[6]) == "-1 7 2 -1");
  CHECK(text(tree(GraphPattern::tree, 2)[2]) == "6 3 4 0");
}

TEST_CASE("NCCL trees: one node is a chain, one GPU per node the double tree itself") {
  const auto chain = plan_of(machine(pairs(1, GraphPattern::balanced_tree))).connections.trees;
  CHECK(text(chain[0][0]) == "-1 1 -1 -1");
  CHECK(text(chain[1][1]) == "-1 0 -1 -1");
  MachineSpec single{.nodes = 3, .gpus = 1, .ring = {1, 20, 20}, .tree = {1, 20, 20}};
  single.tree.pattern = GraphPattern::balanced_tree;
  const CommPlan plan = plan_of(machine(single));
  CHECK(text(plan.connections.trees[0][0]) == "-1 2 -1 -1");
  CHECK(text(plan.connections.trees[0][2]) == "0 1 -1 -1");
  // Odd: shifted by one. Tree 0 is 0 - 2 - 1, tree 1 is 1 - 0 - 2.
  CHECK(text(plan.connections.trees[1][1]) == "-1 0 -1 -1");
  CHECK(text(plan.connections.trees[1][0]) == "1 2 -1 -1");
  const auto hops = net_hops(plan.inputs, plan.info, plan.connections, Algorithm::tree, 0);
  CHECK(hops.size() == 4);  // two edges, both directions
}

TEST_CASE("NCCL's NVLS: heads, and the double tree over them") {
  const CommPlan plan = plan_of(machine(h100(4)));
  CHECK(plan.info.nvls_heads == 8);
  const NvlsEdges root = nvls_edges(plan.info, plan.connections, 3, 0);
  CHECK(root.head == 3);
  CHECK(root.up == kNone);
  CHECK(root.down == std::array<std::int32_t, 2>{19, kNone});
  const NvlsEdges middle = nvls_edges(plan.info, plan.connections, 19, 0);
  CHECK(middle.up == 3);
  CHECK(middle.down == std::array<std::int32_t, 2>{11, 27});
  CHECK(nvls_edges(plan.info, plan.connections, 27, 1).up == kNone);
  const auto hops = net_hops(plan.inputs, plan.info, plan.connections, Algorithm::nvls_tree, 0);
  CHECK(hops.size() == 8 * 3 * 2);
  for (const NetHop& hop : hops) CHECK((hop.net_out == hop.from % 8 && hop.net_in == hop.to % 8));

  MachineSpec two_heads = h100(2);
  two_heads.nvls.channels = 2;
  const CommPlan few = plan_of(machine(two_heads));
  CHECK(nvls_edges(few.info, few.connections, 5, 0).head == kNone);
  CHECK(nvls_edges(few.info, few.connections, 5, 0).up == kNone);
}

TEST_CASE("NCCL with nodes of unequal size and kind") {
  // 4 GPUs of Hopper with 4 channels, then 2 of Ampere with 2: the weaker decides.
  CommInputs inputs = machine({.gpus = 4,
                               .ring = {4, 40, 40},
                               .tree = {4, 40, 40, GraphPattern::tree},
                               .nvls = {4, 40, 40}});
  MachineSpec small = pairs(1, GraphPattern::balanced_tree);
  small.intra = sim::PathType::phb;
  small.vendor = CpuVendor::amd;
  inputs.kinds.push_back(machine(small).kinds[0]);
  inputs.nodes.push_back({.kind = 1, .ranks = {4, 5}});
  const CommPlan plan = plan_of(inputs);
  CHECK(plan.info.search_channels == 2);
  CHECK(plan.info.ring.bw_intra == 20);
  CHECK(plan.info.ring.type_intra == sim::PathType::phb);
  CHECK(plan.info.min_capability == 80);
  CHECK(plan.info.max_capability == 90);
  CHECK(plan.info.cpu_vendor == CpuVendor::mixed);
  CHECK(plan.info.max_tree_pattern == GraphPattern::tree);
  CHECK_FALSE(plan.info.nvls_support);
  CHECK_FALSE(plan.info.all_nvlink);
  CHECK(text(plan.connections.rings[1]) == "0 5 4 1 2 3");
  CHECK(text(plan.connections.trees[0][0]) == "-1 1 4 -1");
}

std::int32_t channels(const MachineSpec& spec, const std::map<std::string, std::string>& env) {
  return plan_of(machine(spec), env).info.channels;
}

TEST_CASE("NCCL's channel counts: what the variables ask for") {
  const MachineSpec spec = h100(2);
  CHECK(channels(spec, {}) == 16);
  CHECK(channels(spec, {{"NCCL_MAX_NCHANNELS", "4"}}) == 4);
  CHECK(channels(spec, {{"NCCL_MAX_NCHANNELS", "0"}}) == 1);
  CHECK(channels(spec, {{"NCCL_MAX_NRINGS", "6"}}) == 6);
  CHECK(channels(spec, {{"NCCL_MAX_NRINGS", "6"}, {"NCCL_MAX_NCHANNELS", "8"}}) == 8);
  CHECK(channels(spec, {{"NCCL_MIN_NCHANNELS", "20"}}) == 20);
  CHECK(channels(spec, {{"NCCL_MIN_NCHANNELS", "100"}}) == 64);
  CHECK(channels(spec, {{"NCCL_MIN_NCHANNELS", "12"}, {"NCCL_MAX_NCHANNELS", "4"}}) == 12);
  CHECK(channels(spec, {{"NCCL_MIN_CTAS", "24"}}) == 24);
  CHECK(channels(spec, {{"NCCL_MIN_CTAS", "24"}, {"NCCL_MAX_CTAS", "8"}}) == 8);
  // At most 4, then at least 12: the first four again and again.
  const CommPlan plan =
      plan_of(machine(spec), {{"NCCL_MIN_NCHANNELS", "10"}, {"NCCL_MAX_NCHANNELS", "4"}});
  CHECK(plan.info.source == std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1});
  // Few fast channels between nodes of Hopper: twice as many again.
  MachineSpec fast = spec;
  fast.ring.channels = fast.tree.channels = 4;
  CHECK(channels(fast, {}) == 16);
  fast.ring.bw_intra = 45;
  CHECK(channels(fast, {}) == 8);
  CommInputs unpacking = machine(fast);
  unpacking.host_network = false;
  CHECK(plan_of(unpacking).info.channels == 16);
  CHECK(plan_of(unpacking, {{"NCCL_UNPACK_DOUBLE_NCHANNELS", "0"}}).info.channels == 8);
}

TEST_CASE("NCCL's NVLS channels and chunks") {
  const auto nvls = [](const MachineSpec& spec, const std::map<std::string, std::string>& env) {
    const CommInfo info = plan_of(machine(spec), env).info;
    return fmt::format("{} {} {}", info.nvls_channels, info.nvls_chunk / 1024,
                       info.nvls_tree_max_chunk / 1024);
  };
  CHECK(nvls(h100(2), {}) == "16 128 128");
  CHECK(nvls(h100(4), {}) == "16 128 64");
  CHECK(nvls(h100(2), {{"NCCL_NVLS_CHUNKSIZE", "65536"}}) == "16 64 64");
  CHECK(nvls(h100(4), {{"NCCL_NVLSTREE_MAX_CHUNKSIZE", "32768"}}) == "16 128 32");
  CHECK(nvls(h100(2), {{"NCCL_NVLS_NCHANNELS", "8"}}) == "8 128 128");
  CHECK(nvls(h100(2), {{"NCCL_MAX_CTAS", "4"}}) == "4 128 128");
  CHECK(nvls(h100(2), {{"NCCL_NVLS_ENABLE", "0"}}) == "0 0 0");
  MachineSpec b200 = h100(2);
  b200.capability = 100;
  CHECK(nvls(b200, {}) == "32 128 64");
  b200.inter = sim::PathType::pxn;
  CHECK(nvls(b200, {}) == "32 128 128");
  b200.nodes = 3;
  CHECK(nvls(b200, {}) == "24 128 128");
  b200.gpus = 4;
  b200.nodes = 2;
  CHECK(nvls(b200, {}) == "32 256 256");
  CommInputs fast = machine(b200);
  fast.nodes.push_back({.kind = 0, .ranks = {8, 9, 10, 11}});
  fast.kinds[0].min_net_bandwidth = 96;
  CHECK(plan_of(fast).info.nvls_channels == 24);
  CHECK(plan_of(fast).info.nvls_chunk == 256 * 1024);
  CommInputs no_driver = machine(h100(2));
  no_driver.multicast = false;
  CHECK_FALSE(plan_of(no_driver).info.nvls_support);
  CHECK(plan_of(no_driver, {{"NCCL_NVLS_ENABLE", "1"}}).info.nvls_support);
}

TEST_CASE("NCCL's channels for send and receive, and buffers") {
  const auto p2p = [](std::int32_t nodes, const std::map<std::string, std::string>& env) {
    const CommInfo info = plan_of(machine(h100(nodes)), env).info;
    return fmt::format("{} {} {}", info.p2p_channels, info.p2p_channels_per_peer,
                       info.p2p_chunk / 1024);
  };
  CHECK(p2p(1, {}) == "32 32 512");
  CHECK(p2p(2, {}) == "16 4 128");
  CHECK(p2p(64, {}) == "16 1 128");
  CHECK(p2p(64, {{"NCCL_MAX_P2P_PEERS", "16"}}) == "16 4 128");
  CHECK(p2p(64, {{"NCCL_NCHANNELS_PER_NET_PEER", "8"}}) == "16 4 128");  // as given, not halved
  CHECK(p2p(2, {{"NCCL_MIN_P2P_NCHANNELS", "20"}}) == "32 4 128");
  CHECK(p2p(2, {{"NCCL_MAX_P2P_NCHANNELS", "3"}}) == "4 2 128");
  CHECK(p2p(1, {{"NCCL_BUFFSIZE", "1048576"}}) == "32 32 128");
  CHECK(p2p(1, {{"NCCL_P2P_NVL_CHUNKSIZE", "262144"}}) == "32 32 256");
  MachineSpec grace = h100(2);
  grace.capability = 100;
  grace.arch = CpuArch::arm;
  CHECK(plan_of(machine(grace)).info.p2p_chunk == 256 * 1024);
  const CommPlan small = plan_of(machine(h100(1)), {{"NCCL_LL_BUFFSIZE", "65536"}});
  CHECK(small.info.buffers == std::array<std::int64_t, 3>{65'536, 4'915'200, 4'194'304});
}

TEST_CASE("NCCL's channels per peer before 2.29") {
  const auto per_peer = [](std::int32_t nodes, Version version,
                           const std::map<std::string, std::string>& env = {},
                           std::int32_t nets = 0) {
    CommInputs inputs = machine(h100(nodes));
    inputs.version = version;
    inputs.kinds[0].older_net_count = nets;
    return plan_of(inputs, env).info.p2p_channels_per_peer;
  };
  CHECK(per_peer(2, {2, 29, 2}) == 4);
  CHECK(per_peer(2, {2, 28, 9}) == 2);
  CHECK(per_peer(2, {2, 19, 3}) == 2);
  // 16 channels: two for a peer while 2 x ranks are at most 64, that is on four nodes of 8.
  CHECK(per_peer(4, {2, 20, 5}) == 2);
  CHECK(per_peer(5, {2, 20, 5}) == 1);
  CHECK(per_peer(5, {2, 28, 9}) == 1);
  CHECK(per_peer(5, {2, 19, 4}) == 2);  // not yet
  // The NICs that a GPU's own link to its CPU can feed: as many channels, a power of two.
  CHECK(per_peer(5, {2, 28, 9}, {}, 3) == 4);
  CHECK(per_peer(5, {2, 19, 4}, {}, 3) == 2);
  CHECK(per_peer(5, {2, 28, 9}, {{"NCCL_NCHANNELS_PER_NET_PEER", "8"}}) == 8);
  CHECK(per_peer(2, {2, 28, 9}, {{"NCCL_MAX_P2P_NCHANNELS", "1"}}) == 1);
  CHECK(per_peer(1, {2, 27, 7}) == 32);  // 24 channels, 36 by NVLinks
}

TEST_CASE("NCCL's CollNet: who may use it, its heads and chains") {
  MachineSpec spec = h100(2);
  CommInputs inputs = machine(spec);
  NodeKind& kind = inputs.kinds[0];
  kind.collnet_chain = kind.tree;
  kind.collnet_direct = kind.nvls;
  inputs.collnet = {.present = true, .enabled = true, .all_gather = true, .reduce_scatter = true};
  const CommPlan plan = plan_of(inputs);
  CHECK(plan.info.collnet);
  CHECK(plan.info.collnet_heads == 8);
  const ChainEdges second = collnet_chain_edges(plan.inputs, plan.info, 9, 0);
  CHECK(second.up == 8);
  CHECK(second.down == 10);
  CHECK(collnet_chain_edges(plan.inputs, plan.info, 8, 0).up == kNone);
  CHECK_FALSE(plan_of(inputs, {{"NCCL_COLLNET_ENABLE", "0"}}).info.collnet);
  CHECK_FALSE(plan_of(inputs, {{"NCCL_COLLNET_NODE_THRESHOLD", "3"}}).info.collnet);
  inputs.collnet.enabled = false;
  CHECK_FALSE(plan_of(inputs).info.collnet);
  CHECK(plan_of(inputs, {{"NCCL_COLLNET_ENABLE", "1"}}).info.collnet);
  inputs.collnet.present = false;
  CHECK_FALSE(plan_of(inputs, {{"NCCL_COLLNET_ENABLE", "1"}}).info.collnet);
  // Chains that are faster inside the node than between nodes: half as many channels again.
  inputs.collnet = {.present = true, .enabled = true};
  kind.collnet_chain.bw_inter = 24;
  CHECK(plan_of(inputs).info.channels == 24);
}

TEST_CASE("NCCL plan: errors of the inputs say where") {
  const auto error = [](const CommInputs& inputs) {
    return make_comm_plan(inputs, Environment{}).error().text();
  };
  const CommInputs good = machine(h100(2));
  CHECK(error({}) == "nodes: a communicator without ranks");
  CommInputs bad = good;
  bad.nodes[1].ranks[0] = 3;
  CHECK(error(bad) == "nodes[1]: rank 3 is not one of 0 to 15, each once");
  bad = good;
  std::swap(bad.nodes[0], bad.nodes[1]);
  CHECK(error(bad) == "nodes[1]: nodes must stand in order of their lowest rank");
  bad = good;
  bad.nodes[1].kind = 4;
  CHECK(error(bad) == "nodes[1]: kind 4 of 1");
  bad = good;
  bad.nodes[1].ranks.clear();
  CHECK(error(bad) == "nodes[1]: 0 ranks (1 to 72)");
  bad = good;
  bad.kinds[0].compute_capabilities.pop_back();
  CHECK(error(bad) == "kinds[0]: 8 ranks, but 7 compute capabilities");
  bad = good;
  bad.kinds[0].ring.channels[2].gpus[0] = 9;
  CHECK(error(bad) == "kinds[0]: ring graph, channel 2: expected an order of GPUs 0 to 7");
  bad = good;
  bad.kinds[0].tree.channels[0].gpus.pop_back();
  CHECK(error(bad) == "kinds[0]: tree graph, channel 0: expected an order of GPUs 0 to 7");
  bad = good;
  bad.kinds[0].nvls.channels[1].gpus = {-1};
  CHECK(error(bad) == "kinds[0]: nvls graph, channel 1: expected a list of GPUs 0 to 7");
  bad = good;
  bad.kinds[0].ring.channels.clear();
  CHECK(error(bad) == "kinds[0]: no ring or no tree channels");
}

}  // namespace
}  // namespace railyard::algorithms::nccl
