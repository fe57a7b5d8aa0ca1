#include "topologies/hardware_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "topologies/cpu_list.h"
#include "topologies/hardware_devices.h"
#include "topologies/import/bus_id.h"

namespace railyard::topologies {
namespace {

using sim::Hardware;
using sim::HardwareCpu;
using sim::HardwarePci;
using sim::Result;

std::string host_text(std::uint64_t hash) { return fmt::format("{:#x}", hash); }

class Importer {
 public:
  Importer(const Hardware& hardware, const ImportOptions& options)
      : hardware_(hardware), options_(options) {}

  Result<ImportedMachine> run() {
    RAILYARD_TRY(select_host());
    const Hardware host{host_};
    RAILYARD_ASSIGN(found_, find_devices(host));
    for (const std::string& note : found_.notes) assume(note);
    RAILYARD_TRY(choose_like());
    fill_host();
    fill_devices();
    RAILYARD_TRY(fill_nvlinks());
    fill_c2c();
    fill_peers();
    if (found_.complete) out_.machine.hardware = std::make_shared<const Hardware>(Hardware{host_});
    RAILYARD_TRY(check_machine(out_.machine));
    return std::move(out_);
  }

 private:
  void assume(std::string text) { out_.assumptions.push_back(std::move(text)); }
  void borrow(std::string what, std::string text) {
    out_.borrowed.push_back(std::move(what));
    assume(std::move(text));
  }

  Result<void> select_host() {
    const auto hosts = hosts_of(hardware_);
    if (hosts.empty()) return sim::bad_input("no CPU, so no machine");
    host_ = hosts.front().second.cpus;
    out_.hosts = static_cast<std::uint32_t>(hosts.size());
    if (hosts.size() == 1) return {};
    RAILYARD_ASSIGN(const FoundDevices first, find_devices(hosts.front().second));
    for (const auto& [hash, host] : hosts) {
      RAILYARD_ASSIGN(const FoundDevices other, find_devices(host));
      if (other.gpus.size() == first.gpus.size() && other.nics.size() == first.nics.size())
        continue;
      return sim::Error{
          sim::ErrorCode::unsupported,
          fmt::format("the file's hosts differ: {} has {} GPUs and {} NICs, {} has {} and {}; one "
                      "machine cannot stand for both",
                      host_text(hosts.front().first), first.gpus.size(), first.nics.size(),
                      host_text(hash), other.gpus.size(), other.nics.size()),
          {}};
    }
    assume(fmt::format("the file holds {} hosts; the first one stands for all", hosts.size()));
    return {};
  }

  [[nodiscard]] std::string nearest() const {
    const std::int32_t capability = found_.compute_capability;
    if (found_.has_c2c) return capability >= 100 ? "gb200-nvl72" : "gh200-4";
    if (capability == 0) {
      if (found_.gigatransfers >= 32) return "hgx-h100";
      return found_.gigatransfers >= 16 ? "dgx-a100" : "dgx-1v";
    }
    if (capability >= 100 && capability < 120) return "hgx-b200";
    if (capability >= 90 && capability < 100) return "hgx-h100";
    if (capability == 70 || capability == 72) return "dgx-1v";
    if (capability == 80 && found_.has_nvswitch) return "dgx-a100";
    return capability == 80 && found_.has_nvlinks ? "pcie-8-nvlink" : "pcie-8";
  }

  Result<void> choose_like() {
    out_.like = options_.like.empty() ? nearest() : options_.like;
    RAILYARD_ASSIGN(like_, find_machine(out_.like));
    if (like_.flat) return sim::bad_input("a flat machine supplies nothing that a node lacks");
    out_.like = like_.name;
    MachineSpec& machine = out_.machine;
    machine = like_;
    machine.name = options_.name;
    machine.title = fmt::format("imported; what its file does not say is {}'s", like_.name);
    machine.numa.clear();
    machine.switches.clear();
    machine.gpus.clear();
    machine.nics.clear();
    machine.pairs.clear();
    machine.gpu_nvlinks.clear();
    machine.c2c.reset();
    machine.direct_nic = {};
    machine.nodes_per_nvlink_domain = 1;
    const std::int32_t capability = found_.compute_capability;
    if (capability == 0)
      borrow("GPU model",
             fmt::format("the file does not name its GPUs; taken as {}'s{}", like_.name,
                         options_.like.empty() ? ", a guess by PCIe speed" : ""));
    else
      machine.compute_capability = capability;
    if (capability != 0 && capability / 10 != like_.compute_capability / 10)
      assume(fmt::format("no profile for compute capability {}.{}; {}'s ({}.{}) is used",
                         capability / 10, capability % 10, like_.profile,
                         like_.compute_capability / 10, like_.compute_capability % 10));
    else if (capability != 0 && capability != like_.compute_capability)
      assume(fmt::format("profile {} is of compute capability {}.{}, the GPUs are {}.{}",
                         like_.profile, like_.compute_capability / 10,
                         like_.compute_capability % 10, capability / 10, capability % 10));
    return {};
  }

  void fill_host() {
    MachineSpec& machine = out_.machine;
    for (const HardwareCpu& cpu : host_)
      machine.numa.push_back({cpu.numa_id, cpu_list(cpu.affinity)});
    const HardwareCpu& first = host_.front();
    if (first.arch.empty() || (first.vendor.empty() && first.arch != "arm64")) {
      borrow("processor",
             fmt::format("processor not named; taken as {}'s: {}", like_.name, like_.cpu.source));
    } else {
      machine.cpu = {first.arch, first.vendor, first.family, first.model, "the topology file"};
    }
    if (machine.numa.size() > 1)
      borrow("bandwidth between NUMA nodes",
             fmt::format("{} between NUMA nodes, as on {} (NCCL's files do not say)",
                         sim::to_text(machine.smp.value), like_.name));
  }

  // The rate that most links have becomes the machine's, the others keep theirs.
  static void settle(std::vector<Parent*> links, Rate& usual) {
    std::map<std::int64_t, std::size_t> counts;
    for (const Parent* link : links) ++counts[link->rate.raw()];
    counts.erase(0);
    if (counts.empty()) return;
    const auto most =
        std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
          return a.second < b.second || (a.second == b.second && a.first < b.first);
        });
    usual = {sim::Bandwidth::from_raw(most->first), "the topology file"};
    for (Parent* link : links)
      if (link->rate == usual.value) link->rate = {};
  }

  void fill_devices() {
    MachineSpec& machine = out_.machine;
    machine.switches = found_.switches;
    std::vector<Parent*> gpus;
    std::vector<Parent*> others;
    for (const FoundGpu& gpu : found_.gpus) machine.gpus.push_back(gpu.parent);
    for (const FoundNic& nic : found_.nics) machine.nics.push_back(nic.parent);
    for (Parent& parent : machine.gpus) gpus.push_back(&parent);
    for (Parent& parent : machine.nics) others.push_back(&parent);
    for (PcieSwitch& bridge : machine.switches) others.push_back(&bridge.parent);
    std::size_t unknown = 0;
    for (const auto* list : {&gpus, &others})
      for (const Parent* parent : *list) unknown += parent->rate.raw() == 0 ? 1 : 0;
    if (unknown > 0)
      borrow("PCIe speeds",
             fmt::format("{} PCIe links without a speed; taken as the others, or {} as on {}",
                         unknown, sim::to_text(like_.pcie.value), like_.name));
    settle(gpus, machine.gpu_host);
    settle(others, machine.pcie);
    if (found_.direct_nic.raw() > 0) machine.direct_nic = {found_.direct_nic, "the topology file"};
    fill_nic_rates();
    fill_nic_names();
  }

  // As fabrics call them: the second port of mlx5_0 is mlx5_0/2.
  void fill_nic_names() {
    std::vector<std::string> names;
    for (const FoundNic& nic : found_.nics) {
      if (nic.net == nullptr || nic.net->name.empty()) return;
      const bool known = std::find(names.begin(), names.end(), nic.net->name) != names.end();
      names.push_back(known ? fmt::format("{}/{}", nic.net->name, nic.net->port) : nic.net->name);
    }
    out_.machine.nic_names = std::move(names);
  }

  void fill_nic_rates() {
    MachineSpec& machine = out_.machine;
    std::vector<sim::Bandwidth> rates;
    std::size_t unknown = 0;
    for (const FoundNic& nic : found_.nics) {
      unknown += nic.rate.raw() == 0 ? 1 : 0;
      rates.push_back(nic.rate.raw() > 0 ? nic.rate : like_.nic.value);
    }
    if (unknown > 0)
      borrow("NIC speeds", fmt::format("{} NICs without a speed; taken as {}, as on {}", unknown,
                                       sim::to_text(like_.nic.value), like_.name));
    if (rates.empty()) return;
    machine.nic = {*std::max_element(rates.begin(), rates.end()), "the topology file"};
    const bool equal = std::count(rates.begin(), rates.end(), machine.nic.value) ==
                       static_cast<std::ptrdiff_t>(rates.size());
    if (!equal) machine.nic_rates = std::move(rates);
  }

  Result<void> fill_nvlinks() {
    MachineSpec& machine = out_.machine;
    const std::int32_t capability = machine.compute_capability;
    if (machine.compute_capability != like_.compute_capability || like_.nvlink.value.raw() == 0)
      machine.nvlink = {
          sim::gigabytes_per_second(nvlink_generation(capability).gigabytes_per_second),
          fmt::format("datasheet of compute capability {}.{}", capability / 10, capability % 10)};
    machine.nvlinks_per_gpu = 0;
    machine.nvswitch = found_.has_nvswitch;
    if (!found_.knows_nvlinks) {
      borrow_nvlinks();
    } else if (machine.nvswitch) {
      fill_switch_links(nvlink_generation(capability).most);
    } else {
      fill_pairs(nvlink_generation(capability).most);
    }
    if (out_.hosts > 1 && !machine.nvswitch)
      return sim::bad_input("several hosts in the file, but no NVSwitch that they could share");
    machine.nodes_per_nvlink_domain = out_.hosts;
    return {};
  }

  // The file has no <gpu>s: NCCL asks the driver, a simulation asks the catalogue.
  void borrow_nvlinks() {
    MachineSpec& machine = out_.machine;
    if (like_.nvswitch || (!like_.pairs.empty() && like_.gpus.size() == machine.gpus.size())) {
      machine.nvswitch = like_.nvswitch;
      machine.pairs = like_.pairs;
      machine.nvlinks_per_gpu = like_.nvlinks_per_gpu;
      borrow("NVLinks", fmt::format("NVLinks are not in the file; {} a GPU, wired as on {}",
                                    machine.nvlinks_per_gpu, like_.name));
    } else {
      borrow("NVLinks", "NVLinks are not in the file; none assumed");
    }
  }

  std::uint32_t capped(std::uint32_t links, std::uint32_t most, std::size_t gpu) {
    if (links <= most) return links;
    assume(fmt::format("GPU {} has {} NVLinks in the file; {} taken, the most of its generation",
                       gpu, links, most));
    return most;
  }

  void fill_switch_links(std::uint32_t most) {
    MachineSpec& machine = out_.machine;
    std::size_t peers = 0;
    for (std::size_t i = 0; i < found_.gpus.size(); ++i) {
      const std::uint32_t links = capped(found_.gpus[i].switch_links, most, i);
      machine.gpu_nvlinks.push_back(static_cast<std::uint16_t>(links));
      machine.nvlinks_per_gpu = std::max(machine.nvlinks_per_gpu, links);
      peers += found_.gpus[i].peers.size();
    }
    if (peers > 0) assume("NVLinks between GPUs beside an NVSwitch left out");
    const auto equal =
        std::count(machine.gpu_nvlinks.begin(), machine.gpu_nvlinks.end(), machine.nvlinks_per_gpu);
    if (equal == static_cast<std::ptrdiff_t>(machine.gpu_nvlinks.size()))
      machine.gpu_nvlinks.clear();
  }

  void fill_pairs(std::uint32_t most) {
    MachineSpec& machine = out_.machine;
    std::vector<std::uint32_t> used(found_.gpus.size(), 0);
    for (std::uint32_t a = 0; a < found_.gpus.size(); ++a)
      for (std::uint32_t b = a + 1; b < found_.gpus.size(); ++b) {
        const std::uint32_t there = found_.links(a, b);
        const std::uint32_t back = found_.links(b, a);
        if (there != back)
          assume(
              fmt::format("GPU {} has {} NVLinks to GPU {}, which has {} back; {} taken both "
                          "ways",
                          a, there, b, back, std::max(there, back)));
        const std::uint32_t links = capped(std::max(there, back), most, a);
        if (links == 0) continue;
        machine.pairs.push_back({a, b, static_cast<std::uint16_t>(links)});
        used[a] += links;
        used[b] += links;
      }
    if (!used.empty()) machine.nvlinks_per_gpu = *std::max_element(used.begin(), used.end());
    if (found_.self_links > 0)
      borrow(
          "where NVLinks lead",
          fmt::format("{} NVLinks from a GPU to itself left out; which GPU is at their other end "
                      "the file does not say",
                      found_.self_links));
    if (found_.lost_links > 0)
      assume(fmt::format("{} NVLinks to devices that are not in the file left out",
                         found_.lost_links));
  }

  void fill_c2c() {
    MachineSpec& machine = out_.machine;
    machine.gpu_host_class = found_.has_c2c ? sim::LinkClass::c2c : sim::LinkClass::pcie;
    if (!found_.has_c2c && like_.gpu_host_class == sim::LinkClass::c2c && !like_.c2c) {
      machine.gpu_host_class = sim::LinkClass::c2c;  // NVML does not tell of this one
      machine.gpu_host = like_.gpu_host;
      for (Parent& gpu : machine.gpus) gpu.rate = {};
      return;
    }
    if (!found_.has_c2c) {
      // The catalogue machine may have been chosen in spite of its C2C.
      if (like_.gpu_host_class == sim::LinkClass::c2c &&
          machine.gpu_host.source == like_.gpu_host.source)
        machine.gpu_host = machine.pcie;
      return;
    }
    const sim::HardwareC2c& c2c = found_.c2c;
    machine.c2c = C2cLinks{c2c.bandwidth, c2c.count};
    machine.gpu_host = {sim::gigabytes_per_second(c2c.bandwidth * c2c.count / 1000),
                        "the topology file: C2C"};
    for (Parent& gpu : machine.gpus) gpu.rate = {};
  }

  // NCCL asks the driver whether cards reach one another; the file is silent.
  void fill_peers() {
    if (like_.pcie_p2p) return;
    borrow("P2P over PCIe",
           fmt::format("no P2P between GPUs without NVLink, as on {}", like_.name));
    for (HardwareCpu& cpu : host_)
      for (HardwarePci& pci : cpu.pci) forbid_p2p(pci);
  }

  static void forbid_p2p(HardwarePci& pci) {
    if (pci.gpu) pci.gpu->pcie_p2p = false;
    for (HardwarePci& child : pci.children) forbid_p2p(child);
  }

  const Hardware& hardware_;
  const ImportOptions& options_;
  std::vector<HardwareCpu> host_;
  FoundDevices found_;
  MachineSpec like_;
  ImportedMachine out_;
};

}  // namespace

Result<ImportedMachine> machine_of(const Hardware& hardware, const ImportOptions& options) {
  return Importer(hardware, options).run();
}

}  // namespace railyard::topologies
