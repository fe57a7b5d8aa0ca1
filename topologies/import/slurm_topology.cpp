#include "topologies/import/slurm_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "sim/text.h"
#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

using sim::equal_ignoring_case;
using sim::Result;

constexpr std::array<std::string_view, 6> kKeys{"SwitchName", "Nodes",     "Switches",
                                                "LinkSpeed",  "BlockName", "BlockSizes"};

struct Statement {
  std::size_t line = 0;
  bool block = false;
  std::string name;
  std::vector<std::string> nodes;
  std::vector<std::string> switches;
};

// Comments off, continued lines joined. `number` is the first line's.
bool next_statement(LineReader& lines, std::string& out, std::size_t& number) {
  out.clear();
  bool more = false;
  for (std::string_view line; lines.next(line);) {
    if (!more) number = lines.number();
    line = trim(line.substr(0, line.find('#')));
    more = line.ends_with('\\');
    if (more) line.remove_suffix(1);
    out += line;
    out += ' ';
    if (!more) return true;
  }
  return more;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : lines_(text), name_(name) {}

  Result<FabricGraph> parse() {
    std::string text;
    while (next_statement(lines_, text, line_)) RAILYARD_TRY(read(text));
    if (statements_.empty())
      return sim::bad_input("no SwitchName= or BlockName= of a topology.conf", name_);
    return build();
  }

 private:
  [[nodiscard]] sim::Error error(std::size_t line, std::string message) const {
    return error_at(name_, line, std::move(message));
  }

  Result<void> read(std::string_view text) {
    if (trim(text).empty()) return {};
    Statement out;
    out.line = line_;
    bool sizes = false;
    for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
      const std::size_t equals = word.find('=');
      const std::string_view key = word.substr(0, equals);
      const auto known = std::find_if(kKeys.begin(), kKeys.end(), [&](std::string_view k) {
        return equal_ignoring_case(k, key);
      });
      if (equals == std::string_view::npos || known == kKeys.end())
        return error(line_, fmt::format("'{}' is no key of topology.conf{}", excerpt(key),
                                        sim::did_you_mean(excerpt(key), kKeys)));
      RAILYARD_TRY(take(*known, word.substr(equals + 1), out, sizes));
    }
    if (sizes) return {};
    if (out.name.empty()) return error(line_, "SwitchName= or BlockName= is missing");
    if (!statements_.empty() && statements_.front().block != out.block)
      return error(line_, "a tree (SwitchName) and blocks (BlockName) in one file");
    if (out.nodes.empty() == out.switches.empty())
      return error(line_, fmt::format("'{}' needs either Nodes= or {}", excerpt(out.name),
                                      out.block ? "nothing else" : "Switches="));
    statements_.push_back(std::move(out));
    return {};
  }

  Result<void> take(std::string_view key, std::string_view value, Statement& out, bool& sizes) {
    if (value.empty()) return error(line_, fmt::format("{}= has no value", key));
    if (key == "LinkSpeed") return {};  // SLURM itself makes no use of it
    if (key == "BlockSizes") {
      sizes = true;
      block_sizes_ = excerpt(value);
      return {};
    }
    if (key == "SwitchName" || key == "BlockName") {
      if (!out.name.empty()) return error(line_, "two names in one line");
      out.block = key == "BlockName";
      out.name = excerpt(value, 64);
      return {};
    }
    auto names = expand_hostlist(value, kMaxSlurmNames - names_);
    if (!names.ok()) return error(line_, fmt::format("{}=: {}", key, names.error().message));
    names_ += names.value().size();
    (key == "Nodes" ? out.nodes : out.switches) = std::move(names).value();
    return {};
  }

  // Switches in the order of the file, then nodes in the order they are named.
  Result<FabricGraph> build() {
    const bool block = statements_.front().block;
    graph_.source = block ? "SLURM topology/block" : "SLURM topology/tree";
    for (const Statement& statement : statements_) {
      if (!index_.emplace(statement.name, graph_.nodes.size()).second)
        return error(statement.line, fmt::format("'{}' is defined twice", excerpt(statement.name)));
      add_node(GraphNodeKind::fabric_switch, statement.name, statement.line);
    }
    std::vector<bool> child(statements_.size());
    for (std::size_t i = 0; i < statements_.size(); ++i) {
      RAILYARD_TRY(join_switches(i, child));
      join_nodes(i);
    }
    RAILYARD_TRY(check_tree());
    note_limits(static_cast<std::size_t>(std::count(child.begin(), child.end(), false)), block);
    return std::move(graph_);
  }

  void add_node(GraphNodeKind kind, const std::string& name, std::size_t line) {
    GraphNode node;
    node.kind = kind;
    node.key = graph_.nodes.size() + 1;
    node.name = name;
    node.line = line;
    graph_.nodes.push_back(std::move(node));
  }

  void join(std::size_t a, std::size_t b) {
    const auto end = [&](std::size_t at, std::size_t peer) {
      GraphPort port;
      port.number = static_cast<std::uint32_t>(graph_.nodes[at].ports.size() + 1);
      port.peer = static_cast<std::uint32_t>(peer);
      port.peer_port = static_cast<std::uint32_t>(graph_.nodes[peer].ports.size() + 1);
      port.peer_key = graph_.nodes[peer].key;
      return port;
    };
    const GraphPort at_a = end(a, b);
    const GraphPort at_b = end(b, a);
    graph_.nodes[a].ports.push_back(at_a);
    graph_.nodes[b].ports.push_back(at_b);
  }

  Result<void> join_switches(std::size_t at, std::vector<bool>& child) {
    for (const std::string& name : statements_[at].switches) {
      const auto found = index_.find(name);
      if (found == index_.end() || found->second >= statements_.size())
        return error(statements_[at].line,
                     fmt::format("the switch '{}' is defined nowhere", excerpt(name)));
      if (child[found->second] || found->second == at)
        return error(statements_[at].line,
                     found->second == at
                         ? fmt::format("'{}' is a switch below itself", excerpt(name))
                         : fmt::format("the switch '{}' has two parents", excerpt(name)));
      child[found->second] = true;
      parent_[found->second] = at;
      join(found->second, at);
    }
    return {};
  }

  void join_nodes(std::size_t at) {
    for (const std::string& name : statements_[at].nodes) {
      const auto [found, fresh] = index_.emplace("\n" + name, graph_.nodes.size());
      if (!fresh) {
        twice_.push_back("'" + excerpt(name) + "'");
        continue;
      }
      add_node(GraphNodeKind::adapter, name, statements_[at].line);
      join(found->second, at);
    }
  }

  // With one parent each, a loop is a way up that does not end.
  Result<void> check_tree() {
    std::vector<bool> done(statements_.size());
    for (std::size_t i = 0; i < statements_.size(); ++i) {
      std::vector<std::size_t> way;
      std::size_t at = i;
      for (; !done[at] && way.size() <= statements_.size(); at = parent_[at]) {
        way.push_back(at);
        if (parent_.count(at) == 0) break;
      }
      if (way.size() > statements_.size())
        return error(statements_[at].line,
                     fmt::format("'{}' is a switch below itself", excerpt(statements_[at].name)));
      for (const std::size_t passed : way) done[passed] = true;
    }
    return {};
  }

  void note_limits(std::size_t roots, bool block) {
    std::vector<std::string>& notes = graph_.notes;
    if (!twice_.empty())
      notes.push_back("nodes under two leaves count for the first: " + list_of(twice_));
    notes.push_back("the file tells no rates, no parallel cables and no rails");
    if (!block_sizes_.empty())
      notes.push_back("BlockSizes=" + block_sizes_ + " says how blocks are scheduled, not wired");
    if (block && roots > 1) {
      notes.push_back(fmt::format("how the {} blocks are joined is not told", roots));
    } else if (roots > 1) {
      notes.push_back(fmt::format("{} trees without a common root: nothing joins them", roots));
    }
  }

  LineReader lines_;
  const std::string& name_;
  std::size_t line_ = 0;
  std::size_t names_ = 0;
  std::string block_sizes_;
  std::vector<Statement> statements_;
  std::unordered_map<std::string, std::size_t> index_;  // switches; nodes with a '\n' before
  std::unordered_map<std::size_t, std::size_t> parent_;
  std::vector<std::string> twice_;
  FabricGraph graph_;
};

}  // namespace

bool looks_like_slurm_topology(std::string_view text) {
  LineReader lines(text);
  for (std::string_view line; lines.next(line);) {
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::string_view key = line.substr(0, line.find('='));
    for (const std::string_view start : {"SwitchName", "BlockName", "BlockSizes"})
      if (key.size() < line.size() && equal_ignoring_case(key, start)) return true;
    return false;
  }
  return false;
}

Result<FabricGraph> parse_slurm_topology(std::string_view text, const std::string& name) {
  return Parser(text, name).parse();
}

}  // namespace railyard::topologies
