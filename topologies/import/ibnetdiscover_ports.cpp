// `ibnetdiscover -p`:
//
//   CA   139  1 0x0002c903004e26b1 4x QDR - SW   142 36 0x0008f10500108c9e ( 'host378 HCA-1' - 'sw'
//   ) SW   142 35 0x0008f10500108c9e 4x ???                                    'sw'
//
// type, LID, port, port GUID, width, speed; a switch has one port GUID, every port of an adapter
// its own, so that a card with two ports is two adapters of one description.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "topologies/import/ibnetdiscover.h"
#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

using sim::Result;

struct End {
  GraphNodeKind kind = GraphNodeKind::fabric_switch;
  std::uint16_t lid = 0;
  std::uint32_t port = 0;
  std::uint64_t guid = 0;
};

std::optional<GraphNodeKind> kind_of(std::string_view word) {
  if (word == "SW") return GraphNodeKind::fabric_switch;
  if (word == "CA") return GraphNodeKind::adapter;
  if (word == "RT") return GraphNodeKind::router;
  return std::nullopt;
}

std::optional<End> take_end(std::string_view& rest) {
  const auto kind = kind_of(take_word(rest));
  const auto lid = to_number(take_word(rest));
  const auto port = to_number(take_word(rest));
  const std::string_view word = take_word(rest);
  if (!kind || !lid || *lid > 0xffff || !port || *port > 0xffff || !word.starts_with("0x"))
    return std::nullopt;
  const auto guid = to_number(word, 16);
  if (!guid) return std::nullopt;
  return End{*kind, static_cast<std::uint16_t>(*lid), static_cast<std::uint32_t>(*port), *guid};
}

// ( 'a' - 'b' ); names may contain quotes, so the middle is looked for as a whole.
std::pair<std::string, std::string> names_in(std::string_view rest) {
  const std::size_t start = rest.find("( '");
  const std::size_t end = rest.rfind("' )");
  if (start == std::string_view::npos || end == std::string_view::npos || end < start + 3)
    return {};
  const std::string_view both = rest.substr(start + 3, end - start - 3);
  const std::size_t middle = both.find("' - '");
  if (middle == std::string_view::npos) return {};
  return {std::string(both.substr(0, middle)), std::string(both.substr(middle + 5))};
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name)
      : lines_(text), name_(name), builder_(name, "ibnetdiscover -p") {}

  Result<FabricGraph> parse() {
    for (std::string_view line; lines_.next(line);) {
      const std::string_view line_text = trim(line);
      if (line_text.empty() || line_text.front() == '#' || line_text.starts_with("DR path"))
        continue;
      RAILYARD_TRY(read(line_text));
    }
    return builder_.connect();
  }

 private:
  [[nodiscard]] sim::Error error(std::string message) const {
    return error_at(name_, lines_.number(), std::move(message));
  }

  Result<void> read(std::string_view line) {
    if (!kind_of(line.substr(0, 2))) {
      builder_.note(fmt::format("line {}: '{}' is ignored", lines_.number(), excerpt(line)));
      return {};
    }
    std::string_view rest = line;
    const auto here = take_end(rest);
    if (!here)
      return error(
          fmt::format("type, LID, port and GUID are expected, as in `CA 139 1 0x0002...`, "
                      "not '{}'",
                      excerpt(line)));
    GraphPort port;
    port.number = here->port;
    port.lid = here->kind == GraphNodeKind::fabric_switch ? std::uint16_t{0} : here->lid;
    port.guid = here->guid;
    port.line = lines_.number();
    std::string_view word = take_word(rest);
    for (; !word.empty() && word != "-" && word.front() != '\''; word = take_word(rest))
      read_rate(word, port);
    if (word != "-") {
      RAILYARD_TRY(node(*here, {}, lines_.number()));
      return {};  // nothing is plugged in
    }
    const auto there = take_end(rest);
    if (!there)
      return error(
          fmt::format("the far end is expected behind '-', not '{}'", excerpt(trim(rest))));
    port.peer_key = there->guid;
    port.peer_port = there->port;
    port.peer_lid = there->lid;
    const auto names = names_in(rest);
    RAILYARD_TRY(node(*there, names.second, 0));
    RAILYARD_TRY(node(*here, names.first, lines_.number()));
    builder_.node(here->guid, here->kind).ports.push_back(port);
    return {};
  }

  Result<void> node(const End& end, const std::string& description, std::size_t line) {
    GraphNode& node = builder_.node(end.guid, end.kind);
    if (node.kind != end.kind)
      return error(fmt::format("GUID 0x{:016x} is a node of two kinds", end.guid));
    if (!description.empty()) node.name = description;
    if (node.name.empty()) node.name = fmt::format("{:016x}", end.guid);
    if (end.kind == GraphNodeKind::fabric_switch) node.lid = end.lid;
    if (node.line == 0) node.line = line;
    return {};
  }

  LineReader lines_;
  const std::string& name_;
  GraphBuilder builder_;
};

}  // namespace

bool is_ports_line(std::string_view line) {
  std::string_view rest = line;
  return take_end(rest).has_value();
}

Result<FabricGraph> parse_ibnetdiscover_ports(std::string_view text, const std::string& name) {
  return Parser(text, name).parse();
}

}  // namespace railyard::topologies
