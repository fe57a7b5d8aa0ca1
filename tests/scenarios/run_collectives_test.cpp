// Rows of nccl-tests: sizes, counts, bandwidths, and the smallest messages there are.
#include <doctest/doctest.h>

#include <algorithm>

#include "scenarios/run.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using sim::bytes;
using sim::Collective;
using tests::full_scenario;
using tests::good_run;

// Eight GPUs of one node.
Scenario eight(const std::string& collectives, const std::string& protocol = "Simple") {
  return full_scenario(
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nnccl: {algorithm: Ring, protocol: " +
      protocol + ", channels: 8}\ncollectives: [" + collectives + "]\n");
}

CollectiveRow row_of(const std::string& collective) {
  const RunResult result = good_run(eight(collective));
  REQUIRE(result.collectives.size() == 1);
  return result.collectives[0];
}

TEST_CASE("algbw is size over time, busbw algbw times nccl-tests' factor") {
  const struct {
    const char* name;
    double factor;
  } all[] = {{"AllReduce", 2 * 7.0 / 8}, {"AllGather", 7.0 / 8}, {"ReduceScatter", 7.0 / 8},
             {"AllToAll", 7.0 / 8},      {"Broadcast", 1},       {"Reduce", 1}};
  for (const auto& [name, factor] : all) {
    const std::string label = name;
    CAPTURE(label);
    const CollectiveRow row = row_of("{collective: " + std::string(name) + ", sizes: [64MiB]}");
    CHECK(row.size == bytes(64 << 20));  // divisible by 8: the column is what was asked for
    CHECK(row.ranks == 8);
    CHECK(row.time.count() > 0);
    CHECK(row.algbw == doctest::Approx((64 << 20) / sim::to_seconds(row.time) * 1e-9));
    CHECK(row.busbw == doctest::Approx(row.algbw * factor));
    // NVLink carries 450 GB/s one way.
    CHECK(row.busbw < 450);
    CHECK(row.busbw > 50);
  }
}

// nccl-tests' size of AllGather and ReduceScatter is the total over the ranks, its count one rank's
// elements. 1000 B over 8 ranks: 125 B, 31 whole floats each, 992 B in all. AllToAll likewise, but
// counted by what one rank sends in total.
TEST_CASE("sizes that do not divide are rounded down to whole elements for every rank") {
  for (const char* name : {"AllGather", "ReduceScatter"}) {
    const CollectiveRow row = row_of("{collective: " + std::string(name) + ", sizes: [1000B]}");
    CHECK(row.size == bytes(992));
    CHECK(row.count == 31);
  }
  const CollectiveRow exchange = row_of("{collective: AllToAll, sizes: [1000B]}");
  CHECK(exchange.size == bytes(992));
  const CollectiveRow reduce = row_of("{collective: AllReduce, sizes: [1003B], dtype: fp16}");
  CHECK(reduce.size == bytes(1'002));
  CHECK(reduce.count == 501);
  CHECK(reduce.dtype == "half");
}

TEST_CASE("the row names what ran: root, type, algorithm, channels") {
  const CollectiveRow rooted =
      row_of("{collective: Broadcast, sizes: [1MiB], root: 3, dtype: bf16}");
  CHECK(rooted.root == 3);
  CHECK(rooted.dtype == "bfloat16");
  CHECK(row_of("{collective: AllReduce, sizes: [1MiB]}").root == -1);
  // Tree is AllReduce's alone, and a note says so.
  const RunResult tree =
      good_run(full_scenario("railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\n"
                             "nccl: {algorithm: Tree, protocol: LL, channels: 2}\n"
                             "collectives: [{collective: AllReduce, sizes: [4KiB]}, {collective: "
                             "Reduce, sizes: [4KiB]}]\n"));
  CHECK(tree.collectives[0].algorithm == sim::Algorithm::tree);
  CHECK(tree.collectives[1].algorithm == sim::Algorithm::ring);
  CHECK(tree.collectives[0].channels <= 2);
  REQUIRE_FALSE(tree.notes.empty());
  CHECK(tree.notes[0] ==
        "Tree exists for AllReduce only; other collectives ran as Ring, as in NCCL");
}

// An empty call costs what launching it costs: max(collective_launch, collective_start). 4 B over 8
// ranks are no whole element for AllGather, ReduceScatter and AllToAll.
TEST_CASE("messages of no bytes and of one element") {
  for (const char* name :
       {"AllReduce", "AllGather", "ReduceScatter", "AllToAll", "Broadcast", "Reduce"})
    for (const char* protocol : {"LL", "LL128", "Simple"}) {
      const std::string label = std::string(name) + " " + protocol;
      if (label == "AllToAll LL128") continue;  // does not exist, as in NCCL
      CAPTURE(label);
      Scenario scenario = eight("{collective: " + std::string(name) + ", sizes: [4B]}", protocol);
      const sim::HostParameters& host = scenario.parameters.host;
      const RunResult four = good_run(scenario);
      scenario.collectives[0].sizes = {bytes(0)};
      const RunResult none = good_run(scenario);
      CHECK(none.collectives[0].time == std::max(host.collective_launch, host.collective_start));
      CHECK(none.collectives[0].size == bytes(0));
      CHECK(none.collectives[0].messages == 0);
      CHECK(none.collectives[0].algbw == 0);
      const Collective collective = scenario.collectives[0].collective;
      const bool whole = collective == Collective::all_reduce ||
                         collective == Collective::broadcast || collective == Collective::reduce;
      CHECK(four.collectives[0].size == bytes(whole ? 4 : 0));
      CHECK((four.collectives[0].messages > 0) == whole);
      CHECK((four.collectives[0].time > none.collectives[0].time) == whole);
    }
}

// A short call is bound by how fast the host can launch the next.
TEST_CASE("launch cost: the larger of launching and of start plus transfer, none for plain") {
  Scenario scenario = eight("{collective: AllReduce, sizes: [4KiB]}", "LL");
  scenario.parameters.host.collective_launch = {};
  scenario.parameters.host.collective_start = {};
  const sim::Duration bare = good_run(scenario).collectives[0].time;
  scenario.parameters.host.collective_start = sim::microseconds(3);
  CHECK(good_run(scenario).collectives[0].time == bare + sim::microseconds(3));
  scenario.parameters.host.collective_launch = sim::microseconds(900);
  CHECK(good_run(scenario).collectives[0].time == sim::microseconds(900));
  scenario.nccl[0].protocol = sim::Protocol::plain;
  CHECK(good_run(scenario).collectives[0].time < sim::microseconds(900));
}

TEST_CASE("rows are in the order of the scenario, and the objective is their sum") {
  const RunResult result =
      good_run(eight("{collective: AllReduce, sizes: {from: 1MiB, to: 4MiB, factor: 2}}, "
                     "{collective: Broadcast, sizes: [1MiB]}"));
  REQUIRE(result.collectives.size() == 4);
  CHECK(result.collectives[1].size == bytes(2 << 20));
  CHECK(result.collectives[3].collective == Collective::broadcast);
  sim::Duration sum{};
  for (const CollectiveRow& row : result.collectives) sum += row.time;
  CHECK(objective_time(result) == sum);
  CHECK(result.collectives[0].time < result.collectives[1].time);
}

// NCCL's sends and receives have LL and Simple. By size the choice is for all collectives of a
// sweep; alone it is this one's, and wrong.
TEST_CASE("AllToAll where LL128 is chosen by size runs with Simple, and says so") {
  const RunResult result =
      good_run(full_scenario("railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nnccl:\n"
                             "  - {up_to: 1KiB, algorithm: Ring, protocol: LL, channels: 2}\n"
                             "  - {up_to: 1MiB, algorithm: Ring, protocol: LL128, channels: 2}\n"
                             "  - {algorithm: Ring, protocol: Simple, channels: 2}\n"
                             "collectives: [{collective: AllToAll, sizes: [1KiB, 1MiB, 2MiB]},\n"
                             "              {collective: AllReduce, sizes: [1MiB]},\n"
                             "              {collective: Gather, sizes: [1MiB]}]\n"));
  REQUIRE(result.collectives.size() == 5);
  CHECK(result.collectives[4].protocol == sim::Protocol::simple);
  CHECK(result.collectives[0].protocol == sim::Protocol::ll);
  CHECK(result.collectives[1].protocol == sim::Protocol::simple);
  CHECK(result.collectives[2].protocol == sim::Protocol::simple);
  CHECK(result.collectives[3].protocol == sim::Protocol::ll128);
  const std::string note =
      "warning: AllToAll, Gather, Scatter and SendRecv are sends and receives, which have no "
      "LL128; "
      "where it is chosen by size they ran with Simple";
  CHECK(std::ranges::count(result.notes, note) == 1);
  const RunResult without = good_run(eight("{collective: AllToAll, sizes: [1MiB]}"));
  CHECK(std::ranges::count(without.notes, note) == 0);
}

TEST_CASE("up_to includes its size, and counts what NCCL is called with") {
  const RunResult result = good_run(full_scenario(
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nnccl:\n"
      "  - {up_to: 64KiB, algorithm: Tree, protocol: LL, channels: 2}\n"
      "  - {algorithm: Ring, protocol: Simple, channels: 8}\n"
      "collectives:\n  - {collective: AllReduce, sizes: [65536B, 65540B]}\n"
      "  - {collective: AllGather, sizes: [512KiB]}\n"));  // 64 KiB of each of the 8 ranks
  CHECK(result.collectives[0].protocol == sim::Protocol::ll);
  CHECK(result.collectives[0].algorithm == sim::Algorithm::tree);
  CHECK(result.collectives[1].protocol == sim::Protocol::simple);
  CHECK(result.collectives[2].protocol == sim::Protocol::ll);
}

// Ring AllReduce of S bytes on n ranks without protocol cost: 2 (n - 1) steps of S / n bytes, each
// over one port up and one down; flat ports of 25 GB/s x the class efficiency.
TEST_CASE("plain is the textbook: 2 (n - 1) / n S / B, and the latency of each step") {
  Scenario scenario = full_scenario(
      "railyard: 1\ncluster: {machine: flat, nodes: 8, fabric: {kind: switch, link_rate: "
      "200Gb/s}}\n"
      "nccl: {algorithm: Ring, protocol: plain, channels: 1}\n"
      "collectives: [{collective: AllReduce, sizes: [8000000B]}]\n");
  for (sim::LinkParameters& link : scenario.parameters.links) link = {1.0, sim::nanoseconds(500)};
  // 14 steps of 1 MB at 25 GB/s = 40 us, and two links of 500 ns.
  const RunResult result = good_run(scenario);
  CHECK(result.collectives[0].time == 14 * (sim::microseconds(40) + sim::nanoseconds(1'000)));
}

}  // namespace
}  // namespace railyard::scenarios
