// Gloo's schedules: proved by the data-flow checker, attacked by mutations, and held against what
// the library does by hand (segments, messages, who sends what) and against closed forms of time.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/gloo/gloo_communicator.h"
#include "algorithms/gloo/segments.h"
#include "sim/dataflow.h"
#include "sim/longest_path.h"
#include "sim/schedule_costs.h"
#include "tests/algorithms/clusters.h"
#include "tests/sim/mutation.h"

using namespace railyard;              // NOLINT
using namespace railyard::sim;         // NOLINT
using namespace railyard::algorithms;  // NOLINT

namespace {

std::unique_ptr<GlooCommunicator> processes(std::uint32_t hosts, std::uint32_t per_host = 1) {
  const Topology topology =
      railyard::test::cluster({.nodes = hosts, .gpus = per_host, .nics = per_host});
  auto made = GlooCommunicator::create(topology, railyard::test::everyone(topology));
  REQUIRE(made.ok());
  return std::move(made).value();
}

CollectiveCall call_of(Collective collective, std::int64_t size, std::int64_t element = 4) {
  CollectiveCall call;
  call.collective = collective;
  call.algorithm = Algorithm::gloo;
  call.size = bytes(size);
  call.element_size = element;
  return call;
}

void prove(GlooCommunicator& communicator, const CollectiveCall& call) {
  const auto schedule = communicator.schedule(call);
  std::string problem = schedule.ok() ? "" : schedule.error().text();
  if (schedule.ok()) {
    const auto report = check_dataflow(*schedule.value());
    if (!report.ok()) problem = report.error().text();
    if (report.ok() && (report.value().slices == 0) != (call.size.raw() == 0))
      problem = "it moves nothing";
  }
  if (problem.empty()) return;
  FAIL_CHECK(problem << "\n  " << to_text(call.collective) << " " << to_text(call.algorithm) << " "
                     << call.size.raw() << " bytes, root " << call.root << ", "
                     << communicator.ranks() << " ranks, in place " << call.in_place);
}

// One element, none, some that do not divide, and so many that a chunk has more than two segments.
const std::vector<std::int64_t> kSizes{0, 4, 28, 4000, 1 << 20, (5 << 20) + 12, 41 << 20};

}  // namespace

TEST_CASE("gloo: data flow of AllReduce") {
  for (std::uint32_t ranks = 2; ranks <= 13; ++ranks) {
    const auto one = processes(ranks);
    for (const Algorithm algorithm : {Algorithm::gloo, Algorithm::gloo_bcube})
      for (const std::int64_t size : kSizes)
        for (const bool in_place : {false, true}) {
          CollectiveCall call = call_of(Collective::all_reduce, size);
          call.algorithm = algorithm;
          call.in_place = in_place;
          prove(*one, call);
        }
  }
}

TEST_CASE("gloo: data flow of AllGather, Broadcast and Reduce") {
  for (std::uint32_t ranks = 2; ranks <= 13; ++ranks) {
    const auto one = processes(ranks);
    for (const auto collective :
         {Collective::all_gather, Collective::broadcast, Collective::reduce})
      for (const std::int64_t size : kSizes)
        for (const bool in_place : {false, true}) {
          CollectiveCall call = call_of(collective, size);
          call.in_place = in_place;
          call.root = ranks * 5 / 7;
          prove(*one, call);
        }
  }
}

TEST_CASE("gloo: data flow with many ranks, every root, odd elements") {
  for (const std::uint32_t ranks : {16U, 24U, 33U, 64U}) {
    const auto one = processes(ranks);
    for (const Algorithm algorithm : {Algorithm::gloo, Algorithm::gloo_bcube}) {
      CollectiveCall call = call_of(Collective::all_reduce, 12'345 * 8, 8);
      call.algorithm = algorithm;
      prove(*one, call);
    }
    prove(*one, call_of(Collective::all_gather, 777, 1));
  }
  const auto six = processes(6);
  for (std::uint32_t root = 0; root < 6; ++root)
    for (const auto collective : {Collective::broadcast, Collective::reduce}) {
      CollectiveCall call = call_of(collective, 2 * 1'001, 2);
      call.root = root;
      prove(*six, call);
    }
  CollectiveCall alone = call_of(Collective::all_reduce, 40);
  prove(*processes(1), alone);
}

TEST_CASE("gloo: mutations") {
  for (const auto collective :
       {Collective::all_reduce, Collective::all_gather, Collective::broadcast, Collective::reduce})
    for (const Algorithm algorithm : {Algorithm::gloo, Algorithm::gloo_bcube}) {
      if (algorithm == Algorithm::gloo_bcube && collective != Collective::all_reduce) continue;
      tests::MutationCounts counts;
      for (const std::uint32_t ranks : {2U, 3U, 4U, 6U}) {
        CollectiveCall call = call_of(collective, 12 * ranks, 1);
        call.algorithm = algorithm;
        call.root = ranks / 2;
        const auto schedule = processes(ranks)->schedule(call);
        REQUIRE(schedule.ok());
        const Expansion expansion = expand(*schedule.value());
        const Promise promise = promise_of(*schedule.value());
        REQUIRE(check_dataflow(expansion, promise).ok());
        const tests::MutationCounts found =
            tests::run_mutations(expansion, promise, tests::CountStricter::no);
        CHECK(fmt::format("{}", fmt::join(found.wrongly_accepted, "\n")) == "");
        counts += found;
      }
      MESSAGE(to_text(collective) << " " << to_text(algorithm) << ": refused " << counts.refused
                                  << ", equivalent " << counts.equivalent);
      CHECK(counts.refused > 4 * counts.equivalent);
    }
}

// By hand, from the formulas of allreduce.cc and reduce.cc.
TEST_CASE("gloo: segments") {
  struct Case {
    std::int64_t total, element;
    std::uint32_t ranks, per_chunk;
    std::int64_t size;
  };
  // 64 MiB / 1 MiB = 64 segments over 3 ranks: 66. 25 MiB: 25 segments, 28 over four ranks, of
  // 936,228.6 bytes. 10 bytes of 1: at least 2 n = 8 segments of 2 bytes, the last three empty.
  for (const Case& c : {Case{65'536, 4, 2, 2, 16'384}, Case{65'536, 4, 4, 2, 8'192},
                        Case{4 << 20, 4, 2, 2, 1 << 20}, Case{64 << 20, 4, 4, 16, 1 << 20},
                        Case{64 << 20, 4, 3, 22, 1'016'804}, Case{25 << 20, 4, 4, 7, 936'232},
                        Case{10, 1, 4, 2, 2}}) {
    CAPTURE(c.total);
    CAPTURE(c.ranks);
    const gloo::Segments found = gloo::all_reduce_segments(c.total, c.element, c.ranks);
    CHECK(found.size == c.size);
    CHECK(found.per_chunk == c.per_chunk);
    CHECK(found.count == c.per_chunk * c.ranks);
  }
  // Elements that do not divide 1 MiB: no segment is longer than that.
  CHECK(gloo::all_reduce_segments(64 << 20, 3, 2).size <= 1 << 20);
  CHECK(gloo::all_reduce_segments(64 << 20, 3, 2).size % 3 == 0);
  // Reduce keeps whole MiBs and leaves the end of the last chunks empty.
  const gloo::Segments reduce = gloo::reduce_segments(25 << 20, 4, 4);
  CHECK(reduce.size == 1 << 20);
  CHECK(reduce.count == 28);
}

TEST_CASE("gloo: who sends what") {
  const auto four = processes(4);
  const auto made = four->schedule(call_of(Collective::all_reduce, 25 << 20));
  REQUIRE(made.ok());
  const Schedule& ring = *made.value();
  // Both phases: 3 chunks of 7 segments from each of 4 ranks.
  CHECK(totals(ring).messages == 2 * 3 * 7 * 4);
  CHECK(totals(ring).payload == bytes(2LL * 3 * (25 << 20)));
  for (const Connection& connection : ring.connections) {
    const std::uint32_t from = ring.lanes[connection.from.index()].rank;
    const std::uint32_t to = ring.lanes[connection.to.index()].rank;
    CHECK(to == (from + 3) % 4);
    CHECK(connection.nic_out.valid());
    CHECK(connection.nic_in.valid());
  }
  CHECK(ring.fifo_slices == 2);

  // Reduce sends 26 segments of 1 MiB a rank where 21 would do, and three chunks to the root.
  CollectiveCall reduce = call_of(Collective::reduce, 28 << 20);
  const auto reduced = four->schedule(reduce);
  REQUIRE(reduced.ok());
  CHECK(totals(*reduced.value()).messages == 26 * 4 + 3);

  // Recursive halving and doubling: 1/2 and 1/4 of the buffer, there and back.
  CollectiveCall bcube = call_of(Collective::all_reduce, 1 << 20);
  bcube.algorithm = Algorithm::gloo_bcube;
  const auto cube = four->schedule(bcube);
  REQUIRE(cube.ok());
  CHECK(totals(*cube.value()).messages == 4 * 4);
  CHECK(totals(*cube.value()).payload == bytes(4LL * 2 * ((1 << 19) + (1 << 18))));
  CHECK(totals(*processes(6)->schedule(bcube).value()).messages == 2 * 6 * (1 + 2));

  // A tree of six from rank 2: 2 -> 3; 2 -> 4, 3 -> 5; 2 -> 0, 3 -> 1.
  CollectiveCall broadcast = call_of(Collective::broadcast, 4'000);
  broadcast.root = 2;
  const auto tree = processes(6)->schedule(broadcast);
  REQUIRE(tree.ok());
  std::multimap<std::uint32_t, std::uint32_t> edges;
  for (const Connection& connection : tree.value()->connections)
    edges.emplace(tree.value()->lanes[connection.from.index()].rank,
                  tree.value()->lanes[connection.to.index()].rank);
  CHECK(edges ==
        std::multimap<std::uint32_t, std::uint32_t>{{2, 3}, {2, 4}, {2, 0}, {3, 5}, {3, 1}});
}

TEST_CASE("gloo: processes of one host use its loopback, others its first NIC") {
  const auto schedule = processes(2, 2)->schedule(call_of(Collective::all_reduce, 4'096));
  REQUIRE(schedule.ok());
  std::vector<DeviceId> out;
  for (const Connection& connection : schedule.value()->connections) {
    const std::uint32_t from = schedule.value()->lanes[connection.from.index()].rank;
    CHECK(connection.nic_out.valid() == (from % 2 == 0));  // 0 -> 3, 2 -> 1
    if (from == 0) out.push_back(connection.nic_out);
  }
  CHECK(out.size() == 2);
}

// Every connection on a wire of its own: a segment takes T, arrives L later; its receiver adds it
// up in A. k segments a chunk, n ranks. The link carries (n - 1) k segments in each phase without a
// gap as long as what arrives can go on two segments later: A + L <= T for k = 2.
TEST_CASE("gloo: closed form of the ring") {
  constexpr std::int64_t kT = 1'000'000, kL = 200'000, kA = 300'000;
  for (const std::uint32_t ranks : {2U, 3U, 4U, 8U})
    for (const std::int64_t size : {std::int64_t{8'000} * ranks, std::int64_t{4 << 20} * ranks}) {
      CAPTURE(ranks);
      CAPTURE(size);
      const auto made = processes(ranks)->schedule(call_of(Collective::all_reduce, size));
      REQUIRE(made.ok());
      const Schedule& schedule = *made.value();
      const gloo::Segments segments = gloo::all_reduce_segments(size, 4, ranks);
      std::vector<Bandwidth> links;
      std::vector<ConnectionCost> connections;
      for (std::size_t c = 0; c < schedule.connections.size(); ++c) {
        ConnectionCost cost;
        cost.route = {LinkId(c)};
        cost.staged = true;
        cost.latency = picoseconds(kL);
        connections.push_back(cost);
        links.push_back(bytes_per_second(segments.size * 1'000'000));  // T = 1 us
      }
      std::vector<LaneCost> lanes(schedule.lanes.size());
      for (std::size_t l = 0; l < lanes.size(); ++l)
        if (schedule.lanes[l].role == LaneRole::gloo_reduce)
          lanes[l].local_rate =
              Bandwidth::from_raw(bytes_per_second(segments.size).raw() * (1'000'000'000'000 / kA));
      const LongestPathResult found = longest_path(schedule, connections, lanes, links, {});
      const std::int64_t sent = segments.count - segments.per_chunk;
      const std::int64_t wanted = 2 * (sent * kT + kL) + kA;
      CHECK(std::abs(found.end.count() - wanted) <= 2 * sent + wanted / 1'000'000);
    }
}

TEST_CASE("gloo: errors") {
  const auto four = processes(4);
  const auto text = [&](const CollectiveCall& call) {
    const auto made = four->schedule(call);
    return made.ok() ? std::string() : made.error().message;
  };
  CHECK(text(call_of(Collective::reduce_scatter, 64)) ==
        "Gloo's ReduceScatter is not modelled; there are AllReduce, AllGather, Broadcast and "
        "Reduce");
  CollectiveCall call = call_of(Collective::all_reduce, 64);
  call.algorithm = Algorithm::ring;
  CHECK(text(call) == "Gloo has no Ring; expected Gloo or GlooBcube");
  call = call_of(Collective::all_gather, 64);
  call.algorithm = Algorithm::gloo_bcube;
  CHECK(text(call) == "GlooBcube is for AllReduce only; AllGather has Gloo");
  CHECK(text(call_of(Collective::all_reduce, 6)) ==
        "AllReduce: 6 bytes are no whole number of elements of 4 bytes");
  CHECK(text(call_of(Collective::all_reduce, -4)) ==
        "AllReduce: -4 bytes are no whole number of elements of 4 bytes");
  call = call_of(Collective::broadcast, 64);
  call.root = 4;
  CHECK(text(call) == "Broadcast: root 4 of a group of 4 ranks; expected 0 to 3");
  const Topology topology = railyard::test::cluster({.nodes = 1, .gpus = 1});
  CHECK(GlooCommunicator::create(topology, {}).error().message == "a group without ranks");
  CHECK(GlooCommunicator::create(topology, {Member{}}).error().message ==
        "rank 0 of the group is on no GPU of the topology");
}
