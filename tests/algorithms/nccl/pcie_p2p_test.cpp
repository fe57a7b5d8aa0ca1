// GPUs without P2P over PCIe (GeForce cards): shared memory between those that no NVLink joins.
#include <doctest/doctest.h>

#include "algorithms/nccl/transport.h"
#include "tests/algorithms/nccl/small_hosts.h"

namespace railyard::tests {
namespace {

namespace nccl = algorithms::nccl;
using nccl::TransportKind;
using sim::PathType;

sim::HardwarePci geforce(std::int32_t dev, std::vector<sim::HardwareNvlink> nvlinks = {}) {
  sim::HardwarePci pci = gpu(dev, 86, std::move(nvlinks));
  pci.gpu->pcie_p2p = false;
  return pci;
}

// GPUs 0 and 1 on one switch, joined by a bridge; 2 beside them on the switch.
sim::Hardware bridged() {
  sim::Hardware host;
  host.cpus = {
      intel(0, {pci_switch("0000:01:00.0", {geforce(0, {nvlink_to_gpu(1, 4)}),
                                            geforce(1, {nvlink_to_gpu(0, 4)}), geforce(2)})})};
  return host;
}

TEST_CASE("cards without PCIe P2P use P2P over their bridge and shared memory elsewhere") {
  const nccl::NodeTopology node = node_of(one_host(bridged(), 3, 3));
  CHECK(nccl::connection(node, 0, 1).transport == TransportKind::p2p);
  CHECK(nccl::connection(node, 0, 2).transport == TransportKind::shm);
  CHECK(nccl::connection(node, 2, 1).transport == TransportKind::shm);
  // Their path goes through the CPU although a switch is nearer.
  CHECK(node.gpu_path(0, 2).type == PathType::phb);
  const auto lost = nccl::lost_transports(node);
  REQUIRE(!lost.empty());
  CHECK(lost.front() == "4 of 6 directed GPU pairs use SHM: these GPUs have no P2P over PCIe");
}

TEST_CASE("no level of P2P brings back what the driver refuses") {
  const nccl::NodeTopology node = node_of(one_host(bridged(), 3, 3), {{"NCCL_P2P_LEVEL", "SYS"}});
  CHECK(nccl::connection(node, 0, 2).transport == TransportKind::shm);
  // NCCL does not ask NVML then, but CUDA still says no when the memory is to be mapped.
  const nccl::NodeTopology ignored =
      node_of(one_host(bridged(), 3, 3), {{"NCCL_IGNORE_DISABLED_P2P", "2"}});
  CHECK(ignored.gpu_path(0, 2).type == PathType::pix);
  CHECK(nccl::connection(ignored, 0, 2).transport == TransportKind::shm);
}

TEST_CASE("with P2P over PCIe the same host has P2P everywhere") {
  sim::Hardware host = bridged();
  for (sim::HardwarePci& pci : host.cpus.front().pci.front().children) pci.gpu->pcie_p2p = true;
  const nccl::NodeTopology node = node_of(one_host(host, 3, 3));
  CHECK(nccl::connection(node, 0, 2).transport == TransportKind::p2p);
  CHECK(node.gpu_path(0, 2).type == PathType::pix);
}

}  // namespace
}  // namespace railyard::tests
