// NVLS, NVLSTree, CollNet and Hierarchical: proved by the data-flow checker over nodes, ranks and
// sizes; their shapes and chunks against NCCL's rules; what they refuse.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "algorithms/channels.h"
#include "algorithms/chunking.h"
#include "algorithms/communicator.h"
#include "algorithms/heads.h"
#include "sim/dataflow.h"
#include "tests/algorithms/clusters.h"

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bytes;
using sim::Collective;
using sim::CollectiveCall;
using sim::LaneRole;
using sim::Protocol;
using sim::Schedule;
using namespace sim::literals;

struct Made {
  sim::Topology topology;
  std::unique_ptr<Communicator> communicator;
};

Made make(const test::ClusterSpec& spec, std::uint32_t channels) {
  Made made;
  made.topology = test::cluster(spec);
  const sim::Group group = test::everyone(made.topology);
  auto by_rule = default_channels(made.topology, group, {.count = channels, .rails = 0});
  REQUIRE_MESSAGE(by_rule.ok(), (by_rule.ok() ? "" : by_rule.error().text()));
  auto result = Communicator::create(made.topology, group, by_rule.value());
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  made.communicator = std::move(result).value();
  return made;
}

void prove(Communicator& communicator, const CollectiveCall& call) {
  auto schedule = communicator.schedule(call);
  std::string problem = schedule.ok() ? "" : schedule.error().text();
  if (schedule.ok()) {
    const auto report = sim::check_dataflow(*schedule.value());
    if (!report.ok()) problem = report.error().text();
    if (report.ok() && (report.value().slices == 0) != (call.size.raw() == 0))
      problem = "it moves nothing";
  }
  CAPTURE(to_text(call.algorithm));
  CAPTURE(to_text(call.collective));
  CAPTURE(to_text(call.protocol));
  CAPTURE(call.size.raw());
  CAPTURE(communicator.shape().ranks);
  CAPTURE(communicator.shape().nodes);
  CHECK(problem == "");
}

// None, one element, less than an element per rank, what does not divide, several loops.
void prove_sizes(Communicator& communicator, CollectiveCall call) {
  for (const std::int64_t elements : {0, 1, 3, 5'001, 70'000, 1'000'003}) {
    call.size = bytes(4 * elements);
    for (const Protocol protocol : {Protocol::simple, Protocol::plain}) {
      call.protocol = protocol;
      call.in_place = elements % 2 == 1;
      prove(communicator, call);
    }
  }
}

TEST_CASE("switches: NVLS is proved for 2 to 12 ranks") {
  for (std::uint32_t ranks = 2; ranks <= 12; ++ranks) {
    const Made made = make({.gpus = ranks}, ranks % 4 + 1);
    for (const auto collective :
         {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter})
      prove_sizes(*made.communicator, {.collective = collective, .algorithm = Algorithm::nvls});
  }
  // More ranks than heads: AllReduce only.
  const Made many = make({.gpus = 40}, 1);
  CHECK(many.communicator->shape().heads == 32);
  prove(*many.communicator, {.size = 3_MiB, .algorithm = Algorithm::nvls});
}

TEST_CASE("switches: algorithms across nodes are proved for 2 to 9 nodes") {
  struct Shape {
    std::uint32_t gpus, nics;
  };
  for (std::uint32_t nodes = 2; nodes <= 9; ++nodes)
    for (const Shape& shape : {Shape{1, 1}, Shape{2, 1}, Shape{3, 3}, Shape{4, 2}, Shape{8, 8}}) {
      if (nodes > 5 && shape.gpus > 4) continue;
      const Made made =
          make({.nodes = nodes, .gpus = shape.gpus, .nics = shape.nics}, nodes % 3 + 1);
      for (const auto algorithm : {Algorithm::nvls_tree, Algorithm::collnet_direct,
                                   Algorithm::collnet_chain, Algorithm::hierarchical}) {
        if (algorithm == Algorithm::hierarchical && shape.gpus == 1) continue;
        prove_sizes(*made.communicator, {.algorithm = algorithm});
      }
    }
}

TEST_CASE("switches: NVLSTree without NICs") {
  const Made made = make({.nodes = 3, .gpus = 4}, 2);
  prove_sizes(*made.communicator, {.algorithm = Algorithm::nvls_tree});
  prove_sizes(*made.communicator, {.algorithm = Algorithm::hierarchical});
}

std::size_t lanes_of(const Schedule& schedule, LaneRole role) {
  std::size_t count = 0;
  for (const sim::Lane& lane : schedule.lanes) count += lane.role == role;
  return count;
}

std::shared_ptr<const Schedule> schedule_of(const test::ClusterSpec& spec, std::uint32_t channels,
                                            const CollectiveCall& call) {
  const Made made = make(spec, channels);
  auto result = made.communicator->schedule(call);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  return result.value();
}

TEST_CASE("switches: NVLS on 8 GPUs uses 16 channels and the switch for every head") {
  const auto schedule = schedule_of({}, 24, {.size = 64_MiB, .algorithm = Algorithm::nvls});
  CHECK(schedule->channels == 16);
  CHECK(lanes_of(*schedule, LaneRole::nvls_scatter) == 16 * 8);
  CHECK(lanes_of(*schedule, LaneRole::nvls_reduce) == 16 * 8);
  CHECK(lanes_of(*schedule, LaneRole::nvls_gather) == 16 * 8);
  for (const sim::Lane& lane : schedule->lanes) {
    CHECK(lane.in_switch.valid() == (lane.role == LaneRole::nvls_reduce));
    // 5 of 20 warps reduce, 8 scatter, 7 gather.
    const int percent = lane.role == LaneRole::nvls_reduce    ? 25
                        : lane.role == LaneRole::nvls_scatter ? 40
                                                              : 35;
    CHECK(int{lane.copy_percent} == percent);
  }
}

// Bytes of one channel B, heads w: 128 KiB, or 64, 32, 16 KiB where B < 64, 8, 2 w chunks.
TEST_CASE("switches: chunks of NVLS and NVLSTree") {
  CollectiveCall call{.algorithm = Algorithm::nvls};
  const CommShape one{.ranks = 8, .nodes = 1, .heads = 8};
  const auto chunk = [&](const CommShape& shape, sim::Bytes part) {
    return chunking(call, shape, part).chunk;
  };
  CHECK(chunk(one, 64_MiB) == 128_KiB);
  CHECK(chunk(one, bytes((64 << 20) - 1)) == 64_KiB);
  CHECK(chunk(one, 4_MiB) == 64_KiB);
  CHECK(chunk(one, bytes((4 << 20) - 1)) == 32_KiB);
  CHECK(chunk(one, 512_KiB) == 32_KiB);
  CHECK(chunk(one, bytes((512 << 10) - 1)) == 16_KiB);
  call.collective = Collective::all_gather;  // of all ranks together
  CHECK(chunk(one, 8_MiB) == 128_KiB);
  call = {.algorithm = Algorithm::nvls_tree};
  const CommShape two{.ranks = 16, .nodes = 2, .heads = 8};
  const CommShape four{.ranks = 32, .nodes = 4, .heads = 8};
  CHECK(chunk(two, 64_MiB) == 128_KiB);
  CHECK(chunk(four, 64_MiB) == 64_KiB);
  CHECK(chunk(two, bytes((4 << 20) - 1)) == 64_KiB);
  CHECK(chunk(two, bytes((512 << 10) - 1)) == 32_KiB);
}

// What a plan settles replaces Hopper's: Blackwell between two nodes of four, 256 KiB.
TEST_CASE("switches: NVLS chunks that a communicator settled") {
  const CommShape two{
      .ranks = 8, .nodes = 2, .heads = 4, .nvls_chunks = {.nvls = 256 << 10, .tree = 256 << 10}};
  const auto chunk = [&](Algorithm algorithm, sim::Bytes part) {
    return chunking({.algorithm = algorithm}, two, part).chunk;
  };
  CHECK(chunk(Algorithm::nvls, 64_MiB) == 256_KiB);  // 64 for each of four heads
  CHECK(chunk(Algorithm::nvls, bytes((64 << 20) - 1)) == 64_KiB);
  CHECK(chunk(Algorithm::nvls_tree, 64_MiB) == 256_KiB);
  CHECK(chunk(Algorithm::nvls_tree, bytes((16 << 20) - 1)) == 128_KiB);
}

// The last loop is cut in whole 16 KiB per head, so a small AllReduce uses few of them.
TEST_CASE("switches: a small NVLS AllReduce uses one head") {
  const auto schedule = schedule_of({}, 16, {.size = 16_KiB, .algorithm = Algorithm::nvls});
  const sim::Expansion expansion = expand(*schedule);
  for (const sim::ExpandedLane& lane : expansion.lanes)
    for (const sim::SliceOp& op : lane.ops) CHECK(op.size == (op.block == 0 ? 16_KiB : 0_B));
}

TEST_CASE("switches: chunks of CollNet") {
  const CommShape shape{.ranks = 32, .nodes = 4, .heads = 8};
  CollectiveCall call{.algorithm = Algorithm::collnet_direct};
  const auto chunk = [&](sim::Bytes part) { return chunking(call, shape, part).chunk; };
  CHECK(chunk(512_MiB) == 512_KiB);  // 128 chunks per head
  CHECK(chunk(bytes((512 << 20) - 1)) == 256_KiB);
  CHECK(chunk(8_MiB) == 64_KiB);  // 16 of them
  CHECK(chunk(1_MiB) == 32_KiB);
  call.algorithm = Algorithm::collnet_chain;
  CHECK(chunk(128_MiB) == 256_KiB);  // 64 for each of 8 ranks of the chain
  CHECK(chunk(64_MiB) == 128_KiB);
  CHECK(chunk(2_MiB) == 64_KiB);
  CHECK(chunk(bytes((512 << 10) - 1)) == 32_KiB);
}

// CollNetDirect: up and down at the NICs of all heads; nothing crosses nodes but through the
// switch.
TEST_CASE("switches: CollNet meets in a fabric switch") {
  for (const auto algorithm : {Algorithm::collnet_direct, Algorithm::collnet_chain}) {
    const auto schedule = schedule_of({.nodes = 4, .gpus = 8, .nics = 8}, 2,
                                      {.size = 64_MiB, .algorithm = algorithm});
    const bool direct = algorithm == Algorithm::collnet_direct;
    CHECK(lanes_of(*schedule, LaneRole::collnet_switch) == (direct ? 2 * 8 : 2));
    for (const sim::Connection& connection : schedule->connections) {
      const sim::Lane& from = schedule->lanes[connection.from.index()];
      const sim::Lane& to = schedule->lanes[connection.to.index()];
      CHECK(connection.nic_out.valid() == (to.role == LaneRole::collnet_switch));
      CHECK(connection.nic_in.valid() == (from.role == LaneRole::collnet_switch));
      if (!connection.nic_out.valid() && !connection.nic_in.valid())
        CHECK(from.rank / 8 == to.rank / 8);
    }
  }
}

TEST_CASE("switches: default heads") {
  const sim::Topology topology = test::cluster({.nodes = 3, .gpus = 8, .nics = 4});
  const sim::Channels channels =
      default_channels(topology, test::everyone(topology), {.count = 2, .rails = 0}).value();
  for (const sim::Channel& channel : channels) {
    REQUIRE(channel.heads.nodes.size() == 3);
    CHECK(channel.heads.nodes[1].heads == std::vector<std::uint32_t>{8, 10, 12, 14});
    CHECK(channel.heads.nodes[2].ranks.size() == 8);
    CHECK(topology.devices[channel.heads.nodes[0].nvswitch.index()].kind ==
          sim::DeviceKind::nvswitch);
    REQUIRE(channel.heads.switches.size() == 4);
    // A fabric switch per rail.
    for (std::size_t rail = 0; rail < 4; ++rail)
      CHECK(topology.devices[channel.heads.switches[rail].index()].name ==
            "rail/" + std::to_string(rail));
  }
  // Even channels have tree 0 of the double tree, odd ones tree 1 (here shifted by one node).
  CHECK(channels[0].heads.tree[0].up == -1);
  CHECK(channels[1].heads.tree[1].up == -1);
}

std::string refusal(const test::ClusterSpec& spec, const CollectiveCall& call) {
  const Made made = make(spec, 1);
  const auto result = made.communicator->schedule(call);
  return result.ok() ? std::string() : result.error().text();
}

TEST_CASE("switches: what the algorithms are not for") {
  const auto of = [](Algorithm algorithm, Collective collective = Collective::all_reduce) {
    return CollectiveCall{.collective = collective, .size = 4_B, .algorithm = algorithm};
  };
  const test::ClusterSpec two{.nodes = 2, .gpus = 2, .nics = 2};
  CHECK(refusal(two, of(Algorithm::nvls)) ==
        "algorithm: NVLS needs one node (NVLSTree serves more); this group has 4 ranks on 2 nodes");
  CHECK(refusal({.gpus = 4, .nvswitch = false}, of(Algorithm::nvls)) ==
        "algorithm: NVLS needs an NVSwitch in every node");
  CHECK(refusal({.gpus = 33}, of(Algorithm::nvls, Collective::all_gather)) ==
        "algorithm: NVLS for AllGather needs every rank to be a head; 32 of 33 ranks are");
  CHECK(refusal({.gpus = 4}, of(Algorithm::nvls_tree)) ==
        "algorithm: NVLSTree needs at least two nodes; this group has 4 ranks on 1 node");
  CHECK(refusal({.nodes = 2, .gpus = 2}, of(Algorithm::collnet_chain)) ==
        "algorithm: CollNetChain needs a fabric switch in which all nodes meet; there is none");
  CHECK(refusal({.nodes = 2, .gpus = 9, .nics = 9}, of(Algorithm::collnet_direct)) ==
        "algorithm: CollNetDirect needs at most 8 ranks per node; this group has 18 ranks on 2 "
        "nodes");
  CHECK(refusal({.gpus = 4}, of(Algorithm::hierarchical)) ==
        "algorithm: Hierarchical needs at least two nodes; this group has 4 ranks on 1 node");
  CHECK(refusal({.nodes = 2, .gpus = 1, .nics = 1}, of(Algorithm::hierarchical)) ==
        "algorithm: Hierarchical needs as many ranks on every node, at least 2; this group has 2 "
        "ranks on 2 nodes");
  CHECK(refusal(two, of(Algorithm::custom)) ==
        "algorithm: Custom is for schedules from files, which a communicator does not make");
  // Channels without heads.
  const sim::Topology topology = test::cluster({.gpus = 4});
  auto plain =
      Communicator::create(topology, test::everyone(topology), test::random_channels(4, 1, 1));
  CHECK(plain.value()->schedule(of(Algorithm::nvls)).error().text() ==
        "algorithm: NVLS needs channels with heads; the channels of this group have none");
}

TEST_CASE("switches: heads from elsewhere are checked") {
  const sim::Topology topology = test::cluster({.nodes = 2, .gpus = 2, .nics = 2});
  const sim::Group group = test::everyone(topology);
  const sim::Channels good = default_channels(topology, group, {.count = 1, .rails = 0}).value();
  const auto error = [&](auto&& change) {
    sim::Channels channels = good;
    change(channels[0].heads);
    const auto result = check_channels(topology, 4, channels);
    return result.ok() ? std::string() : result.error().text();
  };
  CHECK(error([](sim::Heads&) {}) == "");
  CHECK(error([](sim::Heads& h) { h.nodes[0].ranks[0] = 7; }) ==
        "channel 0: a node of heads has rank 7, which is none");
  CHECK(error([](sim::Heads& h) { h.nodes[1].ranks[0] = 1; }) ==
        "channel 0: rank 1 is in two nodes of heads");
  CHECK(error([](sim::Heads& h) { h.nodes[0].heads[0] = 3; }) ==
        "channel 0: rank 3 is head of a node that it is not in");
  CHECK(error([](sim::Heads& h) { h.nodes[0].nvswitch = sim::DeviceId(0); }) ==
        "channel 0: a node of heads meets in what is no NVSwitch");
  CHECK(error([](sim::Heads& h) { h.nodes[1].heads.pop_back(); }) ==
        "channel 0: nodes have 2 and 1 heads; expected as many");
  CHECK(error([](sim::Heads& h) { h.nodes.pop_back(); }) ==
        "channel 0: the nodes of heads leave out a rank");
  CHECK(error([](sim::Heads& h) { h.tree.clear(); }) ==
        "channel 0: heads: over nodes for ranks, the tree has 0 ranks; expected 2");
  CHECK(error([](sim::Heads& h) { h.switches.pop_back(); }) ==
        "channel 0: there are 1 switches for 2 heads");
  CHECK(error([](sim::Heads& h) { h.switches[0] = h.nodes[0].nvswitch; }) ==
        "channel 0: heads meet in what is no fabric switch");
}

}  // namespace
}  // namespace railyard::algorithms
