// Servers with data-centre PCIe cards. Where no public layout of the model was found, eight cards
// hang from the root ports of two sockets, four each.
#include "topologies/machine_catalogue.h"

namespace railyard::topologies {
namespace {

using sim::gigabits_per_second;
using sim::gigabytes_per_second;

Rate hdr() { return {gigabits_per_second(200), "ConnectX-6 datasheet: HDR InfiniBand, 200 Gb/s"}; }
Rate ndr() { return {gigabits_per_second(400), "ConnectX-7 datasheet: NDR InfiniBand, 400 Gb/s"}; }
Rate no_nvlink() { return {}; }

// Four cards and a NIC on the root ports of each socket.
// The profile has the machine's name.
MachineSpec root_ports(const char* name, const char* title) {
  MachineSpec machine;
  machine.name = name;
  machine.title = title;
  machine.profile = name;
  machine.numa = {{.id = 0, .cpus = "0-31,64-95"}, {.id = 1, .cpus = "32-63,96-127"}};
  for (std::uint32_t i = 0; i < 8; ++i) machine.gpus.push_back(at_cpu(i / 4));
  machine.nics = {at_cpu(0), at_cpu(1)};
  machine.cpu = milan();
  machine.smp = epyc_smp();
  machine.gpu_host = pcie_gen4();
  machine.pcie = pcie_gen4();
  machine.nic = hdr();
  return machine;
}

MachineSpec h100_pcie() {
  MachineSpec machine =
      root_ports("h100-pcie", "8 x H100 PCIe on two sockets, 2 x NDR; bridges on request");
  machine.compute_capability = 90;
  machine.nvlink = {gigabytes_per_second(25),
                    "H100 PCIe datasheet: bridge 600 GB/s both ways, 12 links"};
  machine.bridge_links = 12;
  machine.cpu = sapphire_rapids();
  machine.smp = sapphire_rapids_smp();
  machine.gpu_host = pcie_gen5();
  machine.pcie = pcie_gen5();
  machine.nic = ndr();
  return machine;
}

MachineSpec a40_pcie() {
  MachineSpec machine =
      root_ports("a40-pcie", "8 x A40 on two sockets, 2 x HDR; bridges on request");
  machine.compute_capability = 86;
  machine.nvlink = {gigabytes_per_second(14.0625),
                    "A40 datasheet: bridge 112.5 GB/s both ways, 4 links"};
  machine.bridge_links = 4;
  return machine;
}

MachineSpec a30_pcie() {
  MachineSpec machine =
      root_ports("a30-pcie", "8 x A30 on two sockets, 2 x HDR; bridges on request");
  machine.compute_capability = 80;
  machine.nvlink = {gigabytes_per_second(25), "A30 datasheet: bridge 200 GB/s both ways, 4 links"};
  machine.bridge_links = 4;
  return machine;
}

// The virtual machine g5.48xlarge shows every card at a root port of its own.
MachineSpec a10_pcie() {
  MachineSpec machine = root_ports("a10-pcie", "8 x A10 or A10G (g5.48xlarge), 1 x 100 Gb/s");
  machine.numa = {{.id = 0, .cpus = "0-47,96-143"}, {.id = 1, .cpus = "48-95,144-191"}};
  machine.nics = {at_cpu(1)};
  machine.cpu = rome();
  machine.compute_capability = 86;
  machine.nvlink = no_nvlink();
  machine.nic = {gigabits_per_second(100), "AWS: g5.48xlarge has 100 Gb/s"};
  return machine;
}

MachineSpec l40s_pcie() {
  MachineSpec machine = root_ports("l40s-pcie", "8 x L40S on two sockets, 2 x HDR, no NVLink");
  machine.compute_capability = 89;
  machine.nvlink = no_nvlink();
  return machine;
}

MachineSpec l40_pcie() {
  MachineSpec machine = root_ports("l40-pcie", "8 x L40 on two sockets, 2 x HDR, no NVLink");
  machine.compute_capability = 89;
  machine.nvlink = no_nvlink();
  return machine;
}

MachineSpec rtx_a6000() {
  MachineSpec machine =
      root_ports("rtx-a6000-pcie", "8 x RTX A6000 on two sockets, 2 x HDR; bridges on request");
  machine.compute_capability = 86;
  machine.nvlink = {gigabytes_per_second(14.0625),
                    "RTX A6000 datasheet: bridge 112.5 GB/s both ways, 4 links"};
  machine.bridge_links = 4;
  return machine;
}

MachineSpec v100_pcie() {
  MachineSpec machine = root_ports("v100-pcie", "8 x V100 PCIe on two sockets, 2 x EDR");
  machine.numa = {{.id = 0, .cpus = "0-9,20-29"}, {.id = 1, .cpus = "10-19,30-39"}};
  machine.cpu = skylake();
  machine.smp = skylake_smp();
  machine.compute_capability = 70;
  machine.nvlink = no_nvlink();
  machine.gpu_host = pcie_gen3();
  machine.pcie = pcie_gen3();
  machine.nic = {gigabits_per_second(100), "ConnectX-5 datasheet: EDR InfiniBand, 100 Gb/s"};
  return machine;
}

MachineSpec l4_pcie() {
  MachineSpec machine = root_ports("l4-pcie", "8 x L4 (g6.48xlarge) on two sockets, 1 x 100 Gb/s");
  machine.nics = {at_cpu(1)};
  machine.compute_capability = 89;
  machine.nvlink = no_nvlink();
  machine.nic = {gigabits_per_second(100), "AWS: g6.48xlarge has 100 Gb/s"};
  return machine;
}

MachineSpec t4_pcie() {
  MachineSpec machine = root_ports("t4-pcie", "8 x T4 (g4dn.metal) on two sockets, 1 x 100 Gb/s");
  machine.numa = {{.id = 0, .cpus = "0-23,48-71"}, {.id = 1, .cpus = "24-47,72-95"}};
  machine.nics = {at_cpu(0)};
  machine.cpu = skylake();
  machine.smp = skylake_smp();
  machine.compute_capability = 75;
  machine.nvlink = no_nvlink();
  machine.gpu_host = pcie_gen3();
  machine.pcie = pcie_gen3();
  machine.nic = {gigabits_per_second(100), "AWS: g4dn.metal has 100 Gb/s"};
  return machine;
}

MachineSpec rtx6000_ada() {
  MachineSpec machine =
      root_ports("rtx6000-ada-pcie", "8 x RTX 6000 Ada on two sockets, 2 x HDR, no NVLink");
  machine.numa = {{.id = 0, .cpus = "0-23,48-71"}, {.id = 1, .cpus = "24-47,72-95"}};
  machine.compute_capability = 89;
  machine.nvlink = no_nvlink();
  return machine;
}

MachineSpec rtx_pro_6000() {
  MachineSpec machine = root_ports("rtx-pro-6000-pcie",
                                   "8 x RTX PRO 6000 Blackwell on two sockets, 2 x NDR, no NVLink");
  machine.cpu = {.arch = "x86_64",
                 .vendor = "AuthenticAMD",
                 .family = 191,
                 .model = 2,
                 .source = "EPYC 9005 (Turin); family as NCCL's dumps print it, 0xBF"};
  machine.smp = {gigabytes_per_second(192),
                 "EPYC 9005: 3 x xGMI x16 at 32 GT/s between the sockets"};
  machine.compute_capability = 120;
  machine.nvlink = no_nvlink();
  machine.gpu_host = pcie_gen5();
  machine.pcie = pcie_gen5();
  machine.nic = ndr();
  return machine;
}

}  // namespace

std::vector<MachineSpec> card_machines() {
  return {h100_pcie(), a40_pcie(), a30_pcie(),    a10_pcie(),  rtx_a6000(), l40s_pcie(),
          l40_pcie(),  l4_pcie(),  rtx6000_ada(), v100_pcie(), t4_pcie(),   rtx_pro_6000()};
}

}  // namespace railyard::topologies
