// `nccl: auto`: data go where NCCL's transports take them - through the memory of hosts where GPUs
// do without P2P, NICs without GPUDirect, or the network is sockets.
#include "scenarios/host_paths.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "scenarios/bind.h"
#include "tests/scenarios/run_helpers.h"

namespace railyard::scenarios {
namespace {

using namespace sim::literals;
using tests::good_run;

// A scenario of one kind of machine with a setup of NCCL ("p2p: false").
std::string text(const std::string& cluster, const std::string& setup, const std::string& call,
                 const std::string& more = {}) {
  return fmt::format(
      "railyard: 1\ncluster: {}\nnccl: {{choice: auto{}{}}}\n{}collectives:\n  - {}\n", cluster,
      setup.empty() ? "" : ", ", setup, more, call);
}

Scenario read(const std::string& yaml) {
  auto scenario = scenario_from_text(yaml, "paths.yaml");
  REQUIRE_MESSAGE(scenario.ok(), scenario.error().text());
  return std::move(scenario).value();
}

struct Planned {
  explicit Planned(const std::string& yaml) : scenario(read(yaml)) {
    auto made = bind(scenario);
    REQUIRE_MESSAGE(made.ok(), made.error().text());
    bound = std::move(made).value();
  }
  [[nodiscard]] const Communication& world() const { return bound->communications.front(); }
  [[nodiscard]] const sim::Channels& channels() const { return world().nccl->channels(); }
  [[nodiscard]] const sim::Device& device(sim::DeviceId id) const {
    return bound->topology.devices[id.index()];
  }
  [[nodiscard]] std::string name(sim::DeviceId id) const {
    return id.valid() ? device(id).name : "none";
  }
  Scenario scenario;
  std::unique_ptr<Bound> bound;
};

const char* const kOneNode = "{machine: hgx-h100, nodes: 1}";
const char* const kTwoNodes = "{machine: hgx-h100, nodes: 2, fabric: {kind: rail-optimised}}";
const char* const kReduce = "{collective: AllReduce, sizes: [1KiB, 64MiB]}";

TEST_CASE("with P2P and GPUDirect nothing but LL's send buffers is in the memory of hosts") {
  const Planned inside(text(kOneNode, "", kReduce));
  for (const sim::Channel& channel : inside.channels()) CHECK(channel.net_edges.empty());
  const Planned across(text(kTwoNodes, "", kReduce));
  for (const sim::Channel& channel : across.channels()) {
    REQUIRE_FALSE(channel.net_edges.empty());
    for (const sim::NetEdge& edge : channel.net_edges) {
      CHECK_FALSE(edge.host.out.valid());
      CHECK_FALSE(edge.host.in.valid());
      CHECK_FALSE(edge.host.sockets);
      const std::uint32_t node = across.world().group[edge.from].node;
      REQUIRE(edge.host.out_ll.valid());
      CHECK(across.device(edge.host.out_ll).kind == sim::DeviceKind::cpu);
      CHECK(across.device(edge.host.out_ll).node == node);
    }
  }
}

// Two GPUs and two NICs share a PCIe switch there, and NCCL gives each of the two GPUs one NIC
// first: 64 messages a node leave by eight NICs, and by the eight GPUs that own them.
TEST_CASE("AllToAll of two DGX A100: every NIC and every relay has its share") {
  const Planned plan(text("{machine: dgx-a100, nodes: 2, fabric: {kind: rail-optimised}}", "",
                          "{collective: AllToAll, sizes: [64KiB]}"));
  sim::CollectiveCall call;
  call.collective = sim::Collective::all_to_all;
  call.protocol = sim::Protocol::simple;
  call.size = 64_KiB;
  const auto schedule = plan.world().communicator->schedule(call);
  REQUIRE_MESSAGE(schedule.ok(), schedule.error().text());
  std::map<std::string, int> out, in, owner;
  for (const sim::Connection& connection : schedule.value()->connections) {
    if (!connection.nic_out.valid()) continue;
    const std::uint32_t from = schedule.value()->lanes[connection.from.index()].rank;
    const sim::DeviceId by =
        connection.relay.valid() ? connection.relay : plan.world().group[from].gpu;
    ++out[plan.name(connection.nic_out)];
    ++in[plan.name(connection.nic_in)];
    ++owner[plan.name(by)];
    CHECK(plan.device(by).local_index == plan.device(connection.nic_out).local_index);
    CHECK(plan.device(by).node == plan.device(connection.nic_out).node);
  }
  for (const auto* counts : {&out, &in, &owner}) {
    CHECK(counts->size() == 16);
    for (const auto& [name, count] : *counts) CHECK(count == 8);
  }
}

TEST_CASE("without P2P every edge in the node goes through the memory of the receiver's CPU") {
  const Planned plan(text(kOneNode, "p2p: false", kReduce));
  const sim::Group& group = plan.world().group;
  for (const sim::Channel& channel : plan.channels()) {
    // A ring of eight and a tree of seven edges, both ways, that share edges with it.
    CHECK(channel.net_edges.size() >= 8);
    for (const sim::NetEdge& edge : channel.net_edges) {
      CHECK_FALSE(edge.nic_out.valid());
      CHECK(edge.host.in == edge.host.out);
      CHECK(edge.host.in == edge.host.out_ll);
      // hgx-h100: GPUs 0 to 3 on the first socket.
      const std::uint32_t socket = group[edge.to].local_index / 4;
      CHECK(plan.name(edge.host.in) == fmt::format("node0/cpu{}", socket));
    }
  }
}

TEST_CASE("without GPUDirect NICs use the memory of the CPUs of both GPUs") {
  const Planned plan(text(kTwoNodes, "gpudirect: false", kReduce));
  const sim::Group& group = plan.world().group;
  std::size_t across = 0;
  for (const sim::Channel& channel : plan.channels())
    for (const sim::NetEdge& edge : channel.net_edges) {
      ++across;
      CHECK_FALSE(edge.relay.valid());
      for (const auto& [rank, stop] :
           {std::pair{edge.from, edge.host.out}, std::pair{edge.from, edge.host.out_ll},
            std::pair{edge.to, edge.host.in}})
        CHECK(plan.name(stop) ==
              fmt::format("node{}/cpu{}", group[rank].node, group[rank].local_index / 4));
    }
  CHECK(across > 0);
}

TEST_CASE("sockets: streams as NCCL's variables have them") {
  const auto edge_of = [](const std::string& env) {
    const Planned plan(text(kTwoNodes, "infiniband: false", kReduce, env));
    return plan.channels().front().net_edges.front().host;
  };
  sim::HostStops host = edge_of("");
  CHECK(host.sockets);
  CHECK(host.streams == 0);
  CHECK(host.in.valid());
  CHECK(host.out.valid());
  host = edge_of("env: {NCCL_SOCKET_NTHREADS: 2, NCCL_NSOCKS_PERTHREAD: 4}\n");
  CHECK(host.streams == 8);
  host = edge_of("env: {NCCL_SOCKET_NTHREADS: 32, NCCL_NSOCKS_PERTHREAD: 8}\n");
  CHECK(host.streams == 64);  // 16 threads x 4 sockets
}

TEST_CASE("verbs: queue pairs as NCCL's variables have them") {
  const auto edge_of = [](const std::string& setup, const std::string& env) {
    const Planned plan(text(kTwoNodes, setup, kReduce, "env: {" + env + "}\n"));
    return plan.channels().front().net_edges.front().host;
  };
  sim::HostStops host = edge_of("", "NCCL_IB_SPLIT_DATA_ON_QPS: 1");
  CHECK(host.queue_pairs == 1);
  CHECK(host.split);
  host = edge_of("", "NCCL_IB_QPS_PER_CONNECTION: 4");
  CHECK(host.queue_pairs == 4);
  CHECK_FALSE(host.split);
  CHECK(edge_of("", "NCCL_IB_QPS_PER_CONNECTION: 200").queue_pairs == 128);
  CHECK(edge_of("infiniband: false", "NCCL_IB_QPS_PER_CONNECTION: 4").queue_pairs == 1);
}

// Eight nodes in a ring of 16 channels: under ECMP some of the 2 x 8 x 16 flows of a leaf's up
// links meet on one. Messages split over many queue pairs load all of them alike.
TEST_CASE("queue pairs even out what ECMP throws together") {
  const auto busbw = [](const std::string& env) {
    const Scenario scenario = tests::full_scenario(
        text("{machine: hgx-h100, nodes: 4, fabric: {kind: fat-tree, hosts_per_leaf: 1}}", "",
             "{collective: AllReduce, sizes: [64MiB]}", "env: {NCCL_ALGO: Ring" + env + "}\n"));
    return good_run(scenario).collectives.front().busbw;
  };
  const double one = busbw("");
  const double split = busbw(", NCCL_IB_QPS_PER_CONNECTION: 16, NCCL_IB_SPLIT_DATA_ON_QPS: 1");
  CHECK(split > 1.1 * one);
}

TEST_CASE("sends and receives stop where rings do") {
  const Planned plan(
      text(kTwoNodes, "p2p: false, gpudirect: false", "{collective: AllToAll, sizes: [1MiB]}"));
  sim::CollectiveCall call;
  call.collective = sim::Collective::all_to_all;
  call.size = 1_MiB;
  auto schedule = plan.world().communicator->schedule(call);
  REQUIRE(schedule.ok());
  const sim::Group& group = plan.world().group;
  for (const sim::Connection& connection : schedule.value()->connections) {
    const sim::Lane& from = schedule.value()->lanes[connection.from.index()];
    const sim::Lane& to = schedule.value()->lanes[connection.to.index()];
    CHECK(connection.host.in.valid());
    CHECK(connection.host.out.valid());
    CHECK(connection.nic_out.valid() == (group[from.rank].node != group[to.rank].node));
    CHECK_FALSE(connection.relay.valid());  // PXN needs GPUDirect
  }
}

sim::Duration last(const RunResult& result) { return result.collectives.back().time; }

TEST_CASE("each detour through the memory of hosts costs time") {
  const std::string ring = "env: {NCCL_ALGO: Ring, NCCL_PROTO: Simple}\n";
  const auto time = [&](const char* cluster, const std::string& setup) {
    return last(
        good_run(read(text(cluster, setup, "{collective: AllReduce, sizes: [16MiB]}", ring))));
  };
  const sim::Duration direct = time(kTwoNodes, "");
  const sim::Duration staged = time(kTwoNodes, "gpudirect: false");
  const sim::Duration sockets = time(kTwoNodes, "infiniband: false");
  CHECK(direct < staged);
  CHECK(staged < sockets);
  CHECK(time(kOneNode, "") < time(kOneNode, "p2p: false"));
}

const char* const kExchange = "{collective: AllToAll, sizes: [64KiB]}";

TEST_CASE("GPU-initiated sends leave by the GPU's own NIC, collectives keep their proxies") {
  const Planned plan(text(kTwoNodes, "gpu_initiated: true", kExchange));
  sim::CollectiveCall call;
  call.collective = sim::Collective::all_to_all;
  call.size = 64_KiB;
  const auto sends = plan.world().communicator->schedule(call);
  REQUIRE(sends.ok());
  int across = 0;
  for (const sim::Connection& connection : sends.value()->connections) {
    if (!connection.nic_out.valid()) continue;
    ++across;
    CHECK(connection.host.gpu_initiated);
    CHECK_FALSE(connection.relay.valid());
    const sim::Group& group = plan.world().group;
    for (const auto& [lane, nic] : {std::pair{connection.from, connection.nic_out},
                                    std::pair{connection.to, connection.nic_in}}) {
      const sim::Member& member = group[sends.value()->lanes[lane.index()].rank];
      CHECK(plan.name(nic) == fmt::format("node{}/nic{}", member.node, member.local_index));
    }
  }
  CHECK(across == 2 * 8 * 8);
  for (const sim::Channel& channel : plan.channels())
    for (const sim::NetEdge& edge : channel.net_edges) CHECK_FALSE(edge.host.gpu_initiated);
}

TEST_CASE("GPU-initiated: many small messages do without the time of two proxies") {
  // 32 single-GPU nodes: a proxy serves 31 sends and 31 receives of an AllToAll.
  const auto time = [&](const char* setup) {
    return last(good_run(read(text(
        "{machine: hgx-h100, nodes: 32, gpus_per_node: 1, fabric: {kind: switch}}", setup,
        "{collective: AllToAll, sizes: [32KiB]}",
        "parameters: {network: {proxy_send: 10us, proxy_recv: 10us, gpu_hop_latency: 5us}}\n"))));
  };
  CHECK(time("") > sim::microseconds(2 * 31 * 10));
  CHECK(time("gpu_initiated: true") < sim::microseconds(100));
}

// DeepEP's README (2025): 128 tokens of 7,168 values to eight experts each on H800, FP8 out and
// BF16 back, sends by IBGDA. Nothing here was fitted to it.
TEST_CASE("GPU-initiated: MoE dispatch and combine as DeepEP measures them") {
  struct Measured {
    int nodes;
    double dispatch;  // us
    double combine;
  };
  for (const Measured row : {Measured{2, 118, 195}, {4, 155, 273}, {8, 173, 314}}) {
    CAPTURE(row.nodes);
    const RunResult result = good_run(read(text(
        fmt::format("{{machine: hgx-h800, nodes: {}, fabric: {{kind: rail-optimised}}}}",
                    row.nodes),
        "gpu_initiated: true", "{collective: AllToAll, sizes: [7400KiB, 14336KiB], dtype: fp8}")));
    REQUIRE(result.collectives.size() == 2);
    const auto ratio = [&](std::size_t call, double measured) {
      return sim::to_seconds(result.collectives[call].time) * 1e6 / measured;
    };
    CHECK(ratio(0, row.dispatch) > 0.75);
    CHECK(ratio(0, row.dispatch) < 1.3);
    CHECK(ratio(1, row.combine) > 0.8);
    CHECK(ratio(1, row.combine) < 1.2);
  }
}

TEST_CASE("GPU-initiated sends need NICs that reach GPU memory") {
  for (const auto& [setup, why] :
       {std::pair{"infiniband: false, gpu_initiated: true", "sockets"},
        std::pair{"gpudirect: false, gpu_initiated: true", "GPUDirect RDMA"}}) {
    const auto made = bind(read(text(kTwoNodes, setup, kExchange)));
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().text().find("gpu_initiated") != std::string::npos);
    CHECK(made.error().text().find(why) != std::string::npos);
  }
}

TEST_CASE("Direct NIC: past the CPU, unless NCCL is too old or told not to") {
  const char* const trays =
      "{machine: gb300-nvl72, nodes: 2, nodes_per_nvlink_domain: 1, fabric: {kind: switch}}";
  const auto hops = [&](const std::string& setup, const std::string& env) {
    const Planned plan(text(trays, setup, kExchange, env));
    const sim::Group& group = plan.world().group;
    const sim::DeviceId nic = plan.bound->topology.nodes[0].nics[0];
    const auto route = plan.bound->topology.route({group[0].gpu, nic}, 0);
    REQUIRE(route.ok());
    return route.value().size();
  };
  CHECK(hops("", "") == 1);
  CHECK(hops("version: \"2.27.3\"", "") == 1);
  CHECK(hops("version: \"2.26.5\"", "") == 2);
  CHECK(hops("", "env: {NCCL_IB_DATA_DIRECT: 0}\n") == 2);
}

TEST_CASE("Direct NIC carries what PCIe 5 does not: 800 instead of 500 Gb/s") {
  const auto time = [&](const std::string& env) {
    return last(good_run(read(
        text("{machine: gb300-nvl72, nodes: 2, nodes_per_nvlink_domain: 1, fabric: {kind: switch}}",
             "gpu_initiated: true", "{collective: AllToAll, sizes: [1GiB]}", env))));
  };
  const double loss =
      sim::to_seconds(time("env: {NCCL_IB_DATA_DIRECT: 0}\n")) / sim::to_seconds(time(""));
  CHECK(loss > 1.3);
  CHECK(loss < 100 / 63.015 * 1.1);
}

}  // namespace
}  // namespace railyard::scenarios
