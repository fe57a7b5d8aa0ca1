#include "topologies/fabric_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "topologies/import/text_lines.h"
#include "topologies/imported_hosts.h"

namespace railyard::topologies {
namespace {

using Names = std::vector<std::string>;

std::string rate_text(const GraphPort& port) {
  return fmt::format("{}x {}", port.lanes, sim::to_text(port.speed));
}

// What more than half of all counts are of.
template <typename T>
std::optional<T> usual(const std::map<T, std::size_t>& counts) {
  std::size_t all = 0;
  for (const auto& entry : counts) all += entry.second;
  for (const auto& [value, count] : counts)
    if (2 * count > all) return value;
  return std::nullopt;
}

class Checker {
 public:
  explicit Checker(const FabricGraph& graph) : graph_(graph), hosts_(hosts_of(graph)) {}

  std::vector<Finding> run() {
    check_host_cables();
    check_trunks();
    check_rails();
    check_leaves();
    return std::move(findings_);
  }

 private:
  [[nodiscard]] const GraphPort& port_of(const HostPort& at) const {
    return graph_.nodes[at.node].ports[at.port];
  }
  [[nodiscard]] bool is_switch(std::uint32_t node) const {
    return graph_.nodes[node].kind != GraphNodeKind::adapter;
  }
  static std::string host_name(const FabricHost& host) { return excerpt(host.name, 60); }

  void check_host_cables() {
    std::map<std::size_t, std::map<std::int64_t, std::size_t>> rates;  // by number of adapters
    for (const FabricHost& host : hosts_)
      for (const HostPort& port : host.ports)
        ++rates[host.ports.size()][port_of(port).rate().raw()];
    for (const FabricHost& host : hosts_) {
      const auto most = usual(rates[host.ports.size()]);
      for (const HostPort& port : host.ports) {
        const std::int64_t rate = port_of(port).rate().raw();
        if (!most || rate == 0 || rate >= *most) continue;
        findings_.push_back(
            {fmt::format("host {} {}", host_name(host), excerpt(port.name, 60)),
             fmt::format("cable at {}, most of such hosts' carry {}", rate_text(port_of(port)),
                         sim::to_text(sim::Bandwidth::from_raw(*most)))});
      }
    }
  }

  [[nodiscard]] std::int64_t fastest_trunk(const GraphNode& node) const {
    std::int64_t best = 0;
    for (const GraphPort& port : node.ports)
      if (is_switch(port.peer)) best = std::max(best, port.rate().raw());
    return best;
  }

  void check_trunks() {
    std::vector<std::int64_t> fastest;
    for (const GraphNode& node : graph_.nodes) fastest.push_back(fastest_trunk(node));
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_switch(i)) continue;
      for (const GraphPort& port : graph_.nodes[i].ports) {
        const std::int64_t rate = port.rate().raw();
        if (!is_switch(port.peer) || port.peer < i || rate == 0) continue;
        if (rate >= fastest[i] || rate >= fastest[port.peer]) continue;
        findings_.push_back(
            {fmt::format("cable {}[{}]-{}[{}]", excerpt(graph_.nodes[i].name, 60), port.number,
                         excerpt(graph_.nodes[port.peer].name, 60), port.peer_port),
             fmt::format("{}, while both switches have faster ones to others", rate_text(port))});
      }
    }
  }

  static Names names_of(const FabricHost& host) {
    Names names;
    for (const HostPort& port : host.ports) names.push_back(port.name);
    std::sort(names.begin(), names.end());
    return names;
  }

  // Hosts of one adapter are no rails; a host with less than half of the names is another kind.
  void check_rails() {
    std::map<Names, std::size_t> sets;
    for (const FabricHost& host : hosts_)
      if (host.ports.size() > 1) ++sets[names_of(host)];
    const auto most = usual(sets);
    if (!most) return;
    for (const FabricHost& host : hosts_) {
      const Names names = names_of(host);
      Names missing;
      std::set_difference(most->begin(), most->end(), names.begin(), names.end(),
                          std::back_inserter(missing));
      if (missing.empty() || 2 * missing.size() > most->size()) continue;
      findings_.push_back({fmt::format("host {}", host_name(host)),
                           fmt::format("no cable at {}, which {} hosts have: a rail is missing",
                                       list_of(missing), sets.at(*most))});
    }
  }

  void check_leaves() {
    std::map<std::size_t, std::size_t> counts;
    std::vector<std::pair<std::uint32_t, std::size_t>> leaves;
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto& ports = graph_.nodes[i].ports;
      const auto up = static_cast<std::size_t>(std::count_if(
          ports.begin(), ports.end(), [&](const GraphPort& port) { return is_switch(port.peer); }));
      if (!is_switch(i) || up == ports.size()) continue;
      leaves.emplace_back(i, up);
      ++counts[up];
    }
    const auto most = usual(counts);
    for (const auto& [leaf, up] : leaves)
      if (most && up < *most)
        findings_.push_back(
            {fmt::format("switch {}", excerpt(graph_.nodes[leaf].name, 60)),
             fmt::format("{} cables to other switches, most leaves have {}", up, *most)});
  }

  const FabricGraph& graph_;
  std::vector<FabricHost> hosts_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check_fabric(const FabricGraph& graph) { return Checker(graph).run(); }

}  // namespace railyard::topologies
