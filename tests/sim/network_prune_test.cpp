// Leaving covered resources out of the solves changes no rate.
#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

#include "sim/network.h"
#include "tests/sim/max_min_oracle.h"

namespace railyard::sim {
namespace {

using namespace literals;
using tests::max_min_rates;
using tests::OracleFlow;

// Flows that are all registered before any starts.
struct System {
  EventQueue queue;
  Network network{queue};
  std::vector<std::int64_t> capacity;
  std::vector<OracleFlow> flows;
  std::vector<FlowId> ids;

  System() { queue.set_settler(&network); }
  void resource(std::int64_t units) {
    network.add_resource(Bandwidth::from_raw(units));
    capacity.push_back(units);
  }
  void flow(const std::vector<ResourceUse>& uses, std::int64_t cap = 0) {
    OracleFlow flow;
    flow.cap = cap;
    for (const ResourceUse& use : uses) flow.uses.emplace_back(use.resource.index(), use.weight);
    flows.push_back(flow);
    ids.push_back(network.add_flow({.uses = uses, .cap = Bandwidth::from_raw(cap)}));
  }
  void start(std::size_t i) { network.start(ids[i], bytes(1LL << 40)); }
  // Of the flows that are under way.
  void check(const std::vector<std::size_t>& active) {
    network.settle();
    std::vector<OracleFlow> running;
    for (const std::size_t i : active) running.push_back(flows[i]);
    const std::vector<std::int64_t> expected = max_min_rates(capacity, running);
    for (std::size_t k = 0; k < active.size(); ++k)
      REQUIRE(network.rate(ids[active[k]]).raw() == expected[k]);
  }
};

ResourceUse use(std::size_t resource, std::uint32_t weight = 1) {
  return {ResourceId(resource), weight};
}

// Routes along a line of links, so that many are covered; equal capacities are frequent.
TEST_CASE("pruning: 300 random systems have the rates of the slow solver, flow by flow") {
  std::mt19937_64 random(7);
  const auto pick = [&](std::uint64_t low, std::uint64_t high) {
    return low + random() % (high - low + 1);
  };
  for (int round = 0; round < 300; ++round) {
    System s;
    const std::size_t links = pick(2, 10);
    for (std::size_t l = 0; l < links; ++l)
      s.resource(static_cast<std::int64_t>(pick(0, 1) == 0 ? 1000 * pick(1, 3) : pick(500, 5000)));
    const std::size_t count = pick(1, 12);
    for (std::size_t f = 0; f < count; ++f) {
      const std::size_t first = pick(0, links - 1);
      const std::size_t last = pick(first, links - 1);
      std::vector<ResourceUse> uses;
      for (std::size_t l = first; l <= last; ++l) uses.push_back(use(l, pick(0, 5) == 0 ? 2 : 1));
      s.flow(uses, pick(0, 2) == 0 ? static_cast<std::int64_t>(pick(50, 2000)) : 0);
    }
    s.network.only_flows_from(FlowId(0));
    std::vector<std::size_t> active;
    CAPTURE(round);
    for (std::size_t f = 0; f < count; ++f) {
      s.start(f);
      active.push_back(f);
      if (pick(0, 1) == 0) s.check(active);
    }
    s.check(active);
  }
}

// Three links in a row, the middle one narrow; flow 1 leaves the last out. One after the other:
// 10 MB at 1 GB/s shared by two, then alone.
TEST_CASE("pruning: bytes are counted on every link, and ends are the same") {
  const auto run = [](bool prune) {
    EventQueue queue;
    Network network(queue);
    queue.set_settler(&network);
    const std::array<ResourceId, 3> links{
        network.add_resource(2_GBps), network.add_resource(1_GBps), network.add_resource(2_GBps)};
    const std::array all{use(0), use(1), use(2)};
    const std::array two{use(0), use(1)};
    const FlowId a = network.add_flow({.uses = all});
    const FlowId b = network.add_flow({.uses = two});
    if (prune) network.only_flows_from(a);
    network.start(a, 10'000'000_B);
    network.start(b, 20'000'000_B);
    queue.run();
    CHECK(network.carried(links[0]) == 30'000'000_B);
    CHECK(network.carried(links[1]) == 30'000'000_B);
    CHECK(network.carried(links[2]) == 10'000'000_B);
    CHECK(!network.limiting(links[0]));
    CHECK(network.limiting(links[1]));
    CHECK(!network.limiting(links[2]));
    return queue.now();
  };
  CHECK(run(false) == Time(30_ms));
  CHECK(run(true) == Time(30_ms));
}

TEST_CASE("limiting: a flow alone is held back by the narrowest link, unless its cap is lower") {
  const auto limited_by = [](std::int64_t cap) {
    System s;
    for (const std::int64_t units : {300, 200, 200}) s.resource(units);
    s.flow({use(0), use(1), use(2)}, cap);
    s.start(0);
    s.check({0});
    return std::vector<bool>{s.network.limiting(ResourceId(0)), s.network.limiting(ResourceId(1)),
                             s.network.limiting(ResourceId(2))};
  };
  CHECK(limited_by(0) == std::vector{false, true, true});
  CHECK(limited_by(250) == std::vector{false, true, true});
  CHECK(limited_by(200) == std::vector{false, false, false});
  CHECK(limited_by(100) == std::vector{false, false, false});
}

// The definition of `limiting`: ten per cent more of what is not changes nothing.
TEST_CASE("limiting: more of what held nothing back leaves all rates as they were") {
  std::mt19937_64 random(11);
  const auto pick = [&](std::uint64_t low, std::uint64_t high) {
    return low + random() % (high - low + 1);
  };
  std::size_t harmless = 0;
  for (int round = 0; round < 200; ++round) {
    System s;
    for (std::size_t l = 0; l < 6; ++l) s.resource(static_cast<std::int64_t>(1000 * pick(1, 9)));
    for (std::size_t f = 0; f < 6; ++f) {
      std::vector<ResourceUse> uses;
      for (std::size_t l = 0; l < 6; ++l)
        if (pick(0, 1) == 0) uses.push_back(use(l));
      if (uses.empty()) uses.push_back(use(f));
      s.flow(uses, pick(0, 1) == 0 ? static_cast<std::int64_t>(pick(100, 900)) : 0);
    }
    if (round % 2 == 0) s.network.only_flows_from(FlowId(0));
    for (std::size_t f = 0; f < 6; ++f) s.start(f);
    s.network.settle();
    const std::vector<std::int64_t> before = max_min_rates(s.capacity, s.flows);
    for (std::size_t l = 0; l < 6; ++l)
      if (!s.network.limiting(ResourceId(l))) s.capacity[l] += s.capacity[l] / 10, ++harmless;
    CHECK(max_min_rates(s.capacity, s.flows) == before);
  }
  CHECK(harmless > 100);
}

}  // namespace
}  // namespace railyard::sim
