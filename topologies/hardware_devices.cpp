#include "topologies/hardware_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "topologies/import/bus_id.h"
#include "topologies/import/text_file.h"

namespace railyard::topologies {
namespace {

using sim::Hardware;
using sim::HardwareCpu;
using sim::HardwareNet;
using sim::HardwareNic;
using sim::HardwarePci;
using sim::Result;

constexpr std::size_t kMaxDevices = 1024;

bool is_nvswitch(std::uint32_t device_class) {
  return device_class >> 8 == 0x0680 && device_class != 0x068001;
}

// GPUs and NICs in and below a device.
bool holds_devices(const HardwarePci& pci) {
  const PciRole role = role_of(pci);
  if (role != PciRole::bridge && role != PciRole::unknown) return true;
  return std::any_of(pci.children.begin(), pci.children.end(), holds_devices);
}

class Finder {
 public:
  Result<FoundDevices> run(const Hardware& host) {
    for (std::uint32_t i = 0; i < host.cpus.size(); ++i)
      for (const HardwarePci& pci : host.cpus[i].pci) walk(pci, at_cpu(i));
    if (amd_ > 0)
      return unsupported(
          fmt::format("{} AMD GPUs; no machine of the catalogue stands near them", amd_));
    if (found_.gpus.empty()) return no_gpus();
    const std::size_t devices = found_.gpus.size() + found_.nics.size() + found_.switches.size();
    if (devices > kMaxDevices)
      return unsupported(fmt::format(
          "a host of {} GPUs, NICs and switches; at most {} are supported", devices, kMaxDevices));
    if (unknown_ > 0) {
      found_.complete = false;
      found_.notes.push_back(fmt::format("{} PCI devices without a class left out", unknown_));
    }
    add_bare_nics(host);
    sort();
    if (!found_.direct_nics.empty()) settle_direct_nics();
    read_gpus();
    return std::move(found_);
  }

 private:
  static sim::Error unsupported(std::string message) {
    return {sim::ErrorCode::unsupported, std::move(message), {}};
  }

  [[nodiscard]] sim::Error no_gpus() const {
    std::string message = "no GPUs in the file";
    if (unknown_ > 0)
      message += fmt::format(
          ", only {} PCI devices without a class; NCCL finds out at run time, here nothing can",
          unknown_);
    return unsupported(std::move(message));
  }

  static Parent with_rate(Parent parent, sim::Bandwidth rate) {
    parent.rate = rate;
    return parent;
  }

  void walk(const HardwarePci& pci, Parent parent) {
    const Parent link = with_rate(parent, link_rate_of(pci));
    const PciRole role = role_of(pci);
    if (role == PciRole::amd_gpu) {
      ++amd_;
    } else if (role == PciRole::unknown) {
      ++unknown_;
    } else if (role == PciRole::gpu) {
      found_.gpus.push_back({.pci = &pci, .parent = link});
    } else if (role == PciRole::nic && !has_device_children(pci)) {
      add_nic(pci, link);
    } else {
      walk_bridge(pci, link);
    }
  }

  static bool has_device_children(const HardwarePci& pci) {
    return std::any_of(pci.children.begin(), pci.children.end(), holds_devices);
  }

  void walk_bridge(const HardwarePci& pci, Parent link) {
    if (!holds_devices(pci)) {
      for (const HardwarePci& child : pci.children) walk(child, link);  // counts the unknown
      return;
    }
    if (is_direct_nic(pci)) return walk_direct_nic(pci, link);
    const auto index = static_cast<std::uint32_t>(found_.switches.size());
    found_.switches.push_back({link});
    if (!pci.nics.empty())
      found_.notes.push_back(fmt::format(
          "{} holds a NIC and other devices; NCCL takes it for a NIC and drops them, here it is a "
          "switch",
          printable(pci.bus_id)));
    for (const HardwareNet* net : nets_of(pci)) add_net(*net, at_switch(index));
    for (const HardwarePci& child : pci.children) walk(child, at_switch(index));
  }

  // A GPU on C2C and its NIC below the NIC's data-direct function.
  static bool is_direct_nic(const HardwarePci& pci) {
    return pci.device_class == sim::kPciClassDataDirect && pci.nics.empty() &&
           pci.children.size() == 2 && pci.children[0].gpu && pci.children[0].gpu->c2c &&
           role_of(pci.children[1]) == PciRole::nic && nets_of(pci.children[1]).size() == 1;
  }

  // Both hang from the processor as well: the GPU by C2C, the NIC by the link above the bridge.
  void walk_direct_nic(const HardwarePci& pci, Parent link) {
    found_.direct_nics.emplace_back(&pci.children[0], nets_of(pci.children[1]).front());
    found_.direct_nic = link_rate_of(pci.children[1]);
    found_.gpus.push_back({.pci = &pci.children[0], .parent = link});
    add_nic(pci.children[1], link);
  }

  // The i-th GPU's is the i-th NIC, or the machine has none.
  void settle_direct_nics() {
    bool in_order = found_.direct_nics.size() == found_.gpus.size() &&
                    found_.direct_nics.size() == found_.nics.size();
    for (const auto& [gpu, net] : found_.direct_nics)
      for (std::size_t i = 0; in_order && i < found_.gpus.size(); ++i)
        in_order = (found_.gpus[i].pci == gpu) == (found_.nics[i].net == net);
    if (in_order) return;
    found_.notes.emplace_back(
        "not every GPU has the NIC of its own number below a data-direct function: taken as joined "
        "by the processors alone");
    found_.direct_nic = {};
  }

  static std::vector<const HardwareNet*> nets_of(const HardwarePci& pci) {
    std::vector<const HardwareNet*> nets;
    for (const HardwareNic& nic : pci.nics)
      for (const HardwareNet& net : nic.nets)
        if (net.keep) nets.push_back(&net);
    return nets;
  }

  void add_net(const HardwareNet& net, Parent parent) {
    constexpr double kUnknown = 10'000;  // Mbit/s, as NCCL takes it
    const double megabits = net.speed > 0 ? net.speed : kUnknown;
    found_.nics.push_back(
        {.net = &net, .parent = parent, .rate = sim::gigabytes_per_second(megabits / 8000)});
  }

  // Ports that do not fit through the card's PCIe link together share it: the card is a switch.
  void add_nic(const HardwarePci& pci, Parent link) {
    const auto nets = nets_of(pci);
    if (nets.empty()) {
      found_.nics.push_back({.parent = link});
      found_.complete = false;
      return;
    }
    double megabits = 0;
    for (const HardwareNet* net : nets) megabits += net->speed;
    const double fits = sim::to_gigabytes_per_second(link.rate) * 8000;
    if (nets.size() > 1 && link.rate.raw() > 0 && megabits > fits) {
      const auto index = static_cast<std::uint32_t>(found_.switches.size());
      found_.switches.push_back({link});
      found_.notes.push_back(fmt::format("the {} ports of {} share its PCIe link: it is a switch",
                                         nets.size(), printable(pci.bus_id)));
      link = with_rate(at_switch(index), link.rate);
    }
    for (const HardwareNet* net : nets) add_net(*net, link);
  }

  // Network devices without PCIe: the only ones, or a container's sockets beside the real ones.
  void add_bare_nics(const Hardware& host) {
    std::vector<std::pair<const HardwareNet*, Parent>> bare;
    for (std::uint32_t i = 0; i < host.cpus.size(); ++i)
      for (const HardwareNic& nic : host.cpus[i].nics)
        for (const HardwareNet& net : nic.nets) bare.emplace_back(&net, at_cpu(i));
    const std::size_t left_out = found_.nics.empty() ? 0 : bare.size();
    if (left_out > 0) bare.clear();
    for (const auto& [net, parent] : bare)
      if (net->keep) add_net(*net, parent);
    if (left_out > 0)
      found_.notes.push_back(
          fmt::format("{} network devices without PCIe left out: there are real NICs", left_out));
  }

  void sort() {
    found_.knows_nvlinks =
        std::all_of(found_.gpus.begin(), found_.gpus.end(),
                    [](const FoundGpu& gpu) { return gpu.pci->gpu.has_value(); });
    if (!found_.knows_nvlinks)
      found_.notes.emplace_back("GPUs without <gpu> are known by their PCI class, numbered by bus");
    const bool by_dev = found_.knows_nvlinks;
    std::stable_sort(found_.gpus.begin(), found_.gpus.end(), [&](const auto& a, const auto& b) {
      if (by_dev) return a.pci->gpu->dev < b.pci->gpu->dev;
      return bus_number(a.pci->bus_id).value_or(0) < bus_number(b.pci->bus_id).value_or(0);
    });
    const bool named = std::all_of(found_.nics.begin(), found_.nics.end(),
                                   [](const FoundNic& nic) { return nic.net != nullptr; });
    if (named)
      std::stable_sort(found_.nics.begin(), found_.nics.end(),
                       [](const auto& a, const auto& b) { return a.net->dev < b.net->dev; });
  }

  void read_gpus() {
    for (FoundGpu& gpu : found_.gpus) {
      found_.gigatransfers = std::max(found_.gigatransfers, gigatransfers_of(gpu.pci->link_speed));
      if (!gpu.pci->gpu) {
        found_.complete = false;
        continue;
      }
      const sim::HardwareGpu& inside = *gpu.pci->gpu;
      found_.compute_capability = std::max(found_.compute_capability, inside.sm);
      if (inside.sm == 0) found_.complete = false;
      if (inside.c2c && inside.c2c->count > 0 && inside.c2c->bandwidth > 0) {
        found_.has_c2c = true;
        found_.c2c = *inside.c2c;
      }
      for (const sim::HardwareNvlink& link : inside.nvlinks) add_link(gpu, link);
    }
  }

  void add_link(FoundGpu& gpu, const sim::HardwareNvlink& link) {
    if (link.count == 0) return;
    found_.has_nvlinks = true;
    if (is_nvswitch(link.target_class)) {
      found_.has_nvswitch = true;
      gpu.switch_links += link.count;
      return;
    }
    if (same_bus_id(gpu.pci->bus_id, link.target)) {
      found_.self_links += link.count;
      return;
    }
    for (std::uint32_t peer = 0; peer < found_.gpus.size(); ++peer)
      if (same_bus_id(found_.gpus[peer].pci->bus_id, link.target)) {
        gpu.peers.push_back({peer, link.count});
        return;
      }
    found_.lost_links += link.count;
  }

  FoundDevices found_;
  std::size_t amd_ = 0;
  std::size_t unknown_ = 0;
};

}  // namespace

const NvlinkGeneration& nvlink_generation(std::int32_t compute_capability) {
  static constexpr std::array<NvlinkGeneration, 6> kGenerations{
      {{100, 18, 50}, {90, 18, 25}, {86, 4, 14.0625}, {80, 12, 25}, {70, 6, 25}, {60, 4, 20}}};
  for (const NvlinkGeneration& generation : kGenerations)
    if (compute_capability >= generation.compute_capability) return generation;
  return kGenerations.front();
}

std::vector<std::pair<std::uint64_t, Hardware>> hosts_of(const Hardware& hardware) {
  std::vector<std::pair<std::uint64_t, Hardware>> hosts;
  std::map<std::uint64_t, std::size_t> places;
  for (const HardwareCpu& cpu : hardware.cpus) {
    const auto [place, fresh] = places.try_emplace(cpu.host_hash, hosts.size());
    if (fresh) hosts.push_back({cpu.host_hash, {}});
    hosts[place->second].second.cpus.push_back(cpu);
  }
  return hosts;
}

PciRole role_of(const HardwarePci& pci) {
  const std::uint32_t base = pci.device_class >> 16;
  // AMD's accelerators are "other display controllers"; no NVIDIA GPU is.
  const bool amd =
      base == 0x12 || pci.device_class >> 8 == 0x0380 || (base == 0x03 && pci.vendor == 0x1002);
  if (pci.gpu || base == 0x03) return amd ? PciRole::amd_gpu : PciRole::gpu;
  if (amd) return PciRole::amd_gpu;
  if (!pci.nics.empty() || base == 0x02) return PciRole::nic;
  if (pci.device_class == 0 && pci.children.empty()) return PciRole::unknown;
  return PciRole::bridge;
}

double gigatransfers_of(const std::string& link_speed) {
  char* end = nullptr;
  const double value = std::strtod(link_speed.c_str(), &end);
  while (*end == ' ') ++end;
  const bool unit = std::string_view(end).starts_with("GT/s");
  return unit && pcie_rate(value, 1).raw() > 0 ? value : 0;
}

sim::Bandwidth link_rate_of(const HardwarePci& pci) {
  constexpr std::int32_t kMostLanes = 32;
  constexpr std::int32_t kNcclLanes = 16;
  const bool usable = pci.link_width > 0 && pci.link_width <= kMostLanes;
  return pcie_rate(gigatransfers_of(pci.link_speed),
                   static_cast<std::uint32_t>(usable ? pci.link_width : kNcclLanes));
}

std::uint32_t FoundDevices::links(std::uint32_t from, std::uint32_t to) const {
  std::uint32_t sum = 0;
  for (const NvlinkPeer& peer : gpus[from].peers)
    if (peer.gpu == to) sum += peer.links;
  return sum;
}

Result<FoundDevices> find_devices(const Hardware& host) { return Finder().run(host); }

}  // namespace railyard::topologies
