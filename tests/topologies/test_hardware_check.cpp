#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "tests/paths.h"
#include "tests/skip.h"
#include "topologies/hardware_check.h"
#include "topologies/import/nccl_xml.h"
#include "topologies/machine.h"
#include "topologies/machine_hardware.h"

namespace railyard::topologies {
namespace {

using sim::Hardware;
using sim::HardwarePci;

std::vector<std::string> findings(const Hardware& hardware) {
  std::vector<std::string> lines;
  for (const Finding& finding : check_hardware(hardware))
    lines.push_back(finding.where + ": " + finding.what);
  return lines;
}

// A healthy machine of the catalogue, changed by the case.
Hardware healthy(const char* name) { return hardware_of(find_machine(name).value()).value(); }

HardwarePci* find(std::vector<HardwarePci>& list, const std::function<bool(HardwarePci&)>& wanted) {
  for (HardwarePci& pci : list) {
    if (wanted(pci)) return &pci;
    if (HardwarePci* below = find(pci.children, wanted)) return below;
  }
  return nullptr;
}

HardwarePci& gpu(Hardware& hardware, std::int32_t dev) {
  for (sim::HardwareCpu& cpu : hardware.cpus)
    if (HardwarePci* pci = find(cpu.pci, [&](HardwarePci& each) {
          return each.gpu.has_value() && each.gpu->dev == dev;
        }))
      return *pci;
  FAIL("no such GPU");
  return hardware.cpus[0].pci[0];
}

HardwarePci& nic(Hardware& hardware, std::int32_t dev) {
  for (sim::HardwareCpu& cpu : hardware.cpus)
    if (HardwarePci* pci = find(cpu.pci, [&](HardwarePci& each) {
          return !each.nics.empty() && each.nics[0].nets[0].dev == dev;
        }))
      return *pci;
  FAIL("no such NIC");
  return hardware.cpus[0].pci[0];
}

TEST_CASE("healthy machines give no findings") {
  for (const char* name : {"dgx-1v", "dgx-a100", "hgx-h100", "hgx-b200", "gb200-nvl72", "gh200-4"})
    CHECK(findings(healthy(name)).empty());
}

TEST_CASE("links trained low or narrow are found") {
  Hardware hardware = healthy("hgx-h100");
  gpu(hardware, 3).link_speed = "8.0 GT/s PCIe";
  gpu(hardware, 5).link_width = 8;
  CHECK(findings(hardware) ==
        std::vector<std::string>{
            "GPU 3 (0000:0b:00.0): PCIe link at 8.0 GT/s PCIe x16, while GPU 0 (0000:02:00.0) has "
            "32.0 GT/s PCIe x16",
            "GPU 5 (0000:11:00.0): PCIe link at 32.0 GT/s PCIe x8, while GPU 0 (0000:02:00.0) has "
            "32.0 GT/s PCIe x16"});
  hardware = healthy("hgx-h100");
  nic(hardware, 2).link_speed = "16.0 GT/s PCIe";
  CHECK(findings(hardware) ==
        std::vector<std::string>{"NIC mlx5_2 (0000:09:00.0): ports of 400 Gb/s together behind a "
                                 "PCIe link of 252.1 Gb/s (16.0 GT/s PCIe x16)"});
  nic(hardware, 2).device = 0x1021;
  nic(hardware, 6).device = 0x1021;
  nic(hardware, 2).nics[0].nets[0].speed = 200000;
  CHECK(findings(hardware) ==
        std::vector<std::string>{
            "NIC mlx5_2 (0000:09:00.0): PCIe link at 16.0 GT/s PCIe x16, while NIC mlx5_6 "
            "(0000:15:00.0) has 32.0 GT/s PCIe x16",
            "NIC mlx5_2 (0000:09:00.0): port at 200 Gb/s, its equals at 400"});
}

TEST_CASE("a spelling that NCCL takes for the 3rd generation is found") {
  Hardware hardware = healthy("hgx-h100");
  gpu(hardware, 0).link_speed = "32.0 GT/s";
  CHECK(findings(hardware) ==
        std::vector<std::string>{
            "PCI 0000:02:00.0: NCCL does not know the speed \"32.0 GT/s\" and takes 8 GT/s"});
}

TEST_CASE("failed, missing and impossible NVLinks are found") {
  Hardware hardware = healthy("hgx-h100");
  gpu(hardware, 2).gpu->nvlinks[0].count = 17;
  gpu(hardware, 4).gpu->nvlinks.clear();
  CHECK(findings(hardware) ==
        std::vector<std::string>{"GPU 2 (0000:08:00.0): 17 NVLinks, others have 18",
                                 "GPU 4 (0000:0e:00.0): 0 NVLinks, others have 18"});
  hardware = healthy("hgx-b200");
  for (int dev = 0; dev < 8; ++dev) gpu(hardware, dev).gpu->nvlinks[0].count = 126;
  CHECK(findings(hardware).size() == 8);
  CHECK(findings(hardware)[0] == "GPU 0 (0000:02:00.0): 126 NVLinks; its generation has 18");
  hardware = healthy("hgx-h100");
  for (int dev = 0; dev < 8; ++dev) {
    gpu(hardware, dev).gpu->nvlinks.clear();
    gpu(hardware, dev).device = 0x2330;
  }
  CHECK(findings(hardware).size() == 8);
  CHECK(findings(hardware)[7] ==
        "GPU 7 (0000:17:00.0): no NVLinks on a GPU made for them; is the fabric manager running?");
}

TEST_CASE("NVLinks of one way, to itself and to nowhere are found") {
  Hardware hardware = healthy("pcie-8-nvlink");
  gpu(hardware, 1).gpu->nvlinks[0].count = 4;
  gpu(hardware, 2).gpu->nvlinks[0].target = gpu(hardware, 2).bus_id;
  gpu(hardware, 4).gpu->nvlinks[0].target = "0000:99:00.0";
  const auto lines = findings(hardware);
  const auto has = [&](const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  const std::string one = "GPU 0 (" + gpu(hardware, 0).bus_id + ")";
  const std::string two = "GPU 1 (" + gpu(hardware, 1).bus_id + ")";
  CHECK(has(one + ": 12 NVLinks to " + two + ", 4 back"));
  CHECK(has("GPU 2 (" + gpu(hardware, 2).bus_id + "): 12 NVLinks to itself"));
  CHECK(has("GPU 4 (" + gpu(hardware, 4).bus_id +
            "): 12 NVLinks to 0000:99:00.0, which is not in the file"));
}

TEST_CASE("NICs far from their GPUs and missing rails are found") {
  Hardware hardware = healthy("hgx-h100");
  // NIC 1 moves from its switch to the CPU; NIC 0 is gone.
  HardwarePci& tree = hardware.cpus[0].pci[1];
  HardwarePci moved = tree.children.back();
  tree.children.pop_back();
  hardware.cpus[0].pci.push_back(moved);
  CHECK(findings(hardware) ==
        std::vector<std::string>{
            "GPU 1 (0000:05:00.0): no NIC below its PCIe switch: traffic goes through the CPU, "
            "unlike others'",
            "PCIe tree 0000:04:00.0: 1 GPUs and 0 NICs, where its equals have 1: a rail is "
            "missing"});
  hardware = healthy("dgx-1v");
  for (HardwarePci& pci : hardware.cpus[1].pci) pci.children.pop_back();
  const auto lines = findings(hardware);
  CHECK(std::count(lines.begin(), lines.end(),
                   "GPU 4 (" + gpu(hardware, 4).bus_id +
                       "): no NIC at its CPU: traffic crosses NUMA nodes, unlike others'") == 1);
}

TEST_CASE("GPUDirect that some lack and devices below a NIC are found") {
  Hardware hardware = healthy("hgx-h100");
  gpu(hardware, 6).gpu->gdr = false;
  nic(hardware, 7).nics[0].nets[0].gdr = false;
  CHECK(findings(hardware) ==
        std::vector<std::string>{"GPU 6 (0000:14:00.0): no GPUDirect RDMA, others have it",
                                 "NIC mlx5_7 (0000:18:00.0): no GPUDirect RDMA, others have it"});
  hardware = healthy("hgx-h100");
  HardwarePci& inside = nic(hardware, 7);
  inside.children.push_back(hardware.cpus[0].pci[0].children[1]);
  inside.children[0].bus_id = "0000:77:00.0";
  inside.children[0].nics.clear();
  CHECK(findings(hardware)[0] ==
        "NIC mlx5_7 (0000:18:00.0): devices below a NIC; NCCL takes the NIC and drops them");
}

TEST_CASE("hosts are checked apart") {
  Hardware hardware = healthy("gb200-nvl72");
  Hardware second = healthy("gb200-nvl72");
  for (sim::HardwareCpu& cpu : second.cpus) {
    cpu.host_hash = 0xb;
    hardware.cpus.push_back(cpu);
  }
  gpu(second, 0);
  CHECK(findings(hardware).empty());
  hardware.cpus[2].pci[0].gpu->nvlinks[0].count = 17;
  CHECK(findings(hardware) ==
        std::vector<std::string>{"host 0xb: GPU 0 (0000:01:00.0): 17 NVLinks, others have 18"});
}

TEST_CASE("a host of thousands of devices is not compared") {
  Hardware hardware = healthy("hgx-h100");
  const HardwarePci bridge = hardware.cpus[0].pci[0];
  for (int i = 0; i < 3000; ++i) hardware.cpus[0].pci.push_back(bridge);
  CHECK(findings(hardware) ==
        std::vector<std::string>{"host: 9024 PCI devices; at most 2048 are compared"});
}

TEST_CASE("a public file with a degraded link") {
  const auto file =
      std::filesystem::path(RAILYARD_SHARED_DIR) / "samples" / "nccl-xml" / "116-topo_fail.xml";
  if (!std::filesystem::exists(file)) RAILYARD_SKIP("no samples/nccl-xml");
  CHECK(
      findings(read_nccl_xml(file.string()).value()) ==
      std::vector<std::string>{"GPU 0 (0000:17:00.0): 1 NVLinks, others have 12",
                               "GPU 1 (0000:65:00.0): 12 NVLinks to GPU 0 (0000:17:00.0), 1 back"});
}

}  // namespace
}  // namespace railyard::topologies
