#include "algorithms/nccl/system.h"

#include <doctest/doctest.h>

#include "tests/algorithms/nccl/small_hosts.h"

namespace railyard::tests {
namespace {

namespace nccl = algorithms::nccl;
using nccl::VertexKind;

std::string error_of(const nccl::NodeInputs& inputs) {
  const auto system = nccl::build_system(inputs);
  REQUIRE(!system.ok());
  return system.error().text();
}

TEST_CASE("link bandwidths are those NCCL counts with") {
  // facts 3.1
  CHECK(nccl::nvlink_bandwidth(60) == 18.0F);
  CHECK(nccl::nvlink_bandwidth(70) == 20.0F);
  CHECK(nccl::nvlink_bandwidth(80) == 20.0F);
  CHECK(nccl::nvlink_bandwidth(86) == 12.0F);
  CHECK(nccl::nvlink_bandwidth(90) == 20.6F);
  CHECK(nccl::nvlink_bandwidth(100) == 40.1F);
  CHECK(nccl::pci_bandwidth("2.5 GT/s PCIe", 16) == 3.0F);
  CHECK(nccl::pci_bandwidth("5.0 GT/s PCIe", 16) == 6.0F);
  CHECK(nccl::pci_bandwidth(kGen3, 16) == 12.0F);
  CHECK(nccl::pci_bandwidth("16 GT/s", 16) == 24.0F);
  CHECK(nccl::pci_bandwidth(kGen5, 16) == 48.0F);
  CHECK(nccl::pci_bandwidth("64.0 GT/s PCIe", 16) == 96.0F);
  CHECK(nccl::pci_bandwidth(kGen4, 4) == 6.0F);
  // Unknown: Gen3, 16 lanes.
  CHECK(nccl::pci_bandwidth("", 0) == 12.0F);
}

TEST_CASE("parallel NVLinks add up and go before PCI") {
  sim::Hardware host;
  host.cpus = {intel(0, {gpu(0, 80, {nvlink_to_gpu(1, 2), nvlink_to_gpu(1, 1)}),
                         gpu(1, 80, {nvlink_to_gpu(0, 3)})})};
  const auto system = nccl::build_system(one_host(host, 2, 2).inputs);
  REQUIRE(system.ok());
  const nccl::Vertex& device = system.value().at(VertexKind::device, 0);
  REQUIRE(device.links.size() == 3);
  CHECK(device.links[0].type == sim::PathType::loc);
  CHECK(device.links[1].type == sim::PathType::nvl);
  CHECK(device.links[1].bandwidth == 60.0F);
  CHECK(device.links[2].type == sim::PathType::pix);
}

TEST_CASE("ranks fuse what they bring: GPUs in rank order below one switch") {
  sim::Hardware host;
  host.cpus = {intel(0, {pci_switch("0000:01:00.0", {gpu(1, 80), gpu(0, 80), gpu(2, 80)})})};
  const auto system = nccl::build_system(one_host(host, 3, 3).inputs);
  REQUIRE(system.ok());
  for (std::int32_t g = 0; g < 3; ++g) CHECK(system.value().at(VertexKind::gpu, g).dev == g);

  // A NIC is everybody's, so its switch and CPU come first.
  host.cpus = {intel(0, {pci_switch("0000:01:00.0", {gpu(1, 80)}),
                         pci_switch("0000:02:00.0", {gpu(2, 80), nic(0, 100)})}),
               intel(1, {gpu(0, 80)})};
  const auto with_nic = nccl::build_system(one_host(host, 3, 3).inputs);
  REQUIRE(with_nic.ok());
  CHECK(with_nic.value().at(VertexKind::gpu, 0).dev == 2);
  CHECK(with_nic.value().at(VertexKind::gpu, 1).dev == 1);
  CHECK(with_nic.value().at(VertexKind::gpu, 2).dev == 0);
}

TEST_CASE("what no rank uses is no part of the system") {
  sim::Hardware host;
  host.cpus = {intel(0, {pci_switch("0000:01:00.0", {gpu(0, 80)}),
                         pci_switch("0000:02:00.0", {gpu(1, 80)})}),
               intel(1, {})};
  host.cpus[0].pci[0].children[0].gpu->nvlinks = {nvlink_to_gpu(1, 4)};
  const auto system = nccl::build_system(one_host(host, 1, 2).inputs);
  REQUIRE(system.ok());
  CHECK(system.value().count(VertexKind::gpu) == 1);
  CHECK(system.value().count(VertexKind::pci) == 1);
  CHECK(system.value().count(VertexKind::cpu) == 1);
}

TEST_CASE("two-level Broadcom switches are one") {
  sim::Hardware host;
  const auto broadcom = [](std::string bus, std::uint32_t subsystem,
                           std::vector<sim::HardwarePci> children) {
    sim::HardwarePci pci = pci_switch(bus, std::move(children));
    pci.vendor = 0x1000;
    pci.device = 0xc030;
    pci.subsystem_vendor = 0x1000;
    pci.subsystem_device = subsystem;
    return pci;
  };
  host.cpus = {intel(0, {broadcom("0000:01:00.0", 0x0001,
                                  {broadcom("0000:02:00.0", 0x1001, {gpu(0, 80)}),
                                   broadcom("0000:03:00.0", 0x1002, {gpu(1, 80)})})})};
  const auto system = nccl::build_system(one_host(host, 2, 2).inputs);
  REQUIRE(system.ok());
  CHECK(system.value().count(VertexKind::pci) == 1);
  const nccl::NodeTopology node = node_of(one_host(host, 2, 2));
  CHECK(node.gpu_path(0, 1).type == sim::PathType::pix);
  CHECK(node.gpu_path(0, 1).hops() == 4);
}

TEST_CASE("errors of a node's inputs") {
  sim::Hardware host;
  host.cpus = {intel(0, {gpu(0, 80), gpu(1, 80)})};
  nccl::NodeInputs inputs = one_host(host, 2, 2).inputs;

  nccl::NodeInputs none = inputs;
  none.ranks.clear();
  CHECK(error_of(none) == "a node without ranks");

  nccl::NodeInputs elsewhere = inputs;
  elsewhere.ranks[1].host = 1;
  CHECK(error_of(elsewhere) == "rank 1 is on host 1 of 1");

  nccl::NodeInputs backwards = inputs;
  backwards.ranks[0].rank = 4;
  CHECK(error_of(backwards) == "rank 1 follows rank 4: ranks must ascend");

  nccl::NodeInputs shared = inputs;
  shared.ranks[1].dev = 0;
  CHECK(error_of(shared) == "ranks 0 and 1 are both on GPU 0 of host 0");

  nccl::NodeInputs missing = inputs;
  missing.ranks[1].dev = 7;
  CHECK(error_of(missing) == "host 0 has no GPU with dev 7");

  nccl::NodeInputs idle = inputs;
  idle.hosts.push_back(&host);
  CHECK(error_of(idle) == "host 1 is not in the order of the hosts' lowest ranks");

  sim::Hardware twice = host;
  twice.cpus[0].pci[1].gpu->dev = 0;
  CHECK(error_of(one_host(twice, 1, 1).inputs) == "host 0 has several GPUs with dev 0");

  sim::Hardware hidden = host;
  hidden.cpus = {intel(0, {pci_switch("0000:01:00.0", {gpu(0, 80)})})};
  hidden.cpus[0].pci[0].device_class = sim::kPciClassNvswitch;
  CHECK(error_of(one_host(hidden, 1, 1).inputs) ==
        "GPU 0 of host 0 is below a PCI device that is no bridge: NCCL does not find it there");

  sim::Hardware one_way = host;
  one_way.cpus[0].pci[0].gpu->nvlinks = {nvlink_to_gpu(1, 4)};
  CHECK(error_of(one_host(one_way, 2, 2).inputs) ==
        "GPU 0 reports an NVLink to GPU 1, which reports none back: NCCL fails on such a topology");

  sim::Hardware peers;
  peers.cpus = {intel(
      0, {pci_switch("0000:01:00.0", {gpu(0, 80)}), pci_switch("0000:02:00.0", {gpu(1, 80)})})};
  peers.cpus[0].pci[0].peers = {"0000:02:00.0"};
  CHECK(error_of(one_host(peers, 2, 2).inputs) ==
        "a PCI switch names a peer that does not name it back");
}

}  // namespace
}  // namespace railyard::tests
