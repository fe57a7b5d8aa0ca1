#include "algorithms/ring.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "algorithms/chunking.h"
#include "algorithms/communicator.h"
#include "tests/algorithms/clusters.h"
#include "tests/algorithms/link_bytes.h"

namespace railyard::algorithms {
namespace {

using sim::bytes;
using sim::Collective;
using sim::CollectiveCall;
using sim::Primitive;
using sim::Protocol;
using sim::Schedule;
using namespace sim::literals;

Schedule ring(CollectiveCall call, const sim::Channels& channels) {
  const CommShape shape{static_cast<std::uint32_t>(channels[0].ring.size()), 1};
  const auto count = static_cast<std::uint32_t>(channels.size());
  return ring_schedule({.call = call,
                        .channels = channels,
                        .shape = shape,
                        .parts = split_call(call, shape, count, {})});
}

TEST_CASE("ring: plain AllReduce of 64 MiB over 1,024 ranks") {
  const sim::Channels channels = test::random_channels(1024, 1, 3);
  const Schedule schedule = ring({.size = 64_MiB, .protocol = Protocol::plain}, channels);
  CHECK(schedule.lanes.size() == 1024);
  CHECK(schedule.connections.size() == 1024);
  CHECK(schedule.programs.size() == 1);
  CHECK(schedule.works[0].chunk == 64_KiB);
  CHECK(totals(schedule).messages == 1024 * 2046);
  CHECK(totals(schedule).payload == 64_KiB * (1024 * 2046));
}

TEST_CASE("ring: 4,096 ranks are built in milliseconds") {
  const sim::Channels channels = test::random_channels(4096, 1, 3);
  const auto start = std::chrono::steady_clock::now();
  const Schedule schedule = ring({.size = 64_MiB}, channels);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  CHECK(schedule.lanes.size() == 4096);
  CHECK(took.count() < 500);  // typically below 1; a loaded machine must not fail the test
  MESSAGE("4,096-rank ring built in " << took.count() << " ms");
}

// Primitives of the one program, with repeats: "send 2xrecvReduceSend ...".
std::string program_text(const sim::Program& program) {
  std::string text;
  for (const sim::Op& op : program) {
    if (!text.empty()) text += " ";
    if (op.repeat > 1) text += std::to_string(op.repeat) + "x";
    text += to_text(op.primitive);
  }
  return text;
}

TEST_CASE("ring: programs") {
  const auto program = [](Collective collective, std::uint32_t ranks) {
    return program_text(
        ring({.collective = collective, .size = 1_MiB}, test::random_channels(ranks, 1, 1))
            .programs[0]);
  };
  CHECK(program(Collective::all_reduce, 2) == "send recvReduceCopySend recv");
  CHECK(program(Collective::all_reduce, 3) ==
        "send recvReduceSend recvReduceCopySend recvCopySend recv");
  CHECK(program(Collective::all_reduce, 8) ==
        "send 6xrecvReduceSend recvReduceCopySend 6xrecvCopySend recv");
  CHECK(program(Collective::reduce_scatter, 8) == "send 6xrecvReduceSend recvReduceCopy");
  CHECK(program(Collective::reduce_scatter, 2) == "send recvReduceCopy");
  CHECK(program(Collective::all_gather, 8) == "copySend 6xrecvCopySend recv");
  CHECK(program(Collective::all_gather, 2) == "copySend recv");
}

TEST_CASE("ring: in place AllGather and Broadcast skip the local copy") {
  CollectiveCall call{.collective = Collective::all_gather, .size = 1_MiB};
  call.in_place = true;
  CHECK(ring(call, test::random_channels(3, 1, 1)).programs[0][0].primitive == Primitive::send);
  call.collective = Collective::broadcast;
  CHECK(ring(call, test::random_channels(3, 1, 1)).programs[0][0].primitive == Primitive::send);
}

TEST_CASE("ring: positions and blocks of four ranks") {
  sim::Channels channels = test::random_channels(4, 1, 1);
  channels[0].ring = {2, 0, 3, 1};
  const Schedule schedule = ring({.collective = Collective::all_gather, .size = 1_MiB}, channels);
  CHECK(schedule.block_orders.at(0) == std::vector<std::uint32_t>{0, 3, 1, 2});
  for (const sim::Lane& lane : schedule.lanes)
    CHECK(schedule.block_orders[0][lane.position] == lane.rank);
  channels[0].ring = {0, 1, 2, 3};
  CHECK(ring({.collective = Collective::all_gather, .size = 1_MiB}, channels).block_orders.empty());
}

TEST_CASE("ring: each link carries 2(n-1)/n of an AllReduce, (n-1)/n of AllGather, ReduceScatter") {
  for (std::uint32_t n = 2; n <= 17; ++n)
    for (std::uint32_t count = 1; count <= 4; ++count) {
      const sim::Channels channels = test::random_channels(n, count, n);
      CollectiveCall call{.size = 16_KiB * n * count * 8, .protocol = Protocol::simple};
      const std::int64_t total = call.size.raw();
      call.max_channels = count;
      test::LinkBytes all_reduce(ring(call, channels));
      sim::Bytes sum;
      for (std::uint32_t c = 0; c < count; ++c)  // the ring's links of one channel carry the same
        for (std::uint32_t i = 0; i < n; ++i)
          sum += all_reduce.on(c, channels[c].ring[i], channels[c].ring[(i + 1) % n]);
      CHECK(sum.raw() == total * 2 * (n - 1));
      CHECK(all_reduce.links() == n * count);
      for (const auto collective : {Collective::all_gather, Collective::reduce_scatter}) {
        call.collective = collective;
        call.size = bytes(total / n);
        test::LinkBytes link(ring(call, channels));
        CHECK(link.total().raw() == total * (n - 1));
      }
    }
}

TEST_CASE("ring: on a dividing size every directed link carries the same") {
  const sim::Channels channels = test::random_channels(8, 1, 5);
  const std::int64_t size = 8 * 64 * 1024;
  test::LinkBytes all_reduce(ring({.size = bytes(size), .protocol = Protocol::ll}, channels));
  for (std::uint32_t i = 0; i < 8; ++i)
    CHECK(all_reduce.on(0, channels[0].ring[i], channels[0].ring[(i + 1) % 8]).raw() ==
          size * 2 * 7 / 8);
  CollectiveCall call{.collective = Collective::all_gather, .size = bytes(size / 8)};
  test::LinkBytes gather(ring(call, channels));
  for (std::uint32_t i = 0; i < 8; ++i)
    CHECK(gather.on(0, channels[0].ring[i], channels[0].ring[(i + 1) % 8]).raw() == size * 7 / 8);
}

TEST_CASE("ring: Broadcast and Reduce leave one link of the ring unused") {
  const sim::Channels channels = test::random_channels(6, 2, 9);
  for (const auto collective : {Collective::broadcast, Collective::reduce}) {
    CollectiveCall call{.collective = collective, .size = 4_MiB, .root = 4};
    const Schedule schedule = ring(call, channels);
    CHECK(schedule.connections.size() == 2 * 5);
    test::LinkBytes link(schedule);
    CHECK(link.total() == 4_MiB * 5);
    for (std::uint32_t c = 0; c < 2; ++c) {
      const auto& order = channels[c].ring;
      const auto root =
          static_cast<std::size_t>(std::find(order.begin(), order.end(), 4u) - order.begin());
      const bool broadcast = collective == Collective::broadcast;
      const std::uint32_t before = order[(root + 5) % 6];
      const std::uint32_t after = order[(root + 1) % 6];
      // Nothing comes into a broadcasting root, nothing leaves a reducing one.
      CHECK(link.on(c, broadcast ? before : 4, broadcast ? 4 : after) == 0_B);
      CHECK(link.on(c, broadcast ? 4 : before, broadcast ? after : 4).raw() > 0);
    }
  }
}

TEST_CASE("ring: FIFO slices are equal on both ends of every connection") {
  for (std::uint32_t n = 2; n <= 33; ++n)
    for (std::uint32_t count = 1; count <= 8; ++count) {
      const sim::Channels channels = test::random_channels(n, count, n + count);
      for (const Protocol protocol : {Protocol::ll, Protocol::simple, Protocol::plain})
        for (const std::int64_t size : {0, 4, 64'000, 4'194'308}) {
          CollectiveCall call{.size = bytes(size), .protocol = protocol};
          CHECK(test::slices_agree(ring(call, channels)));
          call.collective = Collective::broadcast;
          CHECK(test::slices_agree(ring(call, channels)));
        }
    }
}

TEST_CASE("ring: 0 bytes move nothing, one element moves with empty slices") {
  const sim::Channels channels = test::random_channels(4, 2, 1);
  CHECK(ring({.size = 0_B}, channels).lanes.empty());
  CHECK(ring({.size = 0_B}, channels).channels == 0);
  const Schedule one = ring({.size = 4_B}, channels);
  CHECK(one.channels == 1);
  CHECK(totals(one).messages == 4 * 6 * 2);  // two slices a chunk, all but one empty
  CHECK(totals(one).payload == 4_B * 6);
}

TEST_CASE("ring: NICs of the channel's edges are on the connections") {
  const sim::Topology topology = test::cluster({.nodes = 2, .gpus = 2, .nics = 2});
  sim::Channels channels = test::random_channels(4, 1, 1);
  channels[0].ring = {0, 1, 3, 2};
  const sim::DeviceId out = topology.nodes[0].nics[1];
  const sim::DeviceId in = topology.nodes[1].nics[1];
  channels[0].net_edges = {{1, 3, out, in}};
  const Schedule schedule = ring({.size = 1_MiB}, channels);
  CHECK(schedule.connections[1].nic_out == out);
  CHECK(schedule.connections[1].nic_in == in);
  CHECK_FALSE(schedule.connections[0].nic_out.valid());
}

}  // namespace
}  // namespace railyard::algorithms
