#include "topologies/import/graph_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "topologies/import/xml_fields.h"
#include "topologies/import/xml_tree.h"

namespace railyard::topologies {
namespace {

using sim::ChannelGraph;
using sim::GraphKind;
using sim::GraphPattern;
using sim::PathType;
using sim::Result;

constexpr std::int64_t kMaxChannels = 64;  // NCCL's MAXCHANNELS
constexpr unsigned kHostShift = 56;        // the host's number in a long dev

template <typename E>
std::optional<E> enumerator(std::int64_t number) {
  for (const auto& entry : sim::EnumTable<E>::entries)
    if (static_cast<std::int64_t>(entry.value) == number) return entry.value;
  return std::nullopt;
}

// The patterns that NCCL itself searches for a graph of this kind.
bool usual(GraphKind kind, GraphPattern pattern) {
  switch (kind) {
    case GraphKind::ring: return pattern == GraphPattern::ring;
    case GraphKind::tree:
    case GraphKind::collnet_chain:
      return pattern == GraphPattern::balanced_tree || pattern == GraphPattern::split_tree ||
             pattern == GraphPattern::tree;
    case GraphKind::nvls: return pattern == GraphPattern::nvls;
    case GraphKind::collnet_direct: return pattern == GraphPattern::collnet_direct;
  }
  return false;
}

class Reader {
 public:
  Reader(const ImportSource& source, DevNumbers numbers) : source_(source), numbers_(numbers) {}

  Result<GraphFile> graphs(const XmlElement& element) {
    const XmlFields fields(element, source_);
    RAILYARD_ASSIGN(const auto version, fields.integer("version", {}));
    if (!version) return fields.missing("version");
    if (*version != 1)
      return fields.error(fmt::format("graph version {}; only 1 is known", *version));
    GraphFile file;
    for (const XmlElement& child : element.children) {
      if (child.name != "graph") {
        source_.note(child.line,
                     fmt::format("element <{}> left out, as NCCL does", printable(child.name)));
        continue;
      }
      RAILYARD_ASSIGN(ChannelGraph next, graph(child));
      if (file.find(next.kind) != nullptr)
        return source_.error(child.line,
                             fmt::format("a second graph with id {}", static_cast<int>(next.kind)));
      file.graphs.push_back(std::move(next));
    }
    if (file.graphs.empty()) return fields.error("<graphs> holds no <graph>");
    if (ranked_ > 0 && ranked_ < gpus_)
      return fields.error(
          fmt::format("{} of {} <gpu>s have a rank; all or none must", ranked_, gpus_));
    file.has_ranks = ranked_ > 0;
    return file;
  }

 private:
  Result<ChannelGraph> graph(const XmlElement& element) {
    const XmlFields fields(element, source_);
    ChannelGraph graph;
    RAILYARD_TRY(identity(fields, graph));
    RAILYARD_TRY(attributes(fields, graph));
    RAILYARD_ASSIGN(const auto declared, required(fields, "nchannels", {.high = kMaxChannels}));
    for (const XmlElement& child : element.children) {
      if (child.name != "channel")
        return source_.error(child.line, fmt::format("<{}> inside <graph>; <channel> is expected",
                                                     printable(child.name)));
      RAILYARD_ASSIGN(ChannelGraph::Channel next, channel(child));
      if (!graph.channels.empty() && next.gpus.size() != graph.channels.front().gpus.size())
        return source_.error(
            child.line, fmt::format("this channel has {} GPUs, the first one {}", next.gpus.size(),
                                    graph.channels.front().gpus.size()));
      graph.channels.push_back(std::move(next));
    }
    if (static_cast<std::int64_t>(graph.channels.size()) != declared)
      return fields.error(
          fmt::format("nchannels is {}, but {} channels follow", declared, graph.channels.size()));
    if (graph.kind == GraphKind::nvls && !graph.channels.empty() &&
        graph.channels.front().gpus.size() != 1)
      fields.note("an NVLS channel holds its head alone; NCCL looks at the first GPU only");
    return graph;
  }

  static Result<std::int64_t> required(const XmlFields& fields, std::string_view name,
                                       IntegerRange range) {
    RAILYARD_ASSIGN(const auto value, fields.integer(name, range));
    if (!value) return fields.missing(name);
    return *value;
  }

  static Result<void> identity(const XmlFields& fields, ChannelGraph& graph) {
    RAILYARD_ASSIGN(const auto id, required(fields, "id", {}));
    RAILYARD_ASSIGN(const auto pattern, required(fields, "pattern", {}));
    const auto kind = enumerator<GraphKind>(id);
    const auto shape = enumerator<GraphPattern>(pattern);
    if (!kind) return fields.error(fmt::format("graph id {}; NCCL has 0 to 4", id));
    if (!shape) return fields.error(fmt::format("pattern {}; NCCL has 1 to 6", pattern));
    graph.kind = *kind;
    graph.pattern = *shape;
    if (!usual(*kind, *shape))
      fields.note(fmt::format("pattern {} for the {} graph, which NCCL never searches",
                              sim::to_text(*shape), sim::to_text(*kind)));
    return {};
  }

  static Result<void> attributes(const XmlFields& fields, ChannelGraph& graph) {
    RAILYARD_ASSIGN(const auto cross, required(fields, "crossnic", {.high = 2}));
    RAILYARD_ASSIGN(const auto same, required(fields, "samechannels", {.high = 1}));
    graph.cross_nic = static_cast<std::int32_t>(cross);
    graph.same_channels = same != 0;
    const auto real = [&](std::string_view name, double& out) -> Result<void> {
      RAILYARD_ASSIGN(const auto value, fields.number(name));
      if (!value) return fields.missing(name);
      out = *value;
      return {};
    };
    RAILYARD_TRY(real("speedintra", graph.bw_intra));
    RAILYARD_TRY(real("speedinter", graph.bw_inter));
    RAILYARD_ASSIGN(const auto latency, fields.number("latencyinter"));
    graph.latency_inter = latency.value_or(0);
    RAILYARD_TRY(path_type(fields, "typeintra", graph.type_intra));
    return path_type(fields, "typeinter", graph.type_inter);
  }

  static Result<void> path_type(const XmlFields& fields, std::string_view name, PathType& out) {
    if (!fields.has(name)) return fields.missing(name);
    const auto parsed = sim::parse_enum<PathType>(printable(fields.text(name)));
    if (!parsed.ok()) return fields.error(fmt::format("{}: {}", name, parsed.error().message));
    out = parsed.value();
    if (out == PathType::c2c || out == PathType::net || out == PathType::dis)
      fields.note(fmt::format("{} {}, which NCCL's reader takes for LOC", name, sim::to_text(out)));
    return {};
  }

  Result<ChannelGraph::Channel> channel(const XmlElement& element) {
    ChannelGraph::Channel channel;
    std::size_t nets = 0;
    for (const XmlElement& child : element.children) {
      const XmlFields fields(child, source_);
      if (child.name == "net") {
        if (nets == channel.nets.size()) return fields.error("a third <net> in a channel");
        RAILYARD_ASSIGN(channel.nets[nets], dev(fields));
        ++nets;
      } else if (child.name == "gpu") {
        RAILYARD_ASSIGN(const std::int32_t next, gpu(fields));
        if (std::find(channel.gpus.begin(), channel.gpus.end(), next) != channel.gpus.end())
          return fields.error(fmt::format("GPU {} is in the channel twice", next));
        channel.gpus.push_back(next);
      } else {
        return fields.error(fmt::format("<{}> inside <channel>; <net> and <gpu> are expected",
                                        printable(child.name)));
      }
    }
    if (channel.gpus.empty()) return source_.error(element.line, "a channel without GPUs");
    if (nets == 1)
      return source_.error(element.line,
                           "a channel with one <net>; entry and exit, or neither, are expected");
    return channel;
  }

  // A long number: the device, and the number of its host in the upper byte.
  Result<std::int64_t> dev(const XmlFields& fields) const {
    const std::string text = fields.text("dev");
    const bool marked = text.starts_with("0x") || text.starts_with("0X");
    std::optional<std::uint64_t> value;
    if (numbers_ == DevNumbers::hexadecimal || marked) {
      RAILYARD_ASSIGN(value, fields.hexadecimal("dev"));
    } else {
      RAILYARD_ASSIGN(const auto decimal, fields.integer("dev", {}));
      if (decimal) value = static_cast<std::uint64_t>(*decimal);
    }
    if (!value) return fields.missing("dev");
    if (*value >> 63 != 0) return fields.error("dev does not fit 63 bits");
    if (!marked && text.size() > 1)
      fields.note(
          fmt::format("dev=\"{}\" read as {}: NCCL 2.21 and later take it as hexadecimal, "
                      "older ones as decimal",
                      printable(text), *value));
    return static_cast<std::int64_t>(*value);
  }

  Result<std::int32_t> gpu(const XmlFields& fields) {
    ++gpus_;
    RAILYARD_ASSIGN(const auto rank, fields.integer("rank", {}));
    if (rank) {
      ++ranked_;
      return static_cast<std::int32_t>(*rank);
    }
    RAILYARD_ASSIGN(const std::int64_t number, dev(fields));
    if (number >> kHostShift != 0)
      return fields.error(fmt::format("dev {:#x} is of host {}; GPUs of several hosts need a rank",
                                      number, number >> kHostShift));
    constexpr std::int64_t kMaxDev = 0xffff;
    if (number > kMaxDev)
      return fields.error(fmt::format("dev {} is larger than {}", number, kMaxDev));
    return static_cast<std::int32_t>(number);
  }

  const ImportSource& source_;
  DevNumbers numbers_;
  std::size_t gpus_ = 0;
  std::size_t ranked_ = 0;
};

void write_channel(std::string& out, const ChannelGraph::Channel& channel,
                   std::span<const std::int64_t> dev_of_rank) {
  const auto append = [&]<typename... Args>(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out), text, std::forward<Args>(args)...);
  };
  const bool nets = channel.nets[0] >= 0;
  append("    <channel>\n");
  if (nets) append("      <net dev=\"{:#x}\"/>\n", channel.nets[0]);
  for (const std::int32_t gpu : channel.gpus) {
    if (dev_of_rank.empty()) {
      append("      <gpu dev=\"{:#x}\"/>\n", gpu);
    } else {
      const auto rank = static_cast<std::size_t>(gpu);
      RAILYARD_CHECK(gpu >= 0 && rank < dev_of_rank.size(), "every rank has a device number");
      append("      <gpu dev=\"{:#x}\" rank=\"{}\"/>\n", dev_of_rank[rank], gpu);
    }
  }
  if (nets) append("      <net dev=\"{:#x}\"/>\n", channel.nets[1]);
  append("    </channel>\n");
}

}  // namespace

const ChannelGraph* GraphFile::find(GraphKind kind) const {
  for (const ChannelGraph& graph : graphs)
    if (graph.kind == kind) return &graph;
  return nullptr;
}

bool looks_like_graph_xml(std::string_view text) { return root_element(text) == "graphs"; }

Result<GraphFile> parse_graph_xml(std::string_view text, std::string name,
                                  const GraphXmlOptions& options) {
  const ImportSource source{std::move(name), options.notes};
  const std::string_view root = root_element(text);
  if (root != "graphs" && !root.empty())
    return source.error(1, fmt::format("not an NCCL graph but {}", describe_root(root)));
  RAILYARD_ASSIGN(const XmlElement element, parse_xml(text, source));
  if (element.name != "graphs")
    return source.error(1, fmt::format("not an NCCL graph but {}", describe_root(element.name)));
  return Reader(source, options.numbers).graphs(element);
}

Result<GraphFile> read_graph_xml(const std::string& path, const GraphXmlOptions& options) {
  RAILYARD_ASSIGN(const std::string text, read_text_file(path));
  return parse_graph_xml(text, path, options);
}

std::string write_graph_xml(std::span<const ChannelGraph> graphs,
                            std::span<const std::int64_t> dev_of_rank) {
  std::string out = "<graphs version=\"1\">\n";
  for (const ChannelGraph& graph : graphs) {
    fmt::format_to(std::back_inserter(out),
                   "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" "
                   "speedintra=\"{}\" speedinter=\"{}\" latencyinter=\"{}\" typeintra=\"{}\" "
                   "typeinter=\"{}\" samechannels=\"{}\"",
                   static_cast<int>(graph.kind), static_cast<int>(graph.pattern), graph.cross_nic,
                   graph.channels.size(), graph.bw_intra, graph.bw_inter, graph.latency_inter,
                   sim::to_text(graph.type_intra), sim::to_text(graph.type_inter),
                   graph.same_channels ? 1 : 0);
    out += graph.channels.empty() ? "/>\n" : ">\n";
    for (const ChannelGraph::Channel& channel : graph.channels)
      write_channel(out, channel, dev_of_rank);
    if (!graph.channels.empty()) out += "  </graph>\n";
  }
  out += "</graphs>\n";
  return out;
}

}  // namespace railyard::topologies
