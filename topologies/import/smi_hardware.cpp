// hardware_of(): the PCI tree behind a matrix. The groups of devices that reach each other by a
// path type or better are nested, one inside the next type's; each level of nesting is a level of
// the tree.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "topologies/import/smi_topo.h"
#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

// NVLinks of one GPU, of any generation so far (Hopper, Blackwell).
constexpr std::uint32_t kMostNvlinks = 18;
constexpr std::uint32_t kPciClassNet = 0x020700;  // InfiniBand
constexpr std::uint64_t kMaxCpus = 8192;
constexpr std::array<SmiPath, 4> kLevels{SmiPath::pix, SmiPath::pxb, SmiPath::phb, SmiPath::node};

class Groups {
 public:
  explicit Groups(std::size_t n) : parent_(n) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // The lower number represents the group.
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

// "0-3,8" as a hexadecimal mask of 32-bit words, the highest first; empty if it is no list.
std::string cpu_mask(std::string_view list) {
  std::vector<std::uint32_t> words;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view range = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const std::size_t dash = range.find('-');
    const auto first = to_number(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : to_number(range.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kMaxCpus) return {};
    words.resize(std::max<std::size_t>(words.size(), *last / 32 + 1));
    for (std::uint64_t cpu = *first; cpu <= *last; ++cpu) words[cpu / 32] |= 1U << (cpu % 32);
  }
  std::string text;
  for (auto word = words.rbegin(); word != words.rend(); ++word)
    text += fmt::format("{}{:08x}", text.empty() ? "" : ",", *word);
  return text;
}

class HardwareBuilder {
 public:
  HardwareBuilder(const SmiMatrix& matrix, const SmiAssumptions& assumptions)
      : m_(matrix),
        a_(assumptions),
        n_(matrix.labels.size()),
        levels_(kLevels.size(), Groups(n_)) {}

  SmiHardware build() {
    join_levels();
    name_devices();
    for (std::size_t i = 0; i < n_; ++i)
      if (group(3, i) == i) add_cpu(i);
    state_unknowns();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::size_t group(std::size_t level, std::size_t device) {
    return levels_[level].find(device);
  }

  // The better of the two directions: a cell that is wrong is rarely too good.
  [[nodiscard]] SmiPath pci_path(std::size_t a, std::size_t b) const {
    const SmiPath there = m_.cell(a, b).path;
    const SmiPath back = m_.cell(b, a).path;
    if (there < SmiPath::pix) return back < SmiPath::pix ? SmiPath::unknown : back;
    return back < SmiPath::pix ? there : std::min(there, back);
  }

  template <typename Visit>
  void for_each_known_pair(Visit&& visit) const {
    for (std::size_t a = 0; a < n_; ++a)
      for (std::size_t b = a + 1; b < n_; ++b)
        if (const SmiPath path = pci_path(a, b); path != SmiPath::unknown) visit(a, b, path);
  }

  void join_levels() {
    for (std::size_t level = 0; level < kLevels.size(); ++level)
      for_each_known_pair([&](std::size_t a, std::size_t b, SmiPath path) {
        if (path <= kLevels[level]) levels_[level].join(a, b);
      });
    for (std::size_t a = 0; a < m_.gpus; ++a)
      for (std::size_t b = a + 1; b < m_.gpus; ++b)
        if (pci_path(a, b) == SmiPath::unknown && same_cpu(a, b) && !apart(a, b))
          levels_[3].join(a, b);
    note_contradictions();
  }

  [[nodiscard]] bool same_cpu(std::size_t a, std::size_t b) const {
    const SmiAffinity& x = m_.affinity[a];
    const SmiAffinity& y = m_.affinity[b];
    if (to_number(x.numa) && to_number(y.numa)) return x.numa == y.numa;
    return !x.cpus.empty() && x.cpus == y.cpus;
  }

  // A third device reaches one of them without SYS and the other by SYS: their affinity
  // notwithstanding (one socket of several NUMA nodes), they are on two.
  [[nodiscard]] bool apart(std::size_t a, std::size_t b) const {
    for (std::size_t c = 0; c < n_; ++c) {
      const SmiPath from_a = pci_path(a, c);
      const SmiPath from_b = pci_path(b, c);
      if (from_a != SmiPath::unknown && from_b != SmiPath::unknown &&
          (from_a == SmiPath::sys) != (from_b == SmiPath::sys))
        return true;
    }
    return false;
  }

  void note_contradictions() {
    std::vector<std::string> nearer;
    for_each_known_pair([&](std::size_t a, std::size_t b, SmiPath path) {
      bool together = false;
      for (std::size_t level = 0; level < kLevels.size(); ++level)
        together |= path > kLevels[level] && group(level, a) == group(level, b);
      if (together) nearer.push_back(m_.labels[a] + "-" + m_.labels[b]);
    });
    if (!nearer.empty())
      out_.unknowns.push_back(
          "no PCI tree gives this matrix: nearer in the structure than printed: " +
          list_of(nearer));
  }

  void name_devices() {
    bus_ids_.resize(n_);
    for (std::size_t i = 0; i < n_; ++i) bus_ids_[i] = next_bus_id(group(2, i));
  }

  // A host bridge is a PCI domain. Thirty-two to a bus: more than a real bus has, and unique.
  std::string next_bus_id(std::size_t bridge) {
    const std::size_t number = ++devices_;
    return fmt::format("{:04x}:{:02x}:{:02x}.0", bridge, number / 32, number % 32);
  }

  void add_cpu(std::size_t first) {
    sim::HardwareCpu cpu;
    const auto numa = first < m_.gpus ? to_number(m_.affinity[first].numa) : std::nullopt;
    cpu.numa_id = static_cast<std::int32_t>(numa && *numa < kMaxCpus ? *numa : free_numa_id());
    cpu.affinity = first < m_.gpus ? cpu_mask(m_.affinity[first].cpus) : "";
    cpu.arch = a_.cpu_arch;
    cpu.vendor = a_.cpu_vendor;
    for (std::size_t i = first; i < n_; ++i)
      if (group(3, i) == first && group(1, i) == i) cpu.pci.push_back(pxb_group(i));
    out_.hardware.cpus.push_back(std::move(cpu));
  }

  // A number that no GPU names.
  std::uint64_t free_numa_id() {
    while (numa_taken(first_free_)) ++first_free_;
    return first_free_++;
  }
  [[nodiscard]] bool numa_taken(std::uint64_t id) const {
    return std::any_of(m_.affinity.begin(), m_.affinity.end(),
                       [&](const SmiAffinity& affinity) { return to_number(affinity.numa) == id; });
  }

  [[nodiscard]] std::size_t size_of(std::size_t level, std::size_t first) {
    std::size_t size = 0;
    for (std::size_t i = first; i < n_; ++i) size += group(level, i) == first ? 1 : 0;
    return size;
  }

  sim::HardwarePci bridge(std::size_t of) {
    sim::HardwarePci out;
    out.bus_id = next_bus_id(group(2, of));
    out.device_class = sim::kPciClassSwitch;
    return with_link(std::move(out));
  }

  sim::HardwarePci with_link(sim::HardwarePci pci) const {
    pci.link_speed = a_.pcie_speed;
    pci.link_width = a_.pcie_width;
    return pci;
  }

  sim::HardwarePci pxb_group(std::size_t first) {
    if (size_of(1, first) == size_of(0, first)) return pix_group(first, false);
    sim::HardwarePci top = bridge(first);
    for (std::size_t i = first; i < n_; ++i)
      if (group(1, i) == first && group(0, i) == i) top.children.push_back(pix_group(i, true));
    return top;
  }

  // A lone device needs a switch of its own only beside others.
  sim::HardwarePci pix_group(std::size_t first, bool beside_others) {
    if (!beside_others && size_of(0, first) == 1) return leaf(first);
    sim::HardwarePci out = bridge(first);
    for (std::size_t i = first; i < n_; ++i)
      if (group(0, i) == first) out.children.push_back(leaf(i));
    return out;
  }

  sim::HardwarePci leaf(std::size_t device) {
    sim::HardwarePci out;
    out.bus_id = bus_ids_[device];
    if (device < m_.gpus) {
      out.device_class = sim::kPciClassGpu | 0x000200;
      out.gpu = gpu(device);
    } else {
      out.device_class = kPciClassNet;
      out.nics.push_back({{net(device - m_.gpus)}});
    }
    return with_link(std::move(out));
  }

  [[nodiscard]] sim::HardwareNet net(std::size_t nic) const {
    sim::HardwareNet out;
    const std::string& device = m_.nic_devices[nic];
    out.name = device.empty() ? m_.labels[m_.gpus + nic] : device;
    out.dev = static_cast<std::int32_t>(nic);
    out.speed = a_.nic_speed;
    out.port = 1;
    out.guid = nic + 1;
    return out;
  }

  [[nodiscard]] sim::HardwareGpu gpu(std::size_t index) const {
    sim::HardwareGpu out;
    const auto number = to_number(std::string_view(m_.labels[index]).substr(3));
    out.dev = static_cast<std::int32_t>(std::min<std::uint64_t>(number.value_or(index), 1 << 20));
    out.sm = a_.sm;
    std::uint32_t total = 0;
    std::uint32_t most = 0;
    for (std::size_t peer = 0; peer < m_.gpus; ++peer) {
      total += links(index, peer);
      most = std::max(most, links(index, peer));
    }
    if (total > kMostNvlinks) {
      out.nvlinks.push_back({"ffff:ff:ff.0", most, sim::kPciClassNvswitch});
      return out;
    }
    for (std::size_t peer = 0; peer < m_.gpus; ++peer)
      if (links(index, peer) > 0)
        out.nvlinks.push_back({bus_ids_[peer], links(index, peer), sim::kPciClassGpu | 0x000200});
    return out;
  }

  // As the GPU's own row has it, or its column where one side lacks them.
  [[nodiscard]] std::uint32_t links(std::size_t gpu, std::size_t peer) const {
    const std::uint8_t own = m_.cell(gpu, peer).nvlinks;
    return own != 0 ? own : m_.cell(peer, gpu).nvlinks;
  }

  void state_unknowns() {
    const auto say = [&](std::string text) { out_.unknowns.push_back(std::move(text)); };
    say(fmt::format("GPU model: compute capability {}.{} assumed", a_.sm / 10, a_.sm % 10));
    say(fmt::format("CPU: {} {} assumed", a_.cpu_arch, a_.cpu_vendor));
    if (a_.pcie_speed.empty()) say("PCIe generation and width");
    if (m_.nics() > 0 && a_.nic_speed == 0) say("NIC rates");
    bool nvlinks = false;
    bool hidden = false;
    for (std::size_t a = 0; a < m_.gpus; ++a)
      for (std::size_t b = 0; b < m_.gpus; ++b) {
        nvlinks |= m_.cell(a, b).nvlinks > 0;
        hidden |= a != b && pci_path(a, b) == SmiPath::unknown;
      }
    if (nvlinks) say("NVLink generation, and which NVSwitches the links pass");
    if (hidden) say("PCI paths between GPUs joined by NVLink (their NUMA affinity places them)");
    if (std::any_of(m_.affinity.begin(), m_.affinity.end(),
                    [](const SmiAffinity& x) { return to_number(x.gpu_numa).has_value(); }))
      say("GPU memory is a NUMA node: the chip-to-chip links to the CPU");
  }

  const SmiMatrix& m_;
  const SmiAssumptions& a_;
  std::size_t n_;
  std::vector<Groups> levels_;  // by kLevels
  std::vector<std::string> bus_ids_;
  std::size_t devices_ = 0;
  std::uint64_t first_free_ = 0;
  SmiHardware out_;
};

}  // namespace

SmiHardware hardware_of(const SmiMatrix& matrix, const SmiAssumptions& assumptions) {
  return HardwareBuilder(matrix, assumptions).build();
}

}  // namespace railyard::topologies
