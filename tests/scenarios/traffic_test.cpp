#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "scenarios/scenario.h"

namespace railyard::scenarios {
namespace {

std::vector<Flow> flows_of(const TrafficPattern& pattern, std::uint32_t ranks,
                           std::uint64_t seed = 1) {
  auto flows = expand_traffic({.flows = {}, .patterns = {pattern}}, ranks, seed);
  REQUIRE(flows.ok());
  return std::move(flows).value();
}

std::string error_of(const Traffic& traffic, std::uint32_t ranks) {
  const auto flows = expand_traffic(traffic, ranks, 1);
  return flows.ok() ? "no error" : flows.error().text();
}

TEST_CASE("all-to-all: n (n - 1) flows, each pair once, sizes within the spread") {
  const auto flows = flows_of({.size = sim::bytes(1 << 20), .spread = 0.1}, 128);
  CHECK(flows.size() == 16'256);
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  std::set<std::int64_t> sizes;
  double sum = 0;
  for (const Flow& flow : flows) {
    pairs.insert({flow.from, flow.to});
    sizes.insert(flow.size.raw());
    sum += static_cast<double>(flow.size.raw());
    CHECK(flow.from != flow.to);
  }
  CHECK(pairs.size() == flows.size());
  CHECK(*sizes.begin() >= 943'719);     // ceil(0.9 * 2^20)
  CHECK(*sizes.rbegin() <= 1'153'433);  // floor(1.1 * 2^20)
  CHECK(sizes.size() > 10'000);
  // Uniform on +-10 %: standard deviation 5.8 % of one, 0.045 % of the mean of 16,256.
  CHECK(sum / 16'256 / 1'048'576 == doctest::Approx(1.0).epsilon(0.002));
}

TEST_CASE("flows depend on the seed and on nothing else") {
  const TrafficPattern pattern{
      .pattern = Pattern::uniform, .size = sim::bytes(1000), .spread = 0.5, .count = 100};
  CHECK(flows_of(pattern, 16, 5) == flows_of(pattern, 16, 5));
  CHECK(flows_of(pattern, 16, 5) != flows_of(pattern, 16, 6));
  TrafficPattern seeded = pattern;
  seeded.seed = 5;
  CHECK(flows_of(seeded, 16, 6) == flows_of(pattern, 16, 5));
  const auto both = expand_traffic({.flows = {}, .patterns = {pattern, pattern}}, 16, 5);
  REQUIRE(both.ok());
  CHECK(!std::equal(both.value().begin(), both.value().begin() + 100, both.value().begin() + 100));
}

TEST_CASE("permutation: everybody sends once and receives once") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto flows = flows_of({.pattern = Pattern::permutation, .size = sim::bytes(1)}, 9, seed);
    std::set<std::uint32_t> senders;
    std::set<std::uint32_t> receivers;
    for (const Flow& flow : flows) {
      senders.insert(flow.from);
      receivers.insert(flow.to);
      CHECK(flow.from != flow.to);
    }
    CHECK(senders.size() == 9);
    CHECK(receivers.size() == 9);
  }
}

TEST_CASE("incast: different senders, one receiver, one start") {
  const TrafficPattern pattern{.pattern = Pattern::incast,
                               .size = sim::bytes(7),
                               .count = 5,
                               .to = 3,
                               .start = sim::microseconds(2)};
  const auto flows = flows_of(pattern, 8);
  REQUIRE(flows.size() == 5);
  std::set<std::uint32_t> senders;
  for (const Flow& flow : flows) {
    senders.insert(flow.from);
    CHECK(flow.to == 3);
    CHECK(flow.size == sim::bytes(7));
    CHECK(flow.start == sim::microseconds(2));
  }
  CHECK(senders.size() == 5);
  CHECK(senders.count(3) == 0);
  TrafficPattern all = pattern;
  all.count = 0;
  CHECK(flows_of(all, 8).size() == 7);
}

TEST_CASE("traffic that the ranks cannot carry") {
  const TrafficPattern incast{.pattern = Pattern::incast, .size = sim::bytes(1), .to = 9};
  CHECK(error_of({.flows = {}, .patterns = {incast}}, 8) == "incast to rank 9: there are 8 ranks");
  TrafficPattern many = incast;
  many.to = 0;
  many.count = 8;
  CHECK(error_of({.flows = {}, .patterns = {many}}, 8) ==
        "incast from 8 ranks: there are 7 others");
  CHECK(error_of({.flows = {}, .patterns = {many}}, 1) ==
        "a traffic pattern needs at least two ranks");
  CHECK(error_of({.flows = {{0, 8, sim::bytes(1), {}}}, .patterns = {}}, 8) ==
        "a flow from rank 0 to rank 8: there are 8 ranks");
  CHECK(error_of({.flows = {}, .patterns = {{.size = sim::bytes(1)}}}, 1'000'000) ==
        "traffic of more than 100000000 flows");
}

}  // namespace
}  // namespace railyard::scenarios
