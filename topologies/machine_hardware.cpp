#include "topologies/machine_hardware.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

#include "topologies/cpu_list.h"

namespace railyard::topologies {
namespace {

using sim::Hardware;
using sim::HardwareCpu;
using sim::HardwareGpu;
using sim::HardwareNet;
using sim::HardwareNic;
using sim::HardwarePci;

constexpr std::uint32_t kNvidia = 0x10de;
constexpr std::uint32_t kMellanox = 0x15b3;
constexpr std::uint32_t kBroadcom = 0x1000;
constexpr std::uint32_t kClassGpu3d = 0x030200;
constexpr std::uint32_t kClassInfiniband = 0x020700;
constexpr std::uint64_t kFirstGuid = 0xa000;

struct PcieLink {
  std::string speed;
  std::int32_t width = 16;
};

struct Generation {
  double gigatransfers;
  const char* speed;
};
constexpr std::array<Generation, 6> kGenerations{{{2.5, "2.5 GT/s PCIe"},
                                                  {5, "5.0 GT/s PCIe"},
                                                  {8, "8.0 GT/s PCIe"},
                                                  {16, "16.0 GT/s PCIe"},
                                                  {32, "32.0 GT/s PCIe"},
                                                  {64, "64.0 GT/s PCIe"}}};

// Widest first, so that 8 GT/s x16 wins over 16 GT/s x8, which is as fast.
PcieLink nearest_link(sim::Bandwidth rate) {
  PcieLink best;
  double best_difference = INFINITY;
  for (const std::int32_t width : {16, 8, 4, 2, 1})
    for (const Generation& generation : kGenerations) {
      const sim::Bandwidth candidate =
          pcie_rate(generation.gigatransfers, static_cast<std::uint32_t>(width));
      const double difference = std::abs(static_cast<double>((candidate - rate).raw()));
      constexpr double kSame = 0.999;  // equal rates differ by rounding
      if (difference >= best_difference * kSame) continue;
      best = {generation.speed, width};
      best_difference = difference;
    }
  return best;
}

class Builder {
 public:
  explicit Builder(const MachineSpec& machine) : machine_(machine) {}

  Hardware build() {
    Hardware hardware;
    for (std::uint32_t i = 0; i < machine_.numa.size(); ++i) hardware.cpus.push_back(cpu(i));
    for (HardwareCpu& cpu : hardware.cpus)
      for (HardwarePci& pci : cpu.pci) add_nvlinks(pci);
    return hardware;
  }

 private:
  HardwareCpu cpu(std::uint32_t index) {
    HardwareCpu cpu;
    const NumaNode& numa = machine_.numa[index];
    cpu.numa_id = numa.id;
    cpu.affinity = cpu_mask(numa.cpus);
    cpu.arch = machine_.cpu.arch;
    cpu.vendor = machine_.cpu.vendor;
    cpu.family = machine_.cpu.family;
    cpu.model = machine_.cpu.model;
    cpu.pci = children_of(at_cpu(index));
    return cpu;
  }

  static bool same(Parent a, Parent b) { return a.is_switch == b.is_switch && a.index == b.index; }

  // Recursion ends because a switch comes after its parent.
  std::vector<HardwarePci> children_of(Parent parent) {
    std::vector<HardwarePci> children;
    for (std::uint32_t i = 0; i < machine_.switches.size(); ++i)
      if (same(machine_.switches[i].parent, parent)) children.push_back(pcie_switch(i));
    for (std::uint32_t i = 0; i < machine_.gpus.size(); ++i)
      if (same(machine_.gpus[i], parent))
        children.push_back(has_direct_nic(i) ? with_direct_nic(i) : gpu(i));
    for (std::uint32_t i = 0; i < machine_.nics.size(); ++i)
      if (same(machine_.nics[i], parent) && !has_direct_nic(i)) children.push_back(nic(i));
    return children;
  }

  [[nodiscard]] bool has_direct_nic(std::uint32_t index) const {
    return machine_.direct_nic.value.raw() > 0 && index < machine_.gpus.size() &&
           index < machine_.nics.size();
  }

  // NCCL moves the NIC to its data-direct function, which it takes for a bridge above the GPU too.
  HardwarePci with_direct_nic(std::uint32_t index) {
    HardwarePci bridge = device(sim::kPciClassDataDirect, Parent{}, machine_.pcie);
    bridge.children.push_back(gpu(index));
    bridge.children.push_back(nic(index));
    for (HardwarePci& end : bridge.children) {
      const PcieLink link = nearest_link(machine_.direct_nic.value);
      end.link_speed = link.speed;
      end.link_width = link.width;
    }
    return bridge;
  }

  // Bus numbers 1 to 0xfe of as many domains as it takes; none is NCCL's mark of an NVSwitch.
  std::string next_bus_id() {
    constexpr std::uint32_t kBuses = 0xfe;
    const std::uint32_t number = buses_++;
    return fmt::format("{:04x}:{:02x}:00.0", number / kBuses, 1 + number % kBuses);
  }

  HardwarePci device(std::uint32_t device_class, Parent parent, const Rate& usual) {
    HardwarePci pci;
    pci.bus_id = next_bus_id();
    pci.device_class = device_class;
    const PcieLink link = nearest_link(parent.rate.raw() > 0 ? parent.rate : usual.value);
    pci.link_speed = link.speed;
    pci.link_width = link.width;
    return pci;
  }

  HardwarePci pcie_switch(std::uint32_t index) {
    const PcieSwitch& spec = machine_.switches[index];
    HardwarePci pci = device(sim::kPciClassSwitch, spec.parent, machine_.pcie);
    bool has_partitions = false;
    for (const PcieSwitch& other : machine_.switches)
      has_partitions |= other.width > 1 && same(other.parent, at_switch(index));
    if (has_partitions || spec.width > 1) {
      // The 4th generation's chip (c010) or the 5th's (c030); partitions of the latter say so.
      const bool fifth = pci.link_speed == "32.0 GT/s PCIe";
      const bool partition = spec.width > 1;
      pci.vendor = kBroadcom;
      pci.device = fifth ? 0xc030 : 0xc010;
      pci.subsystem_vendor = kBroadcom;
      pci.subsystem_device = (fifth ? (partition ? 0x1000u : 0u) : 0xa000u) + index;
    }
    pci.children = children_of(at_switch(index));
    return pci;
  }

  HardwarePci gpu(std::uint32_t index) {
    // A GPU on C2C still has its PCIe link.
    const bool c2c = machine_.gpu_host_class == sim::LinkClass::c2c;
    Parent parent = machine_.gpus[index];
    if (c2c) parent.rate = {};
    HardwarePci pci = device(kClassGpu3d, parent, c2c ? machine_.pcie : machine_.gpu_host);
    pci.vendor = kNvidia;
    HardwareGpu gpu;
    gpu.dev = static_cast<std::int32_t>(index);
    gpu.sm = machine_.compute_capability;
    gpu.gdr = machine_.gpudirect;
    gpu.pcie_p2p = machine_.pcie_p2p;
    if (machine_.c2c)
      gpu.c2c = sim::HardwareC2c{machine_.c2c->megabytes_per_second, machine_.c2c->count};
    pci.gpu = std::move(gpu);
    if (bus_of_gpu_.size() <= index) bus_of_gpu_.resize(index + 1);
    bus_of_gpu_[index] = pci.bus_id;
    return pci;
  }

  HardwarePci nic(std::uint32_t index) {
    HardwarePci pci = device(kClassInfiniband, machine_.nics[index], machine_.pcie);
    pci.vendor = kMellanox;
    HardwareNet net;
    net.name = fmt::format("mlx5_{}", index);
    net.dev = static_cast<std::int32_t>(index);
    const sim::Bandwidth rate =
        machine_.nic_rates.empty() ? machine_.nic.value : machine_.nic_rates[index];
    net.speed = static_cast<std::int32_t>(std::lround(sim::to_gigabytes_per_second(rate) * 8000));
    net.port = 1;
    net.guid = kFirstGuid + index;
    net.max_connections = 131072;
    net.gdr = true;
    pci.nics.push_back({.nets = {std::move(net)}});
    return pci;
  }

  // All GPUs have their bus ids by now.
  void add_nvlinks(HardwarePci& pci) {
    for (HardwarePci& child : pci.children) add_nvlinks(child);
    if (!pci.gpu) return;
    const auto index = static_cast<std::uint32_t>(pci.gpu->dev);
    if (machine_.nvswitch) {
      const std::uint32_t links =
          machine_.gpu_nvlinks.empty() ? machine_.nvlinks_per_gpu : machine_.gpu_nvlinks[index];
      if (links > 0) pci.gpu->nvlinks.push_back({"ffff:ff:00.0", links, sim::kPciClassNvswitch});
    }
    for (std::uint32_t peer = 0; peer < machine_.gpus.size(); ++peer)
      for (const NvlinkPair& pair : machine_.pairs)
        if ((pair.a == index && pair.b == peer) || (pair.b == index && pair.a == peer))
          pci.gpu->nvlinks.push_back({bus_of_gpu_[peer], pair.links, kClassGpu3d});
  }

  const MachineSpec& machine_;
  std::uint32_t buses_ = 0;
  std::vector<std::string> bus_of_gpu_;
};

}  // namespace

sim::Result<Hardware> hardware_of(const MachineSpec& machine) {
  if (machine.hardware) return *machine.hardware;
  if (machine.flat)
    return sim::bad_input(
        fmt::format("machine '{}' has no inside that NCCL could look at", machine.name));
  RAILYARD_TRY(check_machine(machine));
  return Builder(machine).build();
}

}  // namespace railyard::topologies
