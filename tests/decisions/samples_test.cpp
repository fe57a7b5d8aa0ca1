// Channel graphs of every topology file of the wild: whatever the machine, what the search returns
// must be possible on it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include "algorithms/nccl/search.h"
#include "tests/paths.h"
#include "tests/skip.h"
#include "topologies/import/nccl_xml.h"

namespace railyard::tests {
namespace {

namespace nccl = algorithms::nccl;
using nccl::NodeTopology;
using nccl::VertexKind;

void collect_gpus(const std::vector<sim::HardwarePci>& list, std::set<std::int32_t>& devs) {
  for (const sim::HardwarePci& pci : list) {
    if (pci.gpu) devs.insert(pci.gpu->dev);
    collect_gpus(pci.children, devs);
  }
}

nccl::NodeRequest request_for(const sim::Hardware& hardware, std::int32_t nodes) {
  std::set<std::int32_t> devs;
  for (const sim::HardwareCpu& cpu : hardware.cpus) collect_gpus(cpu.pci, devs);
  nccl::NodeRequest request;
  request.inputs.hosts = {&hardware};
  for (const std::int32_t dev : devs)
    request.inputs.ranks.push_back(
        {static_cast<std::int32_t>(request.inputs.ranks.size()), 0, dev});
  request.comm_ranks = static_cast<std::int32_t>(devs.size()) * nodes;
  return request;
}

class Load {
 public:
  explicit Load(const NodeTopology& node) : node_(node) {}

  void add(nccl::PathEnd from, nccl::PathEnd to, double bandwidth) {
    for (const std::int32_t link : node_.path(from, to).links) taken_[link] += bandwidth;
  }
  // The link furthest beyond what it has, in GB/s.
  [[nodiscard]] double worst_excess() const {
    double worst = 0;
    for (const auto& [link, taken] : taken_)
      worst = std::max(worst, taken - node_.paths().link_of(link).bandwidth);
    return worst;
  }

 private:
  const NodeTopology& node_;
  std::map<std::int32_t, double> taken_;
};

void check_ring(const NodeTopology& node, const sim::ChannelGraph& ring) {
  Load load(node);
  std::vector<std::int32_t> ranks;
  for (std::int32_t g = 0; g < node.gpus(); ++g) ranks.push_back(node.gpu(g).rank);
  std::sort(ranks.begin(), ranks.end());
  for (const auto& channel : ring.channels) {
    std::vector<std::int32_t> sorted = channel.gpus;
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted == ranks);
    std::vector<nccl::PathEnd> stops;
    for (const std::int32_t rank : channel.gpus)
      stops.push_back({VertexKind::gpu, node.system().gpu_of_rank(rank)});
    for (std::size_t i = 0; i + 1 < stops.size(); ++i)
      load.add(stops[i], stops[i + 1], ring.bw_intra);
    if (!node.inter()) {
      if (stops.size() > 1) load.add(stops.back(), stops.front(), ring.bw_intra);
      continue;
    }
    const std::int32_t in = node.system().net_of_id(channel.nets[0]);
    const std::int32_t out = node.system().net_of_id(channel.nets[1]);
    REQUIRE(in >= 0);
    REQUIRE(out >= 0);
    load.add({VertexKind::net, in}, stops.front(), ring.bw_inter);
    load.add(stops.back(), {VertexKind::net, out}, ring.bw_inter);
  }
  // Three decimals are kept per step.
  constexpr double kLastResort = 0.11;
  if (ring.bw_intra > kLastResort) CHECK(load.worst_excess() < 0.05);
}

TEST_CASE("every topology of the wild gets channels that fit it") {
  const std::filesystem::path folder =
      std::filesystem::path(RAILYARD_SHARED_DIR) / "samples/nccl-xml";
  std::error_code absent;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent))
    paths.push_back(entry.path());
  if (paths.empty()) RAILYARD_SKIP("no samples/nccl-xml");
  std::sort(paths.begin(), paths.end());
  const auto env = nccl::Environment::parse({}).value();
  std::map<std::string, std::int32_t> counts;
  double slowest = 0;
  std::string slowest_name;
  for (const auto& path : paths) {
    CAPTURE(path.filename().string());
    const auto hardware = topologies::read_nccl_xml(path.string());
    if (!hardware.ok()) {
      ++counts["not read"];
      continue;
    }
    for (const std::int32_t nodes : {1, 2}) {
      CAPTURE(nodes);
      const auto begin = std::chrono::steady_clock::now();
      const nccl::NodeRequest request = request_for(hardware.value(), nodes);
      const auto node = NodeTopology::build(request, env, {});
      if (!node.ok()) {
        ++counts[node.error().message];
        continue;
      }
      const auto graphs =
          nccl::find_graphs(node.value(), {.collnet = false, .nvls = true, .file = nullptr});
      if (!graphs.ok()) {
        ++counts["no network device"];
        CHECK(graphs.error().message.find("reaches no network device") != std::string::npos);
        continue;
      }
      ++counts["searched"];
      REQUIRE(graphs.value().size() == 3);
      REQUIRE(!graphs.value()[0].channels.empty());
      check_ring(node.value(), graphs.value()[0]);
      CHECK(graphs.value()[1].channels.size() <= graphs.value()[0].channels.size());
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (took.count() < slowest) continue;
      slowest = took.count();
      slowest_name = path.filename().string();
    }
  }
  for (const auto& [what, count] : counts) fmt::print("{} x {}\n", count, what);
  fmt::print("slowest: {} in {:.0f} ms\n", slowest_name, slowest * 1e3);
  CHECK(counts["searched"] > 0);
}

}  // namespace
}  // namespace railyard::tests
