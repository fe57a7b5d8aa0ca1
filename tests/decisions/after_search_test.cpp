// What NCCL decides once its searches are done, against NCCL's own decisions: every reference file,
// with the file's own graphs as input; and all of it again from the hardware alone.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "algorithms/nccl/selection.h"
#include "tests/decisions/decision_json.h"
#include "tests/skip.h"

namespace railyard::tests {
namespace {

// As the files print numbers; a string, so that equal means equal.
std::string seven_digits(double value) { return fmt::format("{:.7g}", value); }

// One file's values, each named.
struct Values {
  Comparison& all;
  std::string file;
  template <typename A, typename B>
  void equal(const std::string& what, const A& theirs, const B& ours) const {
    all.equal(ours, theirs, file + " " + what);
  }
};

namespace nccl = algorithms::nccl;
using algorithms::nccl::Algorithm;
using algorithms::nccl::Call;
using algorithms::nccl::Choice;
using algorithms::nccl::CommInfo;
using algorithms::nccl::CommPlan;
using algorithms::nccl::Function;
using algorithms::nccl::index_of;
using algorithms::nccl::kAllAlgorithms;
using algorithms::nccl::kAllFunctions;
using algorithms::nccl::kAllProtocols;
using algorithms::nccl::NvlsEdges;
using algorithms::nccl::Protocol;
using nlohmann::json;

std::string pair_name(Algorithm a, Protocol p) {
  return std::string(sim::to_text(a)) + "/" + std::string(sim::to_text(p));
}

void compare_comm(const json& decision, const CommPlan& plan, const Values& all) {
  const json& comm = decision["comm"];
  const CommInfo& info = plan.info;
  const auto equal = [&](const char* key, std::int64_t value) {
    all.equal(key, comm[key].get<std::int64_t>(), value);
  };
  equal("nRanks", info.ranks);
  equal("nNodes", info.nodes);
  equal("nChannels", info.channels);
  equal("collChannels", info.channels);
  equal("nvlsChannels", info.nvls_channels);
  equal("nvlsSupport", info.nvls_support ? 1 : 0);
  equal("nvlsChunkSize", info.nvls_chunk);
  equal("nvlsTreeMaxChunkSize", info.nvls_tree_max_chunk);
  equal("p2pnChannels", info.p2p_channels);
  equal("p2pnChannelsPerPeer", info.p2p_channels_per_peer);
  equal("p2pChunkSize", info.p2p_chunk);
  equal("minCompCap", info.min_capability);
  equal("maxCompCap", info.max_capability);
  equal("cpuArch", static_cast<int>(info.cpu_arch));
  equal("cpuVendor", static_cast<int>(info.cpu_vendor));
  equal("MNNVL", info.mnnvl ? 1 : 0);
  equal("isAllNvlink", info.all_nvlink ? 1 : 0);
  equal("maxTreePattern", static_cast<int>(info.max_tree_pattern));
  equal("collnetEnable", info.collnet ? 1 : 0);
  all.equal("minNetBw", seven_digits(comm["minNetBw"]), seven_digits(info.min_net_bandwidth));
  for (std::size_t p = 0; p < info.buffers.size(); ++p)
    all.equal("buffSizes", comm["buffSizes"][p].get<std::int64_t>(), info.buffers[p]);
}

void compare_rings(const json& decision, const CommPlan& plan, const Values& all) {
  const sim::Channels channels = to_channels(plan.info, plan.connections);
  const json& rings = decision["rings"];
  all.equal("rings", static_cast<std::int64_t>(rings.size()),
            static_cast<std::int64_t>(channels.size()));
  for (std::size_t c = 0; c < std::min(rings.size(), channels.size()); ++c)
    all.equal(fmt::format("ring {}", c), rings[c].dump(), json(channels[c].ring).dump());
}

void compare_trees(const json& decision, const CommPlan& plan, const Values& all) {
  const sim::Channels channels = to_channels(plan.info, plan.connections);
  for (const json& entry : decision["trees"]) {
    const std::size_t rank = entry["rank"];
    REQUIRE(entry["channels"].size() == channels.size());
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const sim::TreeEdges& edges = channels[c].tree[rank];
      const json here{{"up", edges.up}, {"down", edges.down}};
      all.equal(fmt::format("tree {} of rank {}", c, rank), entry["channels"][c].dump(),
                here.dump());
    }
  }
}

void compare_nvls(const json& decision, const CommPlan& plan, const Values& all) {
  const std::int32_t ranks = plan.info.ranks;
  for (const json& entry : decision["nvls"]) {
    const std::int32_t rank = entry["rank"];
    all.equal("nHeads", entry["nHeads"].get<std::int64_t>(), plan.info.nvls_heads);
    REQUIRE(entry["channels"].size() == static_cast<std::size_t>(plan.info.nvls_channels));
    for (std::int32_t c = 0; c < plan.info.nvls_channels; ++c) {
      const NvlsEdges edges = nvls_edges(plan.info, plan.connections, rank, c);
      if (c == 0) all.equal("headRank", entry["headRank"].get<std::int64_t>(), edges.head);
      // NCCL writes the node's own switch first, as a rank beyond all ranks.
      const std::int32_t own = plan.info.nodes == 1 ? -1 : ranks + 1 + edges.head;
      const json here{{"treeUp", edges.up}, {"treeDown", {own, edges.down[0], edges.down[1]}}};
      all.equal(fmt::format("NVLS tree {} of rank {}", c, rank),
                entry["channels"][static_cast<std::size_t>(c)].dump(), here.dump());
    }
  }
}

void compare_tuning(const json& decision, const CommPlan& plan, const Values& all) {
  const json& tuning = decision["tuning"];
  std::size_t enabled = 0;
  for (const json& row : tuning["table"]) {
    const std::size_t f =
        index_of(sim::parse_enum<Function>(row["coll"].get<std::string>()).value());
    const std::size_t a =
        index_of(sim::parse_enum<Algorithm>(row["algo"].get<std::string>()).value());
    const std::size_t p =
        index_of(sim::parse_enum<Protocol>(row["proto"].get<std::string>()).value());
    const std::string what =
        fmt::format("{} {}/{}", row["coll"].get<std::string>(), row["algo"].get<std::string>(),
                    row["proto"].get<std::string>());
    all.equal(what + " latency", seven_digits(row["latencyUs"]),
              seven_digits(plan.tuning.latency[f][a][p]));
    all.equal(what + " bandwidth", seven_digits(row["bwGBs"]),
              seven_digits(plan.tuning.bandwidth[f][a][p]));
  }
  for (const auto& function : plan.tuning.bandwidth)
    for (const auto& row : function)
      for (const float bandwidth : row) enabled += bandwidth != 0 ? 1 : 0;
  all.equal("entries of the table", static_cast<std::int64_t>(tuning["table"].size()),
            static_cast<std::int64_t>(enabled));
  for (const Algorithm a : kAllAlgorithms) {
    const std::string name(sim::to_text(a));
    all.equal(name + " maxThreads", tuning["maxThreads"][name].dump(),
              json(plan.tuning.max_threads[index_of(a)]).dump());
    all.equal(name + " threadThresholds", tuning["threadThresholds"][name].dump(),
              json(plan.tuning.thread_thresholds[index_of(a)]).dump());
  }
}

json to_json(const Choice& choice) {
  json candidates = json::object();
  for (const Algorithm a : kAllAlgorithms)
    for (const Protocol p : kAllProtocols) {
      const float cost = choice.costs[index_of(a)][index_of(p)];
      if (cost >= 0) candidates[pair_name(a, p)] = seven_digits(cost);
    }
  json result{{"algo", sim::to_text(choice.algorithm)},
              {"proto", sim::to_text(choice.protocol)},
              {"timeUs", seven_digits(choice.time_us)},
              {"nMaxChannels", choice.max_channels},
              {"nWarps", choice.threads / 32},
              {"nThreads", choice.threads},
              {"channelsUsed", choice.channels},
              {"channelLo", choice.first_channel},
              {"candidates", candidates}};
  if (choice.interleaved) {
    result["chunk"] = choice.lo.chunk;
  } else {
    result["bytesLoMidHi"] = {choice.lo.bytes, choice.mid.bytes, choice.hi.bytes};
    result["chunkLoMidHi"] = {choice.lo.chunk, choice.mid.chunk, choice.hi.chunk};
  }
  return result;
}

// The file's entry with its numbers in seven digits, without what names the question.
json expected_choice(json entry) {
  entry.erase("size");
  entry.erase("nBytes");
  entry["timeUs"] = seven_digits(entry["timeUs"]);
  for (auto& [name, time] : entry["candidates"].items()) time = seven_digits(time);
  return entry;
}

void compare_selection(const json& decision, const CommPlan& plan, const Values& all) {
  for (const Function f : kAllFunctions) {
    for (const json& entry : decision["selection"][std::string(sim::to_text(f))]) {
      const std::int64_t bytes = entry["nBytes"];
      const std::int64_t per_rank =
          algorithms::nccl::is_gather_or_scatter(f) ? bytes / plan.info.ranks : bytes;
      const Call call{.function = f, .count = per_rank / 4};
      REQUIRE(model_bytes(call, plan.info.ranks) == bytes);
      const auto choice = choose(plan, call);
      const std::string what = fmt::format("{} of {}", sim::to_text(f), bytes);
      if (entry["algo"] == "none") {
        all.equal(what, "error", choice.ok() ? to_json(choice.value()).dump() : "error");
        continue;
      }
      REQUIRE_MESSAGE(choice.ok(), (choice.ok() ? "" : choice.error().text()));
      all.equal(what, expected_choice(entry).dump(), to_json(choice.value()).dump());
    }
  }
}

using Compare = void (*)(const json&, const CommPlan&, const Values&);

CommPlan plan_of(const DecisionFile& file, bool search) {
  const nccl::NodeTopology node = first_node_of(file);
  const auto plan = nccl::make_comm_plan(
      comm_inputs(file, node, search ? searched_graphs(file, node) : graphs_of(file)),
      file.environment);
  REQUIRE_MESSAGE(plan.ok(), plan.error().text());
  return plan.value();
}

// Built once: every test case reads them.
const std::vector<CommPlan>& plans() {
  static const std::vector<CommPlan> all = [] {
    std::vector<CommPlan> built;
    for (const DecisionFile& file : decision_files()) built.push_back(plan_of(file, false));
    return built;
  }();
  return all;
}

void compare_all(const std::string& part, Compare compare) {
  if (decision_files().empty()) RAILYARD_SKIP("no reference/nccl-decisions");
  Comparison all("after the search: " + part);
  for (std::size_t i = 0; i < plans().size(); ++i)
    compare(decision_files()[i].json, plans()[i], {all, decision_files()[i].name});
  CHECK(all.all_equal());
}

TEST_CASE("after the search, NCCL's communicators") { compare_all("comm", compare_comm); }
TEST_CASE("after the search, NCCL's rings") { compare_all("rings", compare_rings); }
TEST_CASE("after the search, NCCL's trees") { compare_all("trees", compare_trees); }
TEST_CASE("after the search, NCCL's NVLS heads and trees") { compare_all("nvls", compare_nvls); }
TEST_CASE("after the search, NCCL's cost table") { compare_all("tuning", compare_tuning); }
TEST_CASE("after the search, NCCL's choices") { compare_all("selection", compare_selection); }

TEST_CASE("from the hardware to NCCL's choices") {
  if (decision_files().empty()) RAILYARD_SKIP("no reference/nccl-decisions");
  Comparison all("from the hardware: everything");
  for (const DecisionFile& file : decision_files()) {
    // Whole racks search for long; that their graphs are equal is graphs_test's affair.
    constexpr std::int32_t kQuick = 16;
    if (file.json.at("comm").at("localRanks") > kQuick) continue;
    const CommPlan plan = plan_of(file, true);
    for (const Compare compare : {compare_comm, compare_rings, compare_trees, compare_nvls,
                                  compare_tuning, compare_selection})
      compare(file.json, plan, {all, file.name});
  }
  CHECK(all.all_equal());
}

}  // namespace
}  // namespace railyard::tests
