#include "algorithms/nccl/transport.h"

#include <doctest/doctest.h>

#include "algorithms/nccl/search.h"
#include "tests/algorithms/nccl/small_hosts.h"

namespace railyard::tests {
namespace {

namespace nccl = algorithms::nccl;
using nccl::GdrMode;
using nccl::P2pKind;
using nccl::TransportKind;

// Two GPUs with NVLinks to each other, each with a NIC on its switch.
sim::Hardware rails(std::int32_t sm) {
  sim::Hardware host;
  host.cpus = {
      intel(0, {pci_switch("0000:01:00.0", {gpu(0, sm, {nvlink_to_gpu(1, 4)}), nic(0, 200)}),
                pci_switch("0000:02:00.0", {gpu(1, sm, {nvlink_to_gpu(0, 4)}), nic(1, 200)})})};
  return host;
}

TEST_CASE("P2P: mapped or direct, written or read") {
  const sim::Hardware ampere = rails(80);
  const nccl::NodeRequest request = one_host(ampere, 2, 4);
  const nccl::Connection usual = nccl::connection(node_of(request), 0, 1);
  CHECK(usual.transport == TransportKind::p2p);
  CHECK(usual.p2p == P2pKind::cumem);
  CHECK(usual.read);
  CHECK(!nccl::connection(node_of(request, {{"NCCL_P2P_READ_ENABLE", "0"}}), 0, 1).read);
  const sim::Hardware hopper = rails(90);
  CHECK(!nccl::connection(node_of(one_host(hopper, 2, 4)), 0, 1).read);

  nccl::Capabilities threads;
  threads.same_process = true;
  CHECK(nccl::connection(node_of(request, {}, threads), 0, 1).p2p == P2pKind::direct);
  CHECK(nccl::connection(node_of(request, {{"NCCL_P2P_DIRECT_DISABLE", "1"}}, threads), 0, 1).p2p ==
        P2pKind::cumem);
  nccl::Capabilities legacy;
  legacy.cumem = false;
  CHECK(nccl::connection(node_of(request, {}, legacy), 0, 1).p2p == P2pKind::ipc);
  const nccl::Connection engine =
      nccl::connection(node_of(request, {{"NCCL_P2P_USE_CUDA_MEMCPY", "1"}}), 0, 1);
  CHECK(engine.copy_engine);
  CHECK(!engine.read);
}

TEST_CASE("without P2P shared memory, without that the network") {
  sim::Hardware host;
  host.cpus = {intel(0, {gpu(0, 80), gpu(1, 80)})};
  const nccl::NodeRequest request = one_host(host, 2, 2);
  const nccl::NodeTopology node = node_of(request);
  CHECK(nccl::connection(node, 0, 1).transport == TransportKind::shm);
  CHECK(!nccl::all_direct_p2p(node));
  CHECK(!nccl::all_nvlink(node));
  CHECK(nccl::lost_transports(node) ==
        std::vector<std::string>{
            "2 of 2 directed GPU pairs use SHM: path type PHB is farther than P2P goes"});
  // Neither: the GPUs are nodes of their own.
  CHECK(node_of(request, {{"NCCL_SHM_DISABLE", "1"}}).gpus() == 1);
}

TEST_CASE("an NVB pair goes through its neighbour, not with copy engines") {
  sim::Hardware host;
  host.cpus = {intel(
      0, {gpu(0, 70, {nvlink_to_gpu(1, 2)}), gpu(1, 70, {nvlink_to_gpu(0, 2), nvlink_to_gpu(2, 2)}),
          gpu(2, 70, {nvlink_to_gpu(1, 2)})})};
  const nccl::NodeRequest request = one_host(host, 3, 3);
  const nccl::NodeTopology node = node_of(request);
  const nccl::Connection through = nccl::connection(node, 0, 2);
  CHECK(through.p2p == P2pKind::indirect);
  CHECK(through.via == 1);
  CHECK(!nccl::all_direct_p2p(node));
  CHECK(nccl::all_nvlink(node));
  const nccl::NodeTopology engines = node_of(request, {{"NCCL_P2P_USE_CUDA_MEMCPY", "1"}});
  CHECK(nccl::connection(engines, 0, 2).transport == TransportKind::shm);
}

TEST_CASE("collectives leave by the NIC of their channel, through the GPU that owns it") {
  const sim::Hardware host = rails(80);
  const nccl::NodeTopology node = node_of(one_host(host, 2, 4));
  sim::ChannelGraph ring;
  ring.channels = {{{0, 1}, {0, 0}}, {{1, 0}, {1, 1}}};
  // Channel 0 enters at GPU 0 by net 0 and leaves from GPU 1 by net 0: GPU 0 relays.
  const nccl::NetEndpoint out = nccl::graph_send(node, 1, ring, 0);
  CHECK(out.net == 0);
  CHECK(out.proxy == 0);
  CHECK(out.gdr == GdrMode::on);
  const nccl::NetEndpoint in = nccl::graph_receive(node, 0, ring, 0);
  CHECK(in.net == 0);
  CHECK(in.proxy == 0);
  CHECK(in.flush);
  // Further channels repeat those of the graph.
  CHECK(nccl::graph_send(node, 0, ring, 3).net == 1);
  const sim::Hardware hopper = rails(90);
  CHECK(!nccl::graph_receive(node_of(one_host(hopper, 2, 4)), 0, ring, 0).flush);
  CHECK(nccl::graph_receive(node_of(one_host(hopper, 2, 4), {{"NCCL_NET_FORCE_FLUSH", "1"}}), 0,
                            ring, 0)
            .flush);

  sim::ChannelGraph nvls;
  nvls.pattern = sim::GraphPattern::nvls;
  nvls.channels = {{{0}, {0, 0}}, {{1}, {1, 1}}};
  CHECK(nccl::graph_send(node, 1, nvls, 5).net == 1);
  nvls.channels.pop_back();
  CHECK(nccl::graph_send(node, 1, nvls, 5).net == -1);
}

TEST_CASE("send and receive: the rail of the peer, by PXN level") {
  const sim::Hardware host = rails(80);
  const nccl::NodeRequest request = one_host(host, 2, 4);
  const nccl::NodeTopology node = node_of(request);
  const nccl::NetEndpoint across = nccl::p2p_send(node, 0, 1, 0);
  CHECK(across.net == 1);
  CHECK(across.proxy == 1);
  CHECK(across.gdr == GdrMode::on);
  const nccl::NetEndpoint along = nccl::p2p_send(node, 0, 0, 0);
  CHECK(along.net == 0);
  CHECK(along.proxy == 0);
  CHECK(nccl::p2p_receive(node, 1, 0).net == 1);

  // A peer whose number this host has not: the own device.
  CHECK(nccl::p2p_send(node, 0, 7, 0).net == 0);
  CHECK(nccl::p2p_send(node_of(request, {{"NCCL_P2P_PXN_LEVEL", "0"}}), 0, 1, 0).net == 0);
  const nccl::NetEndpoint needed =
      nccl::p2p_send(node_of(request, {{"NCCL_P2P_PXN_LEVEL", "1"}}), 0, 1, 0);
  CHECK(needed.net == 1);
  CHECK(needed.proxy == 1);
  // One NIC for all traffic of a rail, without relays: to the peer's NIC over PCI and CPU.
  const nccl::NetEndpoint rail = nccl::p2p_send(
      node_of(request, {{"NCCL_PXN_DISABLE", "1"}, {"NCCL_CROSS_NIC", "0"}}), 0, 1, 0);
  CHECK(rail.net == 1);
  CHECK(rail.proxy == 0);
  CHECK(rail.gdr == GdrMode::off);
}

TEST_CASE("what is lost is said") {
  const sim::Hardware host = rails(80);
  CHECK(nccl::lost_transports(node_of(one_host(host, 2, 4))).empty());
  nccl::Capabilities poor;
  poor.peer_access = false;
  poor.gpu_direct = false;
  CHECK(nccl::lost_transports(node_of(one_host(host, 2, 4), {}, poor)) ==
        std::vector<std::string>{
            "2 of 2 directed GPU pairs use SHM: CUDA cannot map the peer's memory",
            "2 of 2 GPUs receive without GPUDirect RDMA: NIC or GPU does not support it"});
  CHECK(nccl::lost_transports(node_of(one_host(host, 2, 4), {{"NCCL_NET_GDR_LEVEL", "LOC"}}))[0] ==
        "2 of 2 GPUs receive without GPUDirect RDMA: path type PHB to the NIC is farther than it "
        "goes");
  sim::Hardware switches;
  switches.cpus = {
      intel(0, {gpu(0, 90, {nvlink_to_switch(18)}), gpu(1, 90, {nvlink_to_switch(18)})})};
  CHECK(nccl::lost_transports(node_of(one_host(switches, 2, 2))) ==
        std::vector<std::string>{"no NVLS: the NVLinks do not multicast"});
}

}  // namespace
}  // namespace railyard::tests
