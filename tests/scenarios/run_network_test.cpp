// Who shares which link: rails, oversubscription, raw traffic, groups that run at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "scenarios/run.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using sim::Duration;
using tests::error_of_run;
using tests::full_scenario;
using tests::good_run;

Scenario all_reduce(const std::string& cluster, const std::string& more = {}) {
  return full_scenario("railyard: 1\ncluster: {" + cluster +
                       "}\nnccl: {algorithm: Ring, protocol: Simple, channels: 16}\n"
                       "collectives: [{collective: AllReduce, sizes: [64MiB]}]\n" +
                       more);
}
Duration time_of(const Scenario& scenario) { return good_run(scenario).collectives.at(0).time; }

TEST_CASE("one rail is slower than two, two than eight") {
  const auto rails = [](const char* nics) {
    return time_of(
        all_reduce("machine: hgx-h100, nodes: 2, fabric: {kind: rail-optimised}, "
                   "nics_per_node: " +
                   std::string(nics)));
  };
  const Duration one = rails("1");
  const Duration two = rails("2");
  const Duration eight = rails("8");
  CHECK(one > two);
  CHECK(two > eight);
  CHECK(one > 3 * eight);
}

// One node per leaf: every byte between nodes crosses the spine.
TEST_CASE("oversubscription costs where traffic crosses the spine") {
  const auto tree = [](const char* ratio) {
    return time_of(
        all_reduce("machine: hgx-h100, nodes: 4, fabric: {kind: fat-tree, "
                   "hosts_per_leaf: 1, oversubscription: " +
                   std::string(ratio) + "}"));
  };
  const Duration none = tree("1");
  const Duration four = tree("4");
  CHECK(four > none);
  CHECK(four < 5 * none);
}

// Four hosts per leaf: each rail is one switch and has no thin part. Two hosts per leaf and 2:1, so
// one node's worth of bandwidth up: in the order 0, 1, 2, 3 a ring leaves each leaf once and fits;
// in the order 0, 2, 1, 3 every one of its edges crosses, two per leaf.
TEST_CASE("what crosses the spine depends on placement") {
  const auto rails = [](const char* hosts, const char* ratio, const char* order) {
    return time_of(
        all_reduce("machine: hgx-h100, nodes: 4, fabric: {kind: rail-optimised, "
                   "levels: 2, hosts_per_leaf: " +
                       std::string(hosts) + ", oversubscription: " + ratio + "}",
                   "ranks: {nodes: " + std::string(order) + "}\n"));
  };
  CHECK(rails("4", "4", "[0, 1, 2, 3]") == rails("4", "1", "[0, 1, 2, 3]"));
  CHECK(rails("2", "2", "[0, 1, 2, 3]") == rails("2", "1", "[0, 1, 2, 3]"));
  CHECK(rails("2", "2", "[0, 2, 1, 3]") > rails("2", "2", "[0, 1, 2, 3]"));
}

// GPUs directly on a switch, ports of 100 Gb/s = 12.5 GB/s both ways, 1 us per link.
Scenario flat(const std::string& traffic) {
  Scenario scenario = full_scenario(
      "railyard: 1\ncluster: {machine: flat, nodes: 8, fabric: {kind: switch, link_rate: "
      "100Gb/s}}\n"
      "traffic: " +
      traffic + "\n");
  for (sim::LinkParameters& link : scenario.parameters.links) link = {1.0, sim::microseconds(1)};
  return scenario;
}

// Both flows end in port 2. S = 12.5 MB: 1 ms alone, 2 ms at half rate. The larger one has 12.5 MB
// left when the smaller ends, and the port to itself.
TEST_CASE("two flows into one port share it exactly") {
  const RunResult equal =
      good_run(flat("[{from: 0, to: 2, size: 12500000B}, {from: 1, to: 2, size: 12500000B}]"));
  REQUIRE(equal.flows.size() == 2);
  for (const FlowResult& flow : equal.flows)
    CHECK(flow.end == sim::microseconds(2'000) + sim::microseconds(2));  // and two links
  CHECK(equal.duration == equal.flows[0].end);

  const RunResult larger =
      good_run(flat("[{from: 0, to: 2, size: 12500000B}, {from: 1, to: 2, size: 25000000B}]"));
  CHECK(larger.flows[0].end == sim::microseconds(2'002));
  CHECK(larger.flows[1].end == sim::microseconds(3'002));
}

// The second starts when the first has 6.25 MB left: both then need 1 ms at half rate; the second
// has 6.25 MB left at 1.5 ms, and ends at 2 ms.
TEST_CASE("a flow that starts later shares from then on") {
  const RunResult result = good_run(
      flat("[{from: 0, to: 2, size: 12500000B}, {from: 1, to: 2, size: 12500000B, start: 500us}]"));
  CHECK(result.flows[0].end == sim::microseconds(1'502));
  CHECK(result.flows[1].end == sim::microseconds(2'002));
}

TEST_CASE("flows that share nothing do not meet") {
  const RunResult result =
      good_run(flat("[{from: 0, to: 1, size: 12500000B}, {from: 1, to: 0, size: 12500000B}, "
                    "{from: 2, to: 3, size: 12500000B}]"));
  for (const FlowResult& flow : result.flows) CHECK(flow.end == sim::microseconds(1'002));
}

TEST_CASE("generators: incast divides a port, a permutation does not") {
  const RunResult incast = good_run(flat("{pattern: incast, to: 3, size: 1250000B}"));
  REQUIRE(incast.flows.size() == 7);
  for (const FlowResult& flow : incast.flows) {
    CHECK(flow.to == 3);
    CHECK(flow.end >= sim::microseconds(702));
    CHECK(flow.end <= sim::microseconds(702) + sim::nanoseconds(1));  // 7 does not divide the rate
  }
  const RunResult ring = good_run(flat("{pattern: permutation, size: 1250000B}"));
  REQUIRE(ring.flows.size() == 8);
  for (const FlowResult& flow : ring.flows) CHECK(flow.end == sim::microseconds(102));
  // All to all: every port sends and receives 7 flows at once.
  const RunResult all = good_run(flat("{pattern: all-to-all, size: 1250000B}"));
  REQUIRE(all.flows.size() == 56);
  for (const FlowResult& flow : all.flows) CHECK(flow.end >= sim::microseconds(702));
}

TEST_CASE("between nodes a transfer takes the NICs nearest to both GPUs") {
  Scenario scenario = full_scenario(
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch, link_rate: "
      "400Gb/s}}\ntraffic: [{from: 0, to: 8, size: 50000000B}, {from: 0, to: 1, size: "
      "45000000B}]\n");
  for (sim::LinkParameters& link : scenario.parameters.links) link = {1.0, sim::Duration{}};
  const RunResult result = good_run(scenario);
  CHECK(result.flows[0].end == sim::microseconds(1'000));  // 50 MB at 50 GB/s
  CHECK(result.flows[1].end == sim::microseconds(100));    // 45 MB at 450 GB/s: NVLink, not shared
}

// GPU r's own NIC is r: out by node 0's NIC 3, in by node 1's NIC 4.
TEST_CASE("the NIC at either end is its own GPU's") {
  const RunResult result = good_run(
      full_scenario("railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch}}\n"
                    "traffic: [{from: 3, to: 12, size: 1MiB}]\n"));
  bool out = false;
  bool in = false;
  for (const LinkRow& link : result.busiest_links) {
    out = out || link.name.starts_with("node0/nic3->");
    in = in || link.name.ends_with("->node1/nic4");
    CHECK(link.bytes == sim::bytes(1 << 20));
  }
  CHECK(out);
  CHECK(in);
}

TEST_CASE("traffic of ranks that are not there is refused") {
  CHECK(error_of_run(flat("[{from: 0, to: 8, size: 1MiB}]")) ==
        "s.yaml:3:11: traffic[0]: a flow from rank 0 to rank 8: there are 8 ranks");
}

TEST_CASE("background traffic slows a collective, and is slowed by it") {
  const std::string cluster = "machine: hgx-h100, nodes: 2, fabric: {kind: switch}";
  const Duration alone = time_of(all_reduce(cluster));
  const Scenario both = all_reduce(cluster, "traffic: [{from: 0, to: 8, size: 512MiB}]\n");
  const RunResult together = good_run(both);
  CHECK(together.collectives[0].time > alone);
  REQUIRE(together.flows.size() == 1);
  Scenario lonely = both;
  lonely.collectives.clear();
  CHECK(together.flows[0].end > good_run(lonely).flows[0].end);
}

// DDP runs beside traffic too.
TEST_CASE("background traffic slows a training step that waits for the network") {
  const std::string job =
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, nics_per_node: 1, fabric: {kind: "
      "switch}}\n"
      "ranks: {gpus_per_node: 1}\nnccl: {algorithm: Ring, protocol: Simple, channels: 4}\n"
      "ddp: {model: vgg16, batch_per_gpu: 8, precision: amp-fp16, optimizer: sgd}\n";
  const RunResult alone = good_run(full_scenario(job));
  const RunResult beside =
      good_run(full_scenario(job + "traffic: [{from: 0, to: 1, size: 8GiB}]\n"));
  CHECK(beside.ddp->step_time > alone.ddp->step_time);
}

// Eight groups of two, one GPU of each node: with one NIC per node all share it, with eight each
// has its own. Groups inside a node share nothing but the NVSwitch, whose ports are the GPUs' own.
TEST_CASE("named groups run at once and share links") {
  const auto timed = [](const char* nics, const char* groups) {
    return time_of(full_scenario(
        "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: rail-optimised}, "
        "nics_per_node: " +
        std::string(nics) + "}\nranks: {groups: {some: " + groups +
        "}}\nnccl: {algorithm: Ring, protocol: Simple, channels: 4}\n"
        "collectives: [{collective: AllReduce, sizes: [16MiB], group: some}]\n"));
  };
  const Duration shared = timed("1", "{size: 2, stride: 8}");
  const Duration lonely = timed("1", "[0, 8]");
  CHECK(shared > 4 * lonely);
  const Duration own = timed("8", "{size: 2, stride: 8}");
  CHECK(own == timed("8", "[0, 8]"));
  CHECK(timed("8", "{size: 4, stride: 1}") == timed("8", "[0, 1, 2, 3]"));
}

TEST_CASE("the rows of a group count its ranks, its messages those of all its communicators") {
  const RunResult result =
      good_run(full_scenario("railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\n"
                             "ranks: {groups: {pairs: {size: 2}, first: [0, 1]}}\n"
                             "nccl: {algorithm: Ring, protocol: LL, channels: 1}\n"
                             "collectives: [{collective: AllReduce, sizes: [1KiB], group: pairs},\n"
                             "              {collective: AllReduce, sizes: [1KiB], group: first},\n"
                             "              {collective: AllReduce, sizes: [1KiB]}]\n"));
  CHECK(result.collectives[0].ranks == 2);
  CHECK(result.collectives[0].group == "pairs");
  CHECK(result.collectives[0].messages == 4 * result.collectives[1].messages);
  CHECK(result.collectives[2].ranks == 8);
}

// Groups 0, 2, 4, 6 and 1, 3, 5, 7.
TEST_CASE("kept messages and spans name the ranks of the job") {
  RunOptions options;
  options.message_limit = 100'000;
  options.trace_ranks = 8;
  const RunResult result = good_run(
      full_scenario("railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\n"
                    "ranks: {groups: {every-other: {size: 4, stride: 2}}}\n"
                    "nccl: {algorithm: Ring, protocol: LL, channels: 1}\n"
                    "collectives: [{collective: AllReduce, sizes: [1KiB], group: every-other},\n"
                    "              {collective: AllGather, sizes: [1MiB]}]\n"),
      options);
  std::set<std::uint32_t> senders;
  for (const KeptMessage& message : result.kept_messages) {
    if (message.name != "AllReduce") continue;
    senders.insert(message.from);
    CHECK(message.from % 2 == message.to % 2);
  }
  CHECK(senders.size() == 8);
  // One span per call and rank, as long as the call: time is its own plus the launch's.
  REQUIRE(result.spans.size() == 16);
  CHECK(result.stream_names == std::vector<std::string>{"collectives"});
  for (const sim::Span& span : result.spans) {
    const bool first = result.span_names[span.name] == "AllReduce 1KiB every-other";
    CHECK((first || result.span_names[span.name] == "AllGather 1MiB"));
    CHECK(span.end > span.start);
    CHECK(span.end - span.start <= result.collectives[first ? 0 : 1].time);
  }
  for (const KeptMessage& message : result.kept_messages) {
    const bool inside = std::ranges::any_of(result.spans, [&](const sim::Span& span) {
      return span.rank == message.to && span.start <= message.start && message.arrival <= span.end;
    });
    CHECK(inside);
  }
}

TEST_CASE("a group that does not fit is refused") {
  const auto refused = [](const std::string& groups) {
    return error_of_run(full_scenario(
        "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {groups: {some: " + groups +
        "}}\nnccl: {algorithm: Ring, protocol: LL, channels: 1}\n"
        "collectives: [{collective: AllReduce, sizes: [1KiB], group: some}]\n"));
  };
  CHECK(refused("{size: 3}") ==
        "s.yaml:3:24: ranks.groups.some: group 'some': the world's 8 ranks do not divide by size 3 "
        "x stride 1 = 3");
  CHECK(refused("{size: 16}") ==
        "s.yaml:3:24: ranks.groups.some: group 'some': size 16 exceeds the world's 8 ranks");
  CHECK(refused("[0, 8]") ==
        "s.yaml:3:28: ranks.groups.some[1]: rank 8 is not in the world of 8 ranks");
}

}  // namespace
}  // namespace railyard::scenarios
