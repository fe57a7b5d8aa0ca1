// Every single small change of every small schedule of this folder is refused by the data-flow
// checker, or moves the same data (tests/sim/mutation.h). So the checker that proves the schedules
// (dataflow_test.cpp) would not have missed such a mistake, and no operation is superfluous.
#include "tests/sim/mutation.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

#include "algorithms/channels.h"
#include "algorithms/communicator.h"
#include "tests/algorithms/clusters.h"

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bytes;
using sim::Collective;
using sim::CollectiveCall;
using sim::Protocol;
using tests::MutationCounts;

constexpr std::uint32_t kMaxRanks = 8;

MutationCounts mutate(Communicator& communicator, const CollectiveCall& call) {
  const auto schedule = communicator.schedule(call);
  const std::string problem = schedule.ok() ? "" : schedule.error().text();
  REQUIRE(problem == "");
  const sim::Expansion expansion = sim::expand(*schedule.value());
  const sim::Promise promise = sim::promise_of(*schedule.value());
  CAPTURE(communicator.shape().ranks);
  CAPTURE(communicator.channels().size());
  REQUIRE(sim::check_dataflow(expansion, promise).ok());
  REQUIRE(tests::NumberRun(expansion, promise).keeps_promise());
  MutationCounts counts = tests::run_mutations(expansion, promise, tests::CountStricter::no);
  CHECK(counts.wrongly_accepted == std::vector<std::string>{});
  return counts;
}

MutationCounts mutate(std::uint32_t ranks, std::uint32_t channels, const CollectiveCall& call) {
  const sim::Topology topology = test::cluster({.nodes = 1, .gpus = ranks});
  auto communicator = Communicator::create(
      topology, test::everyone(topology), test::random_channels(ranks, channels, ranks + channels));
  REQUIRE(communicator.ok());
  return mutate(*communicator.value(), call);
}

// On channels by rule, with heads. Simple; `elements` of 1 byte do not divide into anything.
void mutate_on(const test::ClusterSpec& spec, CollectiveCall call, std::int64_t elements) {
  const sim::Topology topology = test::cluster(spec);
  const sim::Group group = test::everyone(topology);
  auto channels = default_channels(topology, group, {.count = 1, .rails = 0});
  REQUIRE(channels.ok());
  auto communicator = Communicator::create(topology, group, channels.value());
  REQUIRE(communicator.ok());
  call.element_size = 1;
  call.size = bytes(elements);
  call.protocol = Protocol::plain;
  const MutationCounts counts = mutate(*communicator.value(), call);
  MESSAGE(to_text(call.collective) << " " << to_text(call.algorithm) << ": refused "
                                   << counts.refused << ", equivalent " << counts.equivalent);
  CHECK(counts.refused > 4 * counts.equivalent);
}

// 2 to 8 ranks, 1 and 2 channels; `plain` splits any size over all channels, Simple sends empty
// slices, and 40 bytes a rank do not divide into aligned blocks.
void mutate_all(CollectiveCall call) {
  const bool per_rank =
      call.collective == Collective::all_gather || call.collective == Collective::reduce_scatter;
  const bool rooted =
      call.collective == Collective::broadcast || call.collective == Collective::reduce;
  MutationCounts counts;
  for (std::uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks) {
    call.size = bytes(per_rank ? 40 : 40 * std::int64_t{ranks});
    call.root = rooted ? ranks / 2 : 0;
    call.protocol = Protocol::plain;
    for (const std::uint32_t channels : {1U, 2U}) counts += mutate(ranks, channels, call);
    call.protocol = Protocol::simple;
    counts += mutate(ranks, 1, call);
  }
  MESSAGE(to_text(call.collective) << " " << to_text(call.algorithm) << ": refused "
                                   << counts.refused << ", equivalent " << counts.equivalent);
  CHECK(counts.refused > 10 * counts.equivalent);
}

CollectiveCall call_of(Collective collective, Algorithm algorithm = Algorithm::ring) {
  CollectiveCall call;
  call.collective = collective;
  call.algorithm = algorithm;
  return call;
}

TEST_CASE("mutation: ring AllReduce") { mutate_all(call_of(Collective::all_reduce)); }
TEST_CASE("mutation: ring AllGather") { mutate_all(call_of(Collective::all_gather)); }
TEST_CASE("mutation: ring ReduceScatter") { mutate_all(call_of(Collective::reduce_scatter)); }
TEST_CASE("mutation: ring Broadcast") { mutate_all(call_of(Collective::broadcast)); }
TEST_CASE("mutation: ring Reduce") { mutate_all(call_of(Collective::reduce)); }
TEST_CASE("mutation: tree AllReduce") {
  mutate_all(call_of(Collective::all_reduce, Algorithm::tree));
}

// LL moves 32 KiB an operation: three loops.
TEST_CASE("mutation: tree AllReduce of several loops") {
  CollectiveCall call = call_of(Collective::all_reduce, Algorithm::tree);
  call.protocol = Protocol::ll;
  call.size = bytes(70'000);
  call.max_channels = 1;
  MutationCounts counts;
  for (const std::uint32_t ranks : {2U, 3U, 5U}) counts += mutate(ranks, 1, call);
  MESSAGE("refused " << counts.refused << ", equivalent " << counts.equivalent);
}

TEST_CASE("mutation: AllToAll") {
  CollectiveCall call = call_of(Collective::all_to_all);
  MutationCounts counts;
  for (std::uint32_t ranks = 2; ranks <= 6; ++ranks)
    for (const Protocol protocol : {Protocol::plain, Protocol::simple}) {
      call.size = bytes(8 * std::int64_t{ranks});
      call.protocol = protocol;
      counts += mutate(ranks, 2, call);
    }
  MESSAGE("refused " << counts.refused << ", equivalent " << counts.equivalent);
}

TEST_CASE("mutation: Gather, Scatter and SendRecv") {
  for (const auto collective : {Collective::gather, Collective::scatter, Collective::send_recv}) {
    CollectiveCall call = call_of(collective);
    call.root = 1;
    for (const std::uint32_t ranks : {3U, 6U}) mutate_on({.gpus = ranks}, call, 7);
  }
}

// Small blocks go several in a message; 5 and 6 ranks leave gaps.
TEST_CASE("mutation: PAT") {
  for (const auto collective : {Collective::all_gather, Collective::reduce_scatter})
    for (const std::uint32_t ranks : {4U, 5U, 6U, 8U})
      mutate_on({.nodes = ranks, .gpus = 1, .nics = 1}, call_of(collective, Algorithm::pat), 5);
}

TEST_CASE("mutation: PAT with several blocks in a message") {
  CollectiveCall call = call_of(Collective::reduce_scatter, Algorithm::pat);
  MutationCounts counts;
  for (const auto collective : {Collective::all_gather, Collective::reduce_scatter})
    for (const std::uint32_t ranks : {5U, 8U}) {
      const sim::Topology topology = test::cluster({.nodes = ranks, .gpus = 1, .nics = 1});
      auto communicator = Communicator::create(topology, test::everyone(topology),
                                               test::random_channels(ranks, 1, ranks));
      call.collective = collective;
      call.size = bytes(8);
      counts += mutate(*communicator.value(), call);
    }
  MESSAGE("refused " << counts.refused << ", equivalent " << counts.equivalent);
  CHECK(counts.refused > 4 * counts.equivalent);
}

TEST_CASE("mutation: NVLS") {
  for (const auto collective :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter})
    for (const std::uint32_t ranks : {2U, 3U, 4U})
      mutate_on({.gpus = ranks}, call_of(collective, Algorithm::nvls), 11);
}

TEST_CASE("mutation: algorithms across nodes") {
  for (const auto algorithm : {Algorithm::nvls_tree, Algorithm::collnet_direct,
                               Algorithm::collnet_chain, Algorithm::hierarchical})
    for (const std::uint32_t nodes : {2U, 3U})
      mutate_on({.nodes = nodes, .gpus = 2, .nics = 2}, call_of(Collective::all_reduce, algorithm),
                70);
}

}  // namespace
}  // namespace railyard::algorithms
