#include "topologies/node_routes.h"

#include <algorithm>
#include <deque>
#include <span>

namespace railyard::topologies {
namespace {

using sim::DeviceKind;
using sim::LinkClass;

constexpr std::uint32_t kNone = 0xffffffff;

class Finder {
 public:
  Finder(const NodePlan& plan, const std::vector<bool>& enabled) : plan_(plan) {
    out_.resize(plan.devices.size());
    for (std::uint32_t link = 0; link < plan.links.size(); ++link)
      if (enabled.empty() || enabled[link]) out_[plan.links[link].from].push_back(link);
  }

  // Appends the route's plan links; nothing if there is none.
  void append(std::uint32_t from, std::uint32_t to, std::vector<std::uint16_t>& route) {
    const DeviceKind a = kind(from);
    const DeviceKind b = kind(to);
    if (from == to || (a == DeviceKind::nic && b == DeviceKind::nic)) return;
    const bool by_nvlink = (a == DeviceKind::gpu || a == DeviceKind::nvswitch) &&
                           (b == DeviceKind::gpu || b == DeviceKind::nvswitch);
    if (by_nvlink && append_nvlink(from, to, route)) return;
    search(from);
    const std::size_t start = route.size();
    append_host(from, to, route);
    if (plan_.acs && is_endpoint(a) && is_endpoint(b)) redirect(from, to, route, start);
  }

 private:
  [[nodiscard]] DeviceKind kind(std::uint32_t device) const { return plan_.devices[device].kind; }

  [[nodiscard]] std::uint32_t nvlink(std::uint32_t from, std::uint32_t to) const {
    for (const std::uint32_t link : out_[from])
      if (plan_.links[link].to == to && plan_.links[link].link_class == LinkClass::nvlink)
        return link;
    return kNone;
  }

  // Width of from -> middle -> to; an NVSwitch beats any GPU; 0 if the two are not both linked.
  [[nodiscard]] std::uint32_t value_of(std::uint32_t first, std::uint32_t to) const {
    const std::uint32_t middle = plan_.links[first].to;
    const std::uint32_t second = nvlink(middle, to);
    if (second == kNone) return 0;
    const std::uint32_t width = std::min(plan_.links[first].width, plan_.links[second].width);
    return width + (kind(middle) == DeviceKind::nvswitch ? 0x10000u : 0u);
  }

  bool append_nvlink(std::uint32_t from, std::uint32_t to,
                     std::vector<std::uint16_t>& route) const {
    if (const std::uint32_t direct = nvlink(from, to); direct != kNone) {
      route.push_back(static_cast<std::uint16_t>(direct));
      return true;
    }
    std::uint32_t best = kNone;
    std::uint32_t best_value = 0;
    for (const std::uint32_t link : out_[from]) {
      if (plan_.links[link].link_class != LinkClass::nvlink) continue;
      const std::uint32_t value = value_of(link, to);
      const bool lower = best == kNone || plan_.links[link].to < plan_.links[best].to;
      if (value > best_value || (value == best_value && value > 0 && lower)) {
        best = link;
        best_value = value;
      }
    }
    if (best == kNone) return false;
    route.push_back(static_cast<std::uint16_t>(best));
    route.push_back(static_cast<std::uint16_t>(nvlink(plan_.links[best].to, to)));
    return true;
  }

  // Breadth first over PCIe, C2C and SMP from `from`; kept while the source stays the same.
  void search(std::uint32_t from) {
    if (from == source_) return;
    source_ = from;
    came_by_.assign(plan_.devices.size(), kNone);
    std::deque<std::uint32_t> queue{from};
    while (!queue.empty()) {
      const std::uint32_t device = queue.front();
      queue.pop_front();
      const bool passable =
          kind(device) == DeviceKind::pcie_switch || kind(device) == DeviceKind::cpu;
      if (device == from || passable) expand(device, queue);
    }
  }

  void expand(std::uint32_t device, std::deque<std::uint32_t>& queue) {
    for (const std::uint32_t link : out_[device]) {
      const std::uint32_t next = plan_.links[link].to;
      if (plan_.links[link].link_class == LinkClass::nvlink) continue;
      if (next == source_ || came_by_[next] != kNone) continue;
      came_by_[next] = link;
      queue.push_back(next);
    }
  }

  // The first CPU of a shortest way up; kNone without one.
  [[nodiscard]] std::uint32_t cpu_above(std::uint32_t device) {
    search(device);
    std::uint32_t best = kNone;
    std::size_t hops = 0;
    std::vector<std::uint16_t> way;
    for (std::uint32_t cpu = 0; cpu < plan_.devices.size(); ++cpu) {
      if (kind(cpu) != DeviceKind::cpu || came_by_[cpu] == kNone) continue;
      way.clear();
      append_host(device, cpu, way);
      if (best != kNone && way.size() >= hops) continue;
      best = cpu;
      hops = way.size();
    }
    return best;
  }

  [[nodiscard]] bool passes_cpu(std::span<const std::uint16_t> route) const {
    return std::ranges::any_of(route, [this](std::uint16_t link) {
      return kind(plan_.links[link].from) == DeviceKind::cpu ||
             kind(plan_.links[link].to) == DeviceKind::cpu;
    });
  }

  // ACS redirects what one device below a switch sends to another.
  void redirect(std::uint32_t from, std::uint32_t to, std::vector<std::uint16_t>& route,
                std::size_t start) {
    if (route.size() - start < 2 || passes_cpu(std::span(route).subspan(start))) return;
    const std::uint32_t cpu = cpu_above(from);
    if (cpu == kNone) return;
    route.resize(start);
    append_host(from, cpu, route);
    search(cpu);
    append_host(cpu, to, route);
  }

  static bool is_endpoint(DeviceKind kind) {
    return kind == DeviceKind::gpu || kind == DeviceKind::nic;
  }

  void append_host(std::uint32_t from, std::uint32_t to, std::vector<std::uint16_t>& route) const {
    if (came_by_[to] == kNone) return;
    const auto start = static_cast<std::ptrdiff_t>(route.size());
    for (std::uint32_t at = to; at != from; at = plan_.links[came_by_[at]].from)
      route.push_back(static_cast<std::uint16_t>(came_by_[at]));
    std::reverse(route.begin() + start, route.end());
  }

  const NodePlan& plan_;
  std::vector<std::vector<std::uint32_t>> out_;
  std::uint32_t source_ = kNone;
  std::vector<std::uint32_t> came_by_;
};

}  // namespace

NodeRoutes::NodeRoutes(const NodePlan& plan, const std::vector<bool>& enabled)
    : devices_(plan.devices.size()) {
  RAILYARD_CHECK(plan.links.size() < 0x10000, "a node's links fit 16 bits");
  Finder finder(plan, enabled);
  offsets_.reserve(devices_ * devices_ + 1);
  offsets_.push_back(0);
  for (std::uint32_t from = 0; from < devices_; ++from)
    for (std::uint32_t to = 0; to < devices_; ++to) {
      finder.append(from, to, links_);
      offsets_.push_back(static_cast<std::uint32_t>(links_.size()));
    }
}

}  // namespace railyard::topologies
