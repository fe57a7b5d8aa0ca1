// What algorithms/nccl decides from a search, against logs of real jobs: the search's results are
// copied from the log (or follow from its connections), everything else must come out.
#include "tools/cli/nccl_prediction.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "algorithms/nccl/node_kind.h"
#include "algorithms/nccl/search.h"
#include "tests/paths.h"
#include "tests/skip.h"
#include "topologies/import/nccl_xml.h"

using namespace railyard::cli;               // NOLINT: a test's own names
using namespace railyard::algorithms::nccl;  // NOLINT
namespace nccl_log = railyard::calibrate::nccl_log;
namespace sim = railyard::sim;

namespace {

std::string sample(const char* name) {
  return std::string(RAILYARD_SHARED_DIR) + "/samples/nccl-logs/" + name;
}

nccl_log::Log read(const std::string& path) {
  auto log = nccl_log::read_file(path);
  REQUIRE(log.ok());
  return std::move(log).value();
}

NcclPrediction prediction_of(const CommInputs& inputs) {
  const Environment environment;
  const auto plan = make_comm_plan(inputs, environment);
  REQUIRE_MESSAGE(plan.ok(), (plan.ok() ? "" : plan.error().text()));
  return predict(plan.value(), environment);
}

const Agreement& kind(const Comparison& comparison, std::string_view name) {
  for (const Agreement& agreement : comparison.kinds)
    if (agreement.kind == name) return agreement;
  FAIL("no such kind: " << name);
  return comparison.kinds.at(0);
}

std::int32_t gpu_count(const std::vector<sim::HardwarePci>& devices) {
  std::int32_t count = 0;
  for (const sim::HardwarePci& device : devices)
    count += (device.gpu ? 1 : 0) + gpu_count(device.children);
  return count;
}

sim::ChannelGraph graph(sim::GraphKind kind, sim::GraphPattern pattern, double bw) {
  sim::ChannelGraph graph;
  graph.kind = kind;
  graph.pattern = pattern;
  graph.bw_intra = graph.bw_inter = bw;
  graph.type_intra = sim::PathType::nvl;
  graph.type_inter = sim::PathType::pix;
  return graph;
}

// 2 x A100 with an NVLink bridge (017, lines 76 to 108).
CommInputs two_a100() {
  CommInputs inputs;
  inputs.version = {2, 27, 7};
  NodeKind& node = inputs.kinds.emplace_back();
  node.ring = graph(sim::GraphKind::ring, sim::GraphPattern::ring, 20);
  node.ring.same_channels = true;
  node.tree = graph(sim::GraphKind::tree, sim::GraphPattern::balanced_tree, 40);
  for (int c = 0; c < 12; ++c) {
    node.ring.channels.push_back({.gpus = {0, 1}});
    node.tree.channels.push_back({.gpus = {c < 6 ? 0 : 1, c < 6 ? 1 : 0}});
  }
  node.compute_capabilities = {80, 80};
  node.all_nvlink = true;
  node.p2p_channels_per_peer = 24;  // twice the bridge's 12 NVLinks
  inputs.nodes = {{0, {0, 1}}};
  return inputs;
}

// 2 x 8 H100 (009): every channel c by the NIC beside GPU c, rings downwards, chains upwards. The
// log has no search; bandwidths are those of 400 Gb/s per GPU.
CommInputs two_nodes_of_h100() {
  CommInputs inputs;
  inputs.version = {2, 19, 3};
  NodeKind& node = inputs.kinds.emplace_back();
  node.ring = graph(sim::GraphKind::ring, sim::GraphPattern::ring, 48);
  node.tree = graph(sim::GraphKind::tree, sim::GraphPattern::tree, 48);
  node.nvls = graph(sim::GraphKind::nvls, sim::GraphPattern::nvls, 48);
  for (std::int32_t c = 0; c < 8; ++c) {
    const std::int64_t nic = (c + 4) % 8;  // "9[1] -> 0[0] [receive] via NET/IBext/4"
    sim::ChannelGraph::Channel down{.nets = {nic, nic}}, up = down, head = down;
    for (std::int32_t i = 0; i < 8; ++i) {
      down.gpus.push_back((c + 8 - i) % 8);
      up.gpus.push_back((c + i) % 8);
    }
    head.gpus = {c};
    node.ring.channels.push_back(down);
    node.tree.channels.push_back(up);
    node.nvls.channels.push_back(head);
  }
  node.compute_capabilities.assign(8, 90);
  node.nvswitches = 1;
  node.min_net_bandwidth = 48;
  node.all_nvlink = true;
  node.p2p_channels_per_peer = 4;  // by the NIC's bandwidth, as from 2.29 on; the log has two
  node.older_channels_inside = 36;
  inputs.multicast = true;
  for (std::int32_t n = 0; n < 2; ++n) {
    CommNode& ranks = inputs.nodes.emplace_back();
    for (std::int32_t g = 0; g < 8; ++g) ranks.ranks.push_back(8 * n + g);
  }
  return inputs;
}

// Equal nodes, each with the hardware of a topology file, a rank on every GPU.
NcclPrediction from_hardware(const std::string& file, std::int32_t nodes, Version version,
                             const Capabilities& capabilities) {
  const auto hardware = railyard::topologies::read_nccl_xml(file);
  REQUIRE_MESSAGE(hardware.ok(), (hardware.ok() ? "" : hardware.error().text()));
  const Environment environment;
  NodeRequest request;
  request.inputs.hosts = {&hardware.value()};
  std::int32_t gpus = 0;
  for (const sim::HardwareCpu& cpu : hardware.value().cpus) gpus += gpu_count(cpu.pci);
  for (std::int32_t g = 0; g < gpus; ++g) request.inputs.ranks.push_back({g, 0, g});
  request.comm_ranks = nodes * gpus;
  auto node = NodeTopology::build(request, environment, capabilities);
  REQUIRE_MESSAGE(node.ok(), (node.ok() ? "" : node.error().text()));
  const auto graphs = find_graphs(node.value(), {});
  REQUIRE_MESSAGE(graphs.ok(), (graphs.ok() ? "" : graphs.error().text()));
  CommInputs inputs;
  inputs.version = version;
  inputs.kinds.push_back(node_kind(node.value(), graphs.value()));
  for (std::int32_t n = 0; n < nodes; ++n) {
    CommNode& ranks = inputs.nodes.emplace_back();
    for (std::int32_t g = 0; g < gpus; ++g) ranks.ranks.push_back(n * gpus + g);
  }
  const auto plan = make_comm_plan(inputs, environment);
  REQUIRE_MESSAGE(plan.ok(), (plan.ok() ? "" : plan.error().text()));
  const auto shared = std::make_shared<const NodeTopology>(std::move(node).value());
  return predict(plan.value(), environment,
                 NodeTopologies(static_cast<std::size_t>(nodes), shared));
}

}  // namespace

TEST_CASE("prediction: 2 x A100 from its topology file to the last call of the log") {
  const std::string xml = std::string(RAILYARD_SHARED_DIR) + "/samples/nccl-xml/117-topo_real.xml";
  if (!std::filesystem::exists(xml)) RAILYARD_SKIP("no sample files");
  const nccl_log::Log log = read(sample("017-public-nccl.log"));
  const Comparison comparison = compare(from_hardware(xml, 1, {2, 27, 7}, {.same_process = true}),
                                        log, main_communicator(log));
  INFO(to_text(comparison));
  CHECK(comparison.agrees());
  CHECK(kind(comparison, "searches").agreed == 4);
  CHECK(kind(comparison, "search channels").agreed == 48);
  CHECK(kind(comparison, "transports").agreed == 48);
  CHECK(kind(comparison, "cost table").agreed == 105);
  CHECK(kind(comparison, "algorithm and protocol").agreed == 495);
}

TEST_CASE("prediction: 2 x 8 RTX 3090 from the topology file, searches, rings and trees") {
  const std::string xml = std::string(RAILYARD_SHARED_DIR) + "/samples/nccl-xml/057-topo.xml";
  if (!std::filesystem::exists(xml)) RAILYARD_SKIP("no sample files");
  const nccl_log::Log log = read(sample("011-public-log.log"));
  // The driver denies these cards P2P, and NVML says so: all paths go through the CPU.
  const Comparison comparison =
      compare(from_hardware(xml, 2, {2, 18, 1}, {.peer_access = false, .p2p_status_ok = false}),
              log, main_communicator(log));
  INFO(to_text(comparison));
  CHECK(comparison.agrees());
  CHECK(kind(comparison, "searches").agreed == 32);
  CHECK(kind(comparison, "search channels").agreed == 32);
  CHECK(kind(comparison, "ring neighbours").agreed == 32);
  CHECK(kind(comparison, "trees").agreed == 8);
}

TEST_CASE("prediction: 2 x A100, all that the log of 2.27.7 says") {
  if (!std::filesystem::exists(sample("017-public-nccl.log"))) RAILYARD_SKIP("no sample logs");
  const nccl_log::Log log = read(sample("017-public-nccl.log"));
  const Comparison comparison = compare(prediction_of(two_a100()), log, main_communicator(log));
  INFO(to_text(comparison));
  CHECK(comparison.agrees());
  CHECK(kind(comparison, "searches").agreed == 4);
  CHECK(kind(comparison, "search channels").agreed == 48);
  CHECK(kind(comparison, "ring orders").agreed == 24);
  CHECK(kind(comparison, "trees").agreed == 48);
  CHECK(kind(comparison, "cost table").agreed == 5 * 7 * 3);
  CHECK(kind(comparison, "algorithm and protocol").agreed == 495);
  CHECK(kind(comparison, "channels of a call").agreed == 495);
}

TEST_CASE("prediction: 2 x 8 H100, rings, trees, heads and NICs of 2.19.3") {
  const std::string path = sample("009-nebius-2x8-h100-mlperf-sd.log");
  if (!std::filesystem::exists(path)) RAILYARD_SKIP("no sample logs");
  const nccl_log::Log log = read(path);
  const NcclPrediction prediction = prediction_of(two_nodes_of_h100());
  const Comparison comparison = compare(prediction, log, main_communicator(log));
  INFO(to_text(comparison));
  CHECK(comparison.agrees());
  CHECK(kind(comparison, "channel counts").agreed == 15 * 4 + 16);
  CHECK(kind(comparison, "transports").agreed == 569);  // the NIC of every connection by network
  CHECK(kind(comparison, "ring orders").agreed == 16);
  CHECK(kind(comparison, "trees").agreed == 256);
  CHECK(kind(comparison, "NVLS heads").agreed == 8);
}

TEST_CASE("prediction: a call that NCCL could not make is a difference with NCCL's reason") {
  const NcclPrediction prediction = prediction_of(two_a100());
  const auto unknown = prediction.choose({nccl_log::Function::all_reduce, 16, 77, 0, 0});
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().message == "unknown data type 77");
  const auto small = prediction.choose({nccl_log::Function::all_reduce, 16, 7, 0, 0});
  REQUIRE(small.ok());
  CHECK(small.value().first_channel == 0);
  CHECK(small.value().last_channel == 0);
}
