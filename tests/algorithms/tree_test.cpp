#include "algorithms/tree.h"

#include <doctest/doctest.h>

#include "algorithms/split.h"
#include "tests/algorithms/clusters.h"
#include "tests/algorithms/link_bytes.h"

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bytes;
using sim::CollectiveCall;
using sim::LaneRole;
using sim::Protocol;
using sim::Schedule;
using namespace sim::literals;

Schedule tree(CollectiveCall call, const sim::Channels& channels) {
  call.algorithm = Algorithm::tree;
  const CommShape shape{static_cast<std::uint32_t>(channels[0].ring.size()), 1};
  const auto count = static_cast<std::uint32_t>(channels.size());
  return tree_schedule({.call = call,
                        .channels = channels,
                        .shape = shape,
                        .parts = split_call(call, shape, count, {})});
}

std::string_view primitive(const Schedule& schedule, const sim::Lane& lane) {
  return to_text(schedule.programs[lane.program.index()].front().primitive);
}

TEST_CASE("tree: two ranks are a coupled root and a leaf") {
  sim::Channels channels = test::random_channels(2, 1, 1);
  const Schedule schedule = tree({.size = 1_MiB}, channels);
  REQUIRE(schedule.lanes.size() == 3);
  for (const sim::Lane& lane : schedule.lanes) {
    if (lane.role == LaneRole::tree_root) CHECK(primitive(schedule, lane) == "recvReduceCopySend");
    if (lane.role == LaneRole::tree_up) CHECK(primitive(schedule, lane) == "send");
    if (lane.role == LaneRole::tree_down) CHECK(primitive(schedule, lane) == "recv");
  }
}

TEST_CASE("tree: shares of a CTA's threads by protocol") {
  const auto shares = [](Protocol protocol) {
    const Schedule schedule =
        tree({.size = 1_MiB, .protocol = protocol}, test::random_channels(5, 1, 1));
    std::pair<int, int> result;
    for (const sim::Lane& lane : schedule.lanes) {
      if (lane.role == LaneRole::tree_root) CHECK(lane.copy_percent == 100);
      if (lane.role == LaneRole::tree_up) result.first = lane.copy_percent;
      if (lane.role == LaneRole::tree_down) result.second = lane.copy_percent;
    }
    return result;
  };
  CHECK(shares(Protocol::simple) == std::pair{60, 40});  // 384 of 640
  CHECK(shares(Protocol::ll) == std::pair{70, 30});
  CHECK(shares(Protocol::ll128) == std::pair{70, 30});
  CHECK(shares(Protocol::plain) == std::pair{50, 50});
}

TEST_CASE("tree: every edge carries its channel's part once each way") {
  for (std::uint32_t n = 2; n <= 20; ++n)
    for (std::uint32_t count = 1; count <= 4; ++count)
      for (const Protocol protocol :
           {Protocol::ll, Protocol::ll128, Protocol::simple, Protocol::plain}) {
        const sim::Channels channels = test::random_channels(n, count, n * 7 + count);
        const CollectiveCall call{.size = 2'000'004_B, .protocol = protocol};
        const Schedule schedule = tree(call, channels);
        CHECK(schedule.lanes.size() == (2 * n - 1) * count);
        CHECK(schedule.connections.size() == 2 * (n - 1) * count);
        test::LinkBytes link(schedule);
        CHECK(link.total() == call.size * (2 * (n - 1)));
        for (std::uint32_t c = 0; c < count; ++c)
          for (std::uint32_t rank = 0; rank < n; ++rank) {
            const std::int32_t up = channels[c].tree[rank].up;
            if (up < 0) continue;
            CHECK(link.on(c, rank, static_cast<std::uint32_t>(up)) == schedule.works[c].size);
            CHECK(link.on(c, static_cast<std::uint32_t>(up), rank) == schedule.works[c].size);
          }
      }
}

TEST_CASE("tree: FIFO slices are equal on both ends of every connection") {
  for (std::uint32_t n = 2; n <= 33; ++n)
    for (const Protocol protocol :
         {Protocol::ll, Protocol::ll128, Protocol::simple, Protocol::plain})
      for (const std::int64_t size : {0, 4, 64'000, 4'194'308})
        CHECK(test::slices_agree(tree({.size = bytes(size), .protocol = protocol},
                                      test::random_channels(n, n % 8 + 1, n))));
}

TEST_CASE("tree: slots are in the order of the parent's children") {
  sim::Channels channels = test::random_channels(4, 1, 1);
  channels[0].tree = {{.up = -1, .down = {3, -1, 1}},
                      {.up = 0, .down = {2, -1, -1}},
                      {.up = 1, .down = {-1, -1, -1}},
                      {.up = 0, .down = {-1, -1, -1}}};
  const Schedule schedule = tree({.size = 1_MiB}, channels);
  const sim::Lane& root = schedule.lanes[0];
  REQUIRE(root.recv_count == 2);
  REQUIRE(root.send_count == 2);
  const auto sender = [&](std::uint32_t slot) {
    const sim::ConnectionId id = schedule.slots[root.first_recv + slot];
    return schedule.lanes[schedule.connections[id.index()].from.index()].rank;
  };
  CHECK(sender(0) == 3);
  CHECK(sender(1) == 1);
}

}  // namespace
}  // namespace railyard::algorithms
