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
      .cpu = broadwell(),
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
      .smp = broadwell_smp(),
      .nic = {gigabits_per_second(100), "DGX-1 datasheet: 4 x EDR InfiniBand, 100 Gb/s"},
      .one_host_bridge_per_cpu = true,
  };
}

// The wiring of a DGX-1V with one NVLink where that one has one or two.
MachineSpec dgx_1p() {
  MachineSpec machine = dgx_1v();
  machine.name = "dgx-1p";
  machine.profile = "p100-dgx1";
  machine.title = "DGX-1 with 8 x P100: hybrid cube mesh, 4 x EDR InfiniBand";
  machine.compute_capability = 60;
  machine.nvlinks_per_gpu = 4;
  for (NvlinkPair& pair : machine.pairs) pair.links = 1;
  machine.nvlink = {gigabytes_per_second(20), "P100 datasheet: 160 GB/s both ways, 4 links"};
  return machine;
}

// Two baseboards with eight GPUs each, one NVSwitch plane over both; a switch for every two GPUs
// and their NIC, two of those below one on the socket.
MachineSpec dgx_2() {
  MachineSpec machine;
  machine.name = "dgx-2";
  machine.title = "DGX-2: 16 x V100 on 12 NVSwitches as one plane, 8 x EDR compute NICs";
  machine.profile = "v100-dgx2";
  machine.numa = {{.id = 0, .cpus = "0-23,48-71"}, {.id = 1, .cpus = "24-47,72-95"}};
  for (std::uint32_t i = 0; i < 4; ++i) {
    machine.switches.push_back({at_cpu(i / 2)});
    for (std::uint32_t k = 1; k <= 2; ++k) {
      machine.switches.push_back({at_switch(3 * i)});
      for (std::uint32_t gpu = 0; gpu < 2; ++gpu) machine.gpus.push_back(at_switch(3 * i + k));
      machine.nics.push_back(at_switch(3 * i + k));
    }
  }
  machine.cpu = skylake();
  machine.compute_capability = 70;
  machine.nvlinks_per_gpu = 6;
  machine.nvswitch = true;
  machine.nvlink = {gigabytes_per_second(25), "V100 datasheet: 300 GB/s both ways, 6 links"};
  machine.gpu_host = pcie_gen3();
  machine.pcie = pcie_gen3();
  machine.smp = skylake_smp();
  machine.nic = {gigabits_per_second(100), "DGX-2 datasheet: 8 x EDR InfiniBand, 100 Gb/s"};
  return machine;
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

// The HGX board in a server of any vendor: a switch for every two GPUs and their NICs, two on each
// socket. Clouds show the same switches without the sockets' NUMA nodes in a fixed order.
MachineSpec hgx_a100() {
  MachineSpec machine;
  machine.name = "hgx-a100";
  machine.title = "HGX A100: 8 GPUs on NVSwitch, a PCIe switch for two GPUs and 2 x HDR";
  machine.profile = "a100-dgx";
  machine.numa = {{.id = 0, .cpus = "0-63,128-191"}, {.id = 1, .cpus = "64-127,192-255"}};
  for (std::uint32_t i = 0; i < 4; ++i) machine.switches.push_back({at_cpu(i / 2)});
  for (std::uint32_t i = 0; i < 8; ++i) {
    machine.gpus.push_back(at_switch(i / 2));
    machine.nics.push_back(at_switch(i / 2));
  }
  machine.cpu = milan();
  machine.compute_capability = 80;
  machine.nvlinks_per_gpu = 12;
  machine.nvswitch = true;
  machine.nvlink = {gigabytes_per_second(25), "A100 datasheet: 600 GB/s both ways, 12 links"};
  machine.gpu_host = pcie_gen4();
  machine.pcie = pcie_gen4();
  machine.smp = epyc_smp();
  machine.nic = {gigabits_per_second(200), "ConnectX-6 datasheet: HDR InfiniBand, 200 Gb/s"};
  return machine;
}

MachineSpec a800_hgx() {
  MachineSpec machine = hgx_a100();
  machine.name = "a800-hgx";
  machine.profile = "a800-hgx";
  machine.title = "HGX A800: HGX A100 with 8 of 12 NVLinks";
  machine.nvlinks_per_gpu = 8;
  machine.nvlink = {gigabytes_per_second(25), "A800 datasheet: 400 GB/s both ways, 8 links"};
  return machine;
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
  machine.cpu = sapphire_rapids();
  machine.compute_capability = 90;
  machine.nvlinks_per_gpu = 18;
  machine.nvswitch = true;
  machine.gpu_host = pcie_gen5();
  machine.pcie = pcie_gen5();
  machine.smp = sapphire_rapids_smp();
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

MachineSpec hgx_h800() {
  MachineSpec machine = hgx_h100();
  machine.name = "hgx-h800";
  machine.profile = "h800-hgx";
  machine.title = "HGX H800: HGX H100 with 8 of 18 NVLinks";
  machine.nvlinks_per_gpu = 8;
  machine.nvlink = {gigabytes_per_second(25),
                    "H800 datasheet: 400 GB/s both ways, 8 links (NV8 in nvidia-smi)"};
  return machine;
}

MachineSpec hgx_h20() {
  MachineSpec machine = hgx_h100();
  machine.name = "hgx-h20";
  machine.profile = "h20-hgx";
  machine.title = "HGX H20: HGX H100 wiring with H20 GPUs";
  machine.nvlink = {gigabytes_per_second(25),
                    "H20 datasheet: 900 GB/s both ways, 18 links (NV18 in nvidia-smi)"};
  return machine;
}

// Every GPU hangs from its ConnectX-8, whose own switch leads to the socket.
MachineSpec hgx_b300() {
  MachineSpec machine = hgx_b200();
  machine.name = "hgx-b300";
  machine.profile = "b300-hgx";
  machine.title = "HGX B300: 8 GPUs on NVLink 5, each behind its 800 Gb/s ConnectX-8";
  machine.compute_capability = 103;
  machine.nvlink = {gigabytes_per_second(50), "B300 datasheet: 1.8 TB/s both ways, 18 links"};
  machine.gpu_host = pcie_gen6();
  machine.pcie = pcie_gen6();
  for (PcieSwitch& bridge : machine.switches) bridge.parent.rate = pcie_gen5().value;
  machine.numa = {{.id = 0, .cpus = "0-63,128-191"}, {.id = 1, .cpus = "64-127,192-255"}};
  machine.cpu.model = 173;
  machine.cpu.source = "Xeon 6776P (Granite Rapids)";
  machine.smp = {gigabytes_per_second(192), "Xeon 6776P: 4 x UPI at 24 GT/s x 2 B"};
  machine.nic = {gigabits_per_second(800), "ConnectX-8 datasheet: XDR InfiniBand, 800 Gb/s"};
  return machine;
}

}  // namespace

std::vector<MachineSpec> sxm_machines() {
  return {dgx_1v(),   dgx_1p(),   dgx_2(),   dgx_a100(), hgx_a100(), a800_hgx(), dgx_h100(),
          hgx_h100(), hgx_h800(), hgx_h20(), hgx_h200(), hgx_b200(), hgx_b300()};
}

}  // namespace railyard::topologies
