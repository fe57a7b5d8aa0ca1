// System and paths of rank 0's node against NCCL's own.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "algorithms/nccl/nets.h"
#include "algorithms/nccl/node_topology.h"
#include "algorithms/nccl/transport.h"
#include "tests/decisions/decision_files.h"
#include "tests/skip.h"

namespace railyard::tests {
namespace {

namespace nccl = algorithms::nccl;
using nccl::NodeTopology;
using nccl::VertexKind;

void compare_matrix(Comparison& comparison, const DecisionFile& file, const NodeTopology& node,
                    const std::string& name, VertexKind from, VertexKind to) {
  const nlohmann::json& rows = file.json.at("paths").at(name);
  comparison.equal(node.system().all(from).size(), rows.size(), file.name + " " + name + " rows");
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      const nccl::Path& path =
          node.path({from, static_cast<std::int32_t>(i)}, {to, static_cast<std::int32_t>(j)});
      const std::string where = fmt::format("{} {}[{}][{}]", file.name, name, i, j);
      comparison.equal(std::string(sim::to_text(path.type)), rows[i][j][0].get<std::string>(),
                       where + " type");
      comparison.near(path.bandwidth, rows[i][j][1].get<double>(), where + " bandwidth");
      comparison.equal(path.hops(), rows[i][j][2].get<int>(), where + " hops");
    }
}

void compare_nets(Comparison& comparison, const DecisionFile& file, const NodeTopology& node) {
  const nlohmann::json& nets = file.json.at("paths").at("nets");
  if (!comparison.equal(node.system().all(VertexKind::net).size(), nets.size(),
                        file.name + " nets"))
    return;
  for (std::int32_t n = 0; n < node.nets(); ++n) {
    const auto& theirs = nets[static_cast<std::size_t>(n)];
    const std::string where = fmt::format("{} net {}", file.name, n);
    comparison.equal(node.net(n).dev, theirs.at("dev").get<int>(), where + " dev");
    comparison.near(node.net(n).bandwidth, theirs.at("bw").get<double>(), where + " bw");
    comparison.near(node.net(n).latency, theirs.at("latency").get<double>(), where + " latency");
    comparison.equal(node.net(n).gdr, theirs.at("gdr").get<int>() != 0, where + " gdr");
    const std::int32_t gpu = node.local_gpu(n);
    comparison.equal(gpu < 0 ? -1 : node.gpu(gpu).rank, theirs.at("localGpu").get<int>(),
                     where + " localGpu");
  }
}

void compare_local_nets(Comparison& comparison, const DecisionFile& file,
                        const NodeTopology& node) {
  const nlohmann::json& theirs = file.json.at("localNets");
  for (std::int32_t g = 0; g < node.gpus(); ++g) {
    std::vector<int> devs;
    for (const std::int32_t net : nccl::local_nets(node, g)) devs.push_back(node.net(net).dev);
    comparison.equal(devs, theirs.at(static_cast<std::size_t>(g)).get<std::vector<int>>(),
                     fmt::format("{} localNets[{}]", file.name, g));
  }
}

// What is left of the channels per peer once they share the communicator's.
int shared_channels_per_peer(int per_peer, const nlohmann::json& comm) {
  const int channels = comm.at("p2pnChannels").get<int>();
  int power = 1;
  while (power < per_peer) power *= 2;
  if (comm.at("nNodes").get<int>() == 1) return std::min(power, channels);
  constexpr int kPeersAtOnce = 8;
  const int rounds = (comm.at("nRanks").get<int>() + kPeersAtOnce - 1) / kPeersAtOnce;
  while (power * rounds > channels && power > 1) power /= 2;
  return power;
}

void compare_comm(Comparison& comparison, const DecisionFile& file, const NodeTopology& node) {
  const nlohmann::json& comm = file.json.at("comm");
  float least = nccl::min_net_bandwidth(node, 0);
  int per_peer = nccl::p2p_channels_per_peer(node, 0);
  for (std::int32_t g = 1; g < node.gpus(); ++g) {
    least = std::min(least, nccl::min_net_bandwidth(node, g));
    per_peer = std::min(per_peer, nccl::p2p_channels_per_peer(node, g));
  }
  comparison.near(least, comm.at("minNetBw").get<double>(), file.name + " minNetBw");
  comparison.equal(shared_channels_per_peer(per_peer, comm),
                   comm.at("p2pnChannelsPerPeer").get<int>(), file.name + " p2pnChannelsPerPeer");
  comparison.equal(nccl::all_nvlink(node) ? 1 : 0, comm.at("isAllNvlink").get<int>(),
                   file.name + " isAllNvlink");
  comparison.equal(nccl::all_direct_p2p(node) ? 1 : 0, comm.at("isAllDirectP2p").get<int>(),
                   file.name + " isAllDirectP2p");
  comparison.equal(node.system().min_sm(), comm.at("minCompCap").get<int>(),
                   file.name + " minCompCap");
  const nccl::Vertex& cpu = node.system().at(VertexKind::cpu, 0);
  comparison.equal(static_cast<int>(cpu.arch), comm.at("cpuArch").get<int>(),
                   file.name + " cpuArch");
  comparison.equal(static_cast<int>(cpu.vendor), comm.at("cpuVendor").get<int>(),
                   file.name + " cpuVendor");
}

TEST_CASE("system, paths and local nets are NCCL's") {
  if (decision_files().empty()) RAILYARD_SKIP("no reference/nccl-decisions");
  Comparison system("system");
  Comparison paths("paths");
  Comparison nets("nets");
  Comparison local("localNets");
  Comparison comm("communicator's facts");
  for (const DecisionFile& file : decision_files()) {
    CAPTURE(file.name);
    const auto node = NodeTopology::build(file.first_node(), file.environment, file.capabilities);
    REQUIRE_MESSAGE(node.ok(), node.error().text());
    const NodeTopology& n = node.value();
    const nlohmann::json& theirs = file.json.at("system");
    system.near(n.max_bandwidth(), theirs.at("maxBw").get<double>(), file.name + " maxBw");
    system.near(n.total_bandwidth(), theirs.at("totalBw").get<double>(), file.name + " totalBw");
    system.equal(n.inter() ? 1 : 0, theirs.at("inter").get<int>(), file.name + " inter");

    std::vector<int> ranks;
    for (std::int32_t g = 0; g < n.gpus(); ++g) ranks.push_back(n.gpu(g).rank);
    paths.equal(ranks, file.json.at("paths").at("gpuRanks").get<std::vector<int>>(),
                file.name + " gpuRanks");
    compare_matrix(paths, file, n, "gpu_gpu", VertexKind::gpu, VertexKind::gpu);
    compare_matrix(paths, file, n, "gpu_net", VertexKind::gpu, VertexKind::net);
    compare_matrix(paths, file, n, "net_gpu", VertexKind::net, VertexKind::gpu);
    compare_matrix(paths, file, n, "gpu_cpu", VertexKind::gpu, VertexKind::cpu);
    compare_nets(nets, file, n);
    compare_local_nets(local, file, n);
    compare_comm(comm, file, n);
  }
  CHECK(system.all_equal());
  CHECK(paths.all_equal());
  CHECK(nets.all_equal());
  CHECK(local.all_equal());
  CHECK(comm.all_equal());
}

}  // namespace
}  // namespace railyard::tests
