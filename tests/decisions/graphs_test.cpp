// The channel graphs of rank 0's node against NCCL's own.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <map>

#include "algorithms/nccl/search.h"
#include "tests/decisions/decision_files.h"
#include "tests/skip.h"

namespace railyard::tests {
namespace {

namespace nccl = algorithms::nccl;

// Ids of the file's graphs, in the order NCCL's graph XML numbers them.
void compare_graph(Comparison& comparison, const sim::ChannelGraph& ours,
                   const nlohmann::json& theirs, const std::string& where) {
  comparison.equal(std::string(sim::to_text(ours.pattern)), theirs.at("pattern").get<std::string>(),
                   where + " pattern");
  comparison.equal(ours.same_channels, theirs.at("sameChannels").get<int>() != 0,
                   where + " sameChannels");
  comparison.near(ours.bw_intra, theirs.at("bwIntra").get<double>(), where + " bwIntra");
  comparison.near(ours.bw_inter, theirs.at("bwInter").get<double>(), where + " bwInter");
  comparison.near(ours.latency_inter, theirs.at("latencyInter").get<double>(),
                  where + " latencyInter");
  comparison.equal(std::string(sim::to_text(ours.type_intra)),
                   theirs.at("typeIntra").get<std::string>(), where + " typeIntra");
  comparison.equal(std::string(sim::to_text(ours.type_inter)),
                   theirs.at("typeInter").get<std::string>(), where + " typeInter");
  comparison.equal(ours.cross_nic, theirs.at("crossNic").get<int>(), where + " crossNic");

  const nlohmann::json& channels = theirs.at("channels");
  if (!comparison.equal(ours.channels.size(), theirs.at("nChannels").get<std::size_t>(),
                        where + " nChannels"))
    return;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const std::string channel = fmt::format("{} channel {}", where, c);
    comparison.equal(ours.channels[c].gpus, channels[c].at("gpus").get<std::vector<int>>(),
                     channel + " gpus");
    // The file has the plugin's device numbers, without the host.
    constexpr std::int64_t kDevice = 0x00ffffffffffffff;
    std::vector<std::int64_t> nets;
    for (const std::int64_t id : ours.channels[c].nets) nets.push_back(id < 0 ? id : id & kDevice);
    comparison.equal(nets, channels[c].at("nets").get<std::vector<std::int64_t>>(),
                     channel + " nets");
  }
}

TEST_CASE("channel graphs are NCCL's") {
  if (decision_files().empty()) RAILYARD_SKIP("no reference/nccl-decisions");
  Comparison graphs("graphs");
  Comparison nvls("nvlsSupport");
  double slowest = 0;
  std::string slowest_name;
  for (const DecisionFile& file : decision_files()) {
    CAPTURE(file.name);
    const auto begin = std::chrono::steady_clock::now();
    const auto node =
        nccl::NodeTopology::build(file.first_node(), file.environment, file.capabilities);
    REQUIRE_MESSAGE(node.ok(), node.error().text());
    nccl::GraphOptions options;
    options.nvls = nccl::nvls_available(node.value(), file.environment);
    options.collnet = file.json.at("comm").at("collnetEnable").get<int>() != 0;
    const auto ours = nccl::find_graphs(node.value(), options);
    REQUIRE_MESSAGE(ours.ok(), ours.error().text());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (took.count() > slowest) {
      slowest = took.count();
      slowest_name = file.name;
    }

    nvls.equal(options.nvls ? 1 : 0, file.json.at("comm").at("nvlsSupport").get<int>(), file.name);
    std::map<int, const sim::ChannelGraph*> by_id;
    for (const sim::ChannelGraph& graph : ours.value())
      by_id[static_cast<int>(graph.kind)] = &graph;
    const nlohmann::json& theirs = file.json.at("graphs");
    if (!graphs.equal(by_id.size(), theirs.size(), file.name + " graphs")) continue;
    for (const nlohmann::json& graph : theirs) {
      const auto found = by_id.find(graph.at("id").get<int>());
      REQUIRE(found != by_id.end());
      compare_graph(graphs, *found->second, graph,
                    file.name + " " + graph.at("name").get<std::string>());
    }
  }
  fmt::print("slowest node: {} in {:.0f} ms\n", slowest_name, slowest * 1e3);
  CHECK(graphs.all_equal());
  CHECK(nvls.all_equal());
}

}  // namespace
}  // namespace railyard::tests
