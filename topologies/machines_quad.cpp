// Boards of four GPUs that are wired to one another, every pair alike, without an NVSwitch.
#include "topologies/machine_catalogue.h"

namespace railyard::topologies {
namespace {

using sim::gigabits_per_second;
using sim::gigabytes_per_second;

std::vector<NvlinkPair> all_pairs(std::uint16_t links) {
  return {{0, 1, links}, {0, 2, links}, {0, 3, links}, {1, 2, links}, {1, 3, links}, {2, 3, links}};
}

// Two sockets with two GPUs each, a PCIe switch for every GPU and its NIC.
MachineSpec two_sockets() {
  MachineSpec machine;
  for (std::uint32_t i = 0; i < 4; ++i) {
    machine.switches.push_back({at_cpu(i / 2)});
    machine.gpus.push_back(at_switch(i));
    machine.nics.push_back(at_switch(i));
  }
  return machine;
}

MachineSpec v100_quad() {
  MachineSpec machine = two_sockets();
  machine.name = "v100-quad-nvlink";
  machine.title = "4 x V100 SXM2: two NVLinks between any two GPUs, two sockets, 4 x EDR";
  machine.profile = "v100-quad";
  machine.numa = {{.id = 0, .cpus = "0-19"}, {.id = 1, .cpus = "20-39"}};
  machine.cpu = skylake();
  machine.compute_capability = 70;
  machine.nvlinks_per_gpu = 6;
  machine.pairs = all_pairs(2);
  machine.nvlink = {gigabytes_per_second(25), "V100 datasheet: 300 GB/s both ways, 6 links"};
  machine.gpu_host = pcie_gen3();
  machine.pcie = pcie_gen3();
  machine.smp = skylake_smp();
  machine.nic = {gigabits_per_second(100), "ConnectX-5 datasheet: EDR InfiniBand, 100 Gb/s"};
  return machine;
}

// A node of Polaris: one socket in four NUMA nodes, the GPUs on them in descending order, two NICs.
MachineSpec a100_quad() {
  return {
      .name = "a100-quad-nvlink",
      .title = "4 x A100 SXM4: four NVLinks between any two GPUs, one EPYC, 2 x 200 Gb/s (Polaris)",
      .profile = "a100-quad",
      .numa = {{.id = 0, .cpus = "0-7,32-39"},
               {.id = 1, .cpus = "8-15,40-47"},
               {.id = 2, .cpus = "16-23,48-55"},
               {.id = 3, .cpus = "24-31,56-63"}},
      .gpus = {at_cpu(3), at_cpu(2), at_cpu(1), at_cpu(0)},
      .nics = {at_cpu(0), at_cpu(2)},
      .cpu = milan(),
      .compute_capability = 80,
      .nvlinks_per_gpu = 12,
      .pairs = all_pairs(4),
      .nvlink = {gigabytes_per_second(25), "A100 datasheet: 600 GB/s both ways, 12 links"},
      .gpu_host = pcie_gen4(),
      .pcie = pcie_gen4(),
      .smp = {gigabytes_per_second(96),
              "between quadrants of one EPYC 7003: no public figure; as between two sockets"},
      .nic = {gigabits_per_second(200), "HPE Slingshot 11: 200 Gb/s, two per node of Polaris"},
      .one_host_bridge_per_cpu = true,
  };
}

MachineSpec h100_quad() {
  MachineSpec machine = two_sockets();
  machine.name = "h100-quad-nvlink";
  machine.title = "4 x H100 SXM5: six NVLinks between any two GPUs, two sockets, 4 x NDR200";
  machine.profile = "h100-quad";
  machine.numa = {{.id = 0, .cpus = "0-31"}, {.id = 1, .cpus = "32-63"}};
  machine.cpu = genoa();
  machine.compute_capability = 90;
  machine.nvlinks_per_gpu = 18;
  machine.pairs = all_pairs(6);
  machine.nvlink = {gigabytes_per_second(25), "H100 SXM datasheet: 900 GB/s both ways, 18 links"};
  machine.gpu_host = pcie_gen5();
  machine.pcie = pcie_gen5();
  machine.smp = genoa_smp();
  machine.nic = {gigabits_per_second(200), "four NDR200 ports per node of Snellius, 200 Gb/s each"};
  return machine;
}

}  // namespace

std::vector<MachineSpec> quad_machines() { return {v100_quad(), a100_quad(), h100_quad()}; }

}  // namespace railyard::topologies
