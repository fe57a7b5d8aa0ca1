// DGX and HGX machines: GPUs on a baseboard with NVLink, hosts with two sockets.
#include "topologies/machine_catalogue.h"

namespace railyard::topologies {
namespace {

using sim::gigabits_per_second;
using sim::gigabytes_per_second;

MachineSpec dgx_1v() {
  return {
      .name = "dgx-1v",
      .title = "DGX-1 with 8 x V100: hybrid cube mesh, 4 x EDR InfiniBand",
      .profile = "v100-dgx1",
      .numa = {{.id = 0, .cpus = "0-19,40-59"}, {.id = 1, .cpus = "20-39,60-79"}},
      .switches = {{at_cpu(0)}, {at_cpu(0)}, {at_cpu(1)}, {at_cpu(1)}},
      .gpus = {at_switch(0), at_switch(0), at_switch(1), at_switch(1),  //
               at_switch(2), at_switch(2), at_switch(3), at_switch(3)},
      .nics = {at_switch(0), at_switch(1), at_switch(2), at_switch(3)},
      .cpu = {.arch = "x86_64",
              .vendor = "GenuineIntel",
              .family = 6,
              .model = 79,
              .source = "Xeon E5-2698 v4 (Broadwell)"},
      .compute_capability = 70,
      .nvlinks_per_gpu = 6,
      // The wiring that nvidia-smi topo -m prints on a DGX-1 with V100.
      .pairs = {{0, 1, 1},
                {0, 2, 1},
                {0, 3, 2},
                {0, 4, 2},
                {1, 2, 2},
                {1, 3, 1},
                {1, 5, 2},
                {2, 3, 2},
                {2, 6, 1},
                {3, 7, 1},
                {4, 5, 1},
                {4, 6, 1},
                {4, 7, 2},
                {5, 6, 2},
                {5, 7, 1},
                {6, 7, 2}},
      .nvlink = {gigabytes_per_second(25), "V100 datasheet: 300 GB/s both ways, 6 links"},
      .gpu_host = pcie_gen3(),
      .pcie = pcie_gen3(),
      .smp = {gigabytes_per_second(38.4), "Xeon E5-2698 v4: 2 x QPI at 9.6 GT/s x 2 B"},
      .nic = {gigabits_per_second(100), "DGX-1 datasheet: 4 x EDR InfiniBand, 100 Gb/s"},
      .one_host_bridge_per_cpu = true,
  };
}

// Four two-level switches, each with two GPUs and two compute NICs; the second level's partitions
// are one chip, so that the links inside it limit nothing (two x16 wide).
MachineSpec dgx_a100() {
  return {
      .name = "dgx-a100",
      .title = "DGX A100: 8 GPUs, 6 NVSwitches as one plane, 8 x HDR compute NICs",
      .profile = "a100-dgx",
      .numa = {{.id = 3, .cpus = "48-63,176-191"},
               {.id = 1, .cpus = "16-31,144-159"},
               {.id = 7, .cpus = "112-127,240-255"},
               {.id = 5, .cpus = "80-95,208-223"}},
      .switches = {{at_cpu(0)},
                   {at_switch(0), 2},
                   {at_switch(0), 2},  //
                   {at_cpu(1)},
                   {at_switch(3), 2},
                   {at_switch(3), 2},  //
                   {at_cpu(2)},
                   {at_switch(6), 2},
                   {at_switch(6), 2},  //
                   {at_cpu(3)},
                   {at_switch(9), 2},
                   {at_switch(9), 2}},
      .gpus = {at_switch(1), at_switch(1), at_switch(4), at_switch(4),  //
               at_switch(7), at_switch(7), at_switch(10), at_switch(10)},
      .nics = {at_switch(2), at_switch(2), at_switch(5), at_switch(5),  //
               at_switch(8), at_switch(8), at_switch(11), at_switch(11)},
      .cpu = {.arch = "x86_64",
              .vendor = "AuthenticAMD",
              .family = 143,
              .model = 49,
              .source = "EPYC 7742 (Rome); family as NCCL's dumps print it, 0x8F"},
      .compute_capability = 80,
      .nvlinks_per_gpu = 12,
      .nvswitch = true,
      .nvlink = {gigabytes_per_second(25), "A100 datasheet: 600 GB/s both ways, 12 links"},
      .gpu_host = pcie_gen4(),
      .pcie = pcie_gen4(),
      .smp = {gigabytes_per_second(96), "EPYC 7742: 3 x xGMI x16 at 16 GT/s between the sockets"},
      .nic = {gigabits_per_second(200), "DGX A100 datasheet: 8 x HDR InfiniBand, 200 Gb/s"},
  };
}

// What the H100, H200 and B200 baseboards share: a PCIe switch for every GPU and its NIC, four of
// them on each socket.
MachineSpec hgx_board() {
  MachineSpec machine;
  for (std::uint32_t i = 0; i < 8; ++i) {
    machine.switches.push_back({at_cpu(i / 4)});
    machine.gpus.push_back(at_switch(i));
    machine.nics.push_back(at_switch(i));
  }
  machine.numa = {{.id = 0, .cpus = "0-55,112-167"}, {.id = 1, .cpus = "56-111,168-223"}};
  machine.cpu = {.arch = "x86_64",
                 .vendor = "GenuineIntel",
                 .family = 6,
                 .model = 143,
                 .source = "Xeon Platinum 8480C (Sapphire Rapids)"};
  machine.compute_capability = 90;
  machine.nvlinks_per_gpu = 18;
  machine.nvswitch = true;
  machine.gpu_host = pcie_gen5();
  machine.pcie = pcie_gen5();
  machine.smp = {gigabytes_per_second(128), "Xeon 8480C: 4 x UPI at 16 GT/s x 2 B"};
  machine.nic = {gigabits_per_second(400), "ConnectX-7 datasheet: NDR InfiniBand, 400 Gb/s"};
  return machine;
}

MachineSpec hgx_h100() {
  MachineSpec machine = hgx_board();
  machine.name = "hgx-h100";
  machine.title = "HGX H100: 8 GPUs on NVSwitch, one PCIe switch per GPU and NDR NIC";
  machine.profile = "h100-hgx";
  machine.nvlink = {gigabytes_per_second(25), "H100 SXM datasheet: 900 GB/s both ways, 18 links"};
  return machine;
}

MachineSpec dgx_h100() {
  MachineSpec machine = hgx_h100();
  machine.name = "dgx-h100";
  machine.title = "DGX H100: 8 GPUs, 4 NVSwitches as one plane, 8 x NDR compute NICs";
  return machine;
}

MachineSpec hgx_h200() {
  MachineSpec machine = hgx_board();
  machine.name = "hgx-h200";
  machine.title = "HGX H200: HGX H100 wiring with H200 GPUs";
  machine.profile = "h200-hgx";
  machine.nvlink = {gigabytes_per_second(25), "H200 SXM datasheet: 900 GB/s both ways, 18 links"};
  return machine;
}

MachineSpec hgx_b200() {
  MachineSpec machine = hgx_board();
  machine.name = "hgx-b200";
  machine.title = "HGX B200: 8 GPUs on NVLink 5, one PCIe switch per GPU and NDR NIC";
  machine.profile = "b200-hgx";
  machine.nvlink = {gigabytes_per_second(50), "B200 datasheet: 1.8 TB/s both ways, 18 links"};
  machine.smp = {gigabytes_per_second(160), "Xeon 8570: 4 x UPI at 20 GT/s x 2 B"};
  machine.cpu.model = 207;
  machine.cpu.source = "Xeon Platinum 8570 (Emerald Rapids)";
  machine.compute_capability = 100;
  return machine;
}

}  // namespace

std::vector<MachineSpec> sxm_machines() {
  return {dgx_1v(), dgx_a100(), dgx_h100(), hgx_h100(), hgx_h200(), hgx_b200()};
}

}  // namespace railyard::topologies
