// Links that are not the PCI tree, and the tidying after them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "algorithms/nccl/system_build.h"

namespace railyard::algorithms::nccl {
namespace {

using sim::PathType;

constexpr std::uint32_t kClassCpuLike = 0x068001;  // POWER: the target is a CPU
constexpr std::uint32_t kClassDisplay = 0x03;      // GPUs, upper byte

// The CPU above a vertex; only PCI switches are walked.
std::int32_t cpu_above(const System& system, std::int32_t vertex, std::int32_t from) {
  if (system.at(vertex).kind == VertexKind::cpu) return vertex;
  for (const SystemLink& link : system.at(vertex).links) {
    const VertexKind kind = system.at(link.to).kind;
    if (link.type != PathType::pix || link.to == from) continue;
    if (kind != VertexKind::pci && kind != VertexKind::cpu) continue;
    if (const std::int32_t cpu = cpu_above(system, link.to, vertex); cpu >= 0) return cpu;
  }
  return -1;
}

class LinkBuilder {
 public:
  explicit LinkBuilder(System& system) : system_(system) {
    for (const VertexKind kind : {VertexKind::device, VertexKind::pci})
      for (const std::int32_t vertex : system.all(kind))
        by_id_.emplace(std::pair{kind, system.at(vertex).id}, vertex);
  }

  // All of one kind before the next, over the whole tree.
  void add_all(const std::vector<FusedCpu>& cpus) {
    for (const auto step : {&LinkBuilder::nvlinks, &LinkBuilder::c2c, &LinkBuilder::pci_links})
      for (const FusedCpu& cpu : cpus) {
        host_ = cpu.host;
        for (const FusedPci& pci : cpu.pci) walk(pci, step);
      }
  }

 private:
  using Visit = void (LinkBuilder::*)(const FusedPci&);

  void walk(const FusedPci& pci, Visit visit) {
    (this->*visit)(pci);
    for (const FusedPci& child : pci.children) walk(child, visit);
  }

  [[nodiscard]] std::int32_t find(VertexKind kind, const std::string& bus_id) const {
    const auto found = by_id_.find({kind, system_id(host_, bus_number(bus_id))});
    return found == by_id_.end() ? -1 : found->second;
  }

  void nvlinks(const FusedPci& fused) {
    if (fused.rank < 0) return;
    const std::int32_t device = find(VertexKind::device, fused.pci->bus_id);
    const float per_link = nvlink_bandwidth(system_.at(device).sm);
    for (const sim::HardwareNvlink& nvlink : fused.pci->gpu->nvlinks) {
      SystemLink link{PathType::nvl, -1, static_cast<float>(nvlink.count) * per_link};
      if (nvlink.target_class >> 16 == kClassDisplay) {
        // The other GPU reports its own direction; one that nobody uses is no vertex.
        link.to = find(VertexKind::device, nvlink.target);
        if (link.to >= 0) connect(system_, device, link);
        continue;
      }
      link.to = nvlink.target_class == kClassCpuLike ? cpu_above(system_, device, -1) : nvswitch();
      if (link.to >= 0) connect_both(system_, device, link);
    }
  }

  std::int32_t nvswitch() {
    auto& all = system_.by_kind[static_cast<std::size_t>(VertexKind::nvs)];
    if (all.empty()) {
      all.push_back(static_cast<std::int32_t>(system_.vertices.size()));
      Vertex made;
      made.kind = VertexKind::nvs;
      made.index = 0;
      system_.vertices.push_back(std::move(made));
    }
    return all.front();
  }

  void c2c(const FusedPci& fused) {
    if (fused.rank < 0 || !fused.pci->gpu->c2c) return;
    const sim::HardwareC2c& c2c = *fused.pci->gpu->c2c;
    const std::int32_t device = find(VertexKind::device, fused.pci->bus_id);
    const std::int32_t cpu = cpu_above(system_, device, -1);
    if (cpu < 0) return;
    const double total = static_cast<double>(static_cast<std::int64_t>(c2c.bandwidth) * c2c.count);
    connect_both(system_, device, {PathType::c2c, cpu, static_cast<float>(total / 1000.0)});
  }

  void pci_links(const FusedPci& fused) {
    for (const std::string& peer : fused.pci->peers) {
      const std::int32_t from = find(VertexKind::pci, fused.pci->bus_id);
      const std::int32_t to = find(VertexKind::pci, peer);
      if (from >= 0 && to >= 0) connect(system_, from, {PathType::loc, to, kLocalBandwidth});
    }
  }

  System& system_;
  std::map<std::pair<VertexKind, std::int64_t>, std::int32_t> by_id_;
  std::int32_t host_ = 0;
};

// A link that only one end has leaves NCCL without a way back.
sim::Result<void> check_both_ways(const System& system) {
  for (const Vertex& vertex : system.vertices)
    for (const SystemLink& link : vertex.links) {
      const std::int32_t from = system.vertex_of(vertex.kind, vertex.index);
      const auto& back = system.at(link.to).links;
      if (std::any_of(back.begin(), back.end(), [&](const SystemLink& other) {
            return other.to == from && other.type == link.type;
          }))
        continue;
      if (link.type == PathType::nvl)
        return sim::bad_input(
            fmt::format("GPU {} reports an NVLink to GPU {}, which reports none back: NCCL "
                        "fails on such a topology",
                        vertex.dev, system.at(link.to).dev));
      return sim::bad_input("a PCI switch names a peer that does not name it back");
    }
  return {};
}

// 4 or 5: a Broadcom PCIe switch of that generation, 0: another. Generation 5 tells the levels of
// its hierarchy apart.
std::int32_t broadcom_generation(std::uint64_t device, std::uint64_t level) {
  const std::uint64_t model = device & 0xfffffffffffff000;
  if (model == 0x1000c0101000a000) return 4;
  if (model == (0x1000c03010000000 | level << 12)) return 5;
  return 0;
}

// Links of `sub` move to `top`, in order, behind its own.
void absorb(System& system, std::int32_t top, std::int32_t sub) {
  for (const SystemLink& link : system.at(sub).links) {
    if (link.to == top) continue;
    system.at(top).links.push_back(link);
    for (SystemLink& back : system.at(link.to).links) {
      if (back.to != sub) continue;
      back.to = top;
      break;
    }
  }
  system.at(sub).links.clear();
  remove_vertex(system, sub);
}

void put_uplink_last(System& system, std::int32_t vertex, std::int32_t parent) {
  std::vector<SystemLink>& links = system.at(vertex).links;
  if (parent >= 0) {
    const auto up = std::find_if(links.begin(), links.end(),
                                 [&](const SystemLink& link) { return link.to == parent; });
    if (up != links.end()) std::rotate(up, up + 1, links.end());
  }
  for (std::size_t i = 0; i < system.at(vertex).links.size(); ++i) {
    const SystemLink link = system.at(vertex).links[i];
    if (link.type == PathType::pix && link.to != parent) put_uplink_last(system, link.to, vertex);
  }
}

}  // namespace

sim::Result<void> add_links(System& system, const std::vector<FusedCpu>& cpus) {
  LinkBuilder(system).add_all(cpus);
  return check_both_ways(system);
}

void flatten_switches(System& system) {
  for (std::size_t s = 0; s < system.all(VertexKind::pci).size();) {
    const std::int32_t top = system.all(VertexKind::pci)[s];
    const std::int32_t generation = broadcom_generation(system.at(top).pci_device, 0);
    if (generation == 0) {
      ++s;
      continue;
    }
    std::vector<std::int32_t> subs;
    std::erase_if(system.at(top).links, [&](const SystemLink& link) {
      const Vertex& other = system.at(link.to);
      if (other.kind != VertexKind::pci || broadcom_generation(other.pci_device, 1) != generation)
        return false;
      subs.push_back(link.to);
      return true;
    });
    for (const std::int32_t sub : subs) absorb(system, top, sub);
    system.at(top).pci_device |= 0xffff;  // not again
    s = 0;                                // switches moved up
  }
}

void sort_links(System& system) {
  for (const std::int32_t cpu : system.all(VertexKind::cpu)) put_uplink_last(system, cpu, -1);
}

}  // namespace railyard::algorithms::nccl
