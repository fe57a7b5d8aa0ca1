#include "algorithms/communicator.h"

#include <doctest/doctest.h>

#include <string>

#include "algorithms/channels.h"
#include "tests/algorithms/clusters.h"

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bytes;
using sim::Collective;
using sim::CollectiveCall;
using sim::Protocol;
using namespace sim::literals;

std::unique_ptr<Communicator> communicator(std::uint32_t gpus, std::uint32_t channels = 4) {
  const sim::Topology topology = test::cluster({.gpus = gpus});
  const sim::Group group = test::everyone(topology);
  auto made = default_channels(topology, group, {.count = channels, .rails = 0});
  REQUIRE(made.ok());
  auto result = Communicator::create(topology, group, made.value());
  REQUIRE(result.ok());
  return std::move(result).value();
}

std::string error(const CollectiveCall& call) {
  const auto result = communicator(4)->schedule(call);
  return result.ok() ? std::string() : result.error().text();
}

TEST_CASE("communicator: equal calls share one schedule") {
  const auto one = communicator(4);
  CollectiveCall call{.size = 1_MiB};
  const auto first = one->schedule(call);
  REQUIRE(first.ok());
  CHECK(one->schedule(call).value() == first.value());
  call.root = 3;  // has no meaning for an AllReduce
  CHECK(one->schedule(call).value() == first.value());
  call.protocol = Protocol::ll;
  CHECK(one->schedule(call).value() != first.value());
}

TEST_CASE("communicator: SMs are channels") {
  const auto one = communicator(4);
  const auto sm_count = [&](sim::Bytes size) {
    return one->sm_count(*one->schedule({.size = size}).value());
  };
  CHECK(sm_count(64_MiB) == 4);
  CHECK(sm_count(4_B) == 1);
  CHECK(sm_count(0_B) == 0);
}

TEST_CASE("communicator: one rank copies, or does nothing in place") {
  const auto one = communicator(1);
  CollectiveCall call{.size = 64_MiB};
  const auto copy = one->schedule(call).value();
  REQUIRE(copy->lanes.size() == 1);
  CHECK(copy->programs[0][0].primitive == sim::Primitive::copy);
  CHECK(copy->works[0].size == 64_MiB);
  CHECK(one->sm_count(*copy) == 0);
  call.in_place = true;
  CHECK(one->schedule(call).value()->lanes.empty());
  call.algorithm = Algorithm::tree;
  CHECK(one->schedule(call).ok());
}

TEST_CASE("communicator: nothing to do for 0 bytes") {
  for (const auto& entry : sim::EnumTable<Collective>::entries)
    for (const std::uint32_t gpus : {1u, 4u}) {
      const auto result = communicator(gpus)->schedule({.collective = entry.value, .size = 0_B});
      REQUIRE(result.ok());
      CHECK(result.value()->lanes.empty());
    }
}

TEST_CASE("communicator: errors of calls") {
  CHECK(error({.size = 6_B}) == "AllReduce: 6 bytes are no whole number of elements of 4 bytes");
  CHECK(error({.size = bytes(-4)}) == "AllReduce: a negative size of -4");
  CHECK(error({.size = 9_B, .element_size = 3}) ==
        "AllReduce: an element of 3 bytes; expected 1, 2, 4 or 8");
  CHECK(error({.collective = Collective::broadcast, .size = 4_B, .root = 4}) ==
        "Broadcast: root 4 of a group of 4 ranks; expected 0 to 3");
  CHECK(error({.collective = Collective::all_gather, .size = 4_B, .algorithm = Algorithm::tree}) ==
        "algorithm: Tree is for AllReduce only; AllGather has Ring, NVLS, PAT");
  CHECK(error({.collective = Collective::all_to_all, .size = 20_B}) ==
        "AllToAll: 20 bytes do not divide into elements of 4 bytes for each of 4 ranks");
  CHECK(
      error({.collective = Collective::all_to_all, .size = 16_B, .protocol = Protocol::ll128}) ==
      "protocol: AllToAll is made of sends and receives, which have no LL128; expected LL, Simple "
      "or plain");
  CHECK(error({.collective = Collective::all_to_all, .size = 16_B, .in_place = true}) ==
        "AllToAll in place is not available: its output must be another buffer");
  CHECK(error({.collective = Collective::send_recv, .size = 16_B, .in_place = true}) ==
        "SendRecv in place is not available: its output must be another buffer");
  CHECK(error({.collective = Collective::gather, .size = 16_B, .protocol = Protocol::ll128}) ==
        "protocol: Gather is made of sends and receives, which have no LL128; expected LL, Simple "
        "or plain");
  CHECK(error({.collective = Collective::scatter, .size = 4_B, .root = 4}) ==
        "Scatter: root 4 of a group of 4 ranks; expected 0 to 3");
  CHECK(error({.collective = Collective::all_reduce, .size = 4_B, .root = 9}).empty());
}

TEST_CASE("communicator: Tree needs channels with trees") {
  const sim::Topology topology = test::cluster({.gpus = 2});
  sim::Channels channels = test::random_channels(2, 1, 1);
  channels[0].tree.clear();
  auto one = Communicator::create(topology, test::everyone(topology), channels);
  REQUIRE(one.ok());
  const auto result = one.value()->schedule({.size = 4_B, .algorithm = Algorithm::tree});
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().text() == "algorithm: Tree: the channels of this group have no trees");
}

TEST_CASE("communicator: errors of the group and its channels") {
  const sim::Topology topology = test::cluster({.gpus = 2});
  const auto create_error = [&](const sim::Group& group, const sim::Channels& channels) {
    const auto result = Communicator::create(topology, group, channels);
    return result.ok() ? std::string() : result.error().text();
  };
  CHECK(create_error({}, {}) == "a group without ranks");
  CHECK(create_error(test::everyone(topology), {}) == "0 channels; expected 1 to 64");
  CHECK(create_error(test::everyone(topology), test::random_channels(3, 1, 1)) ==
        "channel 0: the ring has 3 ranks; expected 2");
}

TEST_CASE("collective: nccl-tests' size and bus bandwidth factor") {
  CHECK(sim::nccl_tests_size(Collective::all_reduce, 8_B, 4) == 8_B);
  CHECK(sim::nccl_tests_size(Collective::all_gather, 8_B, 4) == 32_B);
  CHECK(sim::nccl_tests_size(Collective::reduce_scatter, 8_B, 4) == 32_B);
  CHECK(sim::nccl_tests_size(Collective::all_to_all, 8_B, 4) == 8_B);
  CHECK(sim::bus_bandwidth_factor(Collective::all_reduce, 8) == doctest::Approx(1.75));
  CHECK(sim::bus_bandwidth_factor(Collective::all_gather, 8) == doctest::Approx(0.875));
  CHECK(sim::bus_bandwidth_factor(Collective::reduce_scatter, 8) == doctest::Approx(0.875));
  CHECK(sim::bus_bandwidth_factor(Collective::all_to_all, 8) == doctest::Approx(0.875));
  CHECK(sim::bus_bandwidth_factor(Collective::broadcast, 8) == doctest::Approx(1));
  CHECK(sim::bus_bandwidth_factor(Collective::reduce, 8) == doctest::Approx(1));
  CHECK(sim::nccl_tests_size(Collective::gather, 8_B, 4) == 32_B);
  CHECK(sim::nccl_tests_size(Collective::send_recv, 8_B, 4) == 8_B);
  CHECK(sim::bus_bandwidth_factor(Collective::scatter, 8) == doctest::Approx(0.875));
  CHECK(sim::bus_bandwidth_factor(Collective::send_recv, 8) == doctest::Approx(1));
}

}  // namespace
}  // namespace railyard::algorithms
