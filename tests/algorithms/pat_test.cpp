// PAT against the order and the message counts that NCCL's own generator gives (2.30; read off it,
// not off this program), against closed forms, and for every size that the data-flow checker is
// asked to prove.
#include "algorithms/pat.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/communicator.h"
#include "algorithms/pat_order.h"
#include "sim/dataflow.h"
#include "tests/algorithms/clusters.h"

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bytes;
using sim::Collective;
using sim::CollectiveCall;
using sim::Protocol;
using sim::Schedule;
using namespace sim::literals;

// "s2" sends on dimension 2, "r1+s0" passes on what came on dimension 1; "!" ends a message that is
// sent, where more than one block goes into it.
std::string text_of(const std::vector<PatStep>& steps, bool mark) {
  std::string text;
  for (const PatStep& step : steps) {
    if (!text.empty()) text += " ";
    if (step.recv_dimension >= 0) text += "r" + std::to_string(step.recv_dimension);
    if (step.recv_dimension >= 0 && step.send_dimension >= 0) text += "+";
    if (step.send_dimension < 0) continue;
    text += "s" + std::to_string(step.send_dimension);
    if (mark && !step.send.more) text += "!";
  }
  return text;
}

PatShape small(std::uint32_t ranks) { return pat_shape(ranks, 64_KiB, 1_KiB, 8); }
PatShape full(std::uint32_t ranks) { return pat_shape(ranks, 512_KiB, 64_MiB, 8); }

TEST_CASE("PAT: order of AllGather") {
  CHECK(text_of(pat_all_gather_order(small(8)), true) ==
        "s2! s1 r2+s1! s0 r1+s0 r2+s0 r1+s0! r0 r0 r0 r0");
  CHECK(text_of(pat_all_gather_order(full(8)), false) ==
        "s2 s1 r2+s1 s0 r1+s0 r2+s0 r1+s0 r0 r0 r0 r0");
  // n = 32, full chunks: dimensions sent on: 4, 3 3, 2 x 4, 1 x 8, then 8 x 0, and 8 x 0 again.
  std::vector<std::int32_t> dimensions;
  for (const PatStep& step : pat_all_gather_order(full(32)))
    if (step.send_dimension >= 0) dimensions.push_back(step.send_dimension);
  std::vector<std::int32_t> expected{4, 3, 3};
  expected.insert(expected.end(), 4, 2);
  expected.insert(expected.end(), 8, 1);
  expected.insert(expected.end(), 16, 0);
  CHECK(dimensions == expected);
}

TEST_CASE("PAT: order of ReduceScatter") {
  CHECK(text_of(pat_reduce_scatter_order(small(8)), true) ==
        "s0 s0 s0 s0! r0+s1 r0+s1! r1+s2 r1 r0+s2! r2 r0");
  CHECK(text_of(pat_reduce_scatter_order(full(8)), false) ==
        "s0 s0 s0 s0 r0+s1 r0+s1 r1+s2 r1 r0+s2 r2 r0");
}

TEST_CASE("PAT: blocks in a message, and messages at once") {
  CHECK(small(8).aggregate == 4);
  CHECK(small(8).spread == 4);
  CHECK(full(8).aggregate == 1);
  CHECK(full(8).spread == 4);  // as many as n / 2
  CHECK(full(64).spread == 8);
  CHECK(full(64).delta == 8);
  CHECK(pat_shape(64, 64_KiB, 8_KiB, 8).aggregate == 8);
  CHECK(pat_shape(64, 64_KiB, 33_KiB, 8).aggregate == 1);  // two do not fit
  CHECK(small(3).aggregate == 1);
  CHECK(pat_dimensions(5) == 3);
  CHECK(pat_dimensions(8) == 3);
}

// Count and bytes of rank 0's messages by dimension: a message is as long as its last part reaches.
struct Sent {
  std::int64_t messages = 0;
  std::int64_t size = 0;
  friend bool operator==(const Sent&, const Sent&) = default;
};
std::map<std::uint32_t, Sent> sent_by(const Schedule& schedule, std::uint32_t rank) {
  const sim::Expansion expansion = expand(schedule);
  std::map<std::uint32_t, Sent> sent;  // by distance
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> reach;
  for (const sim::ExpandedLane& lane : expansion.lanes) {
    if (lane.rank != rank) continue;
    for (const sim::SliceOp& op : lane.ops)
      for (const sim::MessageRef& ref : op.send) {
        std::int64_t& size = reach[{ref.connection.value(), ref.sequence}];
        size = std::max(size, op.size.raw() * (ref.part.index + 1));
      }
  }
  for (const auto& [message, size] : reach) {
    const sim::Connection& connection = expansion.connections[message.first];
    const std::uint32_t to = expansion.lanes[connection.to.index()].rank;
    Sent& total = sent[(to + schedule.ranks - rank) % schedule.ranks];
    ++total.messages;
    total.size += size;
  }
  return sent;
}

std::unique_ptr<Communicator> communicator(std::uint32_t ranks, std::uint32_t channels = 1) {
  const sim::Topology topology = test::cluster({.nodes = ranks, .gpus = 1, .nics = 1});
  auto made = Communicator::create(topology, test::everyone(topology),
                                   test::random_channels(ranks, channels, ranks));
  REQUIRE(made.ok());
  return std::move(made).value();
}

std::shared_ptr<const Schedule> schedule_of(std::uint32_t ranks, Collective collective,
                                            sim::Bytes size, std::uint32_t channels = 1,
                                            Protocol protocol = Protocol::simple) {
  const auto one = communicator(ranks, channels);
  auto made = one->schedule(
      {.collective = collective, .size = size, .algorithm = Algorithm::pat, .protocol = protocol});
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().text()));
  return made.value();
}

// By distance: 2^d above the sender in ReduceScatter, below it in AllGather.
TEST_CASE("PAT: messages by dimension") {
  using Dimensions = std::map<std::uint32_t, Sent>;
  const auto gather = [](std::uint32_t ranks, sim::Bytes size) {
    return sent_by(*schedule_of(ranks, Collective::all_gather, size), 0);
  };
  const auto scatter = [](std::uint32_t ranks, sim::Bytes size) {
    return sent_by(*schedule_of(ranks, Collective::reduce_scatter, size), 0);
  };
  CHECK(gather(8, 1_KiB) == Dimensions{{7, {1, 4096}}, {6, {1, 2048}}, {4, {1, 1024}}});
  CHECK(scatter(8, 1_KiB) == Dimensions{{1, {1, 4096}}, {2, {1, 2048}}, {4, {1, 1024}}});
  CHECK(gather(5, 1_KiB) == Dimensions{{4, {2, 2048}}, {3, {1, 1024}}, {1, {1, 1024}}});
  // Gaps: a message on dimension 0 has two places though n = 5 fills only one of some.
  CHECK(scatter(5, 1_KiB) == Dimensions{{1, {2, 4096}}, {2, {1, 2048}}, {4, {1, 1024}}});
  const std::int64_t chunk = 512 << 10;
  CHECK(gather(8, bytes(4 * chunk)) ==
        Dimensions{{7, {16, 16 * chunk}}, {6, {8, 8 * chunk}}, {4, {4, 4 * chunk}}});
  const auto many = gather(64, bytes(chunk));
  for (std::uint32_t d = 0; d < 6; ++d)
    CHECK(many.at(64 - (1U << d)).messages == std::int64_t{32} >> d);
}

// A rank's messages carry every block but its own once: (n - 1) b, and 2^(log2 n - 1 - d) b on
// dimension d where n is a power of two.
TEST_CASE("PAT: bytes on every dimension") {
  for (const std::uint32_t ranks : {2U, 4U, 8U, 16U, 32U})
    for (const auto collective : {Collective::all_gather, Collective::reduce_scatter})
      for (const std::int64_t each : {4LL, 10'000LL, 3'000'000LL}) {
        const auto schedule = schedule_of(ranks, collective, bytes(each), 2);
        CHECK(sim::totals(*schedule).payload == bytes(each * ranks * (ranks - 1)));
        std::map<std::uint32_t, Sent> sent = sent_by(*schedule, 1);
        for (std::uint32_t d = 0; 1U << d < ranks; ++d) {
          const bool down = collective == Collective::all_gather;
          const std::uint32_t far = down ? ranks - (1U << d) : 1U << d;
          CHECK(sent.at(far).size == each * (ranks >> (d + 1)));
        }
      }
}

TEST_CASE("PAT: the data-flow checker proves it for 2 to 40 ranks") {
  for (std::uint32_t ranks = 2; ranks <= 40; ++ranks) {
    const auto one = communicator(ranks, ranks % 3 + 1);
    for (const auto collective : {Collective::all_gather, Collective::reduce_scatter})
      for (const std::int64_t elements : {0, 1, 3, 500, 4'001, 40'000, 700'001}) {
        CollectiveCall call{.collective = collective,
                            .size = bytes(4 * elements),
                            .algorithm = Algorithm::pat,
                            .protocol = elements % 2 == 0 ? Protocol::simple : Protocol::plain,
                            .in_place = elements == 500};
        if (elements > 100'000) call.protocol = Protocol::simple;
        const auto schedule = one->schedule(call);
        REQUIRE(schedule.ok());
        const auto report = sim::check_dataflow(*schedule.value());
        const std::string problem = report.ok() ? "" : report.error().text();
        CAPTURE(ranks);
        CAPTURE(elements);
        CAPTURE(to_text(collective));
        REQUIRE(problem == "");
        CHECK((report.value().slices == 0) == (elements == 0));
      }
  }
}

TEST_CASE("PAT: messages leave by the ranks' NICs") {
  const auto schedule = schedule_of(4, Collective::all_gather, 1_MiB);
  for (const sim::Connection& connection : schedule->connections) {
    CHECK(connection.nic_out.valid());
    CHECK(connection.nic_in.valid());
    CHECK_FALSE(connection.relay.valid());
  }
}

TEST_CASE("PAT: what it is not for") {
  const auto error = [](const test::ClusterSpec& spec, const CollectiveCall& call) {
    const sim::Topology topology = test::cluster(spec);
    const sim::Group group = test::everyone(topology);
    auto made = Communicator::create(
        topology, group, test::random_channels(static_cast<std::uint32_t>(group.size()), 1, 1));
    const auto result = made.value()->schedule(call);
    return result.ok() ? std::string() : result.error().text();
  };
  CollectiveCall call{.collective = Collective::all_gather, .size = 4_B};
  call.algorithm = Algorithm::pat;
  CHECK(error({.nodes = 2, .gpus = 2, .nics = 2}, call) ==
        "algorithm: PAT needs one rank per node; this group has 4 ranks on 2 nodes");
  call.protocol = Protocol::ll;
  CHECK(error({.nodes = 2, .gpus = 1, .nics = 1}, call) ==
        "protocol: PAT has no LL; expected Simple or plain");
  call.collective = Collective::all_reduce;
  CHECK(error({.nodes = 2, .gpus = 1, .nics = 1}, call) ==
        "algorithm: PAT is for AllGather, ReduceScatter only; AllReduce has Ring, Tree, "
        "CollNetDirect, CollNetChain, NVLS, NVLSTree, Hierarchical");
}

}  // namespace
}  // namespace railyard::algorithms
