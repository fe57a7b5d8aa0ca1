#include "topologies/import/fabric_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "topologies/import/host_names.h"
#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

using sim::Result;

constexpr std::size_t kMaxNotes = 20;
constexpr std::size_t kExamples = 3;

// Mb/s of one lane after line coding.
std::int64_t lane_rate(LaneSpeed speed) {
  switch (speed) {
    case LaneSpeed::unknown: return 0;
    case LaneSpeed::sdr: return 2'000;
    case LaneSpeed::ddr: return 4'000;
    case LaneSpeed::qdr: return 8'000;
    case LaneSpeed::fdr10: return 10'000;
    case LaneSpeed::fdr: return 13'636;
    case LaneSpeed::edr: return 25'000;
    case LaneSpeed::hdr: return 50'000;
    case LaneSpeed::ndr: return 100'000;
    case LaneSpeed::xdr: return 200'000;
  }
  return 0;
}

std::uint64_t port_key(std::size_t node, std::uint32_t number) {
  return (std::uint64_t{node} << 32) | number;
}

std::string port_name(const GraphNode& node, std::uint32_t port) {
  return fmt::format("'{}'[{}]", excerpt(node.name, 60), port);
}

}  // namespace

sim::Bandwidth GraphPort::rate() const {
  return sim::bytes_per_second(lane_rate(speed) * lanes * 1'000'000 / 8);
}

const GraphPort* GraphNode::port(std::uint32_t number) const {
  const auto at =
      std::lower_bound(ports.begin(), ports.end(), number,
                       [](const GraphPort& p, std::uint32_t n) { return p.number < n; });
  return at != ports.end() && at->number == number ? &*at : nullptr;
}

std::size_t FabricGraph::count(GraphNodeKind kind) const {
  return static_cast<std::size_t>(std::count_if(
      nodes.begin(), nodes.end(), [&](const GraphNode& node) { return node.kind == kind; }));
}

std::size_t FabricGraph::cables() const {
  std::size_t ends = 0;
  for (const GraphNode& node : nodes) ends += node.ports.size();
  return ends / 2;
}

namespace {

// "; LMC 2: ports have 4 LIDs, of which the first counts"; empty where each has one.
std::string lmc_summary(const FabricGraph& graph) {
  int least = 0;
  int most = 0;
  for (const GraphNode& node : graph.nodes)
    for (const GraphPort& port : node.ports) {
      if (port.lmc == 0) continue;
      least = least == 0 ? port.lmc : std::min<int>(least, port.lmc);
      most = std::max<int>(most, port.lmc);
    }
  if (most == 0) return {};
  if (least == most)
    return fmt::format("; LMC {}: ports of adapters have {} LIDs, routes go by the first", most,
                       1 << most);
  return fmt::format("; LMC {} to {}: ports of adapters have up to {} LIDs, routes go by the first",
                     least, most, 1 << most);
}

}  // namespace

std::string summary(const FabricGraph& graph) {
  std::map<std::string, std::size_t> ends;
  std::set<std::string> hosts;
  for (const GraphNode& node : graph.nodes) {
    for (const GraphPort& port : node.ports)
      ++ends[port.rate().raw() == 0 ? "unknown rate"
                                    : fmt::format("{}x {}", port.lanes, sim::to_text(port.speed))];
    if (node.kind == GraphNodeKind::adapter && !is_aggregation_node(node))
      hosts.insert(split_description(node).host);
  }
  std::string rates;
  for (const auto& [rate, count] : ends)
    rates += fmt::format("{}{} x {}", rates.empty() ? ": " : ", ", count / 2, rate);
  return fmt::format("{}: {} switches, {} adapters of {} hosts, {} cables{}{}", graph.source,
                     graph.count(GraphNodeKind::fabric_switch), graph.count(GraphNodeKind::adapter),
                     hosts.size(), graph.cables(), rates, lmc_summary(graph));
}

GraphBuilder::GraphBuilder(std::string name, std::string source) : name_(std::move(name)) {
  graph_.source = std::move(source);
}

GraphNode& GraphBuilder::node(std::uint64_t key, GraphNodeKind kind) {
  const auto [at, fresh] = index_.emplace(key, static_cast<std::uint32_t>(graph_.nodes.size()));
  if (fresh) {
    GraphNode made;
    made.kind = kind;
    made.key = key;
    graph_.nodes.push_back(std::move(made));
  }
  return graph_.nodes[at->second];
}

void GraphBuilder::note(std::string text) {
  if (graph_.notes.size() < kMaxNotes) {
    graph_.notes.push_back(std::move(text));
  } else {
    ++more_notes_;
  }
}

Result<void> GraphBuilder::sort_ports(GraphNode& node) {
  std::stable_sort(node.ports.begin(), node.ports.end(),
                   [](const GraphPort& a, const GraphPort& b) { return a.number < b.number; });
  std::vector<GraphPort> kept;
  for (GraphPort& port : node.ports) {
    if (kept.empty() || kept.back().number != port.number) {
      kept.push_back(port);
      continue;
    }
    const GraphPort& first = kept.back();
    if (first.peer_key != port.peer_key || first.peer_port != port.peer_port)
      return error_at(name_, port.line,
                      fmt::format("port {} is there twice, in line {} with another cable",
                                  port_name(node, port.number), first.line));
    note(fmt::format("line {}: port {} is there twice", port.line, port_name(node, port.number)));
  }
  node.ports = std::move(kept);
  return {};
}

Result<FabricGraph> GraphBuilder::connect() {
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    GraphNode& node = graph_.nodes[i];
    RAILYARD_TRY(sort_ports(node));
    for (std::size_t p = 0; p < node.ports.size(); ++p)
      ports_.emplace(port_key(i, node.ports[p].number), p);
  }
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
    for (std::size_t p = 0; p < graph_.nodes[i].ports.size(); ++p)
      RAILYARD_TRY(join(static_cast<std::uint32_t>(i), p));
  for (GraphNode& node : graph_.nodes)
    std::sort(node.ports.begin(), node.ports.end(),
              [](const GraphPort& a, const GraphPort& b) { return a.number < b.number; });
  note_oddities();
  return std::move(graph_);
}

// A port that only the other end names is made behind those that were read.
void GraphBuilder::add_far_end(std::uint32_t at, std::size_t port) {
  const GraphNode& node = graph_.nodes[at];
  GraphPort back = node.ports[port];
  GraphNode& other = graph_.nodes[back.peer];
  std::swap(back.number, back.peer_port);
  ++one_sided_;
  if (one_sided_examples_.size() < kExamples)
    one_sided_examples_.push_back(port_name(node, back.peer_port) + "-" +
                                  port_name(other, back.number));
  ports_.emplace(port_key(back.peer, back.number), other.ports.size());
  back.peer = at;
  back.peer_key = node.key;
  back.line = 0;
  back.guid = 0;
  back.lmc = 0;
  const std::uint16_t lid = back.lid;
  back.lid = other.kind == GraphNodeKind::fabric_switch ? std::uint16_t{0} : back.peer_lid;
  back.peer_lid = lid != 0 ? lid : node.lid;
  other.ports.push_back(back);
}

void GraphBuilder::agree_on_rate(GraphPort& a, GraphPort& b) {
  if (a.lanes == b.lanes && a.speed == b.speed) return;
  ++unequal_rates_;
  const bool first = b.rate().raw() == 0 || (a.rate().raw() != 0 && a.rate() < b.rate());
  GraphPort& faster = first ? b : a;
  const GraphPort& slower = first ? a : b;
  faster.lanes = slower.lanes;
  faster.speed = slower.speed;
}

Result<void> GraphBuilder::join(std::uint32_t at, std::size_t port) {
  GraphNode& node = graph_.nodes[at];
  GraphPort& here = node.ports[port];
  if (here.peer != kNoPeer) return {};
  const auto found = index_.find(here.peer_key);
  RAILYARD_CHECK(found != index_.end(), "a reader makes the nodes that its ports lead to");
  here.peer = found->second;
  const auto far = ports_.find(port_key(here.peer, here.peer_port));
  if (far == ports_.end()) {
    add_far_end(at, port);
    return {};
  }
  GraphNode& other = graph_.nodes[here.peer];
  GraphPort& back = other.ports[far->second];
  if (back.peer_key != node.key || back.peer_port != here.number) {
    const std::string elsewhere =
        back.line != 0 ? fmt::format("line {} has that port lead elsewhere", back.line)
                       : "another cable ends in that port";
    return error_at(name_, here.line,
                    fmt::format("{} leads to {}, but {}", port_name(node, here.number),
                                port_name(other, here.peer_port), elsewhere));
  }
  back.peer = at;
  agree_on_rate(here, back);
  return {};
}

void GraphBuilder::note_oddities() {
  std::size_t unknown = 0;
  std::vector<std::string> nameless;
  for (const GraphNode& node : graph_.nodes) {
    for (const GraphPort& port : node.ports) unknown += port.rate().raw() == 0 ? 1 : 0;
    if (node.line == 0) nameless.push_back("'" + excerpt(node.name, 60) + "'");
  }
  std::vector<std::string>& notes = graph_.notes;
  if (more_notes_ > 0) notes.push_back(fmt::format("{} more notes of this kind", more_notes_));
  if (!nameless.empty())
    notes.push_back("named by neighbours only, without a block of their own: " + list_of(nameless));
  if (one_sided_ > 0)
    notes.push_back(fmt::format("{} cables are listed at one end only: {}{}", one_sided_,
                                list_of(one_sided_examples_),
                                one_sided_ > kExamples ? " ..." : ""));
  if (unequal_rates_ > 0)
    notes.push_back(fmt::format("{} cables have two rates; the slower is taken", unequal_rates_));
  if (unknown > 0) notes.push_back(fmt::format("{} cables have no known rate", unknown / 2));
}

}  // namespace railyard::topologies
