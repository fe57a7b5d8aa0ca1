#include "topologies/import/slurm_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/text.h"
#include "topologies/import/slurm_graph.h"
#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

using sim::equal_ignoring_case;
using sim::Result;

constexpr std::array<std::string_view, 6> kKeys{"SwitchName", "Nodes",     "Switches",
                                                "LinkSpeed",  "BlockName", "BlockSizes"};

struct Statement {
  bool block = false;
  SlurmSwitch entry;
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
    if (tree_.switches.empty())
      return sim::bad_input("no SwitchName= or BlockName= of a topology.conf", name_);
    return slurm_graph(tree_, name_);
  }

 private:
  [[nodiscard]] sim::Error error(std::size_t line, std::string message) const {
    return error_at(name_, line, std::move(message));
  }

  Result<void> read(std::string_view text) {
    if (trim(text).empty()) return {};
    Statement out;
    out.entry.line = line_;
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
    SlurmSwitch& entry = out.entry;
    if (entry.name.empty()) return error(line_, "SwitchName= or BlockName= is missing");
    if (!tree_.switches.empty() && tree_.blocks != out.block)
      return error(line_, "a tree (SwitchName) and blocks (BlockName) in one file");
    if (entry.nodes.empty() == entry.switches.empty())
      return error(line_, fmt::format("'{}' needs either Nodes= or {}", excerpt(entry.name),
                                      out.block ? "nothing else" : "Switches="));
    tree_.blocks = out.block;
    tree_.switches.push_back(std::move(entry));
    return {};
  }

  Result<void> take(std::string_view key, std::string_view value, Statement& out, bool& sizes) {
    if (value.empty()) return error(line_, fmt::format("{}= has no value", key));
    if (key == "LinkSpeed") return {};  // SLURM itself makes no use of it
    if (key == "BlockSizes") {
      sizes = true;
      tree_.block_sizes = excerpt(value);
      return {};
    }
    if (key == "SwitchName" || key == "BlockName") {
      if (!out.entry.name.empty()) return error(line_, "two names in one line");
      out.block = key == "BlockName";
      out.entry.name = excerpt(value, 64);
      return {};
    }
    auto names = expand_hostlist(value, kMaxSlurmNames - names_);
    if (!names.ok()) return error(line_, fmt::format("{}=: {}", key, names.error().message));
    names_ += names.value().size();
    (key == "Nodes" ? out.entry.nodes : out.entry.switches) = std::move(names).value();
    return {};
  }

  LineReader lines_;
  const std::string& name_;
  std::size_t line_ = 0;
  std::size_t names_ = 0;
  SlurmTree tree_;
};

}  // namespace

bool looks_like_slurm_topology(std::string_view text) {
  if (looks_like_slurm_yaml(text)) return true;
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
  if (!looks_like_slurm_yaml(text)) return Parser(text, name).parse();
  RAILYARD_ASSIGN(const SlurmTree tree, read_slurm_yaml(text, name));
  return slurm_graph(tree, name);
}

}  // namespace railyard::topologies
