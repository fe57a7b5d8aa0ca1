// Grace machines: GPUs hang from their CPU by NVLink-C2C instead of PCIe.
#include "topologies/machine_catalogue.h"

namespace railyard::topologies {
namespace {

using sim::gigabits_per_second;
using sim::gigabytes_per_second;

// Ten links of 44.7 GB/s: 450 GB/s one way less coding, the whole C2C of a GPU as NVML counts it.
constexpr C2cLinks kNvmlC2c{44712, 10};

// One compute tray of the rack; 18 trays share the NVLink domain.
MachineSpec gb200_nvl72() {
  return {
      .name = "gb200-nvl72",
      .title = "GB200 NVL72: trays of 4 GPUs and 2 Grace, 18 trays in one NVLink domain",
      .profile = "gb200-nvl72",
      .numa = {{.id = 0, .cpus = "0-71"}, {.id = 1, .cpus = "72-143"}},
      .gpus = {at_cpu(0), at_cpu(0), at_cpu(1), at_cpu(1)},
      .nics = {at_cpu(0), at_cpu(0), at_cpu(1), at_cpu(1)},
      .cpu = {.arch = "arm64", .source = "GB200 superchip: Grace"},
      .compute_capability = 100,
      .nvlinks_per_gpu = 18,
      .nvswitch = true,
      .nodes_per_nvlink_domain = 18,
      .gpu_host_class = sim::LinkClass::c2c,
      .nvlink = {gigabytes_per_second(50),
                 "GB200 NVL72 datasheet: 130 TB/s over 72 GPUs, 18 links"},
      .gpu_host = {gigabytes_per_second(225),
                   "GB200 superchip: NVLink-C2C 900 GB/s both ways for two GPUs"},
      .pcie = pcie_gen5(),
      .smp = {gigabytes_per_second(100), "Grace - Grace coherent NVLink; the GH200 quad board's"},
      .nic = {gigabits_per_second(400), "ConnectX-7 datasheet: 400 Gb/s, four per tray"},
      .c2c = kNvmlC2c,
  };
}

// Four GH200 superchips on one board, as in Alps and JUPITER: every pair of GPUs has 6 links.
MachineSpec gh200_4() {
  return {
      .name = "gh200-4",
      .title = "4 x GH200: GPUs wired in pairs, each on its Grace by C2C, 4 x 200 Gb/s",
      .profile = "gh200",
      .numa = {{.id = 0, .cpus = "0-71"},
               {.id = 1, .cpus = "72-143"},
               {.id = 2, .cpus = "144-215"},
               {.id = 3, .cpus = "216-287"}},
      .gpus = {at_cpu(0), at_cpu(1), at_cpu(2), at_cpu(3)},
      .nics = {at_cpu(0), at_cpu(1), at_cpu(2), at_cpu(3)},
      .cpu = {.arch = "arm64", .source = "GH200 superchip: Grace"},
      .compute_capability = 90,
      .nvlinks_per_gpu = 18,
      .pairs = {{0, 1, 6}, {0, 2, 6}, {0, 3, 6}, {1, 2, 6}, {1, 3, 6}, {2, 3, 6}},
      .gpu_host_class = sim::LinkClass::c2c,
      .nvlink = {gigabytes_per_second(25), "GH200 datasheet: 900 GB/s both ways, 18 links"},
      .gpu_host = {gigabytes_per_second(450), "GH200 datasheet: NVLink-C2C 900 GB/s both ways"},
      .pcie = pcie_gen5(),
      .smp = {gigabytes_per_second(100),
              "Fusco et al., arXiv 2408.11556: Grace - Grace 100 GB/s each way"},
      .nic = {gigabits_per_second(200), "HPE Slingshot 11: 200 Gb/s, one per superchip"},
      .c2c = kNvmlC2c,
  };
}

MachineSpec gb300_nvl72() {
  MachineSpec machine = gb200_nvl72();
  machine.name = "gb300-nvl72";
  machine.profile = "gb300-nvl72";
  machine.title =
      "GB300 NVL72: trays of 4 GPUs, each joined to its ConnectX-8, and 2 Grace, 18 trays in one "
      "NVLink domain";
  machine.compute_capability = 103;
  machine.nvlink.source = "GB300 NVL72 datasheet: 130 TB/s over 72 GPUs, 18 links";
  machine.direct_nic = pcie_gen6();  // Grace itself has PCIe 5
  machine.nic = {gigabits_per_second(800), "ConnectX-8 datasheet: 800 Gb/s, four per tray"};
  return machine;
}

// One superchip as a server of its own.
MachineSpec gh200() {
  return {
      .name = "gh200",
      .title = "one GH200 superchip, 1 x NDR",
      .profile = "gh200",
      .numa = {{.id = 0, .cpus = "0-71"}},
      .gpus = {at_cpu(0)},
      .nics = {at_cpu(0)},
      .cpu = {.arch = "arm64", .source = "GH200 superchip: Grace"},
      .compute_capability = 90,
      .gpu_host_class = sim::LinkClass::c2c,
      .gpu_host = {gigabytes_per_second(450), "GH200 datasheet: NVLink-C2C 900 GB/s both ways"},
      .pcie = pcie_gen5(),
      .nic = {gigabits_per_second(400), "ConnectX-7 datasheet: NDR InfiniBand, 400 Gb/s"},
      .c2c = kNvmlC2c,
  };
}

}  // namespace

std::vector<MachineSpec> grace_machines() {
  return {gb200_nvl72(), gb300_nvl72(), gh200_4(), gh200()};
}

}  // namespace railyard::topologies
