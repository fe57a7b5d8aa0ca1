// `nccl: auto`: NCCL's choice is what runs. Expected choices are those of facts/nccl.md 1.11, which
// were read off NCCL's own code.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/bind.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using tests::good_run;

std::string text(const std::string& cluster, const std::string& collectives,
                 const std::string& more = {}) {
  return fmt::format("railyard: 1\ncluster: {}\nnccl: auto\n{}collectives:\n  - {}\n", cluster,
                     more, collectives);
}

Scenario read(const std::string& yaml) {
  auto scenario = scenario_from_text(yaml, "auto.yaml");
  REQUIRE_MESSAGE(scenario.ok(), scenario.error().text());
  return std::move(scenario).value();
}

// "Tree/LL" per row.
std::vector<std::string> choices(const RunResult& result) {
  std::vector<std::string> out;
  for (const CollectiveRow& row : result.collectives)
    out.push_back(fmt::format("{}/{}", sim::to_text(row.algorithm), sim::to_text(row.protocol)));
  return out;
}

const char* const kTwoNodes = "{machine: hgx-h100, nodes: 2, fabric: {kind: rail-optimised}}";

using Names = std::vector<std::string>;

TEST_CASE("auto: two nodes of eight H100 go from Tree LL by LL128 to NVLSTree") {
  const RunResult result = good_run(read(
      text(kTwoNodes, "{collective: AllReduce, sizes: [8B, 128KiB, 256KiB, 1MiB, 2MiB, 16MiB]}")));
  CHECK(choices(result) == Names{"Tree/LL", "Tree/LL", "Tree/LL128", "Tree/LL128",
                                 "NVLSTree/Simple", "NVLSTree/Simple"});
  CHECK(result.collectives.back().channels == 16);
  // Larger messages take longer, and none is faster than its wire: 8 NICs of 50 GB/s a node.
  for (std::size_t i = 1; i < result.collectives.size(); ++i)
    CHECK(result.collectives[i].time > result.collectives[i - 1].time);
  CHECK(result.collectives.back().time > sim::microseconds(16 * 1048576 / (8 * 50'000)));
}

TEST_CASE("auto: one node of eight H100 takes NVLS from 2 MiB") {
  const RunResult result =
      good_run(read(text("{machine: hgx-h100, nodes: 1}",
                         "{collective: AllReduce, sizes: [8B, 1MiB, 2MiB]}\n"
                         "  - {collective: AllGather, sizes: [4MiB, 8MiB, 32MiB]}")));
  CHECK(choices(result) ==
        Names{"Ring/LL", "Ring/LL", "NVLS/Simple", "Ring/LL", "Ring/LL128", "Ring/Simple"});
}

TEST_CASE("auto: PAT gathers over sixteen nodes of one GPU") {
  const RunResult result = good_run(read(
      text("{machine: hgx-h100, nodes: 16, fabric: {kind: switch}}",
           "{collective: AllGather, sizes: [1KiB, 1MiB, 64MiB]}", "ranks: {gpus_per_node: 1}\n")));
  CHECK(choices(result).at(0) == "PAT/Simple");
  CHECK(choices(result).at(1) == "PAT/Simple");
  CHECK(choices(result).at(2).starts_with("Ring/"));
}

TEST_CASE("auto: NCCL's variables narrow the choice") {
  const RunResult result = good_run(read(
      text(kTwoNodes, "{collective: AllReduce, sizes: [8B, 16MiB]}",
           "env: {NCCL_ALGO: 'allreduce:ring', NCCL_PROTO: Simple, NCCL_MAX_NCHANNELS: 4}\n")));
  CHECK(choices(result) == Names{"Ring/Simple", "Ring/Simple"});
  CHECK(result.collectives.back().channels == 4);

  const auto nothing = run(
      read(text(kTwoNodes, "{collective: AllGather, sizes: [1MiB]}", "env: {NCCL_ALGO: 'tree'}\n")),
      {});
  REQUIRE_FALSE(nothing.ok());
  CHECK(nothing.error().text().find("env") != std::string::npos);
}

TEST_CASE("auto: without P2P the warning says what is lost") {
  const RunResult result = good_run(
      read(fmt::format("railyard: 1\ncluster: {}\nnccl: {{choice: auto, p2p: false}}\ncollectives:"
                       "\n  - {{collective: AllReduce, sizes: [1MiB]}}\n",
                       kTwoNodes)));
  const bool warned = std::ranges::any_of(
      result.notes, [](const std::string& note) { return note.starts_with("warning: "); });
  CHECK(warned);
}

TEST_CASE("auto: sends and receives take their protocol from the size") {
  const RunResult result = good_run(
      read(text("{machine: hgx-h100, nodes: 1}", "{collective: AllToAll, sizes: [8KiB, 64MiB]}")));
  CHECK(choices(result) == Names{"Ring/LL", "Ring/Simple"});
}

TEST_CASE("auto: channels run over NCCL's rings and the NICs of its graph") {
  const Scenario scenario = read(text(kTwoNodes, "{collective: AllReduce, sizes: [1MiB]}"));
  auto bound = bind(scenario);
  REQUIRE_MESSAGE(bound.ok(), bound.error().text());
  const Communication& world = *communications_of(*bound.value(), std::string(kWorld)).front();
  const sim::Channels& channels = world.nccl->channels();
  REQUIRE(channels.size() == 16);
  // facts 3.6: ring 0 of 2 x 8 H100.
  CHECK(channels[0].ring ==
        std::vector<std::uint32_t>{0, 7, 6, 5, 4, 3, 2, 1, 9, 10, 11, 12, 13, 14, 15, 8});
  // It enters node 0 by NIC 0 and leaves it by NIC 1, on the rails of its neighbours.
  const sim::Topology& topology = bound.value()->topology;
  for (const sim::NetEdge& edge : channels[0].net_edges) {
    CHECK(topology.devices[edge.nic_out.index()].local_index ==
          topology.devices[edge.nic_in.index()].local_index);
    CHECK_FALSE(edge.relay.valid());
  }
}

}  // namespace
}  // namespace railyard::scenarios
