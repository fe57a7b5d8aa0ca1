#include <doctest/doctest.h>

#include "algorithms/nccl/nets.h"
#include "algorithms/nccl/node_topology.h"
#include "tests/algorithms/nccl/small_hosts.h"

namespace railyard::tests {
namespace {

namespace nccl = algorithms::nccl;
using nccl::GdrMode;
using nccl::VertexKind;
using sim::PathType;

const nccl::Path& path(const nccl::NodeTopology& node, nccl::PathEnd from, nccl::PathEnd to) {
  return node.path(from, to);
}

// Two sockets, a GPU and a 200 Gbit/s NIC on one switch of each.
sim::Hardware two_sockets() {
  sim::Hardware host;
  for (const std::int32_t i : {0, 1})
    host.cpus.push_back(intel(
        i, {pci_switch(i == 0 ? "0000:01:00.0" : "0000:02:00.0", {gpu(i, 80), nic(i, 200)})}));
  return host;
}

TEST_CASE("one switch: four links, the slowest of them counts") {
  sim::Hardware host;
  host.cpus = {
      intel(0, {pci_switch("0000:01:00.0", {gpu(0, 80), gpu(1, 80, {}, kGen3), nic(0, 100)})})};
  const nccl::NodeTopology node = node_of(one_host(host, 2, 4));
  // GPU, device, switch, device, GPU
  CHECK(node.gpu_path(0, 1).hops() == 4);
  CHECK(node.gpu_path(0, 1).type == PathType::pix);
  CHECK(node.gpu_path(0, 1).bandwidth == 12.0F);
  // GPU, device, switch, NIC, net: 100 Gbit/s is less than 24 GB/s.
  CHECK(node.net_path(0, 0).hops() == 4);
  CHECK(node.net_path(0, 0).bandwidth == 12.5F);
  CHECK(node.max_bandwidth() == 12.5F);
  CHECK(node.total_bandwidth() == 24.0F);
  CHECK(node.inter());
}

TEST_CASE("NVB: one hop through a neighbour, not two") {
  // A chain 0 - 1 - 2 - 3 of two NVLinks each, all on one socket.
  sim::Hardware host;
  host.cpus = {intel(
      0,
      {gpu(0, 70, {nvlink_to_gpu(1, 2)}), gpu(1, 70, {nvlink_to_gpu(0, 2), nvlink_to_gpu(2, 2)}),
       gpu(2, 70, {nvlink_to_gpu(1, 2), nvlink_to_gpu(3, 2)}), gpu(3, 70, {nvlink_to_gpu(2, 2)})})};
  const nccl::NodeTopology node = node_of(one_host(host, 4, 4));
  CHECK(node.gpu_path(0, 1).type == PathType::nvl);
  CHECK(node.gpu_path(0, 1).bandwidth == 40.0F);
  CHECK(node.gpu_path(0, 2).type == PathType::nvb);
  CHECK(node.gpu_path(0, 2).hops() == 4);
  CHECK(node.check_p2p(0, 2).via == 1);
  CHECK(node.gpu_path(0, 3).type == PathType::phb);
  CHECK(!node.check_p2p(0, 3).allowed);

  const nccl::NodeTopology without = node_of(one_host(host, 4, 4), {{"NCCL_NVB_DISABLE", "1"}});
  CHECK(without.gpu_path(0, 2).type == PathType::phb);
}

TEST_CASE("between sockets: the link depends on the CPU, P2P on level and vendor") {
  sim::Hardware host;
  host.cpus = {intel(0, {gpu(0, 80)}), intel(1, {gpu(1, 80)})};
  const nccl::NodeTopology node = node_of(one_host(host, 2, 2));
  CHECK(node.gpu_path(0, 1).type == PathType::sys);
  CHECK(node.gpu_path(0, 1).bandwidth == 10.0F);
  CHECK(!node.check_p2p(0, 1).allowed);
  CHECK(!node.p2p_connects(0, 1));
  CHECK(node.shm_connects(0, 1));
  const nccl::NodeTopology forced = node_of(one_host(host, 2, 2), {{"NCCL_P2P_LEVEL", "SYS"}});
  CHECK(forced.p2p_connects(0, 1));

  host.cpus = {intel(0, {gpu(0, 80)}, 0xCF), intel(1, {gpu(1, 80)}, 0xCF)};
  CHECK(node_of(one_host(host, 2, 2)).gpu_path(0, 1).bandwidth == 24.0F);

  host.cpus = {amd(0, {gpu(0, 80)}), amd(1, {gpu(1, 80)})};
  const nccl::NodeTopology pair = node_of(one_host(host, 2, 2));
  CHECK(pair.gpu_path(0, 1).bandwidth == 16.0F);
  CHECK(pair.p2p_connects(0, 1));
  host.cpus = {amd(0, {gpu(0, 80), gpu(1, 80)}), amd(1, {gpu(2, 80), gpu(3, 80)})};
  CHECK(!node_of(one_host(host, 4, 4)).p2p_connects(0, 2));
}

TEST_CASE("P2P that the driver or CUDA refuses") {
  sim::Hardware host;
  host.cpus = {intel(0, {pci_switch("0000:01:00.0", {gpu(0, 86), gpu(1, 86)})})};
  nccl::Capabilities refused;
  refused.peer_access = false;
  const nccl::NodeTopology cuda = node_of(one_host(host, 2, 2), {}, refused);
  CHECK(cuda.gpu_path(0, 1).type == PathType::pix);
  CHECK(!cuda.p2p_connects(0, 1));
  // NVML's answer is asked earlier: the path itself goes through the CPU.
  nccl::Capabilities broken;
  broken.p2p_status_ok = false;
  CHECK(node_of(one_host(host, 2, 2), {}, broken).gpu_path(0, 1).type == PathType::phb);
  CHECK(node_of(one_host(host, 2, 2), {{"NCCL_P2P_DISABLE", "1"}}).gpu_path(0, 1).type ==
        PathType::phb);
}

TEST_CASE("PXN: towards the network only, through the GPU next to the NIC") {
  sim::Hardware host = two_sockets();
  for (const std::int32_t i : {0, 1})
    host.cpus[static_cast<std::size_t>(i)].pci[0].children[0].gpu->nvlinks = {
        nvlink_to_gpu(1 - i, 4)};
  const nccl::NodeTopology node = node_of(one_host(host, 2, 4));
  CHECK(node.net_path(0, 0).type == PathType::pix);
  // GPU 0, its device, GPU 1's device, GPU 1; GPU 1, device, switch, NIC, net.
  CHECK(node.net_path(0, 1).type == PathType::pxn);
  CHECK(node.net_path(0, 1).hops() == 7);
  CHECK(node.net_path(0, 1).bandwidth == 24.0F);
  CHECK(node.relay_gpu(0, 1) == 1);
  CHECK(node.relay_gpu(0, 0) == 0);
  CHECK(path(node, {VertexKind::net, 1}, {VertexKind::gpu, 0}).type == PathType::sys);
  CHECK(node.local_gpu(1) == 1);

  const nccl::NodeTopology direct = node_of(one_host(host, 2, 4), {{"NCCL_PXN_DISABLE", "1"}});
  CHECK(direct.net_path(0, 1).type == PathType::sys);
}

TEST_CASE("GPUDirect RDMA: NIC, GPU and distance must allow it") {
  sim::Hardware host;
  host.cpus = {intel(0, {pci_switch("0000:01:00.0", {gpu(0, 80), nic(0, 100)})})};
  const nccl::NodeTopology node = node_of(one_host(host, 1, 2));
  CHECK(node.check_gdr(0, 0, true) == GdrMode::on);
  CHECK(node.net_path(0, 0).type == PathType::pix);

  const nccl::NodeTopology near_only =
      node_of(one_host(host, 1, 2), {{"NCCL_NET_GDR_LEVEL", "LOC"}});
  CHECK(near_only.check_gdr(0, 0, false) == GdrMode::off);
  // Through the CPU: GPU, device, switch, CPU, switch, NIC, net.
  CHECK(near_only.net_path(0, 0).type == PathType::phb);
  CHECK(near_only.net_path(0, 0).hops() == 6);

  CHECK(node_of(one_host(host, 1, 2), {{"NCCL_NET_GDR_READ", "0"}}).check_gdr(0, 0, true) ==
        GdrMode::off);
  nccl::Capabilities without;
  without.gpu_direct = false;
  CHECK(node_of(one_host(host, 1, 2), {}, without).check_gdr(0, 0, false) == GdrMode::off);

  // Volta reads only where NVLinks leave PCI free.
  host.cpus = {intel(0, {pci_switch("0000:01:00.0", {gpu(0, 70), gpu(1, 70), nic(0, 100)})})};
  CHECK(node_of(one_host(host, 2, 4)).check_gdr(0, 0, true) == GdrMode::off);
  CHECK(node_of(one_host(host, 2, 4)).check_gdr(0, 0, false) == GdrMode::on);
}

TEST_CASE("C2C: the nearest NIC behind the CPU is P2C") {
  sim::Hardware host;
  sim::HardwareCpu grace;
  grace.arch = "arm64";
  grace.pci = {gpu(0, 90), nic(0, 400, kGen5)};
  grace.pci[0].gpu->c2c = sim::HardwareC2c{44712, 10};
  host.cpus = {grace};
  const nccl::NodeTopology node = node_of(one_host(host, 1, 2));
  CHECK(path(node, {VertexKind::gpu, 0}, {VertexKind::cpu, 0}).bandwidth ==
        doctest::Approx(447.12));
  CHECK(node.net_path(0, 0).type == PathType::p2c);
  CHECK(node.check_gdr(0, 0, false) == GdrMode::on);
  CHECK(node_of(one_host(host, 1, 2), {{"NCCL_NET_GDR_C2C", "0"}}).check_gdr(0, 0, false) ==
        GdrMode::off);
}

TEST_CASE("GPUs better joined by the network are nodes of their own") {
  // 24 GB/s to the NIC, 10 GB/s between the sockets.
  const sim::Hardware host = two_sockets();
  const nccl::NodeRequest request = one_host(host, 2, 2);
  const auto parts = nccl::node_parts(request.inputs, variables(), {});
  REQUIRE(parts.ok());
  CHECK(parts.value() == std::vector<std::vector<std::int32_t>>{{0}, {1}});
  const nccl::NodeTopology node = node_of(request);
  CHECK(node.gpus() == 1);
  CHECK(node.inter());
  CHECK(node.gpu(0).rank == 0);
  // The other device stays part of the hardware.
  CHECK(node.system().count(VertexKind::device) == 2);

  const auto kept =
      nccl::node_parts(request.inputs, variables({{"NCCL_NET_DISABLE_INTRA", "1"}}), {});
  REQUIRE(kept.ok());
  CHECK(kept.value() == std::vector<std::vector<std::int32_t>>{{0, 1}});
}

TEST_CASE("ranks without a common /dev/shm and P2P are apart") {
  sim::Hardware host;
  host.cpus = {intel(0, {gpu(0, 80), gpu(1, 80)})};
  nccl::Capabilities containers;
  containers.shared_memory = false;
  const auto parts = nccl::node_parts(one_host(host, 2, 2).inputs, variables(), containers);
  REQUIRE(parts.ok());
  CHECK(parts.value().size() == 2);
}

TEST_CASE("GPUs sharing NICs start at different ones") {
  // Two GPUs, four NICs on one switch: two each, GPU 1 begins at the bit-reversed 1.
  sim::Hardware host;
  host.cpus = {intel(0, {pci_switch("0000:01:00.0", {gpu(0, 80), gpu(1, 80), nic(0, 200),
                                                     nic(1, 200), nic(2, 200), nic(3, 200)})})};
  const nccl::NodeRequest request = one_host(host, 2, 4);
  const nccl::NodeTopology node = node_of(request);
  CHECK(nccl::local_nets(node, 0) == std::vector<std::int32_t>{0, 1});
  CHECK(nccl::local_nets(node, 1) == std::vector<std::int32_t>{2, 3});
  CHECK(nccl::local_net(node, 1, 5) == 3);
  CHECK(node.local_gpu(3) == 1);
  CHECK(nccl::min_net_bandwidth(node, 0) == 24.0F);

  const nccl::NodeTopology all = node_of(request, {{"NCCL_NETDEVS_POLICY", "all"}});
  CHECK(nccl::local_nets(all, 1) == std::vector<std::int32_t>{2, 3, 0, 1});
  const nccl::NodeTopology one = node_of(request, {{"NCCL_NETDEVS_POLICY", "MAX:1"}});
  CHECK(nccl::local_nets(one, 1) == std::vector<std::int32_t>{2});
  const nccl::NodeTopology odd = node_of(request, {{"NCCL_NETDEVS_POLICY", "MAX:none"}});
  CHECK(nccl::local_nets(odd, 1) == std::vector<std::int32_t>{2, 3});
}

TEST_CASE("NCCL_IB_HCA names the NICs to use, which are numbered anew") {
  sim::Hardware host;
  host.cpus = {
      intel(0, {pci_switch("0000:01:00.0", {gpu(0, 80), nic(0, 200), nic(1, 200), nic(11, 200)})})};
  const auto names = [&](const std::string& list) {
    const nccl::NodeTopology node = node_of(one_host(host, 1, 2), {{"NCCL_IB_HCA", list}});
    std::vector<std::pair<std::int32_t, std::uint64_t>> found;
    for (std::int32_t n = 0; n < node.nets(); ++n)
      found.emplace_back(node.net(n).dev, node.net(n).asic - 0xa0);
    return found;
  };
  using Found = std::vector<std::pair<std::int32_t, std::uint64_t>>;  // number, which NIC
  CHECK(names("") == Found{{0, 0}, {1, 1}, {11, 11}});
  CHECK(names("mlx5_1") == Found{{0, 1}, {1, 11}});
  CHECK(names("=mlx5_1") == Found{{0, 1}});
  CHECK(names("^mlx5_1") == Found{{0, 0}});
  CHECK(names("^=mlx5_1,mlx5_0") == Found{{0, 11}});
  CHECK(names("mlx5_0:1,mlx5_11:2") == Found{{0, 0}});
}

TEST_CASE("sockets have no GPUDirect RDMA") {
  sim::Hardware host;
  host.cpus = {intel(0, {pci_switch("0000:01:00.0", {gpu(0, 80), nic(0, 100)})})};
  const nccl::NodeRequest request = one_host(host, 1, 2);
  CHECK(!node_of(request).sockets());
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"NCCL_IB_DISABLE", "1"}, {"NCCL_NET", "socket"}}) {
    const nccl::NodeTopology node = node_of(request, {{name, value}});
    CHECK(node.check_gdr(0, 0, false) == GdrMode::off);
    CHECK(node.net_path(0, 0).type == PathType::phb);
  }
  nccl::Capabilities ethernet;
  ethernet.sockets = true;
  CHECK(node_of(request, {}, ethernet).check_gdr(0, 0, false) == GdrMode::off);
}

TEST_CASE("channels per peer before 2.29: NVLinks, and NICs that the GPU's own link feeds") {
  sim::Hardware host;
  host.cpus = {intel(0, {gpu(0, 80, {nvlink_to_gpu(1, 4)}), gpu(1, 80, {nvlink_to_gpu(0, 4)})})};
  CHECK(nccl::older_channels_inside(node_of(one_host(host, 2, 2)), 0) == 8);
  CHECK(nccl::older_net_count(node_of(one_host(host, 2, 2)), 0) == 0);
  // Behind a switch the GPU has no link to the CPU: none.
  host.cpus = {
      intel(0, {pci_switch("0000:01:00.0", {gpu(0, 90, {}, kGen5), nic(0, 400, kGen5)}, kGen5)})};
  CHECK(nccl::older_net_count(node_of(one_host(host, 1, 2)), 0) == 0);
  // At the CPU: 48 GB/s, that two NICs of 200 Gb/s fill.
  host.cpus = {intel(
      0, {gpu(0, 90, {}, kGen5), nic(0, 200, kGen5), nic(1, 200, kGen5), nic(2, 200, kGen5)})};
  CHECK(nccl::older_net_count(node_of(one_host(host, 1, 2)), 0) == 2);
}

TEST_CASE("channels per peer: NVLinks of the path, or NICs and their bandwidth") {
  sim::Hardware host;
  host.cpus = {intel(0, {gpu(0, 80, {nvlink_to_gpu(1, 4)}), gpu(1, 80, {nvlink_to_gpu(0, 4)})})};
  CHECK(nccl::p2p_channels_per_peer(node_of(one_host(host, 2, 2)), 0) == 8);
  host.cpus = {intel(0, {pci_switch("0000:01:00.0", {gpu(0, 80), gpu(1, 80)})})};
  CHECK(nccl::p2p_channels_per_peer(node_of(one_host(host, 2, 2)), 0) == 2);
  // One NIC of 48 GB/s: four channels of 14 GB/s.
  host.cpus = {
      intel(0, {pci_switch("0000:01:00.0", {gpu(0, 90, {}, kGen5), nic(0, 400, kGen5)}, kGen5)})};
  CHECK(nccl::p2p_channels_per_peer(node_of(one_host(host, 1, 2)), 0) == 4);
  CHECK(nccl::p2p_channels_per_peer(
            node_of(one_host(host, 1, 2), {{"NCCL_NCHANNELS_PER_NET_PEER", "3"}}), 0) == 3);
}

TEST_CASE("a rank must be in its node") {
  sim::Hardware host;
  host.cpus = {intel(0, {gpu(0, 80)})};
  nccl::NodeRequest request = one_host(host, 1, 2);
  request.rank = 1;
  const auto node = nccl::NodeTopology::build(request, variables(), {});
  REQUIRE(!node.ok());
  CHECK(node.error().text() == "rank 1 is not in the node");
}

}  // namespace
}  // namespace railyard::tests
