// The tree text: nodes folded, then the fabric level by level.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topologies/node_view.h"
#include "topologies/show.h"

namespace railyard::topologies {
namespace {

using sim::DeviceKind;

std::string short_name(const sim::Topology& topology, sim::DeviceId device) {
  const std::string& name = topology.devices[device.index()].name;
  const std::size_t slash = name.find('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

std::string rate_of(const sim::Link& link) {
  std::string text = fmt::format("{:.4g} GB/s", sim::to_gigabytes_per_second(link.capacity));
  if (link.width > 1) text = fmt::format("{} links, {}", link.width, text);
  return text;
}

// A switch's level: its name up to the slash ("leaf").
std::string_view level_of(const sim::Device& device) {
  return std::string_view(device.name).substr(0, device.name.find('/'));
}

// One node's inside, without its name, so that equal nodes give equal text.
class NodePrinter {
 public:
  NodePrinter(const sim::Topology& topology, const NodeView& view)
      : topology_(topology), view_(view) {}

  std::string print() {
    for (const sim::DeviceId device : view_.devices())
      if (view_.kind(device) == DeviceKind::cpu) print_cpu(device);
    print_loose();
    return std::move(text_);
  }

 private:
  // Devices without a CPU above: cut off, or on a machine without an inside. Runs that read the
  // same are one line.
  void print_loose() {
    std::vector<sim::DeviceId> run;
    const auto flush = [&] {
      if (run.empty()) return;
      text_ += "  " + short_name(topology_, run.front());
      if (run.size() > 1)
        text_ += fmt::format(" .. {} ({} equal)", short_name(topology_, run.back()), run.size());
      text_ += extras(run.front()) + "\n";
      run.clear();
    };
    for (const sim::DeviceId device : view_.devices()) {
      const DeviceKind kind = view_.kind(device);
      if (kind == DeviceKind::cpu || kind == DeviceKind::nvswitch || view_.parent(device).valid())
        continue;
      const bool same = !run.empty() && view_.kind(run.front()) == kind &&
                        extras(run.front()) == extras(device) && view_.children(device).empty();
      if (!same) flush();
      run.push_back(device);
      if (view_.children(device).empty()) continue;
      run.clear();
      print_device(device, "", 1);
    }
    flush();
  }

  void print_cpu(sim::DeviceId cpu) {
    std::string peers;
    if (!view_.smp_of(cpu).empty())
      peers = fmt::format("  (smp to {} CPUs, {} each)", view_.smp_of(cpu).size(),
                          rate_of(link(view_.smp_of(cpu).front().link)));
    text_ += fmt::format("  {}{}\n", short_name(topology_, cpu), peers);
    for (const NodeView::Edge& edge : view_.children(cpu)) print_edge(edge, 2);
  }

  [[nodiscard]] const sim::Link& link(sim::LinkId id) const { return topology_.links[id.index()]; }

  void print_edge(const NodeView::Edge& edge, std::size_t depth) {
    const sim::Link& l = link(edge.link);
    print_device(edge.to, fmt::format("  {} {}", sim::to_text(l.link_class), rate_of(l)), depth);
  }

  void print_device(sim::DeviceId device, const std::string& uplink, std::size_t depth) {
    text_ += fmt::format("{}{}{}{}\n", std::string(2 * depth, ' '), short_name(topology_, device),
                         uplink, extras(device));
    for (const NodeView::Edge& edge : view_.children(device)) print_edge(edge, depth + 1);
  }

  // NVLinks and fabric ports, folded by peer: "nvlink to nvswitch0: 18 links, 450 GB/s".
  [[nodiscard]] std::string extras(sim::DeviceId device) const {
    std::string text;
    for (const NodeView::Edge& edge : view_.nvlinks_of(device))
      text += fmt::format("; nvlink to {}: {}", short_name(topology_, edge.to),
                          rate_of(link(edge.link)));
    for (const NodeView::Edge& edge : view_.ports_of(device))
      text += fmt::format("; port on a {}: {}", level_of(topology_.devices[edge.to.index()]),
                          rate_of(link(edge.link)));
    return text;
  }

  const sim::Topology& topology_;
  const NodeView& view_;
  std::string text_;
};

// Sums over the switches of one level.
struct Level {
  std::size_t switches = 0;
  double up = 0;  // GB/s out of the switches of this level
  double down = 0;
  std::map<std::string, std::size_t> links;  // "to 8 GB/s ..." -> count
};

// How far a level is from the hosts.
int height(std::string_view level) { return level == "core" ? 2 : level == "spine" ? 1 : 0; }

std::map<std::pair<int, std::string>, Level> levels_of(const sim::Topology& topology) {
  std::map<std::pair<int, std::string>, Level> levels;
  const auto key = [](const sim::Device& device) {
    return std::pair{height(level_of(device)), std::string(level_of(device))};
  };
  for (const sim::Device& device : topology.devices)
    if (device.kind == DeviceKind::fabric_switch) ++levels[key(device)].switches;
  for (const sim::Link& link : topology.links) {
    const sim::Device& from = topology.devices[link.from.index()];
    const sim::Device& to = topology.devices[link.to.index()];
    if (from.kind != DeviceKind::fabric_switch) continue;
    Level& level = levels[key(from)];
    const bool to_switch = to.kind == DeviceKind::fabric_switch;
    const int step = to_switch ? height(level_of(to)) - height(level_of(from)) : -1;
    const double rate = sim::to_gigabytes_per_second(link.capacity);
    if (step > 0) level.up += rate;
    if (step < 0) level.down += rate;
    const std::string_view target = to_switch ? level_of(to) : std::string_view("host");
    ++level.links[fmt::format("to {}: {}", target, rate_of(link))];
  }
  return levels;
}

std::string print_fabric(const sim::Topology& topology) {
  std::string text;
  for (const auto& [key, level] : levels_of(topology)) {
    text += fmt::format("  {} x {}", key.second, level.switches);
    if (level.up > 0) text += fmt::format("  (oversubscription {:.4g}:1)", level.down / level.up);
    text += "\n";
    for (const auto& [what, count] : level.links) text += fmt::format("    {} x {}\n", count, what);
  }
  return text.empty() ? text : "fabric (links of one direction, downwards and up)\n" + text;
}

struct Fold {
  std::string text;
  std::vector<std::size_t> nodes;
};

// "node0 .. node3, node7".
std::string node_ranges(const sim::Topology& topology, const std::vector<std::size_t>& nodes) {
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < nodes.size();) {
    std::size_t end = i;
    while (end + 1 < nodes.size() && nodes[end + 1] == nodes[end] + 1) ++end;
    const std::string& first = topology.nodes[nodes[i]].name;
    ranges.push_back(end == i ? first : first + " .. " + topology.nodes[nodes[end]].name);
    i = end + 1;
  }
  constexpr std::size_t kMaxRanges = 8;
  const std::size_t left = ranges.size() > kMaxRanges ? ranges.size() - kMaxRanges : 0;
  ranges.resize(ranges.size() - left);
  return fmt::format("{}{}", fmt::join(ranges, ", "), left > 0 ? ", ..." : "");
}

}  // namespace

std::string show_tree(const sim::Topology& topology) {
  std::vector<Fold> folds;
  std::map<std::string, std::size_t> known;
  std::size_t domains = 0;
  {
    const std::vector<NodeView> views = NodeView::views(topology);
    for (std::size_t i = 0; i < views.size(); ++i) {
      std::string text = topology.nodes[i].machine + "\n" + NodePrinter(topology, views[i]).print();
      const auto [found, added] = known.emplace(text, folds.size());
      if (added) folds.push_back({std::move(text), {}});
      folds[found->second].nodes.push_back(i);
      domains = std::max<std::size_t>(domains, topology.nodes[i].nvlink_domain + std::size_t{1});
    }
  }
  std::string text =
      fmt::format("{} node(s), {} GPUs, {} devices, {} links", topology.nodes.size(),
                  topology.gpu_count(), topology.devices.size(), topology.links.size());
  if (domains < topology.nodes.size()) text += fmt::format(", {} NVLink domain(s)", domains);
  text += "\n";
  for (const Fold& fold : folds) {
    const std::size_t count = fold.nodes.size();
    text += fmt::format("{}: {}{}", node_ranges(topology, fold.nodes),
                        count > 1 ? fmt::format("{} equal nodes, ", count) : "", fold.text);
  }
  return text + print_fabric(topology);
}

}  // namespace railyard::topologies
