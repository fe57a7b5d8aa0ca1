#include "topologies/routing.h"

#include <map>
#include <optional>
#include <utility>

#include "topologies/imported_routes.h"
#include "topologies/node_routes.h"

namespace railyard::topologies {
namespace {

constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

class ClusterRouting final : public sim::Routing {
 public:
  ClusterRouting(ClusterPlan plan, SlotMap links)
      : plan_(std::move(plan)), links_(std::move(links)), fabric_(plan_, links_) {
    if (plan_.imported) imported_.emplace(plan_, links_);
    if (plan_.node.links.empty()) return;
    whole_ = NodeRoutes(plan_.node, {});
    if (!links_.empty()) find_damaged();
  }

  bool append_route(sim::DeviceId from, sim::DeviceId to, std::uint64_t flow_hash,
                    sim::Route& out) const override {
    if (from == to) return true;
    const Place a = place(from);
    const Place b = place(to);
    if (a.domain != kNowhere && a.domain == b.domain && append_inside(a, b, out)) return true;
    const std::optional<Endpoint> port_a = port(a);
    const std::optional<Endpoint> port_b = port(b);
    if (!port_a || !port_b) return false;
    return imported_ ? imported_->append(*port_a, *port_b, flow_hash, out)
                     : fabric_.append(*port_a, *port_b, flow_hash, out);
  }

 private:
  // Where a device is: `node` is kNowhere for a shared NVSwitch, `domain` for fabric switches too.
  struct Place {
    std::uint64_t node = kNowhere;
    std::uint64_t domain = kNowhere;
    std::uint32_t local = 0;
  };

  [[nodiscard]] Place place(sim::DeviceId id) const {
    const std::uint64_t device = id.value();
    RAILYARD_CHECK(device < plan_.devices(), "a device of this topology");
    if (device < plan_.first_shared()) {
      const std::uint64_t node = device / plan_.node.own_devices;
      return {node, node / plan_.nodes_per_domain,
              static_cast<std::uint32_t>(device % plan_.node.own_devices)};
    }
    if (device < plan_.first_switch())
      return {kNowhere, device - plan_.first_shared(), plan_.node.own_devices};
    return {};
  }

  [[nodiscard]] std::optional<Endpoint> port(const Place& place) const {
    const std::uint32_t first = plan_.flat ? 0 : plan_.node.gpus;
    if (place.node == kNowhere || place.local < first || place.local - first >= plan_.rails())
      return std::nullopt;
    return Endpoint{place.node, place.local - first};
  }

  void find_damaged() {
    const std::uint64_t per_node = plan_.node.links.size();
    for (std::uint64_t node = 0; node < plan_.nodes; ++node) {
      std::vector<bool> enabled(per_node, true);
      bool whole = true;
      for (std::uint64_t i = 0; i < per_node; ++i)
        whole &= enabled[i] = links_[node * per_node + i].valid();
      if (!whole) damaged_.emplace(node, NodeRoutes(plan_.node, enabled));
    }
  }

  [[nodiscard]] const NodeRoutes& routes_of(std::uint64_t node) const {
    const auto found = damaged_.find(node);
    return found == damaged_.end() ? whole_ : found->second;
  }

  bool append_local(std::uint64_t node, std::uint32_t from, std::uint32_t to,
                    sim::Route& out) const {
    if (plan_.node.links.empty()) return false;
    const auto route = routes_of(node).find(from, to);
    for (const std::uint16_t link : route) {
      const std::uint64_t slot = node * plan_.node.links.size() + link;
      out.push_back(links_.empty() ? sim::LinkId(static_cast<std::size_t>(slot)) : links_[slot]);
    }
    return !route.empty();
  }

  // Within a node or an NVLink domain.
  bool append_inside(const Place& a, const Place& b, sim::Route& out) const {
    if (a.node == b.node) return append_local(a.node, a.local, b.local, out);
    if (!plan_.node.shares_nvswitch()) return false;
    const std::uint32_t nvswitch = plan_.node.own_devices;
    if (a.node == kNowhere)
      return b.local < plan_.node.gpus && append_local(b.node, nvswitch, b.local, out);
    if (b.node == kNowhere)
      return a.local < plan_.node.gpus && append_local(a.node, a.local, nvswitch, out);
    if (a.local >= plan_.node.gpus || b.local >= plan_.node.gpus) return false;
    const std::size_t before = out.size();
    if (append_local(a.node, a.local, nvswitch, out) &&
        append_local(b.node, nvswitch, b.local, out))
      return true;
    out.resize(before);
    return false;
  }

  ClusterPlan plan_;
  SlotMap links_;
  FabricRoutes fabric_;
  std::optional<ImportedRoutes> imported_;
  NodeRoutes whole_;
  std::map<std::uint64_t, NodeRoutes> damaged_;
};

}  // namespace

std::shared_ptr<const sim::Routing> make_routing(ClusterPlan plan, SlotMap links) {
  return std::make_shared<ClusterRouting>(std::move(plan), std::move(links));
}

}  // namespace railyard::topologies
