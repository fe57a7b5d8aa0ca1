#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "tests/decisions/decision_json.h"

namespace railyard::tests {
namespace {

using algorithms::nccl::CommInputs;
using algorithms::nccl::CpuArch;
using algorithms::nccl::CpuVendor;
using algorithms::nccl::NodeInputs;
using algorithms::nccl::NodeKind;
using nlohmann::json;
using sim::ChannelGraph;
using sim::PathType;

constexpr std::size_t kDifferencesShown = 5;

PathType path_type(const json& text) {
  const auto type = sim::parse_enum<PathType>(text.get<std::string>());
  REQUIRE(type.ok());
  return type.value();
}

ChannelGraph to_graph(const json& graph) {
  ChannelGraph result;
  const auto pattern = sim::parse_enum<sim::GraphPattern>(graph["pattern"].get<std::string>());
  REQUIRE(pattern.ok());
  result.kind = static_cast<sim::GraphKind>(graph["id"].get<int>());
  result.pattern = pattern.value();
  result.cross_nic = graph["crossNic"];
  result.same_channels = graph["sameChannels"].get<int>() != 0;
  result.bw_intra = graph["bwIntra"];
  result.bw_inter = graph["bwInter"];
  result.latency_inter = graph["latencyInter"];
  result.type_intra = path_type(graph["typeIntra"]);
  result.type_inter = path_type(graph["typeInter"]);
  for (const json& channel : graph["channels"]) {
    result.channels.emplace_back();
    result.channels.back().gpus = channel["gpus"].get<std::vector<std::int32_t>>();
    result.channels.back().nets = {channel["nets"][0], channel["nets"][1]};
  }
  return result;
}

void set_graphs(const json& decision, NodeKind& kind) {
  for (const json& graph : decision["graphs"]) {
    ChannelGraph parsed = to_graph(graph);
    ChannelGraph* const slots[] = {&kind.ring, &kind.tree, &kind.collnet_chain, &kind.nvls,
                                   &kind.collnet_direct};
    *slots[static_cast<std::size_t>(parsed.kind)] = std::move(parsed);
  }
}

double nvlink_bandwidth(int capability) {
  if (capability >= 100) return 40.1;
  if (capability >= 90) return 20.6;
  return capability > 80 ? 12 : 20;
}

constexpr std::size_t kHopsThroughNvswitch = 4;  // GPU, its device node, switch, and back

void set_peers(const json& decision, NodeKind& kind) {
  const json& paths = decision["paths"]["gpu_gpu"];
  const double nvlink = nvlink_bandwidth(decision["comm"]["minCompCap"]);
  for (std::size_t from = 0; from < paths.size(); ++from)
    for (std::size_t to = 0; to < paths.size(); ++to) {
      if (from == to) continue;
      const json& path = paths[from][to];
      kind.peers.push_back({path_type(path[0]), path[1], nvlink});
      if (kind.peers.back().type == PathType::nvl &&
          path[2].get<std::size_t>() == kHopsThroughNvswitch)
        kind.nvswitches = 1;
    }
}

void set_nets(const json& decision, NodeKind& kind) {
  const json& paths = decision["paths"];
  bool first = true;
  for (std::size_t g = 0; g < paths["gpu_net"].size(); ++g) {
    double nearest = 0;
    for (const json& path : paths["gpu_net"][g]) nearest = std::max<double>(nearest, path[1]);
    double host = 0;
    PathType host_type = PathType::dis;
    for (const json& path : paths["gpu_cpu"][g]) {
      const PathType type = path_type(path[0]);
      if (type >= host_type) continue;
      host_type = type;
      host = path[1];
    }
    const std::vector<double> nets(decision["localNets"][g].size(), nearest);
    kind.nets.push_back(algorithms::nccl::net_reach(nets, host));
    kind.min_net_bandwidth = first ? nearest : std::min(kind.min_net_bandwidth, nearest);
    first = false;
  }
}

}  // namespace

std::vector<std::filesystem::path> decision_files() {
  std::vector<std::filesystem::path> files;
  const auto folder = std::filesystem::path(RAILYARD_SHARED_DIR) / "reference/nccl-decisions";
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

json read_decision(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return json::parse(stream);
}

CommInputs comm_inputs(const json& decision) {
  const json& comm = decision["comm"];
  CommInputs inputs;
  NodeKind& kind = inputs.kinds.emplace_back();
  set_graphs(decision, kind);
  const std::int32_t local = comm["localRanks"];
  kind.compute_capabilities.assign(static_cast<std::size_t>(local), comm["minCompCap"]);
  kind.compute_capabilities.back() = comm["maxCompCap"];
  kind.cpu_arch = static_cast<CpuArch>(comm["cpuArch"].get<int>());
  kind.cpu_vendor = static_cast<CpuVendor>(comm["cpuVendor"].get<int>());
  set_peers(decision, kind);
  set_nets(decision, kind);
  const std::int32_t nodes = comm["nNodes"];
  for (std::int32_t n = 0; n < nodes; ++n) {
    NodeInputs& node = inputs.nodes.emplace_back();
    for (std::int32_t i = 0; i < local; ++i) node.ranks.push_back(n * local + i);
  }
  inputs.multicast = decision["inputs"]["multicast"] == 1;
  inputs.mnnvl = comm["MNNVL"] == 1;
  if (decision["inputs"]["collnet"] == 1)
    inputs.collnet = {.present = true, .enabled = true, .all_gather = true, .reduce_scatter = true};
  return inputs;
}

algorithms::nccl::Environment decision_environment(const json& decision) {
  const auto variables = decision["inputs"]["env"].get<std::map<std::string, std::string>>();
  const auto env = algorithms::nccl::Environment::parse(variables);
  REQUIRE(env.ok());
  return env.value();
}

std::string seven_digits(double value) { return fmt::format("{:.7g}", value); }

void Comparison::equal(const std::string& what, const std::string& expected,
                       const std::string& actual) {
  ++compared_;
  if (expected == actual) return;
  if (++different_ <= kDifferencesShown)
    text_ += fmt::format("\n  {} {}: NCCL {}, here {}", name_, what, expected, actual);
}

void Comparison::equal(const std::string& what, std::int64_t expected, std::int64_t actual) {
  equal(what, std::to_string(expected), std::to_string(actual));
}

}  // namespace railyard::tests
