// PCIe boxes, and the machine without an inside that comparison scenarios need.
#include "topologies/machine_catalogue.h"

namespace railyard::topologies {
namespace {

using sim::gigabits_per_second;
using sim::gigabytes_per_second;

// Two sockets, two switches on each with two GPUs; one NIC per socket on its first switch.
MachineSpec pcie_8() {
  return {
      .name = "pcie-8",
      .title = "8 x A100 PCIe on two sockets, no NVLink, 2 x HDR InfiniBand",
      .profile = "a100-pcie",
      .numa = {{.id = 0, .cpus = "0-31,64-95"}, {.id = 1, .cpus = "32-63,96-127"}},
      .switches = {{at_cpu(0)}, {at_cpu(0)}, {at_cpu(1)}, {at_cpu(1)}},
      .gpus = {at_switch(0), at_switch(0), at_switch(1), at_switch(1),  //
               at_switch(2), at_switch(2), at_switch(3), at_switch(3)},
      .nics = {at_switch(0), at_switch(2)},
      .cpu = milan(),
      .compute_capability = 80,
      .bridge_links = 12,
      .nvlink = {gigabytes_per_second(25),
                 "A100 PCIe datasheet: bridge 600 GB/s both ways, 12 links"},
      .gpu_host = pcie_gen4(),
      .pcie = pcie_gen4(),
      .smp = epyc_smp(),
      .nic = {gigabits_per_second(200), "ConnectX-6 datasheet: HDR InfiniBand, 200 Gb/s"},
  };
}

MachineSpec pcie_8_nvlink() {
  MachineSpec machine = pcie_8();
  machine.name = "pcie-8-nvlink";
  machine.title = "8 x A100 PCIe on two sockets, NVLink bridges on neighbouring pairs";
  machine.nvlinks_per_gpu = 12;
  machine.pairs = {{0, 1, 12}, {2, 3, 12}, {4, 5, 12}, {6, 7, 12}};
  return machine;
}

// Where Gloo runs without GPUs. A "GPU" of it is a process; scenarios say how many are started
// (gpus_per_node) and what the network is (fabric.link_rate).
MachineSpec cpu_host() {
  return {
      .name = "cpu-host",
      .title = "a server without GPUs: up to 8 processes on its processor, 1 x 25 Gb/s Ethernet",
      .profile = "cpu-host",
      .numa = {{.id = 0}},
      .gpus = std::vector<Parent>(8, at_cpu(0)),
      .nics = {at_cpu(0)},
      .cpu = milan(),
      .gpu_host = pcie_gen4(),
      .pcie = pcie_gen4(),
      .nic = {gigabits_per_second(25), "ConnectX-4 Lx datasheet: 25 Gb/s Ethernet"},
      .processors_only = true,
  };
}

// Every GPU has one port on the fabric and nothing else: the network of other simulators.
MachineSpec flat() {
  return {
      .name = "flat",
      .title = "any number of GPUs, each with one port on the fabric and nothing inside the node",
      .profile = "h100-hgx",
      .numa = {{.id = 0}},
      .gpus = {at_cpu(0)},
      .nic = {gigabits_per_second(400), "a placeholder: scenarios state fabric.link_rate"},
      .flat = true,
  };
}

}  // namespace

std::vector<MachineSpec> plain_machines() {
  return {pcie_8(), pcie_8_nvlink(), cpu_host(), flat()};
}

}  // namespace railyard::topologies
