#include <algorithm>

#include "calibrate/readers/nccl_log_builder.h"
#include "sim/enum_table.h"

namespace railyard::calibrate::nccl_log {
namespace {

std::optional<sim::PathType> path_type(std::string_view name) {
  for (const auto& entry : sim::EnumTable<sim::PathType>::entries)
    if (entry.name == name) return entry.value;
  return std::nullopt;
}

// Pattern 3 is the collnet chain's, and the tree's own where a node has one GPU: the tree is first.
sim::GraphKind graph_kind(std::int64_t pattern, const std::vector<Graph>& earlier) {
  using sim::GraphKind;
  using sim::GraphPattern;
  switch (static_cast<GraphPattern>(pattern)) {
    case GraphPattern::ring: return GraphKind::ring;
    case GraphPattern::nvls: return GraphKind::nvls;
    case GraphPattern::collnet_direct: return GraphKind::collnet_direct;
    case GraphPattern::tree: {
      const bool has_tree = std::any_of(earlier.begin(), earlier.end(), [](const Graph& graph) {
        return graph.kind == GraphKind::tree;
      });
      return has_tree ? GraphKind::collnet_chain : GraphKind::tree;
    }
    case GraphPattern::balanced_tree:
    case GraphPattern::split_tree: break;
  }
  return GraphKind::tree;
}

// "NET/3", and since 2.21 "NET/0-c": host and device, hexadecimal.
bool net_id(Scanner& text, std::int64_t& id) {
  constexpr std::uint32_t kHostShift = 56;  // NCCL's own packing
  Hex host, device;
  if (text.match("NET/%-%", host, device)) {
    id = static_cast<std::int64_t>((host.value & 0x7fU) << kHostShift |
                                   (device.value & 0xffffffffU));
    return true;
  }
  return text.match("NET/%", id);
}

// "GPU/5" is a rank, "GPU/0-18000" (since 2.21) a host and a bus id.
bool gpu_id(Scanner& text, std::int64_t& id, bool& bus_ids) {
  Hex host, bus_id;
  if (text.match("GPU/%-%", host, bus_id)) {
    id = static_cast<std::int64_t>(bus_id.value);
    bus_ids = true;
    return true;
  }
  return text.match("GPU/%", id);
}

}  // namespace

// "Pattern P, crossNic C, nChannels N, bw I/X, type T/U, sameChannels S" (before 2.13: speed).
Outcome Builder::graph(Message& message) {
  Scanner& text = message.text;
  Graph graph;
  std::string_view intra, inter;
  std::int64_t same = 0;
  if (!text.match("Pattern %, crossNic %, nChannels %, ", graph.pattern, graph.cross_nic,
                  graph.channel_count))
    return Outcome::torn;
  if (!text.literal("bw ") && !text.literal("speed ")) return Outcome::torn;
  if (!text.match("%/%, type %/%, sameChannels %", graph.bw_intra, graph.bw_inter, intra, inter,
                  same))
    return Outcome::torn;
  const auto type_intra = path_type(intra);
  const auto type_inter = path_type(inter);
  if (!type_intra || !type_inter) return Outcome::torn;
  graph.type_intra = *type_intra;
  graph.type_inter = *type_inter;
  graph.same_channels = same != 0;
  graph.line = message.line;
  Rank& rank = log_.ranks[initialising_rank(message)];
  graph.kind = graph_kind(graph.pattern, rank.graphs);
  rank.graphs.push_back(std::move(graph));
  message.thread.in_graph = true;
  return Outcome::fact;
}

// " 0 : NET/0 GPU/0 GPU/1 NET/1", after its graph.
Outcome Builder::graph_channel(Message& message) {
  Scanner& text = message.text;
  text.skip_blanks();
  std::int64_t index = -1;
  if (!text.match("% :", index)) return Outcome::other;
  if (message.thread.rank == kNone) return Outcome::other;
  std::vector<Graph>& graphs = log_.ranks[message.thread.rank].graphs;
  if (graphs.empty()) return Outcome::other;
  GraphChannel channel{.line = message.line};
  for (text.skip_blanks(); !text.done(); text.skip_blanks()) {
    std::int64_t id = -1;
    if (net_id(text, id)) {
      channel.nets[channel.gpus.empty() ? 0 : 1] = id;
    } else if (gpu_id(text, id, graphs.back().bus_ids)) {
      channel.gpus.push_back(id);
    } else {
      return Outcome::torn;
    }
  }
  if (text.torn() || channel.gpus.empty()) return Outcome::torn;
  graphs.back().channels.push_back(std::move(channel));
  return Outcome::fact;
}

// "=== System : maxBw B totalBw T ===" (2.12: maxWidth).
Outcome Builder::system(Message& message) {
  Scanner& text = message.text;
  System system{.line = message.line};
  if (!text.literal("=== System : ")) return Outcome::torn;
  if (!text.match("maxBw %", system.max_bw) && !text.match("maxWidth %", system.max_bw))
    return Outcome::torn;
  if (!text.match(" totalBw %", system.total_bw)) text.match(" totalWidth %", system.total_bw);
  if (text.rest() != " ===") return Outcome::torn;
  log_.ranks[initialising_rank(message)].system = std::move(system);
  message.thread.system_stack.clear();
  return Outcome::fact;
}

// "CPU/0-0 (1/1/4)": a root of the tree; or, with paths, a row of them.
Outcome Builder::system_root(Message& message) {
  if (message.text.rest().find(" :") != std::string_view::npos) return path_row(message);
  if (message.thread.rank == kNone) return Outcome::other;
  std::optional<System>& system = log_.ranks[message.thread.rank].system;
  if (!system) return Outcome::other;
  std::string_view name, detail;
  if (!message.text.match("% (%)", name, detail)) return Outcome::torn;
  message.thread.system_stack.assign(1, {0, system->nodes.size()});
  system->nodes.push_back(
      {.name = std::string(name), .detail = std::string(detail), .line = message.line});
  return Outcome::fact;
}

// "              + PCI[48.0] - GPU/0-18000 (0)": the column of '+' tells the depth.
Outcome Builder::system_link(Message& message) {
  Scanner& text = message.text;
  if (message.thread.rank == kNone) return Outcome::other;
  std::optional<System>& system = log_.ranks[message.thread.rank].system;
  auto& stack = message.thread.system_stack;
  if (!system || stack.empty()) return Outcome::other;
  const std::size_t column = text.rest().find_first_not_of(' ') + 1;  // roots have 0
  text.skip_blanks();
  std::string_view link, name, detail;
  SystemNode node{.line = message.line};
  if (!text.match("+ %[%] - ", link, node.bw)) return Outcome::torn;
  name = text.word();
  if (name.empty() || (!text.done() && !text.match(" (%)", detail))) return Outcome::torn;
  while (stack.size() > 1 && stack.back().first >= column) stack.pop_back();
  node.parent = stack.back().second;
  node.link = std::string(link);
  node.name = std::string(name);
  node.detail = std::string(detail);
  stack.emplace_back(column, system->nodes.size());
  system->nodes.push_back(std::move(node));
  return Outcome::fact;
}

// "GPU/0-18000 :GPU/0-18000 (0/5000.0/LOC) CPU/0-0 (1/24.0/PHB) ...": hops, bandwidth, type.
Outcome Builder::path_row(Message& message) {
  Scanner& text = message.text;
  if (message.thread.rank == kNone) return Outcome::other;
  std::optional<System>& system = log_.ranks[message.thread.rank].system;
  std::string_view from, to, type;
  if (!text.match("% :", from)) return Outcome::other;
  if (!system) return Outcome::other;
  std::vector<SystemPath> row;
  for (text.skip_blanks(); !text.done(); text.skip_blanks()) {
    SystemPath path{.from = std::string(from), .line = message.line};
    if (!text.match("% (%/%/%)", to, path.hops, path.bw, type)) break;
    path.to = std::string(to);
    path.type = path_type(type);
    row.push_back(std::move(path));
  }
  // NCCL cuts a long row; what is whole is kept.
  if (row.empty()) return Outcome::torn;
  system->paths.insert(system->paths.end(), row.begin(), row.end());
  return Outcome::fact;
}

Outcome Builder::paths_heading(Message& message) {
  std::string_view from;
  if (!message.text.match("Paths from % :", from)) return Outcome::torn;
  message.thread.paths_from = std::string(from);
  return Outcome::fact;
}

// "--PCI->PCI/C000--PCI->CPU/0 (24.000000)" below "Paths from"; the path to itself is empty.
Outcome Builder::verbose_path(Message& message) {
  Scanner& text = message.text;
  if (message.thread.rank == kNone || message.thread.paths_from.empty()) return Outcome::other;
  std::optional<System>& system = log_.ranks[message.thread.rank].system;
  if (!system) return Outcome::other;
  SystemPath path{.from = message.thread.paths_from, .hops = 0, .line = message.line};
  path.to = path.from;
  text.skip_blanks();
  std::string_view link, node;
  while (text.literal("--")) {
    if (!text.match("%->", link)) return Outcome::torn;
    const std::size_t size = std::min(text.rest().find("--"), text.rest().find(' '));
    if (size == std::string_view::npos) return Outcome::torn;
    node = text.rest().substr(0, size);
    text.literal(node);
    path.to = std::string(node);
    ++path.hops;
  }
  text.skip_blanks();
  if (!text.match("(%)", path.bw)) return Outcome::torn;
  system->paths.push_back(std::move(path));
  return Outcome::fact;
}

}  // namespace railyard::calibrate::nccl_log
