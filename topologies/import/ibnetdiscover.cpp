#include "topologies/import/ibnetdiscover.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

using sim::Result;

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr std::uint32_t kMostPort = 65'535;

struct KindWord {
  std::string_view word;
  GraphNodeKind kind;
};
// ibsim says Hca for Ca.
constexpr std::array<KindWord, 4> kKinds{{{"Switch", GraphNodeKind::fabric_switch},
                                          {"Ca", GraphNodeKind::adapter},
                                          {"Hca", GraphNodeKind::adapter},
                                          {"Rt", GraphNodeKind::router}}};

// The kind in whose block a line starts: `Switch<blank>64 "S-...`.
std::optional<GraphNodeKind> block_kind(std::string_view line) {
  std::string_view rest = line;
  const std::string_view word = take_word(rest);
  const std::string_view ports = take_word(rest);
  if (!to_number(ports) || !trim(rest).starts_with('"')) return std::nullopt;
  for (const KindWord& entry : kKinds)
    if (entry.word == word) return entry.kind;
  return std::nullopt;
}

struct NodeName {
  GraphNodeKind kind = GraphNodeKind::fabric_switch;
  std::uint64_t guid = 0;
};

// `"S-0008f105001084fa"` at the start of `rest`.
std::optional<NodeName> take_node_name(std::string_view& rest) {
  rest = trim(rest);
  if (!rest.starts_with('"')) return std::nullopt;
  const std::size_t end = rest.find('"', 1);
  if (end == std::string_view::npos || end < 4 || rest[2] != '-') return std::nullopt;
  const auto guid = to_number(rest.substr(3, end - 3), 16);
  NodeName name;
  switch (rest[1]) {
    case 'S': name.kind = GraphNodeKind::fabric_switch; break;
    case 'H': name.kind = GraphNodeKind::adapter; break;
    case 'R': name.kind = GraphNodeKind::router; break;
    default: return std::nullopt;
  }
  if (!guid) return std::nullopt;
  name.guid = *guid;
  rest.remove_prefix(end + 1);
  return name;
}

// `[17]`, and `[ext 3]` behind it, which numbers the same port on the front of a chassis.
std::optional<std::uint32_t> take_port(std::string_view& rest) {
  rest = trim(rest);
  const std::size_t end = rest.find(']');
  if (!rest.starts_with('[') || end == std::string_view::npos) return std::nullopt;
  const auto number = to_number(rest.substr(1, end - 1));
  if (!number || *number > kMostPort) return std::nullopt;
  rest.remove_prefix(end + 1);
  if (rest.starts_with("[ext ")) rest.remove_prefix(std::min(rest.find(']'), rest.size() - 1) + 1);
  return static_cast<std::uint32_t>(*number);
}

// `(1c34da03005baca4)`; 0 if there is none.
std::uint64_t take_guid(std::string_view& rest) {
  if (!rest.starts_with('(')) return 0;
  const std::size_t end = rest.find(')');
  if (end == std::string_view::npos) return 0;
  const auto guid = to_number(rest.substr(1, end - 1), 16);
  rest.remove_prefix(end + 1);
  return guid.value_or(0);
}

// What stands behind '#': words, a description in quotes, words.
struct Comment {
  std::string_view before;
  std::string_view description;
  std::string_view after;
};

Comment split_comment(std::string_view text) {
  const std::size_t first = text.find('"');
  const std::size_t last = text.rfind('"');
  if (first == std::string_view::npos || first == last) return {text, {}, {}};
  return {text.substr(0, first), text.substr(first + 1, last - first - 1), text.substr(last + 1)};
}

// The number behind a word, as in "lid 12 lmc 0".
std::optional<std::uint64_t> number_behind(std::string_view key, std::string_view words) {
  for (std::string_view word = take_word(words); !word.empty(); word = take_word(words))
    if (word == key) return to_number(take_word(words));
  return std::nullopt;
}

std::uint16_t lid_in(std::string_view words) {
  const auto lid = number_behind("lid", words);
  return lid && *lid <= 0xffff ? static_cast<std::uint16_t>(*lid) : std::uint16_t{0};
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name)
      : lines_(text), name_(name), builder_(name, "ibnetdiscover") {}

  Result<FabricGraph> parse() {
    for (std::string_view line; lines_.next(line);) RAILYARD_TRY(read(line));
    if (nodes_ == 0) return sim::bad_input("no node of an ibnetdiscover output", name_);
    return builder_.connect();
  }

 private:
  [[nodiscard]] sim::Error error(std::string message) const {
    return error_at(name_, lines_.number(), std::move(message));
  }

  Result<void> read(std::string_view raw) {
    const std::string_view line = trim(raw);
    if (line.empty()) {
      in_block_ = false;
      return {};
    }
    if (line.front() == '#') return {};
    if (line.front() == '[') return read_port(line);
    if (const auto kind = block_kind(line)) return read_node(line, *kind);
    read_other(line);
    return {};
  }

  // Header fields of the node that follows; chassis headings of -g; whatever else a shell printed.
  void read_other(std::string_view line) {
    const std::size_t equals = line.find('=');
    const std::string_view key = line.substr(0, equals);
    if (key == "sysimgguid" && equals != std::string_view::npos) {
      system_guid_ = to_number(line.substr(equals + 1), 16).value_or(0);
      return;
    }
    for (const std::string_view known : {"vendid", "devid", "switchguid", "caguid", "rtguid"})
      if (key == known) return;
    if (line.starts_with("Chassis") || line.starts_with("DR path")) return;
    builder_.note(fmt::format("line {}: '{}' is ignored", lines_.number(), excerpt(line)));
  }

  Result<void> read_node(std::string_view line, GraphNodeKind kind) {
    const std::size_t hash = line.find('#');
    std::string_view rest = line.substr(0, hash);
    take_word(rest);
    take_word(rest);
    const auto name = take_node_name(rest);
    if (!name)
      return error(fmt::format("a node name like \"S-0008f105001084fa\" is expected, not '{}'",
                               excerpt(trim(rest))));
    if (name->kind != kind)
      return error(fmt::format("'{}' names another kind of node than its block", excerpt(line)));
    GraphNode& node = builder_.node(name->guid, kind);
    if (node.kind != kind)
      return error(fmt::format("GUID 0x{:016x} is a node of two kinds", name->guid));
    if (node.line != 0)
      builder_.note(fmt::format("line {}: a second block of the node in line {}", lines_.number(),
                                node.line));
    node.line = lines_.number();
    node.system_guid = std::exchange(system_guid_, 0);
    if (hash != std::string_view::npos) {
      const Comment comment = split_comment(line.substr(hash + 1));
      node.name = comment.description;
      node.lid = lid_in(comment.after);
    }
    if (node.name.empty()) node.name = fmt::format("{:016x}", name->guid);
    current_ = name->guid;
    current_kind_ = kind;
    in_block_ = true;
    ++nodes_;
    return {};
  }

  Result<void> read_port(std::string_view line) {
    if (!in_block_) return error("a port outside the block of a node");
    std::size_t hash = line.find('#');
    std::string_view rest = line.substr(0, hash);
    GraphPort port;
    const auto number = take_port(rest);
    if (!number) return error(fmt::format("no port number in '{}'", excerpt(line)));
    port.number = *number;
    port.guid = take_guid(rest);
    const auto peer = take_node_name(rest);
    const auto peer_port = peer ? take_port(rest) : std::nullopt;
    if (!peer_port)
      return error(
          fmt::format("port {}: a peer like \"S-0008f105001084fa\"[1] is expected, not '{}'",
                      port.number, excerpt(trim(rest))));
    port.peer_port = *peer_port;
    port.peer_key = peer->guid;
    port.line = lines_.number();
    const Comment comment =
        hash == std::string_view::npos ? Comment{} : split_comment(line.substr(hash + 1));
    return add_port(port, *peer, comment);
  }

  // The specification gives LMC three bits and the base LID as many zeros.
  Result<void> read_lmc(std::string_view words, GraphPort& port) {
    const auto lmc = number_behind("lmc", words);
    if (!lmc) return {};
    if (*lmc > 7) return error(fmt::format("LMC {} (0 to 7 is expected)", *lmc));
    if (port.lid % (1U << *lmc) != 0)
      return error(fmt::format("LID {} is no base LID under LMC {}: a multiple of {} is expected",
                               port.lid, *lmc, 1U << *lmc));
    port.lmc = static_cast<std::uint8_t>(*lmc);
    return {};
  }

  Result<void> add_port(GraphPort& port, const NodeName& peer, const Comment& comment) {
    std::string_view words = comment.description.empty() ? comment.before : comment.after;
    port.lid =
        current_kind_ == GraphNodeKind::fabric_switch ? std::uint16_t{0} : lid_in(comment.before);
    if (current_kind_ == GraphNodeKind::adapter) RAILYARD_TRY(read_lmc(comment.before, port));
    port.peer_lid = comment.description.empty() ? std::uint16_t{0} : lid_in(comment.after);
    for (std::string_view word = take_word(words); !word.empty(); word = take_word(words))
      if (word.find('x') != std::string_view::npos) read_rate(word, port);
    GraphNode& other = builder_.node(peer.guid, peer.kind);
    if (other.kind != peer.kind)
      return error(fmt::format("GUID 0x{:016x} is a node of two kinds", peer.guid));
    if (other.name.empty()) {
      other.name = comment.description;
      if (peer.kind == GraphNodeKind::fabric_switch) other.lid = lid_in(comment.after);
    }
    builder_.node(current_, current_kind_).ports.push_back(port);
    return {};
  }

  LineReader lines_;
  const std::string& name_;
  GraphBuilder builder_;
  std::uint64_t system_guid_ = 0;
  std::uint64_t current_ = 0;
  GraphNodeKind current_kind_ = GraphNodeKind::fabric_switch;
  bool in_block_ = false;
  std::size_t nodes_ = 0;
};

// The first line of either form, or kNone.
std::size_t first_line(std::string_view text, bool ports) {
  LineReader lines(text);
  for (std::string_view line; lines.next(line);)
    if (ports ? is_ports_line(line) : block_kind(line).has_value()) return lines.number();
  return kNone;
}

}  // namespace

void read_rate(std::string_view word, GraphPort& port) {
  const std::size_t x = word.find('x');
  const auto lanes = to_number(word.substr(0, x == std::string_view::npos ? 0 : x));
  if (lanes && *lanes >= 1 && *lanes <= 12) port.lanes = static_cast<std::uint16_t>(*lanes);
  const std::string_view speed = x == std::string_view::npos ? word : word.substr(x + 1);
  for (const auto& entry : sim::EnumTable<LaneSpeed>::entries)
    if (speed == entry.name) port.speed = entry.value;
}

Result<FabricGraph> parse_ibnetdiscover(std::string_view text, const std::string& name) {
  if (first_line(text, true) < first_line(text, false))
    return parse_ibnetdiscover_ports(text, name);
  return Parser(text, name).parse();
}

bool looks_like_ibnetdiscover(std::string_view text) {
  return first_line(text, false) != kNone || first_line(text, true) != kNone;
}

}  // namespace railyard::topologies
