#include "topologies/hardware_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "sim/units.h"
#include "topologies/hardware_devices.h"
#include "topologies/import/bus_id.h"
#include "topologies/import/text_file.h"

namespace railyard::topologies {
namespace {

using sim::Hardware;
using sim::HardwareNet;
using sim::HardwarePci;

// A GPU or NIC and the <pci>s above it, outermost first, itself last.
struct Place {
  std::vector<const HardwarePci*> path;
  std::size_t cpu = 0;
  [[nodiscard]] const HardwarePci& pci() const { return *path.back(); }
};

// How near two devices are.
enum class Near { same_switch, same_cpu, elsewhere };
Near near(const Place& a, const Place& b) {
  if (a.cpu != b.cpu) return Near::elsewhere;
  return a.path.front() == b.path.front() && a.path.size() > 1 && b.path.size() > 1
             ? Near::same_switch
             : Near::same_cpu;
}

std::vector<const HardwareNet*> nets_of(const HardwarePci& pci) {
  std::vector<const HardwareNet*> nets;
  for (const sim::HardwareNic& nic : pci.nics)
    for (const HardwareNet& net : nic.nets) nets.push_back(&net);
  return nets;
}

std::string gpu_name(const HardwarePci& pci) {
  const std::string bus = printable(pci.bus_id);
  return pci.gpu ? fmt::format("GPU {} ({})", pci.gpu->dev, bus) : fmt::format("GPU {}", bus);
}

std::string nic_name(const HardwarePci& pci) {
  const auto nets = nets_of(pci);
  const std::string bus = printable(pci.bus_id);
  return nets.empty() ? fmt::format("NIC {}", bus)
                      : fmt::format("NIC {} ({})", printable(nets.front()->name), bus);
}

std::string speed_text(const HardwarePci& pci) {
  return fmt::format("{} x{}", printable(pci.link_speed), pci.link_width);
}

std::uint32_t nvlinks_of(const HardwarePci& pci) {
  std::uint32_t sum = 0;
  if (pci.gpu)
    for (const sim::HardwareNvlink& link : pci.gpu->nvlinks) sum += link.count;
  return sum;
}

// NVIDIA modules (SXM) by PCI id; the PCI ID Repository, pci-ids.ucw.cz.
constexpr std::array<std::uint32_t, 12> kSxmGpus{0x1db1, 0x1db5, 0x1db8, 0x20b0, 0x20b2, 0x20bd,
                                                 0x2324, 0x2329, 0x2330, 0x2335, 0x2901, 0x2941};

// Not a host bridge that stands for several NICs, as virtual machines show them.
bool is_nic_class(const HardwarePci& pci) { return pci.device_class >> 16 == 0x02; }

// As NCCL compares it: only some spellings are known.
bool nccl_knows(std::string_view speed) {
  static constexpr std::array<std::string_view, 11> kSpellings{
      "2.5 GT/s",       "5 GT/s",         "8 GT/s",        "16 GT/s",
      "32 GT/s",        "5.0 GT/s PCIe",  "8.0 GT/s PCIe", "16.0 GT/s PCIe",
      "32.0 GT/s PCIe", "64.0 GT/s PCIe", "2.5 GT/s PCIe"};
  return std::any_of(kSpellings.begin(), kSpellings.end(),
                     [&](std::string_view spelling) { return speed.starts_with(spelling); });
}

class Checker {
 public:
  explicit Checker(const Hardware& host) {
    for (std::size_t i = 0; i < host.cpus.size(); ++i)
      for (const HardwarePci& pci : host.cpus[i].pci) collect(pci, {{}, i});
  }

  std::vector<Finding> run() {
    constexpr std::size_t kMostCompared = 2048;
    if (all_.size() > kMostCompared)
      return {{"host",
               fmt::format("{} PCI devices; at most {} are compared", all_.size(), kMostCompared)}};
    check_pcie();
    check_nvlink_counts();
    check_nvlink_ends();
    check_ports();
    check_nearness();
    check_rails();
    check_gdr();
    return std::move(findings_);
  }

 private:
  void find(std::string where, std::string what) {
    findings_.push_back({std::move(where), std::move(what)});
  }

  void collect(const HardwarePci& pci, Place above) {
    above.path.push_back(&pci);
    const PciRole role = role_of(pci);
    if (role == PciRole::gpu || role == PciRole::amd_gpu) gpus_.push_back(above);
    if (role == PciRole::nic) nics_.push_back(above);
    all_.push_back(&pci);
    if (role == PciRole::nic && !pci.children.empty())
      find(nic_name(pci), "devices below a NIC; NCCL takes the NIC and drops them");
    for (const HardwarePci& child : pci.children) collect(child, above);
  }

  void check_pcie() {
    for (const HardwarePci* pci : all_)
      if (gigatransfers_of(pci->link_speed) > 0 && !nccl_knows(pci->link_speed))
        find(fmt::format("PCI {}", printable(pci->bus_id)),
             fmt::format("NCCL does not know the speed \"{}\" and takes 8 GT/s",
                         printable(pci->link_speed)));
    check_equal_links(gpus_, gpu_name, false);
    check_equal_links(nics_, nic_name, true);
    for (const Place& nic : nics_) check_ports_fit(nic.pci());
  }

  // NICs are compared with their like only: a management port needs no x16.
  template <typename Name>
  void check_equal_links(const std::vector<Place>& devices, Name&& name, bool by_device) {
    for (const Place& device : devices) {
      const sim::Bandwidth rate = link_rate_of(device.pci());
      const HardwarePci* best = &device.pci();
      for (const Place& other : devices) {
        const bool comparable =
            !by_device || (other.pci().device == device.pci().device &&
                           other.pci().vendor == device.pci().vendor && other.pci().device != 0);
        if (comparable && link_rate_of(other.pci()) > link_rate_of(*best)) best = &other.pci();
      }
      if (rate.raw() > 0 && best != &device.pci())
        find(name(device.pci()),
             fmt::format("PCIe link at {}, while {} has {}", speed_text(device.pci()), name(*best),
                         speed_text(*best)));
    }
  }

  void check_ports_fit(const HardwarePci& pci) {
    double megabits = 0;
    for (const HardwareNet* net : nets_of(pci)) megabits += std::max(net->speed, 0);
    const double fits = sim::to_gigabytes_per_second(link_rate_of(pci)) * 8000;
    constexpr double kTolerance = 0.95;  // 100 Gb/s ports behind 8 GT/s x16 are not worth a word
    if (fits <= 0 || fits >= kTolerance * megabits) return;
    find(nic_name(pci), fmt::format("ports of {:.4g} Gb/s together behind a PCIe link of {:.4g} "
                                    "Gb/s ({})",
                                    megabits / 1000, fits / 1000, speed_text(pci)));
  }

  [[nodiscard]] static std::uint32_t most_nvlinks(std::int32_t capability) {
    return capability >= 60 ? nvlink_generation(capability).most : 0;
  }

  void check_nvlink_counts() {
    std::uint32_t most = 0;
    for (const Place& gpu : gpus_) most = std::max(most, nvlinks_of(gpu.pci()));
    for (const Place& gpu : gpus_) {
      const HardwarePci& pci = gpu.pci();
      if (!pci.gpu) continue;
      const std::uint32_t links = nvlinks_of(pci);
      const std::uint32_t limit = most_nvlinks(pci.gpu->sm);
      const bool sxm = std::find(kSxmGpus.begin(), kSxmGpus.end(), pci.device) != kSxmGpus.end();
      if (limit > 0 && links > limit)
        find(gpu_name(pci), fmt::format("{} NVLinks; its generation has {}", links, limit));
      if (links < most) find(gpu_name(pci), fmt::format("{} NVLinks, others have {}", links, most));
      if (most == 0 && sxm && pci.vendor == 0x10de && pci.gpu->sm % 10 == 0)
        find(gpu_name(pci), "no NVLinks on a GPU made for them; is the fabric manager running?");
    }
  }

  [[nodiscard]] const HardwarePci* gpu_at(const std::string& bus_id) const {
    for (const Place& gpu : gpus_)
      if (same_bus_id(gpu.pci().bus_id, bus_id)) return &gpu.pci();
    return nullptr;
  }

  static std::uint32_t links_to(const HardwarePci& from, const HardwarePci& to) {
    std::uint32_t sum = 0;
    for (const sim::HardwareNvlink& link : from.gpu->nvlinks)
      if (same_bus_id(link.target, to.bus_id)) sum += link.count;
    return sum;
  }

  void check_nvlink_ends() {
    for (const Place& place : gpus_) {
      const HardwarePci& pci = place.pci();
      if (!pci.gpu) continue;
      for (const sim::HardwareNvlink& link : pci.gpu->nvlinks)
        if (link.target_class >> 16 == 0x03) check_nvlink_end(pci, link);
    }
  }

  void check_nvlink_end(const HardwarePci& pci, const sim::HardwareNvlink& link) {
    const HardwarePci* peer = gpu_at(link.target);
    if (peer == nullptr) {
      find(gpu_name(pci), fmt::format("{} NVLinks to {}, which is not in the file", link.count,
                                      printable(link.target)));
    } else if (peer == &pci) {
      find(gpu_name(pci), fmt::format("{} NVLinks to itself", link.count));
    } else if (peer->gpu) {
      const std::uint32_t back = links_to(*peer, pci);
      if (back < links_to(pci, *peer))
        find(gpu_name(pci),
             fmt::format("{} NVLinks to {}, {} back", links_to(pci, *peer), gpu_name(*peer), back));
    }
  }

  // 0 where the file does not tell NICs apart.
  [[nodiscard]] std::int32_t fastest_port_of_kind(const HardwarePci& nic) const {
    std::int32_t best = 0;
    if (!is_nic_class(nic) || nic.device == 0) return best;
    for (const Place& other : nics_) {
      if (other.pci().device != nic.device) continue;
      for (const HardwareNet* port : nets_of(other.pci())) best = std::max(best, port->speed);
    }
    return best;
  }

  void check_ports() {
    for (const Place& nic : nics_)
      for (const HardwareNet* net : nets_of(nic.pci())) {
        const std::int32_t best = fastest_port_of_kind(nic.pci());
        if (net->speed < best)
          find(fmt::format("NIC {} ({})", printable(net->name), printable(nic.pci().bus_id)),
               fmt::format("port at {:.4g} Gb/s, its equals at {:.4g}", net->speed / 1000.0,
                           best / 1000.0));
      }
  }

  // NICs as fast as the fastest; the others are for management and storage.
  [[nodiscard]] std::vector<const Place*> fast_nics() const {
    const auto speed = [](const Place& nic) {
      std::int32_t best = 0;
      for (const HardwareNet* net : nets_of(nic.pci())) best = std::max(best, net->speed);
      return best;
    };
    std::int32_t fastest = 0;
    for (const Place& nic : nics_) fastest = std::max(fastest, speed(nic));
    std::vector<const Place*> fast;
    for (const Place& nic : nics_)
      if (2 * speed(nic) >= fastest) fast.push_back(&nic);
    return fast;
  }

  void check_nearness() {
    const auto nics = fast_nics();
    if (nics.empty()) return;
    std::vector<Near> nearest;
    for (const Place& gpu : gpus_) {
      Near best = Near::elsewhere;
      for (const Place* nic : nics) best = std::min(best, near(gpu, *nic));
      nearest.push_back(best);
    }
    if (nearest.empty()) return;
    const Near best = *std::min_element(nearest.begin(), nearest.end());
    for (std::size_t i = 0; i < gpus_.size(); ++i)
      if (nearest[i] > best)
        find(gpu_name(gpus_[i].pci()),
             nearest[i] == Near::elsewhere
                 ? "no NIC at its CPU: traffic crosses NUMA nodes, unlike others'"
                 : "no NIC below its PCIe switch: traffic goes through the CPU, unlike others'");
  }

  // PCIe trees directly below a CPU, those with equally many GPUs compared.
  void check_rails() {
    struct Tree {
      std::size_t gpus = 0;
      std::size_t nics = 0;
    };
    std::map<const HardwarePci*, Tree> trees;
    for (const Place& gpu : gpus_)
      if (gpu.path.size() > 1) ++trees[gpu.path.front()].gpus;
    for (const Place* nic : fast_nics())
      if (nic->path.size() > 1) ++trees[nic->path.front()].nics;
    std::map<std::size_t, std::size_t> most;  // NICs, by the number of GPUs
    for (const auto& entry : trees)
      most[entry.second.gpus] = std::max(most[entry.second.gpus], entry.second.nics);
    for (const HardwarePci* pci : all_) {
      const auto tree = trees.find(pci);
      if (tree == trees.end() || tree->second.gpus == 0) continue;
      if (tree->second.nics < most[tree->second.gpus])
        find(fmt::format("PCIe tree {}", printable(pci->bus_id)),
             fmt::format("{} GPUs and {} NICs, where its equals have {}: a rail is missing",
                         tree->second.gpus, tree->second.nics, most[tree->second.gpus]));
    }
  }

  void check_gdr() {
    const bool gpus = std::any_of(gpus_.begin(), gpus_.end(), [](const Place& gpu) {
      return gpu.pci().gpu && gpu.pci().gpu->gdr;
    });
    for (const Place& gpu : gpus_)
      if (gpus && gpu.pci().gpu && !gpu.pci().gpu->gdr)
        find(gpu_name(gpu.pci()), "no GPUDirect RDMA, others have it");
    const auto nics = fast_nics();
    const auto has_gdr = [](const Place* nic) {
      const auto nets = nets_of(nic->pci());
      return nets.empty() ||
             std::any_of(nets.begin(), nets.end(), [](const HardwareNet* net) { return net->gdr; });
    };
    if (std::none_of(nics.begin(), nics.end(), has_gdr)) return;
    for (const Place* nic : nics)
      if (!has_gdr(nic)) find(nic_name(nic->pci()), "no GPUDirect RDMA, others have it");
  }

  std::vector<Place> gpus_;
  std::vector<Place> nics_;
  std::vector<const HardwarePci*> all_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check_hardware(const Hardware& hardware) {
  const auto hosts = hosts_of(hardware);
  std::vector<Finding> findings;
  for (const auto& [hash, host] : hosts)
    for (Finding& finding : Checker(host).run()) {
      if (hosts.size() > 1) finding.where = fmt::format("host {:#x}: {}", hash, finding.where);
      findings.push_back(std::move(finding));
    }
  return findings;
}

}  // namespace railyard::topologies
