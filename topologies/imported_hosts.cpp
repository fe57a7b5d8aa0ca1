#include "topologies/imported_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/text.h"
#include "topologies/fabric_source.h"
#include "topologies/import/host_names.h"
#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

using sim::bad_input;
using sim::Result;

// A second port of a card, and a second card of one name, carry their port number.
void add_port(FabricHost& host, const std::string& device, HostPort port, std::uint32_t number) {
  const auto known = [&](const std::string& name) {
    return std::any_of(host.ports.begin(), host.ports.end(),
                       [&](const HostPort& p) { return p.name == name; });
  };
  port.name = device;
  if (known(port.name)) port.name += fmt::format("/{}", number);
  if (known(port.name)) port.name += fmt::format("/{}", host.ports.size());
  host.ports.push_back(std::move(port));
}

// The host's ports in NIC order, or why it cannot be a node.
Result<FabricHost> fit(const FabricHost& host, const std::vector<std::string>& adapters,
                       std::uint64_t rails) {
  FabricHost out;
  out.name = host.name;
  if (adapters.empty()) {
    if (host.ports.size() != rails)
      return bad_input(
          fmt::format("{} has {} cabled adapters", excerpt(host.name, 60), host.ports.size()));
    out.ports = host.ports;
    return out;
  }
  for (const std::string& wanted : adapters) {
    const auto found = std::find_if(host.ports.begin(), host.ports.end(),
                                    [&](const HostPort& p) { return p.name == wanted; });
    if (found == host.ports.end())
      return bad_input(fmt::format("{} has no cabled adapter '{}'", excerpt(host.name, 60),
                                   excerpt(wanted, 60)));
    out.ports.push_back(*found);
  }
  return out;
}

const std::vector<std::string>& names_for(const FabricHost& host, const AdapterNames& names) {
  const auto own = names.by_host.find(host.name);
  return own == names.by_host.end() ? names.all : own->second;
}

// What the scenario names, or the names in the machine's file where they are the fabric's too.
std::vector<std::string> adapters_of(const FabricSpec& spec, const FabricEndpoints& endpoints,
                                     const std::vector<FabricHost>& all, ChosenHosts& out) {
  if (!spec.adapters.empty() || endpoints.names.size() != endpoints.rails) return spec.adapters;
  const bool any = std::any_of(all.begin(), all.end(), [&](const FabricHost& host) {
    return fit(host, endpoints.names, endpoints.rails).ok();
  });
  if (any) return endpoints.names;
  if (tells_adapters(spec.source->graph))
    out.notes.push_back("no host's adapters are called as the machine's NICs: " +
                        list_of(endpoints.names));
  return {};
}

Result<void> take_listed(const std::vector<FabricHost>& all, const FabricSpec& spec,
                         const AdapterNames& adapters, ChosenHosts& out) {
  const std::uint64_t rails = out.rails;
  std::unordered_map<std::string, std::size_t> index;
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    index.emplace(all[i].name, i);
    names.emplace_back(all[i].name);
  }
  for (const std::string& wanted : spec.hosts) {
    const auto found = index.find(wanted);
    if (found == index.end())
      return bad_input(fmt::format("fabric.hosts: no host '{}' in the fabric{}",
                                   excerpt(wanted, 60), sim::did_you_mean(wanted, names)));
    const FabricHost& from = all[found->second];
    auto host = fit(from, names_for(from, adapters), rails);
    if (!host.ok())
      return bad_input(
          fmt::format("fabric.hosts: {}; the nodes have {} NICs", host.error().message, rails));
    out.hosts.push_back(std::move(host).value());
  }
  return {};
}

}  // namespace

std::vector<FabricHost> hosts_of(const FabricGraph& graph) {
  std::vector<FabricHost> hosts;
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (node.kind != GraphNodeKind::adapter || is_aggregation_node(node)) continue;
    const HostAndDevice who = split_description(node);
    for (std::size_t p = 0; p < node.ports.size(); ++p) {
      // A cable between two hosts is no part of the fabric.
      if (graph.nodes[node.ports[p].peer].kind == GraphNodeKind::adapter) continue;
      const auto [at, fresh] = index.emplace(who.host, hosts.size());
      if (fresh) hosts.push_back({who.host, {}});
      HostPort port;
      port.node = static_cast<std::uint32_t>(i);
      port.port = static_cast<std::uint32_t>(p);
      add_port(hosts[at->second], who.device, std::move(port), node.ports[p].number);
    }
  }
  for (FabricHost& host : hosts)
    std::stable_sort(
        host.ports.begin(), host.ports.end(),
        [](const HostPort& a, const HostPort& b) { return natural_less(a.name, b.name); });
  std::sort(hosts.begin(), hosts.end(),
            [](const FabricHost& a, const FabricHost& b) { return natural_less(a.name, b.name); });
  return hosts;
}

bool tells_adapters(const FabricGraph& graph) { return !graph.source.starts_with("SLURM"); }

FabricHost with_all_nics(const FabricHost& host, std::uint64_t rails) {
  FabricHost out = host;
  if (host.ports.size() == 1) out.ports.assign(rails, host.ports.front());
  return out;
}

FittingHosts fitting_hosts(const std::vector<FabricHost>& all, const AdapterNames& names,
                           std::uint64_t rails) {
  FittingHosts out;
  for (const FabricHost& host : all) {
    auto fitted = fit(host, names_for(host, names), rails);
    if (fitted.ok()) {
      out.hosts.push_back(std::move(fitted).value());
    } else {
      out.left_out.push_back(fitted.error().message);
    }
  }
  return out;
}

Result<void> check_adapter_map(const HostAdapters& by_host, const std::vector<FabricHost>& all,
                               std::uint64_t rails, const std::string& key) {
  if (by_host.empty()) return {};
  std::vector<std::string_view> names;
  std::unordered_set<std::string_view> known;
  for (const FabricHost& host : all) names.emplace_back(host.name);
  known.insert(names.begin(), names.end());
  for (const auto& [host, adapters] : by_host) {
    if (known.count(host) == 0)
      return bad_input(fmt::format("{}: no host '{}' in the fabric{}", key, excerpt(host, 60),
                                   sim::did_you_mean(host, names)));
    if (adapters.size() != rails)
      return bad_input(fmt::format("{}: {} has {} adapters, but the nodes have {} NICs", key,
                                   excerpt(host, 60), adapters.size(), rails));
  }
  return {};
}

Result<ChosenHosts> choose_hosts(const FabricSpec& spec, const FabricEndpoints& endpoints) {
  const std::uint64_t nodes = endpoints.nodes;
  const std::uint64_t rails = endpoints.rails;
  if (!spec.adapters.empty() && spec.adapters.size() != rails)
    return bad_input(fmt::format("fabric.adapters names {} adapters, but the nodes have {} NICs",
                                 spec.adapters.size(), rails));
  std::vector<FabricHost> all = hosts_of(spec.source->graph);
  ChosenHosts out;
  out.rails = rails;
  if (rails > 1 && spec.adapters.empty() && !tells_adapters(spec.source->graph)) {
    for (FabricHost& host : all) host = with_all_nics(host, rails);
    out.notes.emplace_back("the file tells no rails: all NICs of a host end in its leaf");
  }
  RAILYARD_TRY(check_adapter_map(spec.adapters_by_host, all, rails, "fabric.adapters_by_host"));
  const std::vector<std::string> adapters = adapters_of(spec, endpoints, all, out);
  const AdapterNames names{adapters, spec.adapters_by_host};
  std::vector<std::string> left_out;
  if (!spec.hosts.empty()) {
    RAILYARD_TRY(take_listed(all, spec, names, out));
  } else {
    FittingHosts fitting = fitting_hosts(all, names, rails);
    out.hosts = std::move(fitting.hosts);
    left_out = std::move(fitting.left_out);
  }
  const std::string why = left_out.empty() ? "" : "; left out: " + list_of(left_out, 3);
  if (out.hosts.size() < nodes)
    return bad_input(fmt::format(
        "there are {} nodes of {} NICs, but the fabric has {} hosts with that many cabled "
        "adapters{}{}",
        nodes, rails, out.hosts.size(), why,
        left_out.empty() || !adapters.empty() ? "" : " (fabric.adapters names those to use)"));
  if (!left_out.empty()) out.notes.push_back("hosts left out: " + list_of(left_out));
  if (out.hosts.size() > nodes)
    out.notes.push_back(
        fmt::format("{} more hosts are not part of the cluster", out.hosts.size() - nodes));
  out.hosts.resize(nodes);
  return out;
}

}  // namespace railyard::topologies
