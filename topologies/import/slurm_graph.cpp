#include "topologies/import/slurm_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

using sim::Result;

class Builder {
 public:
  Builder(const SlurmTree& tree, const std::string& name) : tree_(tree), name_(name) {}

  // Switches in the order of the file, then nodes in the order they are named.
  Result<FabricGraph> build() {
    std::size_t most = tree_.switches.size();
    for (const SlurmSwitch& at : tree_.switches) most += at.nodes.size();
    graph_.nodes.reserve(most);
    index_.reserve(most);
    graph_.notes = tree_.notes;
    graph_.source = tree_.blocks ? "SLURM topology/block" : "SLURM topology/tree";
    for (const SlurmSwitch& statement : tree_.switches) {
      if (!index_.emplace(statement.name, graph_.nodes.size()).second)
        return error(statement.line, fmt::format("'{}' is defined twice", excerpt(statement.name)));
      add_node(GraphNodeKind::fabric_switch, statement.name, statement.line);
    }
    std::vector<bool> child(tree_.switches.size());
    for (std::size_t i = 0; i < tree_.switches.size(); ++i) {
      RAILYARD_TRY(join_switches(i, child));
      join_nodes(i);
    }
    RAILYARD_TRY(check_tree());
    note_limits(static_cast<std::size_t>(std::count(child.begin(), child.end(), false)));
    return std::move(graph_);
  }

 private:
  [[nodiscard]] sim::Error error(std::size_t line, std::string message) const {
    return error_at(name_, line, std::move(message));
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
    for (const std::string& name : tree_.switches[at].switches) {
      const auto found = index_.find(name);
      if (found == index_.end() || found->second >= tree_.switches.size())
        return error(tree_.switches[at].line,
                     fmt::format("the switch '{}' is defined nowhere", excerpt(name)));
      if (child[found->second] || found->second == at)
        return error(tree_.switches[at].line,
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
    for (const std::string& name : tree_.switches[at].nodes) {
      const auto [found, fresh] = index_.emplace("\n" + name, graph_.nodes.size());
      if (!fresh) {
        twice_.push_back("'" + excerpt(name) + "'");
        continue;
      }
      add_node(GraphNodeKind::adapter, name, tree_.switches[at].line);
      join(found->second, at);
    }
  }

  // With one parent each, a loop is a way up that does not end.
  Result<void> check_tree() {
    std::vector<bool> done(tree_.switches.size());
    for (std::size_t i = 0; i < tree_.switches.size(); ++i) {
      std::vector<std::size_t> way;
      std::size_t at = i;
      for (; !done[at] && way.size() <= tree_.switches.size(); at = parent_[at]) {
        way.push_back(at);
        if (parent_.count(at) == 0) break;
      }
      if (way.size() > tree_.switches.size())
        return error(tree_.switches[at].line, fmt::format("'{}' is a switch below itself",
                                                          excerpt(tree_.switches[at].name)));
      for (const std::size_t passed : way) done[passed] = true;
    }
    return {};
  }

  void note_limits(std::size_t roots) {
    std::vector<std::string>& notes = graph_.notes;
    if (!twice_.empty())
      notes.push_back("nodes under two leaves count for the first: " + list_of(twice_));
    notes.push_back("the file tells no rates, no parallel cables and no rails");
    if (!tree_.block_sizes.empty())
      notes.push_back("BlockSizes=" + tree_.block_sizes +
                      " says how blocks are scheduled, not wired");
    if (tree_.blocks && roots > 1) {
      notes.push_back(fmt::format("how the {} blocks are joined is not told", roots));
    } else if (roots > 1) {
      notes.push_back(fmt::format("{} trees without a common root: nothing joins them", roots));
    }
  }

  const SlurmTree& tree_;
  const std::string& name_;
  std::unordered_map<std::string, std::size_t> index_;  // switches; nodes with a '\n' before
  std::unordered_map<std::size_t, std::size_t> parent_;
  std::vector<std::string> twice_;
  FabricGraph graph_;
};

}  // namespace

Result<FabricGraph> slurm_graph(const SlurmTree& tree, const std::string& name) {
  return Builder(tree, name).build();
}

}  // namespace railyard::topologies
