// Workstation cards: no P2P over PCIe and no GPUDirect RDMA, so that what NVLink does not join goes
// through host memory; and the DGX Spark, whose memory is the host's.
#include "topologies/machine_catalogue.h"

namespace railyard::topologies {
namespace {

using sim::gigabits_per_second;
using sim::gigabytes_per_second;

// The profile has the machine's name.
MachineSpec cards(const char* name, const char* title) {
  MachineSpec machine;
  machine.name = name;
  machine.title = title;
  machine.profile = name;
  machine.numa = {{.id = 0, .cpus = "0-31,64-95"}, {.id = 1, .cpus = "32-63,96-127"}};
  machine.nics = {at_cpu(0)};
  machine.nic = {gigabits_per_second(100), "ConnectX-5 datasheet: 100 Gb/s"};
  machine.pcie_p2p = false;
  machine.gpudirect = false;
  return machine;
}

void on_root_ports(MachineSpec& machine) {
  for (std::uint32_t i = 0; i < 8; ++i) machine.gpus.push_back(at_cpu(i / 4));
}

// Two neighbouring cards behind one switch.
void on_switches(MachineSpec& machine) {
  for (std::uint32_t i = 0; i < 4; ++i) machine.switches.push_back({at_cpu(i / 2)});
  for (std::uint32_t i = 0; i < 8; ++i) machine.gpus.push_back(at_switch(i / 2));
}

MachineSpec rtx2080ti() {
  MachineSpec machine = cards("rtx2080ti-pcie", "8 x RTX 2080 Ti, two on a switch, no PCIe P2P");
  on_switches(machine);
  machine.numa = {{.id = 0, .cpus = "0-11,24-35"}, {.id = 1, .cpus = "12-23,36-47"}};
  machine.cpu = skylake();
  machine.smp = skylake_smp();
  machine.compute_capability = 75;
  machine.nvlink = {gigabytes_per_second(25),
                    "RTX 2080 Ti: bridge 100 GB/s both ways, 2 links (NV2 in nvidia-smi)"};
  machine.bridge_links = 2;
  machine.gpu_host = pcie_gen3();
  machine.pcie = pcie_gen3();
  return machine;
}

MachineSpec rtx3090() {
  MachineSpec machine = cards("rtx3090-pcie", "8 x RTX 3090, two on a switch, no PCIe P2P");
  on_switches(machine);
  machine.numa = {{.id = 0, .cpus = "0-19,40-59"}, {.id = 1, .cpus = "20-39,60-79"}};
  machine.cpu = milan();
  machine.smp = epyc_smp();
  machine.compute_capability = 86;
  machine.nvlink = {gigabytes_per_second(14.0625),
                    "GA102 whitepaper: bridge 112.5 GB/s both ways, 4 links"};
  machine.bridge_links = 4;
  machine.gpu_host = pcie_gen4();
  machine.pcie = pcie_gen4();
  return machine;
}

MachineSpec rtx4090() {
  MachineSpec machine = cards("rtx4090-pcie", "8 x RTX 4090 on root ports, no P2P");
  on_root_ports(machine);
  machine.cpu = milan();
  machine.smp = epyc_smp();
  machine.compute_capability = 89;
  machine.gpu_host = pcie_gen4();
  machine.pcie = pcie_gen4();
  return machine;
}

MachineSpec rtx5090() {
  MachineSpec machine = cards("rtx5090-pcie", "8 x RTX 5090 on root ports, no P2P");
  on_root_ports(machine);
  machine.cpu = genoa();
  machine.smp = genoa_smp();
  machine.compute_capability = 120;
  machine.gpu_host = pcie_gen5();
  machine.pcie = pcie_gen5();
  return machine;
}

// A port shows as two PCIe functions of four lanes, each a NIC to NCCL; the second port is on the
// same eight lanes, so that a host never sends more than one port takes.
MachineSpec gb10() {
  Parent function = at_cpu(0);
  function.rate = pcie_rate(32, 4);
  return {
      .name = "gb10",
      .title = "DGX Spark: one GB10 with the host's memory, ConnectX-7 as two NICs of 100 Gb/s",
      .profile = "gb10",
      .numa = {{.id = 0, .cpus = "0-19"}},
      .gpus = {at_cpu(0)},
      .nics = {function, function},
      .port_functions = 2,
      .cpu = {.arch = "arm64", .source = "GB10: 20 Arm cores"},
      .compute_capability = 121,
      .gpu_host_class = sim::LinkClass::c2c,
      .gpu_host = {gigabytes_per_second(300),
                   "GB10 (Hot Chips 2025): NVLink-C2C 600 GB/s both ways"},
      .pcie = {pcie_rate(32, 8),
               "the lanes of both functions, PCIe 5.0 x4 each; the GPU's link is on chip"},
      .nic = {gigabits_per_second(100),
              "DGX Spark: a port of 200 Gb/s is two functions of about 100 "
              "(NVIDIA/dgx-spark-playbooks#25)"},
      .gpudirect = false,
  };
}

}  // namespace

std::vector<MachineSpec> geforce_machines() {
  return {rtx2080ti(), rtx3090(), rtx4090(), rtx5090(), gb10()};
}

}  // namespace railyard::topologies
