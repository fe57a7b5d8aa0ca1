#include "algorithms/point_to_point.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "tests/algorithms/clusters.h"

namespace railyard::algorithms {
namespace {

using sim::bytes;
using sim::Protocol;
using sim::Schedule;
using namespace sim::literals;

P2pLayout layout_of(const test::ClusterSpec& spec, std::uint32_t collective_channels) {
  const sim::Topology topology = test::cluster(spec);
  const sim::Group group = test::everyone(topology);
  auto places = find_places(topology, group);
  REQUIRE(places.ok());
  return p2p_layout(places.value(), group, collective_channels, {});
}

// "(send,recv)" of rank `place` round by round.
std::string schedule_text(const P2pLayout& layout, std::uint32_t place, std::size_t from,
                          std::size_t count) {
  std::string text;
  for (std::size_t i = from; i < from + count; ++i) {
    const P2pPeers peers = p2p_peers(layout, layout.rounds[i], place);
    text += "(" + std::to_string(peers.send_to) + "," + std::to_string(peers.recv_from) + ")";
  }
  return text;
}

TEST_CASE("point to point: rounds of 8 ranks") {
  const P2pLayout layout = layout_of({}, 24);
  CHECK(schedule_text(layout, 0, 0, 8) == "(0,0)(1,7)(2,6)(3,5)(4,4)(5,3)(6,2)(7,1)");
  CHECK(layout.channels == 32);
  CHECK(layout.channels_per_peer == 32);
}

TEST_CASE("point to point: rounds of 4 nodes of 8 ranks") {
  const P2pLayout layout = layout_of({.nodes = 4, .gpus = 8, .nics = 8}, 16);
  CHECK(schedule_text(layout, 0, 0, 3) == "(0,0)(1,7)(2,6)");
  CHECK(schedule_text(layout, 0, 8, 3) == "(8,24)(9,31)(10,30)");
  CHECK(schedule_text(layout, 0, 16, 2) == "(24,8)(25,15)");  // distance 3
  CHECK(schedule_text(layout, 0, 24, 2) == "(16,16)(17,23)");
  CHECK(layout.channels == 16);
  CHECK(layout.channels_per_peer == 4);
  // The eight rounds of a group distance share their channels; bases 0, 1, 2, 3 reversed in 4 bits.
  CHECK(p2p_channel(layout, layout.rounds[0], 0) == 0);
  CHECK(p2p_channel(layout, layout.rounds[7], 3) == 3);
  CHECK(p2p_channel(layout, layout.rounds[8], 0) == 8);
  CHECK(p2p_channel(layout, layout.rounds[16], 0) == 4);
  CHECK(p2p_channel(layout, layout.rounds[24], 1) == 13);
}

TEST_CASE("point to point: distances 0 1 3 6 10 15 5 12 of 16 groups") {
  const P2pLayout layout = layout_of({.nodes = 16, .gpus = 8, .nics = 8}, 16);
  const std::uint32_t expected[] = {0, 1, 3, 6, 10, 15, 5, 12};
  for (std::size_t i = 0; i < 8; ++i) CHECK(layout.rounds[8 * i].group_distance == expected[i]);
}

TEST_CASE("point to point: channels of rounds on one node are bit reversed") {
  const P2pLayout layout = layout_of({}, 24);
  const std::uint32_t expected[] = {0, 16, 8, 24, 4, 20, 12, 28};
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(p2p_channel(layout, layout.rounds[i], 0) == expected[i]);
  CHECK(p2p_channel(layout, layout.rounds[7], 5) == 1);  // 28 + 5 mod 32
}

TEST_CASE("point to point: every pair meets once, in one round on both sides") {
  for (const test::ClusterSpec& spec : {test::ClusterSpec{.nodes = 1, .gpus = 7},
                                        test::ClusterSpec{.nodes = 3, .gpus = 8, .nics = 8},
                                        test::ClusterSpec{.nodes = 5, .gpus = 6, .nics = 2},
                                        test::ClusterSpec{.nodes = 2, .gpus = 16, .nics = 4}}) {
    const P2pLayout layout = layout_of(spec, 16);
    const std::uint32_t n = layout.shape.ranks;
    REQUIRE(layout.rounds.size() == n);
    for (std::uint32_t place = 0; place < n; ++place) {
      std::set<std::uint32_t> met;
      for (const P2pRound& round : layout.rounds) {
        const std::uint32_t to = p2p_peers(layout, round, place).send_to;
        met.insert(to);
        CHECK(p2p_peers(layout, round, to).recv_from == place);
      }
      CHECK(met.size() == n);
    }
    CHECK(p2p_peers(layout, layout.rounds[0], 3).send_to == 3);
  }
}

TEST_CASE("point to point: a group size that divides every node") {
  CHECK(layout_of({.nodes = 2, .gpus = 6, .nics = 2}, 16).group_size == 2);
  CHECK(layout_of({.nodes = 2, .gpus = 16, .nics = 2}, 16).group_size == 8);
  CHECK(layout_of({.nodes = 1, .gpus = 6}, 16).group_size == 6);
}

TEST_CASE("point to point: parts on one node of 8 with NVLink") {
  const P2pLayout layout = layout_of({}, 24);  // 32 channels: at least 32 / 8 = 4 a peer
  const auto parts = [&](sim::Bytes size) {
    return p2p_parts(layout, Protocol::simple, size, false);
  };
  CHECK(parts(4_B).count == 1);
  CHECK(parts(4_B).chunk == 512_KiB);
  CHECK(parts(64_KiB).count == 1);  // the smallest part is 512 KiB / 8
  CHECK(parts(65_KiB).count == 2);
  CHECK(parts(1_MiB).count == 4);
  CHECK(parts(64_MiB).count == 4);  // the largest part is 32 x 512 KiB
  CHECK(parts(128_MiB).count == 8);
  CHECK(parts(2048_MiB).count == 32);
  CHECK(parts(1'000'000_B).size == 253'952_B);  // 250,000 up to a multiple of 4 KiB
}

TEST_CASE("point to point: parts and chunks across nodes") {
  const P2pLayout layout = layout_of({.nodes = 2, .gpus = 8, .nics = 8}, 16);
  const auto parts = [&](sim::Bytes size) {
    return p2p_parts(layout, Protocol::simple, size, true);
  };
  CHECK(parts(1_MiB).count == 4);  // 16 ranks on 16 channels: 1, doubled to the most, 4
  CHECK(parts(128_KiB).count == 1);
  CHECK(parts(100_KiB).chunk == 32_KiB);
  CHECK(parts(128_KiB).chunk == 64_KiB);
  CHECK(parts(1_MiB).chunk == 128_KiB);
  CHECK(p2p_parts(layout, Protocol::simple, 100_KiB, false).chunk == 128_KiB);
  CHECK(p2p_parts(layout, Protocol::ll, 100_KiB, true).chunk == 32_KiB);
  CHECK(p2p_parts(layout, Protocol::plain, 100_KiB, true).chunk == 100_KiB);
  CHECK(layout_of({.nodes = 8, .gpus = 8, .nics = 8}, 16).channels_per_peer == 2);
}

TEST_CASE("point to point: LL for small messages in one node") {
  const P2pLayout one = layout_of({}, 24);
  CHECK(p2p_protocol(one, 16_KiB) == Protocol::ll);
  CHECK(p2p_protocol(one, 17_KiB) == Protocol::simple);
  const P2pLayout two = layout_of({.nodes = 2, .gpus = 8, .nics = 8}, 16);
  CHECK(p2p_protocol(two, 4_B) == Protocol::simple);
}

Schedule all_to_all(const P2pLayout& layout, sim::Bytes each,
                    Protocol protocol = Protocol::simple) {
  sim::CollectiveCall call;
  call.collective = sim::Collective::all_to_all;
  call.size = each * std::int64_t{layout.shape.ranks};
  call.protocol = protocol;
  auto result = point_to_point_schedule(call, layout);
  REQUIRE(result.ok());
  return result.value();
}

TEST_CASE("point to point: closed forms of AllToAll") {
  const P2pLayout layout = layout_of({}, 24);
  const Schedule schedule = all_to_all(layout, 64_KiB);
  CHECK(schedule.lanes.size() == 8 + 2 * 8 * 7);
  CHECK(schedule.connections.size() == 8 * 7);
  CHECK(schedule.works.size() == 8);  // shared by all who send to, or receive from, a rank
  CHECK(totals(schedule).payload == 64_KiB * (8 * 7));
  CHECK(totals(schedule).messages == 8 * 7);
  CHECK(schedule.channels == 8);
  CHECK(totals(all_to_all(layout, 64_MiB)).messages == 8 * 7 * 128);  // 4 parts of 32 steps
}

TEST_CASE("point to point: one work of a batch has the CTA, eight share it") {
  const Schedule alone = all_to_all(layout_of({}, 24), 4_KiB);
  CHECK(alone.lanes[0].role == sim::LaneRole::local);
  CHECK(alone.lanes[0].copy_percent == 100);
  CHECK(alone.lanes[1].copy_percent == 50);  // 10 warps to send
  CHECK(alone.lanes[2].copy_percent == 45);  // 9 to receive
  const Schedule shared = all_to_all(layout_of({.nodes = 4, .gpus = 8, .nics = 8}, 16), 4_KiB);
  CHECK(shared.lanes[0].copy_percent == 10);
  CHECK(shared.lanes[1].copy_percent == 5);
  CHECK(shared.lanes[2].copy_percent == 5);
}

TEST_CASE("point to point: batches of eight rounds on a channel") {
  const P2pLayout layout = layout_of({.nodes = 1, .gpus = 20}, 1);  // every round on one channel
  const Schedule schedule = all_to_all(layout, 4_KiB);
  std::vector<std::uint32_t> lanes(3);
  for (const sim::Lane& lane : schedule.lanes)
    if (lane.rank == 5) ++lanes[lane.batch];
  CHECK(lanes == std::vector<std::uint32_t>{15, 16, 8});
  CHECK(schedule.channels == 1);
}

TEST_CASE("point to point: NICs are rail aligned through a relay") {
  const test::ClusterSpec spec{.nodes = 2, .gpus = 4, .nics = 4};
  const sim::Topology topology = test::cluster(spec);
  const Schedule schedule = all_to_all(layout_of(spec, 16), 4_KiB);
  std::uint32_t between = 0;
  for (const sim::Connection& connection : schedule.connections) {
    const std::uint32_t from = schedule.lanes[connection.from.index()].rank;
    const std::uint32_t to = schedule.lanes[connection.to.index()].rank;
    if (from / 4 == to / 4) {
      CHECK_FALSE(connection.nic_out.valid());
      continue;
    }
    ++between;
    CHECK(connection.nic_out == topology.nodes[from / 4].nics[to % 4]);
    CHECK(connection.nic_in == topology.nodes[to / 4].nics[to % 4]);
    const bool direct = from % 4 == to % 4;
    CHECK(connection.relay == (direct ? sim::DeviceId() : topology.nodes[from / 4].gpus[to % 4]));
  }
  CHECK(between == 2 * 4 * 4);
}

TEST_CASE("point to point: without PXN each side uses its nearest NIC") {
  const sim::Topology topology = test::cluster({.nodes = 2, .gpus = 4, .nics = 4});
  const sim::Group group = test::everyone(topology);
  auto places = find_places(topology, group);
  REQUIRE(places.ok());
  const P2pLayout layout =
      p2p_layout(places.value(), group, 16, {.channels = 0, .channels_per_peer = 0, .pxn = false});
  const Schedule schedule = all_to_all(layout, 4_KiB);
  for (const sim::Connection& connection : schedule.connections) {
    const std::uint32_t from = schedule.lanes[connection.from.index()].rank;
    if (!connection.nic_out.valid()) continue;
    CHECK(connection.nic_out == topology.nodes[from / 4].nics[from % 4]);
    CHECK_FALSE(connection.relay.valid());
  }
}

TEST_CASE("point to point: nothing for 0 bytes, too many lanes is an error") {
  P2pLayout layout = layout_of({}, 24);
  CHECK(all_to_all(layout, 0_B).lanes.empty());
  layout.shape.ranks = 100'000;
  sim::CollectiveCall call;
  call.collective = sim::Collective::all_to_all;
  call.size = bytes(400'000);
  const auto result = point_to_point_schedule(call, layout);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().text() ==
        "AllToAll of 100000 ranks would have 20000000000 lanes, which is too many");
}

Schedule schedule_of(const P2pLayout& layout, sim::Collective collective, std::uint32_t root) {
  sim::CollectiveCall call;
  call.collective = collective;
  call.size = 1_MiB;
  call.root = root;
  auto result = point_to_point_schedule(call, layout);
  REQUIRE(result.ok());
  return std::move(result).value();
}

std::size_t lanes_of(const Schedule& schedule, std::uint32_t rank, sim::LaneRole role) {
  std::size_t count = 0;
  for (const sim::Lane& lane : schedule.lanes) count += lane.rank == rank && lane.role == role;
  return count;
}

// 1 MiB of 512 KiB steps: at least 64 KiB a part, 4 channels for each of 8 peers of 32 channels.
TEST_CASE("point to point: who sends in Gather, Scatter and SendRecv") {
  const P2pLayout layout = layout_of({}, 24);
  using sim::Collective;
  using sim::LaneRole;
  const Schedule gather = schedule_of(layout, Collective::gather, 3);
  const Schedule scatter = schedule_of(layout, Collective::scatter, 3);
  const Schedule shift = schedule_of(layout, Collective::send_recv, 0);
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    const std::size_t root = rank == 3 ? 4 : 0;
    const std::size_t other = 4 - root;
    CHECK(lanes_of(gather, rank, LaneRole::p2p_recv) == 7 * root);
    CHECK(lanes_of(gather, rank, LaneRole::p2p_send) == other);
    CHECK(lanes_of(gather, rank, LaneRole::local) == root);
    CHECK(lanes_of(scatter, rank, LaneRole::p2p_send) == 7 * root);
    CHECK(lanes_of(scatter, rank, LaneRole::p2p_recv) == other);
    CHECK(lanes_of(scatter, rank, LaneRole::local) == root);
    CHECK(lanes_of(shift, rank, LaneRole::p2p_send) == 4);
    CHECK(lanes_of(shift, rank, LaneRole::p2p_recv) == 4);
  }
  CHECK(gather.connections.size() == 7 * 4);
  CHECK(shift.connections.size() == 8 * 4);
  // Alone on its channel, one direction has the whole CTA; both halve it, sending has more.
  for (const sim::Lane& lane : gather.lanes)
    if (lane.rank != 3) CHECK(int{lane.copy_percent} == 100);
  for (const sim::Lane& lane : shift.lanes)
    CHECK(int{lane.copy_percent} == (lane.role == LaneRole::p2p_send ? 50 : 45));
}

}  // namespace
}  // namespace railyard::algorithms
