// Every schedule of this folder, proved by the data-flow checker: it moves symbols for the bytes,
// so a rank that ends with anything but what the collective promises is found, and so is a hang.
//
// Covered: every collective and protocol, ring and tree, 2 to 33 ranks and 1 to 8 channels, for a
// size that divides, one that does not, one element and none. The product of ranks, channels and
// protocols is complete up to 12 ranks; above, each (ranks, channels) has one protocol, in turn.
#include "sim/dataflow.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "algorithms/channels.h"
#include "algorithms/chunking.h"
#include "algorithms/communicator.h"
#include "tests/algorithms/clusters.h"

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bytes;
using sim::Collective;
using sim::CollectiveCall;
using sim::Protocol;

constexpr std::uint32_t kMaxRanks = 33;
constexpr std::uint32_t kAllPairsUpTo = 12;
constexpr Protocol kProtocols[] = {Protocol::ll, Protocol::ll128, Protocol::simple,
                                   Protocol::plain};

// Nodes of 4, 3 or 2 GPUs with a NIC each where that divides, else one node.
test::ClusterSpec spec_for(std::uint32_t ranks) {
  for (const std::uint32_t gpus : {4u, 3u, 2u})
    if (ranks % gpus == 0 && ranks > gpus)
      return {.nodes = ranks / gpus, .gpus = gpus, .nics = gpus};
  return {.nodes = 1, .gpus = ranks};
}

// Rail-aligned channels of default_channels() for an even `variant`, else random ones.
std::unique_ptr<Communicator> communicator(std::uint32_t ranks, std::uint32_t channels,
                                           std::uint32_t variant) {
  const sim::Topology topology = test::cluster(spec_for(ranks));
  const sim::Group group = test::everyone(topology);
  sim::Channels made = test::random_channels(ranks, channels, ranks * 100 + channels);
  if (variant % 2 == 0) {
    auto by_rule = default_channels(topology, group, {.count = channels, .rails = 0});
    REQUIRE_MESSAGE(by_rule.ok(), (by_rule.ok() ? "" : by_rule.error().text()));
    made = by_rule.value();
  }
  auto result = Communicator::create(topology, group, std::move(made));
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text()));
  return std::move(result).value();
}

void prove(Communicator& communicator, const CollectiveCall& call) {
  auto schedule = communicator.schedule(call);
  std::string problem = schedule.ok() ? "" : schedule.error().text();
  if (schedule.ok()) {
    const auto report = sim::check_dataflow(*schedule.value());
    if (!report.ok()) problem = report.error().text();
    const bool nothing_to_do =
        call.size.raw() == 0 || (call.in_place && communicator.shape().ranks == 1);
    if (report.ok() && (report.value().slices == 0) != nothing_to_do) problem = "it moves nothing";
  }
  if (problem.empty()) return;
  FAIL_CHECK(problem << "\n  " << to_text(call.collective) << " " << to_text(call.algorithm) << " "
                     << to_text(call.protocol) << " " << call.size.raw() << " bytes of "
                     << call.element_size << ", root " << call.root << ", "
                     << communicator.shape().ranks << " ranks, " << communicator.channels().size()
                     << " channels");
}

// The smallest size of the form 4096 * 2^k elements per rank at which the call uses every channel.
std::int64_t filling_size(const Communicator& communicator, CollectiveCall call) {
  const auto channels = static_cast<std::uint32_t>(communicator.channels().size());
  std::int64_t size = call.element_size * communicator.shape().ranks;
  for (call.size = bytes(size); size < 1'000'000'000; call.size = bytes(size)) {
    if (split_call(call, communicator.shape(), channels, {}).size() == channels) break;
    size *= 2;
  }
  return size;
}

enum class Sizes { all, odd_and_tiny };

void prove_sizes(Communicator& communicator, CollectiveCall call, Sizes sizes) {
  const std::int64_t even = filling_size(communicator, call);
  const std::int64_t element = call.element_size;
  for (const std::int64_t size : {even, even + 3 * element, element, std::int64_t{0}}) {
    if (size == even && sizes != Sizes::all) continue;
    call.size = bytes(size);
    prove(communicator, call);
  }
}

// All that a communicator offers under one protocol; `number` varies elements and roots.
void prove_all(Communicator& communicator, Protocol protocol, std::uint32_t number, Sizes sizes) {
  CollectiveCall call;
  call.protocol = protocol;
  call.element_size = std::int64_t{1} << number % 4;
  for (const auto collective :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
    call.collective = collective;
    prove_sizes(communicator, call, sizes);
  }
  for (const auto collective : {Collective::broadcast, Collective::reduce}) {
    call.collective = collective;
    call.root = number * 7 % communicator.shape().ranks;
    prove_sizes(communicator, call, sizes);
  }
  call.collective = Collective::all_reduce;
  call.algorithm = Algorithm::tree;
  prove_sizes(communicator, call, Sizes::all);
}

TEST_CASE("dataflow: all collectives, up to 12 ranks and 8 channels") {
  for (std::uint32_t ranks = 2; ranks <= kAllPairsUpTo; ++ranks)
    for (std::uint32_t channels = 1; channels <= 8; ++channels) {
      const auto one = communicator(ranks, channels, ranks + channels);
      std::uint32_t number = ranks + channels;
      for (const Protocol protocol : kProtocols) prove_all(*one, protocol, ++number, Sizes::all);
    }
}

TEST_CASE("dataflow: all collectives, 13 to 33 ranks") {
  for (std::uint32_t ranks = kAllPairsUpTo + 1; ranks <= kMaxRanks; ++ranks)
    for (std::uint32_t channels = 1; channels <= 8; ++channels) {
      const auto one = communicator(ranks, channels, channels / 2);
      prove_all(*one, kProtocols[(ranks + channels) % 4], ranks / 4 + channels,
                Sizes::odd_and_tiny);
    }
}

TEST_CASE("dataflow: every root") {
  for (const std::uint32_t ranks : {2u, 3u, 8u, 12u}) {
    const auto one = communicator(ranks, 3, ranks / 4);
    for (const auto collective : {Collective::broadcast, Collective::reduce})
      for (std::uint32_t root = 0; root < ranks; ++root) {
        CollectiveCall call;
        call.collective = collective;
        call.root = root;
        call.protocol = kProtocols[root % 4];
        prove_sizes(*one, call, Sizes::all);
      }
  }
}

// Parts that need several loops, so that FIFOs fill and the last loop is shorter.
TEST_CASE("dataflow: several loops") {
  for (const std::uint32_t ranks : {2u, 3u, 5u, 8u}) {
    const auto one = communicator(ranks, 2, ranks);
    for (const Protocol protocol : kProtocols)
      for (const auto collective : {Collective::all_reduce, Collective::all_gather,
                                    Collective::broadcast, Collective::reduce}) {
        CollectiveCall call;
        call.collective = collective;
        call.protocol = protocol;
        const std::int64_t chunk = chunking(call, one->shape(), bytes(1 << 20)).chunk.raw();
        const std::int64_t blocks = collective == Collective::all_reduce ? ranks : 1;
        call.size = bytes(align_up(chunk * blocks * 2 * 11 + chunk * blocks / 3, 4));
        prove(*one, call);
        if (collective != Collective::all_reduce) continue;
        call.algorithm = Algorithm::tree;
        prove(*one, call);
      }
  }
}

TEST_CASE("dataflow: in place") {
  for (std::uint32_t ranks = 1; ranks <= 8; ++ranks) {
    const auto one = communicator(ranks, 3, 1);
    for (const Protocol protocol : kProtocols)
      for (const auto& entry : sim::EnumTable<Collective>::entries) {
        if (!sim::offers_in_place(entry.value)) continue;
        if (protocol == Protocol::ll128 &&
            (entry.value == Collective::gather || entry.value == Collective::scatter))
          continue;
        CollectiveCall call;
        call.collective = entry.value;
        call.protocol = protocol;
        call.in_place = true;
        call.root = ranks - 1;
        prove_sizes(*one, call, Sizes::all);
      }
  }
}

TEST_CASE("dataflow: one rank") {
  const auto one = communicator(1, 4, 0);
  for (const auto& entry : sim::EnumTable<Collective>::entries)
    for (const std::int64_t size : {0, 4, 1'000'000}) {
      CollectiveCall call;
      call.collective = entry.value;
      call.size = bytes(size);
      prove(*one, call);
    }
}

TEST_CASE("dataflow: AllToAll") {
  for (std::uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks) {
    const auto one = communicator(ranks, ranks % 8 + 1, 0);
    for (const Protocol protocol : {Protocol::ll, Protocol::simple, Protocol::plain})
      for (const std::int64_t elements : {0, 1, 1'000}) {
        CollectiveCall call;
        call.collective = Collective::all_to_all;
        call.protocol = protocol;
        call.size = bytes(elements * ranks * call.element_size);
        prove(*one, call);
      }
  }
}

// Over nodes of 4, 3 or 2, so that rounds cross nodes in every way; every root up to 9 ranks.
TEST_CASE("dataflow: Gather, Scatter and SendRecv") {
  for (std::uint32_t ranks = 2; ranks <= 20; ++ranks) {
    const auto one = communicator(ranks, ranks % 8 + 1, 0);
    for (const auto collective : {Collective::gather, Collective::scatter, Collective::send_recv})
      for (std::uint32_t root = 0; root < ranks; root += ranks <= 9 ? 1 : 7)
        for (const std::int64_t elements : {0, 1, 1'000, 3'000'001}) {
          if (elements > 1'000 && root > 1) continue;
          CollectiveCall call;
          call.collective = collective;
          call.root = root;
          call.size = bytes(elements * call.element_size);
          for (const Protocol protocol : {Protocol::ll, Protocol::simple, Protocol::plain}) {
            call.protocol = protocol;
            prove(*one, call);
          }
        }
  }
}

TEST_CASE("dataflow: AllToAll in many parts and batches") {
  struct Case {
    std::uint32_t nodes, gpus, channels;
  };
  // 8 ranks on 32 channels; 4 nodes of 8; 40 and 5 x 8 ranks on few channels, so several batches.
  for (const Case& one : {Case{1, 8, 24}, Case{4, 8, 16}, Case{1, 40, 2}, Case{5, 8, 2}}) {
    const sim::Topology topology =
        test::cluster({.nodes = one.nodes, .gpus = one.gpus, .nics = one.gpus});
    const sim::Group group = test::everyone(topology);
    auto made = Communicator::create(topology, group,
                                     test::random_channels(one.nodes * one.gpus, one.channels, 1));
    REQUIRE(made.ok());
    for (const std::int64_t each : {300'004, 2'000'000}) {
      CollectiveCall call;
      call.collective = Collective::all_to_all;
      call.size = bytes(each * one.nodes * one.gpus);
      prove(*made.value(), call);
    }
  }
}

TEST_CASE("dataflow: a wrong schedule is found") {
  const auto one = communicator(4, 2, 1);
  const auto made = one->schedule({.size = bytes(1 << 20)});
  REQUIRE(made.ok());
  sim::Schedule broken = *made.value();
  broken.programs[0][2].primitive = sim::Primitive::recv_copy_send;
  CHECK_FALSE(sim::check_dataflow(broken).ok());
}

}  // namespace
}  // namespace railyard::algorithms
