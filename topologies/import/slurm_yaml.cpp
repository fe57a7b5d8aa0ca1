// topology.yaml: the parser's events are kept as a small tree, from which one topology is read.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "sim/text.h"
#include "topologies/import/slurm_graph.h"
#include "topologies/import/slurm_topology.h"
#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

using sim::Result;

constexpr std::size_t kMostDepth = 16;
constexpr std::size_t kMostValues = 500'000;
constexpr std::size_t kMostLine = std::size_t{1} << 20;  // the parser keeps the tokens of a line

struct Value {
  enum class Kind { scalar, list, map };
  Kind kind = Kind::scalar;
  std::size_t line = 0;
  std::string text;          // of a scalar
  std::string key;           // in a map
  std::vector<Value> items;  // of a list or a map

  [[nodiscard]] const Value* find(std::string_view wanted) const {
    for (const Value& item : items)
      if (item.key == wanted) return &item;
    return nullptr;
  }
};

// Leaves the parser from inside an event; caught in parse() and nowhere else.
struct Refused {
  std::size_t line;
  std::string message;
};

// The parser reports a level before it enters it, so that refusing here bounds its stack too.
class Reader : public YAML::EventHandler {
 public:
  Value take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "a second document; one is expected");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    add({.line = line_of(mark)}, mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    refuse(mark, "an alias ('*'), which is not read here");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, tag, anchor);
    add({.line = line_of(mark), .text = value}, mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(Value::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(Value::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Value value;
    std::string key;  // whose value comes next
    bool has_key = false;
  };

  std::size_t line_of(const YAML::Mark& mark) {
    if (mark.line >= 0) line_ = static_cast<std::size_t>(mark.line) + 1;
    return line_;
  }
  [[noreturn]] void refuse(const YAML::Mark& mark, std::string message) {
    throw Refused{line_of(mark), std::move(message)};
  }

  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) refuse(mark, "an anchor ('&'), which is not read here");
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "tags ('!...') mean nothing here");
    if (++values_ > kMostValues) refuse(mark, fmt::format("more than {} values", kMostValues));
  }

  [[nodiscard]] bool expects_key() const {
    return !open_.empty() && open_.back().value.kind == Value::Kind::map && !open_.back().has_key;
  }

  void open(Value::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    check(mark, tag, anchor);
    if (expects_key()) refuse(mark, "a key must be a name; is a bracket left open?");
    if (open_.size() == kMostDepth)
      refuse(mark, fmt::format("nested more than {} levels deep", kMostDepth));
    open_.push_back({{.kind = kind, .line = line_of(mark)}, {}, false});
  }

  void close() {
    Value closed = std::move(open_.back().value);
    open_.pop_back();
    attach(std::move(closed));
  }

  void add(Value value, const YAML::Mark& mark) {
    if (!expects_key()) return attach(std::move(value));
    Open& map = open_.back();
    if (map.value.items.size() == kMostKeys)
      refuse(mark, fmt::format("more than {} keys in a map", kMostKeys));
    if (map.value.find(value.text) != nullptr)
      refuse(mark, fmt::format("the key '{}' is there twice", excerpt(value.text)));
    map.key = std::move(value.text);
    map.has_key = true;
  }

  void attach(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (parent.has_key) value.key = std::move(parent.key);
    parent.has_key = false;
    parent.value.items.push_back(std::move(value));
  }

  static constexpr std::size_t kMostKeys = 64;  // none of the format's maps has ten

  std::vector<Open> open_;
  Value root_;
  std::size_t values_ = 0;
  std::size_t line_ = 1;
  int documents_ = 0;
};

Result<void> check_size(std::string_view text, const std::string& name) {
  if (text.size() > kMaxSlurmYaml)
    return sim::bad_input(
        fmt::format("larger than {} MiB, the most that is read as YAML", kMaxSlurmYaml >> 20),
        name);
  LineReader lines(text);
  for (std::string_view line; lines.next(line);)
    if (line.size() > kMostLine)
      return error_at(name, lines.number(),
                      fmt::format("a line of more than {} MiB", kMostLine >> 20));
  return {};
}

Result<Value> parse(std::string_view text, const std::string& name) {
  RAILYARD_TRY(check_size(text, name));
  Reader reader;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(reader)) {
    }
  } catch (const Refused& refused) {
    return error_at(name, refused.line, refused.message);
  } catch (const YAML::Exception& exception) {
    const std::string why = "not valid YAML: " + excerpt(exception.msg, 200);
    if (exception.mark.line < 0) return sim::bad_input(why, name);
    return error_at(name, static_cast<std::size_t>(exception.mark.line) + 1, why);
  } catch (const std::exception& exception) {
    return sim::bad_input("not valid YAML: " + excerpt(exception.what(), 200), name);
  }
  return reader.take_root();
}

constexpr std::array<std::string_view, 7> kTopologyKeys{
    "topology", "cluster_default", "tree", "block", "flat", "ring", "torus3d"};

class TopologyReader {
 public:
  explicit TopologyReader(const std::string& name) : name_(name) {}

  Result<SlurmTree> read(const Value& root) {
    if (root.kind != Value::Kind::list || root.items.empty())
      return error(root, "a list of topologies (- topology: NAME ...) is expected");
    for (const Value& topology : root.items) RAILYARD_TRY(check_topology(topology));
    RAILYARD_ASSIGN(const Value* chosen, choose(root));
    note_choice(root, *chosen);
    const Value* blocks = chosen->find("block");
    if (blocks != nullptr) {
      RAILYARD_TRY(read_switches(*blocks, kBlock));
      read_sizes(*blocks);
    } else {
      RAILYARD_TRY(read_switches(*chosen->find("tree"), kTree));
    }
    out_.blocks = blocks != nullptr;
    return std::move(out_);
  }

 private:
  // How the two plugins call their parts.
  struct Words {
    std::string_view list;
    std::string_view name;
    std::array<std::string_view, 3> keys;       // of an entry
    std::array<std::string_view, 2> top_level;  // beside the list
  };
  static constexpr Words kTree{
      "switches", "switch", {"switch", "nodes", "children"}, {"switches", "switches"}};
  static constexpr Words kBlock{
      "blocks", "block", {"block", "nodes", "nodes"}, {"blocks", "block_sizes"}};

  [[nodiscard]] sim::Error error(const Value& at, std::string message) const {
    return error_at(name_, std::max<std::size_t>(at.line, 1), std::move(message));
  }

  template <typename Keys>
  Result<void> check_keys(const Value& map, const Keys& keys, std::string_view what) const {
    if (map.kind != Value::Kind::map) return error(map, fmt::format("{} must be a map", what));
    for (const Value& entry : map.items)
      if (std::find(keys.begin(), keys.end(), entry.key) == keys.end())
        return error(entry, fmt::format("'{}' is no key of {}{}", excerpt(entry.key), what,
                                        sim::did_you_mean(excerpt(entry.key), keys)));
    return {};
  }

  static bool is_graph(const Value& topology) {
    return topology.find("tree") != nullptr || topology.find("block") != nullptr;
  }
  static std::string name_of(const Value& topology) {
    return excerpt(topology.find("topology")->text, 64);
  }
  static std::string_view kind_of(const Value& topology) {
    for (const Value& entry : topology.items)
      if (entry.key != "topology" && entry.key != "cluster_default") return entry.key;
    return {};
  }

  Result<void> check_topology(const Value& topology) const {
    RAILYARD_TRY(check_keys(topology, kTopologyKeys, "a topology"));
    const Value* name = topology.find("topology");
    if (name == nullptr || name->text.empty()) return error(topology, "a topology without a name");
    const Value* standard = topology.find("cluster_default");
    const std::size_t kinds = topology.items.size() - 1 - (standard != nullptr ? 1 : 0);
    if (kinds != 1)
      return error(topology, fmt::format("topology '{}' must be exactly one of tree, block, flat, "
                                         "ring and torus3d",
                                         name_of(topology)));
    if (standard != nullptr && standard->text != "true" && standard->text != "false")
      return error(*standard, fmt::format("cluster_default is true or false, not '{}'",
                                          excerpt(standard->text)));
    return {};
  }

  Result<const Value*> choose(const Value& root) const {
    const auto standard =
        std::find_if(root.items.begin(), root.items.end(), [](const Value& topology) {
          const Value* is = topology.find("cluster_default");
          return is != nullptr && is->text == "true";
        });
    const Value& first = standard == root.items.end() ? root.items.front() : *standard;
    if (is_graph(first)) return &first;
    const auto other = std::find_if(root.items.begin(), root.items.end(), is_graph);
    if (other != root.items.end()) return &*other;
    return error(first, fmt::format("topology '{}' is of kind {}, which names no switches; a tree "
                                    "or block is expected",
                                    name_of(first), kind_of(first)));
  }

  void note_choice(const Value& root, const Value& chosen) {
    if (root.items.size() == 1) return;
    std::vector<std::string> others;
    for (const Value& topology : root.items)
      if (&topology != &chosen)
        others.push_back(fmt::format("{} ({})", name_of(topology), kind_of(topology)));
    out_.notes.push_back(
        fmt::format("topology '{}' is read; the others are {}", name_of(chosen), list_of(others)));
  }

  Result<void> read_switches(const Value& plugin, const Words& words) {
    RAILYARD_TRY(check_keys(plugin, words.top_level, plugin.key));
    const Value* list = plugin.find(words.list);
    if (list == nullptr || list->kind != Value::Kind::list || list->items.empty())
      return error(list == nullptr ? plugin : *list,
                   fmt::format("{} needs a list of {}", plugin.key, words.list));
    for (const Value& entry : list->items) RAILYARD_TRY(read_switch(entry, words));
    return {};
  }

  Result<void> read_switch(const Value& entry, const Words& words) {
    RAILYARD_TRY(check_keys(entry, words.keys, fmt::format("a {}", words.name)));
    SlurmSwitch out;
    out.line = entry.line;
    for (const Value& field : entry.items) {
      if (field.kind != Value::Kind::scalar || field.text.empty())
        return error(field, fmt::format("{} must be a name or a hostlist", field.key));
      if (field.key == words.name) {
        out.name = excerpt(field.text, 64);
        continue;
      }
      auto names = expand_hostlist(field.text, kMaxSlurmNames - names_);
      if (!names.ok()) return error(field, fmt::format("{}: {}", field.key, names.error().message));
      names_ += names.value().size();
      (field.key == "nodes" ? out.nodes : out.switches) = std::move(names).value();
    }
    if (out.name.empty()) return error(entry, fmt::format("'{}' is missing", words.name));
    if (out.nodes.empty() == out.switches.empty())
      return error(entry, fmt::format("'{}' needs {}", excerpt(out.name),
                                      &words == &kBlock ? "nodes" : "either nodes or children"));
    out_.switches.push_back(std::move(out));
    return {};
  }

  void read_sizes(const Value& plugin) {
    const Value* sizes = plugin.find("block_sizes");
    if (sizes == nullptr) return;
    std::vector<std::string> texts;
    for (const Value& size : sizes->items) texts.push_back(excerpt(size.text));
    out_.block_sizes = texts.empty() ? excerpt(sizes->text) : list_of(texts);
  }

  const std::string& name_;
  std::size_t names_ = 0;
  SlurmTree out_;
};

}  // namespace

// The first line that says anything must start a topology, as SLURM itself expects.
bool looks_like_slurm_yaml(std::string_view text) {
  LineReader lines(text);
  for (std::string_view line; lines.next(line);) {
    line = trim(line.substr(0, line.find('#')));
    if (line.empty() || line == "---" || line.starts_with('%')) continue;
    if (!line.starts_with('-')) return false;
    return trim(line.substr(1)).starts_with("topology:");
  }
  return false;
}

Result<SlurmTree> read_slurm_yaml(std::string_view text, const std::string& name) {
  RAILYARD_ASSIGN(const Value root, parse(text, name));
  return TopologyReader(name).read(root);
}

}  // namespace railyard::topologies
