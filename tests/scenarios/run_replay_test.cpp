// Replay is exact: a run in which undisturbed collectives are simulated once and replayed is the
// run in which each is simulated anew.
#include <doctest/doctest.h>

#include "scenarios/run.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using tests::full_scenario;
using tests::good_run;
using tests::shipped_scenario;

void check_same(const RunResult& a, const RunResult& b) {
  CHECK(a.trace_hash == b.trace_hash);
  CHECK(a.duration == b.duration);
  CHECK(a.messages == b.messages);
  REQUIRE(a.collectives.size() == b.collectives.size());
  for (std::size_t i = 0; i < a.collectives.size(); ++i) {
    CHECK(a.collectives[i].time == b.collectives[i].time);
    CHECK(a.collectives[i].messages == b.collectives[i].messages);
  }
  REQUIRE(a.busiest_links.size() == b.busiest_links.size());
  for (std::size_t i = 0; i < a.busiest_links.size(); ++i) {
    CHECK(a.busiest_links[i].name == b.busiest_links[i].name);
    CHECK(a.busiest_links[i].bytes == b.busiest_links[i].bytes);
  }
  REQUIRE(a.ddp.has_value() == b.ddp.has_value());
  if (!a.ddp) return;
  CHECK(a.ddp->iterations == b.ddp->iterations);
  CHECK(a.ddp->compute == b.ddp->compute);
  CHECK(a.ddp->exposed == b.ddp->exposed);
  CHECK(a.ddp->communication == b.ddp->communication);
  for (std::size_t i = 0; i < a.ddp->buckets.size(); ++i) {
    CHECK(a.ddp->buckets[i].ready == b.ddp->buckets[i].ready);
    CHECK(a.ddp->buckets[i].start == b.ddp->buckets[i].start);
    CHECK(a.ddp->buckets[i].end == b.ddp->buckets[i].end);
  }
}

void check_replay(Scenario scenario, bool some_replayed) {
  CAPTURE(scenario.name);
  scenario.engine.replay = true;
  const RunResult replayed = good_run(scenario);
  scenario.engine.replay = false;
  const RunResult simulated = good_run(scenario);
  check_same(replayed, simulated);
  CHECK((replayed.replays > 0) == some_replayed);
  CHECK(simulated.replays == 0);
}

// The large jobs with one steady bucket size, fewer ranks and two iterations: 18.8 million messages
// each otherwise.
TEST_CASE("replay: every shipped scenario") {
  check_replay(shipped_scenario("resnet50-ddp-2gpu.yaml"), true);
  check_replay(shipped_scenario("bert-large-ddp-dgx-a100.yaml", {"ddp.iterations=2"}), true);
  check_replay(shipped_scenario("collective-sweep-h100.yaml"), false);
  check_replay(shipped_scenario("nvl72.yaml", {"cluster.nodes=4"}), false);
  for (const char* name : {"gpt2-xl-ddp-4x8-h100.yaml", "gpt2-xl-ddp-4x8-h100-one-rail.yaml",
                           "gpt2-xl-ddp-4x8-h100-oversubscribed.yaml", "explore-bucket-size.yaml"})
    check_replay(shipped_scenario(name, {"ddp.iterations=1", "ranks={gpus_per_node: 2}",
                                         "ddp.model=gpt2", "ddp.torch=1.11"}),
                 true);
}

TEST_CASE("replay: every collective, algorithm and protocol, across nodes") {
  const std::string head =
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch}}\n"
      "ranks: {gpus_per_node: 4}\nnccl: ";
  const std::string all =
      "\ncollectives:\n"
      "  - {collective: AllReduce, sizes: [4B, 1MiB, 4B, 1MiB]}\n"
      "  - {collective: AllGather, sizes: [1MiB, 1MiB]}\n"
      "  - {collective: ReduceScatter, sizes: [1MiB, 1MiB]}\n"
      "  - {collective: Broadcast, sizes: [1MiB, 1MiB], root: 3}\n"
      "  - {collective: Reduce, sizes: [1MiB, 1MiB], root: 5}\n";
  const std::string exchange = "  - {collective: AllToAll, sizes: [1MiB, 1MiB]}\n";
  for (const char* protocol : {"LL", "LL128", "Simple", "plain"})
    for (const char* algorithm : {"Ring", "Tree"}) {
      const std::string choice =
          std::string("{algorithm: ") + algorithm + ", protocol: " + protocol + ", channels: 8}";
      CAPTURE(choice);
      const bool has_exchange = std::string(protocol) != "LL128";  // as in NCCL
      check_replay(full_scenario(head + choice + all + (has_exchange ? exchange : "")), true);
    }
}

// What replay must not touch: a collective that shares links with anything else.
TEST_CASE("replay: none beside traffic or another group") {
  const Scenario beside = full_scenario(
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch}}\n"
      "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
      "collectives: [{collective: AllReduce, sizes: [8MiB, 8MiB]}]\n"
      "traffic: [{from: 0, to: 8, size: 64MiB}]\n");
  CHECK(good_run(beside).replays == 0);
  const Scenario groups = full_scenario(
      "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2, fabric: {kind: switch}}\n"
      "ranks: {groups: {dp: {size: 2, stride: 8}}}\n"
      "nccl: {algorithm: Ring, protocol: Simple, channels: 8}\n"
      "collectives: [{collective: AllReduce, sizes: [8MiB, 8MiB], group: dp}]\n");
  CHECK(good_run(groups).replays == 0);
}

}  // namespace
}  // namespace railyard::scenarios
