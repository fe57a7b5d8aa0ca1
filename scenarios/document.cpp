#include "scenarios/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "scenarios/text_fence.h"

namespace railyard::scenarios {
namespace {

// Leaves the parser from inside an event; caught in parse_yaml and nowhere else.
struct Refused {
  Error error;
};

// Builds the tree from the parser's events. The parser recurses once per nesting level and reports
// each level before it enters it, so refusing here bounds its stack as well as ours.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::shared_ptr<const std::string> source) : source_(std::move(source)) {}

  [[nodiscard]] Node take_root() { return std::move(root_); }
  [[nodiscard]] int documents() const { return documents_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(to_mark(mark), "a second document starts here; one is allowed");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node;
    node.mark = to_mark(mark);
    if (!open_.empty() && open_.back().has_key) node.mark = open_.back().key.mark;
    add(std::move(node), anchor, 1);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(tag, mark);
    Node node;
    node.kind = Node::Kind::scalar;
    node.quoted = tag == "!";
    node.scalar = value;
    node.mark = to_mark(mark);
    add(std::move(node), anchor, 1);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) refuse(to_mark(mark), "an alias inside its own anchor");
    charge(found->second.nodes, to_mark(mark));
    Node copy = found->second.node;
    add(std::move(copy), YAML::NullAnchor, found->second.nodes);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(Node::Kind::list, tag, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(Node::Kind::map, tag, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    Entry key;  // the key whose value comes next
    bool has_key = false;
    YAML::anchor_t anchor = YAML::NullAnchor;
    std::size_t nodes = 1;  // this one and all below it
    std::unordered_set<std::string> seen;
  };
  struct Anchored {
    Node node;
    std::size_t nodes = 0;
  };

  [[noreturn]] static void refuse(const Mark& mark, std::string message) {
    throw Refused{sim::bad_input(std::move(message), mark.text())};
  }

  Mark to_mark(const YAML::Mark& mark) {
    if (mark.line >= 0 && mark.column >= 0) {
      line_ = static_cast<std::uint32_t>(mark.line) + 1;
      column_ = static_cast<std::uint32_t>(mark.column) + 1;
    }
    return {source_, line_, column_};
  }

  void charge(std::size_t nodes, const Mark& mark) {
    nodes_ += nodes;
    if (nodes_ > kMaxNodes)
      refuse(mark, fmt::format("more than {} values, aliases counted as often as they are used",
                               kMaxNodes));
  }

  void check_tag(const std::string& tag, const YAML::Mark& mark) {
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(to_mark(mark), "tags ('!...') have no meaning here");
  }

  void open(Node::Kind kind, const std::string& tag, const YAML::Mark& mark,
            YAML::anchor_t anchor) {
    check_tag(tag, mark);
    if (open_.size() >= kMaxDepth)
      refuse(to_mark(mark), fmt::format("nested more than {} levels deep", kMaxDepth));
    Open opened;
    opened.node.kind = kind;
    opened.node.mark = to_mark(mark);
    opened.anchor = anchor;
    if (!open_.empty()) require_not_a_key(opened.node.mark);
    open_.push_back(std::move(opened));
    charge(1, open_.back().node.mark);
  }

  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    const std::size_t nodes = closed.nodes;
    attach(std::move(closed.node), closed.anchor, nodes);
  }

  // A leaf or an alias's copy; what is below a copy was charged by the caller.
  void add(Node node, YAML::anchor_t anchor, std::size_t nodes) {
    charge(1, node.mark);
    if (!open_.empty() && open_.back().node.kind == Node::Kind::map && !open_.back().has_key)
      return start_key(std::move(node));
    attach(std::move(node), anchor, nodes);
  }

  void attach(Node node, YAML::anchor_t anchor, std::size_t nodes) {
    if (anchor != YAML::NullAnchor) {
      charge(nodes, node.mark);
      anchors_[anchor] = {node, nodes};
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    parent.nodes += nodes;
    if (parent.node.kind == Node::Kind::list) {
      parent.node.items.push_back(std::move(node));
      return;
    }
    parent.key.value = std::move(node);
    parent.node.entries.push_back(std::move(parent.key));
    parent.has_key = false;
  }

  void require_not_a_key(const Mark& mark) {
    const Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::map && !parent.has_key)
      refuse(mark, "a key must be a name, not a list or a map; is a bracket left open?");
  }

  void start_key(Node key) {
    if (key.kind != Node::Kind::scalar) refuse(key.mark, "a key must be a name");
    if (key.scalar == "<<")
      refuse(key.mark, "merge keys ('<<') are not supported; use include: or repeat the keys");
    Open& map = open_.back();
    if (!map.seen.insert(key.scalar).second)
      refuse(key.mark, fmt::format("key '{}' appears twice in one map", printable(key.scalar, 60)));
    map.key = {std::move(key.scalar), std::move(key.mark), {}};
    map.has_key = true;
  }

  std::shared_ptr<const std::string> source_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  Node root_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
  std::uint32_t line_ = 1;
  std::uint32_t column_ = 1;
};

}  // namespace

std::string Mark::text() const {
  if (!source) return {};
  return line == 0 ? *source : fmt::format("{}:{}:{}", *source, line, column);
}

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

Node* Node::find(std::string_view key) {
  for (Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

Result<Node> parse_yaml(std::string_view text, const std::string& name) {
  RAILYARD_TRY(check_text(text, name));
  TreeBuilder builder(std::make_shared<const std::string>(name));
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    return refused.error;
  } catch (const YAML::Exception& exception) {
    const bool known = exception.mark.line >= 0;
    return sim::bad_input(
        "not valid YAML: " + printable(exception.msg, 200),
        known ? fmt::format("{}:{}:{}", name, exception.mark.line + 1, exception.mark.column + 1)
              : name);
  } catch (const std::exception& exception) {
    return sim::bad_input("not valid YAML: " + printable(exception.what(), 200), name);
  }
  if (builder.documents() == 0) return sim::bad_input("the file is empty", name);
  return builder.take_root();
}

}  // namespace railyard::scenarios
