#include "topologies/imported_fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_map>
#include <utility>

#include "topologies/import/text_lines.h"
#include "topologies/imported_hosts.h"

namespace railyard::topologies {
namespace {

using sim::bad_input;
using sim::Result;

constexpr std::uint32_t kUnseen = 0xffffffff;
constexpr std::uint32_t kMostPort = 255;  // that a forwarding table can name

// Of a device's name: links are "from->to" and '*' matches anything.
std::string device_name(const std::string& description) {
  std::string name = excerpt(description, 80);
  for (char& c : name)
    if (c == ' ' || c == '*' || c == '>' || c == '<') c = '_';
  return name;
}

class Resolver {
 public:
  Resolver(const FabricSpec& spec, const FabricEndpoints& endpoints)
      : spec_(spec), ends_(endpoints), graph_(spec.source->graph) {}

  Result<std::shared_ptr<const ImportedFabric>> resolve() {
    RAILYARD_ASSIGN(ChosenHosts chosen, choose_hosts(spec_, ends_));
    out_.source = spec_.source;
    out_.rails = ends_.rails;
    out_.notes = std::move(chosen.notes);
    RAILYARD_TRY(number_switches());
    add_host_cables(chosen.hosts);
    add_trunks();
    set_levels();
    RAILYARD_TRY(check_rates());
    RAILYARD_TRY(check_connected());
    if (out_.has_tables()) RAILYARD_TRY(check_tables(out_));
    return std::make_shared<const ImportedFabric>(std::move(out_));
  }

 private:
  [[nodiscard]] bool is_switch(std::uint32_t node) const {
    return graph_.nodes[node].kind != GraphNodeKind::adapter;
  }

  Result<void> number_switches() {
    switch_of_.assign(graph_.nodes.size(), kUnseen);
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_switch(i)) continue;
      const GraphNode& node = graph_.nodes[i];
      switch_of_[i] = static_cast<std::uint32_t>(out_.switches.size());
      ImportedSwitch made;
      made.name = node.name;
      made.guid = node.key;
      made.table = out_.source->tables.find(node.key);
      if (out_.has_tables() && !node.ports.empty()) {
        if (node.ports.back().number > kMostPort)
          return bad_input(fmt::format("switch '{}' has port {}; forwarding tables name up to {}",
                                       excerpt(node.name), node.ports.back().number, kMostPort));
        made.exits.assign(node.ports.back().number + 1, kNoCable);
      }
      out_.switches.push_back(std::move(made));
    }
    if (!out_.switches.empty()) return {};
    return bad_input(fmt::format("{}: a fabric without switches", out_.source->name));
  }

  [[nodiscard]] sim::Bandwidth host_rate(const GraphPort& port) const {
    const sim::Bandwidth told = spec_.link_rate.raw() > 0 ? spec_.link_rate : port.rate();
    return told.raw() > 0 ? std::min(told, ends_.port_rate) : ends_.port_rate;
  }

  [[nodiscard]] sim::Bandwidth trunk_rate(const GraphPort& port) const {
    if (spec_.trunk_rate.raw() > 0) return spec_.trunk_rate;
    if (port.rate().raw() > 0) return port.rate();
    return spec_.link_rate.raw() > 0 ? spec_.link_rate : ends_.port_rate;
  }

  void set_exit(std::uint32_t at_switch, std::uint32_t port, std::size_t cable) {
    std::vector<std::uint32_t>& exits = out_.switches[at_switch].exits;
    if (port < exits.size()) exits[port] = static_cast<std::uint32_t>(cable);
  }

  void add_host_cables(const std::vector<FabricHost>& hosts) {
    for (const FabricHost& host : hosts) {
      out_.hosts.push_back(host.name);
      for (const HostPort& at : host.ports) {
        const GraphPort& port = graph_.nodes[at.node].ports[at.port];
        ImportedCable cable;
        cable.a = static_cast<std::uint32_t>(out_.cables.size());
        cable.b = switch_of_[port.peer];
        cable.rate = host_rate(port);
        set_exit(cable.b, port.peer_port, out_.cables.size());
        out_.cables.push_back(cable);
        out_.lids.push_back(port.lid);
      }
    }
  }

  // In the order of the lower end's ports; a cable from a switch to itself leads nowhere.
  void add_trunks() {
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_switch(i)) continue;
      std::unordered_map<std::uint32_t, std::size_t> known;  // peer -> cable
      for (const GraphPort& port : graph_.nodes[i].ports) {
        if (!is_switch(port.peer) || port.peer <= i) continue;
        const auto [at, fresh] = known.emplace(port.peer, out_.cables.size());
        if (!fresh && !out_.has_tables()) {
          out_.cables[at->second].rate += trunk_rate(port);
          ++out_.cables[at->second].width;
          continue;
        }
        set_exit(switch_of_[i], port.number, out_.cables.size());
        set_exit(switch_of_[port.peer], port.peer_port, out_.cables.size());
        out_.cables.push_back({switch_of_[i], switch_of_[port.peer], trunk_rate(port), 1});
      }
    }
  }

  [[nodiscard]] std::vector<std::vector<std::uint32_t>> neighbours() const {
    std::vector<std::vector<std::uint32_t>> out(out_.switches.size());
    for (std::size_t c = out_.endpoints(); c < out_.cables.size(); ++c) {
      out[out_.cables[c].a].push_back(out_.cables[c].b);
      out[out_.cables[c].b].push_back(out_.cables[c].a);
    }
    return out;
  }

  // Leaves hold adapters, used or not; a spine is next to a leaf, and so on.
  void set_levels() {
    std::vector<std::uint32_t> level(out_.switches.size(), kUnseen);
    std::deque<std::uint32_t> queue;
    const auto is_host = [&](const GraphPort& port) {
      const GraphNode& peer = graph_.nodes[port.peer];
      return peer.kind == GraphNodeKind::adapter &&
             peer.name.find("Aggregation Node") == std::string::npos;
    };
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto& ports = graph_.nodes[i].ports;
      if (!is_switch(i) || std::none_of(ports.begin(), ports.end(), is_host)) continue;
      level[switch_of_[i]] = 0;
      queue.push_back(switch_of_[i]);
    }
    const auto next = neighbours();
    for (; !queue.empty(); queue.pop_front())
      for (const std::uint32_t to : next[queue.front()])
        if (level[to] == kUnseen) {
          level[to] = level[queue.front()] + 1;
          queue.push_back(to);
        }
    name_switches(level);
  }

  void name_switches(const std::vector<std::uint32_t>& level) {
    std::set<std::string> taken;
    for (std::size_t i = 0; i < out_.switches.size(); ++i) {
      ImportedSwitch& at = out_.switches[i];
      at.level = level[i] == kUnseen ? 0 : level[i];
      const std::string kind = at.level == 0   ? "leaf"
                               : at.level == 1 ? "spine"
                               : at.level == 2 ? "core"
                                               : fmt::format("level{}", at.level);
      std::string name = kind + "/" + device_name(at.name);
      if (!taken.insert(name).second) {
        name += fmt::format(":{:016x}", at.guid);
        taken.insert(name);
      }
      at.name = std::move(name);
    }
  }

  Result<void> check_rates() {
    const sim::Bandwidth most = sim::bytes_per_second(100'000'000'000'000);
    for (const ImportedCable& cable : out_.cables)
      if (cable.rate > most)
        return bad_input(fmt::format("{} parallel cables between two switches carry more than {}",
                                     cable.width, sim::to_text(most)));
    return {};
  }

  // The number of a switch of the same connected part, by switch.
  [[nodiscard]] std::vector<std::uint32_t> parts() const {
    std::vector<std::uint32_t> part(out_.switches.size(), kUnseen);
    const auto next = neighbours();
    std::deque<std::uint32_t> queue;
    const auto reach = [&](std::uint32_t at, std::uint32_t root) {
      if (part[at] != kUnseen) return;
      part[at] = root;
      queue.push_back(at);
    };
    for (std::uint32_t root = 0; root < part.size(); ++root)
      for (reach(root, root); !queue.empty(); queue.pop_front())
        for (const std::uint32_t to : next[queue.front()]) reach(to, root);
    return part;
  }

  // The NICs of one rail must reach each other.
  Result<void> check_connected() {
    const std::vector<std::uint32_t> part = parts();
    for (std::size_t e = out_.rails; e < out_.endpoints(); ++e)
      if (part[out_.cables[e].b] != part[out_.cables[e % out_.rails].b])
        return bad_input(fmt::format(
            "the fabric falls apart: no way from NIC {} of {} to that of {}{}", e % out_.rails,
            excerpt(out_.hosts[0]), excerpt(out_.hosts[e / out_.rails]),
            graph_.source.starts_with("SLURM") ? " (add a switch above the roots to the file)"
                                               : ""));
    return {};
  }

  const FabricSpec& spec_;
  const FabricEndpoints& ends_;
  const FabricGraph& graph_;
  std::vector<std::uint32_t> switch_of_;  // by node of the graph
  ImportedFabric out_;
};

}  // namespace

std::uint32_t ImportedFabric::next_cable(std::uint32_t at_switch, std::uint16_t lid) const {
  const ImportedSwitch& at = switches[at_switch];
  const auto port = at.table != nullptr ? at.table->port(lid) : std::nullopt;
  return port && *port < at.exits.size() ? at.exits[*port] : kNoCable;
}

Result<std::shared_ptr<const ImportedFabric>> resolve_imported(const FabricSpec& spec,
                                                               const FabricEndpoints& endpoints) {
  if (spec.source == nullptr)
    return bad_input(spec.file.empty() ? "fabric 'imported' needs fabric.file"
                                       : "fabric.file was not read");
  if (endpoints.rails == 0)
    return bad_input("an 'imported' fabric needs NICs, but the nodes have none");
  return Resolver(spec, endpoints).resolve();
}

}  // namespace railyard::topologies
