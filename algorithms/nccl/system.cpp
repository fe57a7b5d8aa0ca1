#include "algorithms/nccl/system.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "algorithms/nccl/system_build.h"

namespace railyard::algorithms::nccl {
namespace {

using sim::PathType;

constexpr float kUnknownSocketBandwidth = kLocalBandwidth;

struct PciSpeed {
  std::string_view text;
  std::int32_t per_lane;  // units of 100 Mbit/s
};
// The first entry that the text starts with counts; what no entry fits is Gen3.
constexpr std::array<PciSpeed, 11> kPciSpeeds{{{"2.5 GT/s", 15},
                                               {"5 GT/s", 30},
                                               {"8 GT/s", 60},
                                               {"16 GT/s", 120},
                                               {"32 GT/s", 240},
                                               {"2.5 GT/s PCIe", 15},
                                               {"5.0 GT/s PCIe", 30},
                                               {"8.0 GT/s PCIe", 60},
                                               {"16.0 GT/s PCIe", 120},
                                               {"32.0 GT/s PCIe", 240},
                                               {"64.0 GT/s PCIe", 480}}};
constexpr std::int32_t kDefaultPciSpeed = 60;
constexpr std::int32_t kDefaultPciWidth = 16;
constexpr std::int32_t kDefaultNetSpeed = 10000;  // Mbit/s

CpuArch arch_of(const std::string& text) {
  if (text == "x86_64") return CpuArch::x86;
  if (text == "arm64") return CpuArch::arm;
  if (text == "ppc64") return CpuArch::power;
  return CpuArch::other;
}

CpuVendor vendor_of(const std::string& text) {
  if (text == "GenuineIntel") return CpuVendor::intel;
  if (text == "AuthenticAMD") return CpuVendor::amd;
  if (text == "CentaurHauls" || text == "  Shanghai  ") return CpuVendor::zhaoxin;
  return CpuVendor::other;
}

CpuModel model_of(CpuVendor vendor, const sim::HardwareCpu& cpu) {
  if (vendor == CpuVendor::intel) {
    const std::int32_t model = cpu.family == 6 ? cpu.model : 0;
    if (model >= 0xCF) return CpuModel::intel_emerald_rapids;
    if (model >= 0x8F) return CpuModel::intel_sapphire_rapids;
    return model >= 0x55 ? CpuModel::intel_skylake : CpuModel::intel_broadwell;
  }
  const bool yongfeng = vendor == CpuVendor::zhaoxin && cpu.family == 7 && cpu.model == 0x5B;
  return yongfeng ? CpuModel::yongfeng : CpuModel::undefined;
}

float socket_bandwidth(const Vertex& cpu) {
  if (cpu.arch == CpuArch::power) return kPowerSocketBandwidth;
  if (cpu.arch == CpuArch::arm) return kArmSocketBandwidth;
  if (cpu.arch != CpuArch::x86) return kUnknownSocketBandwidth;
  if (cpu.vendor == CpuVendor::amd) return kAmdSocketBandwidth;
  if (cpu.vendor == CpuVendor::zhaoxin) return cpu.model == CpuModel::yongfeng ? 9.0F : 6.0F;
  if (cpu.vendor != CpuVendor::intel) return kUnknownSocketBandwidth;
  switch (cpu.model) {
    case CpuModel::intel_emerald_rapids: return 40.0F;
    case CpuModel::intel_sapphire_rapids: return 22.0F;
    case CpuModel::intel_skylake: return 10.0F;
    default: return 6.0F;
  }
}

std::uint64_t device_of(const sim::HardwarePci& pci) {
  return (std::uint64_t{pci.vendor} << 48) + (std::uint64_t{pci.device} << 32) +
         (std::uint64_t{pci.subsystem_vendor} << 16) + pci.subsystem_device;
}

enum class PciRole { bridge, nvswitch, cpu, gpu, nic };

PciRole role_of(std::uint32_t device_class) {
  if (device_class == sim::kPciClassNvswitch) return PciRole::nvswitch;
  if (device_class == 0x068001) return PciRole::cpu;
  if (device_class >> 16 == 0x03) return PciRole::gpu;
  if (device_class >> 16 == 0x02) return PciRole::nic;
  return PciRole::bridge;
}

// Adds the vertices and the PCI tree between them.
class VertexBuilder {
 public:
  explicit VertexBuilder(System& system) : system_(system) {}

  void add_cpu(const FusedCpu& fused) {
    const sim::HardwareCpu& cpu = *fused.cpu;
    host_ = fused.host;
    numa_ = cpu.numa_id;
    const std::int32_t vertex = create(VertexKind::cpu, system_id(host_, cpu.numa_id));
    Vertex& made = system_.at(vertex);
    made.arch = arch_of(cpu.arch);
    if (made.arch == CpuArch::x86) {
      made.vendor = vendor_of(cpu.vendor);
      made.model = model_of(made.vendor, cpu);
    }
    for (const FusedPci& pci : fused.pci) add_pci(pci, vertex);
    // NICs without a PCI device share one vertex per NUMA node.
    for (const sim::HardwareNic& nic : cpu.nics) add_nic(nic, "", 0, {vertex, kLocalBandwidth});
  }

 private:
  struct Uplink {
    std::int32_t parent;
    float bandwidth;
  };

  void add_pci(const FusedPci& fused, std::int32_t parent) {
    const sim::HardwarePci& pci = *fused.pci;
    const Uplink up{parent, pci_bandwidth(pci.link_speed, pci.link_width)};
    if (pci.gpu) {
      if (fused.rank < 0) return;
      add_gpu(fused, up);
    }
    if (!pci.nics.empty()) {
      add_nic(pci.nics.front(), pci.bus_id, bus_number(pci.bus_id), up);
      return;
    }
    if (role_of(pci.device_class) != PciRole::bridge) return;
    const std::int32_t bridge = create(VertexKind::pci, system_id(host_, bus_number(pci.bus_id)));
    system_.at(bridge).pci_device = device_of(pci);
    for (const FusedPci& child : fused.children) add_pci(child, bridge);
    connect_both(system_, bridge, {PathType::pix, up.parent, up.bandwidth});
  }

  void add_gpu(const FusedPci& fused, const Uplink& up) {
    const sim::HardwareGpu& gpu = *fused.pci->gpu;
    const std::int64_t id = system_id(host_, bus_number(fused.pci->bus_id));
    const std::int32_t device = create(VertexKind::device, id);
    system_.at(device).sm = gpu.sm;
    system_.at(device).dev = gpu.dev;
    connect_both(system_, device, {PathType::pix, up.parent, up.bandwidth});

    const std::int32_t vertex = create(VertexKind::gpu, id);
    Vertex& made = system_.at(vertex);
    made.dev = gpu.dev;
    made.rank = fused.rank;
    made.sm = gpu.sm;
    made.gdr = gpu.gdr;
    made.pcie_p2p = gpu.pcie_p2p;
    made.device = device;
    connect_both(system_, device, {PathType::loc, vertex, kLocalBandwidth});
  }

  // Ports of one PCI device share a NIC vertex.
  void add_nic(const sim::HardwareNic& nic, const std::string& bus_id, std::int64_t local,
               const Uplink& up) {
    const std::int64_t id = system_id(host_, (std::int64_t{numa_} << 48) + local);
    std::int32_t vertex = -1;
    for (const std::int32_t other : system_.all(VertexKind::nic))
      if (system_.at(other).id == id) vertex = other;
    const bool fresh = vertex < 0;
    if (fresh) vertex = create(VertexKind::nic, id);
    // NCCL links a NIC on a PCI device after its ports, one below a CPU before; ports go by
    // bandwidth, and neither order is ever read from a NIC.
    for (const sim::HardwareNet& net : nic.nets)
      if (net.keep) add_net(net, bus_id, vertex);
    if (fresh) connect_both(system_, vertex, {PathType::pix, up.parent, up.bandwidth});
  }

  void add_net(const sim::HardwareNet& net, const std::string& bus_id, std::int32_t nic) {
    const std::int32_t vertex = create(VertexKind::net, system_id(host_, net.dev));
    Vertex& made = system_.at(vertex);
    made.dev = net.dev;
    made.asic = net.guid != 0 ? net.guid : static_cast<std::uint64_t>(made.id);
    made.port = net.port;
    made.bandwidth = static_cast<float>((net.speed <= 0 ? kDefaultNetSpeed : net.speed) / 8000.0);
    made.latency = static_cast<float>(net.latency);
    made.gdr = net.gdr;
    made.collnet = net.collnet;
    made.rail = net.rail;
    made.plane = net.plane;
    made.bus_id = bus_id;
    connect_both(system_, nic, {PathType::net, vertex, made.bandwidth});
  }

  std::int32_t create(VertexKind kind, std::int64_t id) {
    auto& same = system_.by_kind[static_cast<std::size_t>(kind)];
    const auto vertex = static_cast<std::int32_t>(system_.vertices.size());
    Vertex made;
    made.kind = kind;
    made.id = id;
    made.host = host_;
    made.index = static_cast<std::int32_t>(same.size());
    same.push_back(vertex);
    system_.vertices.push_back(std::move(made));
    return vertex;
  }

  System& system_;
  std::int32_t host_ = 0;
  std::int32_t numa_ = 0;
};

sim::Result<void> check_ranks(const NodeInputs& inputs) {
  if (inputs.ranks.empty()) return sim::bad_input("a node without ranks");
  for (std::size_t r = 0; r < inputs.ranks.size(); ++r) {
    const NodeRank& rank = inputs.ranks[r];
    if (rank.host < 0 || rank.host >= std::ssize(inputs.hosts))
      return sim::bad_input(
          fmt::format("rank {} is on host {} of {}", rank.rank, rank.host, inputs.hosts.size()));
    if (r > 0 && inputs.ranks[r - 1].rank >= rank.rank)
      return sim::bad_input(fmt::format("rank {} follows rank {}: ranks must ascend", rank.rank,
                                        inputs.ranks[r - 1].rank));
    for (std::size_t other = 0; other < r; ++other)
      if (inputs.ranks[other].host == rank.host && inputs.ranks[other].dev == rank.dev)
        return sim::bad_input(fmt::format("ranks {} and {} are both on GPU {} of host {}",
                                          inputs.ranks[other].rank, rank.rank, rank.dev,
                                          rank.host));
  }
  return {};
}

}  // namespace

float nvlink_bandwidth(std::int32_t sm) {
  if (sm >= 100) return 40.1F;
  if (sm >= 90) return 20.6F;
  if (sm == 86) return 12.0F;
  if (sm >= 70 || sm < 60) return 20.0F;
  return 18.0F;
}

float pci_bandwidth(const std::string& speed, std::int32_t width) {
  std::int32_t per_lane = kDefaultPciSpeed;
  for (const PciSpeed& known : kPciSpeeds) {
    if (!speed.starts_with(known.text)) continue;
    per_lane = known.per_lane;
    break;
  }
  return static_cast<float>((width == 0 ? kDefaultPciWidth : width) * per_lane / 80.0);
}

std::int64_t bus_number(std::string_view bus_id) {
  constexpr std::size_t kMaxDigits = 16;
  std::uint64_t number = 0;
  std::size_t digits = 0;
  for (const char c : bus_id) {
    if (c == '.' || c == ':') continue;
    const std::string_view kHex = "0123456789abcdef";
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    const std::size_t digit = kHex.find(lower);
    if (digit == std::string_view::npos || digits == kMaxDigits) break;
    number = number << 4 | digit;
    ++digits;
  }
  return static_cast<std::int64_t>(number);
}

std::int64_t system_id(std::int32_t host, std::int64_t local) {
  constexpr std::int64_t kLocalMask = 0x00ffffffffffffff;
  return (std::int64_t{host} << 56) + (local & kLocalMask);
}

void connect(System& system, std::int32_t from, const SystemLink& link) {
  std::vector<SystemLink>& links = system.at(from).links;
  std::size_t at = 0;
  while (at < links.size() && (links[at].to != link.to || links[at].type != link.type)) ++at;
  if (at == links.size())
    links.push_back(link);
  else
    links[at].bandwidth += link.bandwidth;
  for (; at > 0 && links[at - 1].bandwidth < links[at].bandwidth; --at)
    std::swap(links[at - 1], links[at]);
}

void connect_both(System& system, std::int32_t from, const SystemLink& link) {
  connect(system, from, link);
  connect(system, link.to, {link.type, from, link.bandwidth});
}

void connect_cpus(System& system) {
  for (const std::int32_t from : system.all(VertexKind::cpu))
    for (const std::int32_t to : system.all(VertexKind::cpu)) {
      if (from == to || system.at(from).host != system.at(to).host) continue;
      connect(system, from, {PathType::sys, to, socket_bandwidth(system.at(from))});
    }
}

void remove_vertex(System& system, std::int32_t vertex) {
  for (Vertex& other : system.vertices)
    std::erase_if(other.links, [&](const SystemLink& link) { return link.to == vertex; });
  Vertex& gone = system.at(vertex);
  gone.links.clear();
  gone.index = -1;
  auto& same = system.by_kind[static_cast<std::size_t>(gone.kind)];
  std::erase(same, vertex);
  for (std::size_t i = 0; i < same.size(); ++i)
    system.at(same[i]).index = static_cast<std::int32_t>(i);
}

std::int32_t System::gpu_of_rank(std::int32_t rank) const {
  for (const std::int32_t vertex : all(VertexKind::gpu))
    if (at(vertex).rank == rank) return at(vertex).index;
  return -1;
}

std::int32_t System::net_of_id(std::int64_t id) const {
  for (const std::int32_t vertex : all(VertexKind::net))
    if (at(vertex).id == id) return at(vertex).index;
  return -1;
}

std::int32_t System::min_sm() const {
  std::int32_t sm = at(VertexKind::device, 0).sm;
  for (const std::int32_t vertex : all(VertexKind::device)) sm = std::min(sm, at(vertex).sm);
  return sm;
}

std::int32_t System::max_sm() const {
  std::int32_t sm = at(VertexKind::device, 0).sm;
  for (const std::int32_t vertex : all(VertexKind::device)) sm = std::max(sm, at(vertex).sm);
  return sm;
}

sim::Result<System> build_system(const NodeInputs& inputs) {
  RAILYARD_TRY(check_ranks(inputs));
  RAILYARD_ASSIGN(const std::vector<FusedCpu> cpus, fuse(inputs));
  System system;
  system.hosts = static_cast<std::int32_t>(inputs.hosts.size());
  VertexBuilder builder(system);
  for (const FusedCpu& cpu : cpus) builder.add_cpu(cpu);
  for (const NodeRank& rank : inputs.ranks)
    if (system.gpu_of_rank(rank.rank) < 0)
      return sim::bad_input(fmt::format(
          "GPU {} of host {} is below a PCI device that is no bridge: NCCL does not find it there",
          rank.dev, rank.host));
  RAILYARD_TRY(add_links(system, cpus));
  flatten_switches(system);
  connect_cpus(system);
  sort_links(system);
  return system;
}

}  // namespace railyard::algorithms::nccl
