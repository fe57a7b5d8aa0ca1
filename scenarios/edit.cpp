// Values put into a tree by path, and the tree written back: the rest of document.h.
#include <fmt/format.h>
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>
#include <yaml-cpp/null.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "scenarios/document.h"
#include "scenarios/text_fence.h"

namespace railyard::scenarios {
namespace {

// The item of a list that one path component names.
Result<Node*> list_item(Node& list, std::string_view component, const Mark& source) {
  std::size_t index = 0;
  const char* end = component.data() + component.size();
  const auto [stop, failed] = std::from_chars(component.data(), end, index);
  if (failed != std::errc() || stop != end)
    return sim::bad_input(fmt::format("'{}' is not the number of a list item (0 to {})",
                                      printable(component, 40), list.items.size() - 1),
                          source.text());
  if (index >= list.items.size())
    return sim::bad_input(fmt::format("no list item {}: the list has {}", index, list.items.size()),
                          source.text());
  return &list.items[index];
}

Node& map_item(Node& map, std::string_view component, const Mark& source) {
  if (Node* found = map.find(component)) return *found;
  map.entries.push_back({std::string(component), source, {}});
  map.entries.back().value.mark = source;
  return map.entries.back().value;
}

// One step down a path.
Result<Node*> child(Node& node, std::string_view component, const Mark& source) {
  if (component.empty()) return sim::bad_input("a path has names between its dots", source.text());
  if (node.kind == Node::Kind::list && !node.items.empty())
    return list_item(node, component, source);
  if (node.kind == Node::Kind::null) node.kind = Node::Kind::map;
  if (node.kind != Node::Kind::map)
    return sim::bad_input(
        fmt::format("'{}' lies below a value that has no keys", printable(component, 40)),
        source.text());
  return &map_item(node, component, source);
}

void emit(YAML::Emitter& out, const Node& node) {
  switch (node.kind) {
    case Node::Kind::null: out << YAML::Null; return;
    case Node::Kind::scalar:
      if (node.quoted) out << YAML::DoubleQuoted;
      out << node.scalar;
      return;
    case Node::Kind::list:
      out << YAML::BeginSeq;
      for (const Node& item : node.items) emit(out, item);
      out << YAML::EndSeq;
      return;
    case Node::Kind::map:
      out << YAML::BeginMap;
      for (const Entry& entry : node.entries) {
        out << YAML::Key << entry.key << YAML::Value;
        emit(out, entry.value);
      }
      out << YAML::EndMap;
      return;
  }
}

// Lists and maps that hold only scalars read better on one line.
bool is_small(const Node& node) {
  constexpr std::size_t kMostOnOneLine = 8;
  return node.items.size() + node.entries.size() <= kMostOnOneLine &&
         std::all_of(node.items.begin(), node.items.end(),
                     [](const Node& item) { return item.kind <= Node::Kind::scalar; });
}

void emit_block(YAML::Emitter& out, const Node& node) {
  if (node.kind == Node::Kind::list && !is_small(node)) {
    out << YAML::Block << YAML::BeginSeq;
    for (const Node& item : node.items) emit_block(out, item);
    out << YAML::EndSeq;
  } else if (node.kind == Node::Kind::map && !node.entries.empty()) {
    out << YAML::Block << YAML::BeginMap;
    for (const Entry& entry : node.entries) {
      out << YAML::Key << entry.key << YAML::Value;
      emit_block(out, entry.value);
    }
    out << YAML::EndMap;
  } else {
    if (node.kind >= Node::Kind::list) out << YAML::Flow;
    emit(out, node);
  }
}

}  // namespace

Result<void> set_value(Node& root, std::string_view path, Node value, const Mark& source) {
  if (std::count(path.begin(), path.end(), '.') >= static_cast<std::ptrdiff_t>(kMaxDepth))
    return sim::bad_input("the path is too long", source.text());
  Node* at = &root;
  for (std::string_view rest = path; at != nullptr;) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    RAILYARD_ASSIGN(at, child(*at, rest.substr(0, dot), source));
    if (dot == rest.size()) break;
    rest.remove_prefix(dot + 1);
  }
  *at = std::move(value);
  return {};
}

Result<void> apply_set(Node& root, std::string_view assignment) {
  const std::string name = "--set " + printable(assignment, 80);
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return sim::bad_input("key=value is expected, for instance cluster.nodes=8", name);
  const std::string_view text = assignment.substr(equals + 1);
  if (text.find_first_not_of(' ') == std::string_view::npos)
    return sim::bad_input("a value is expected after '='", name);
  auto parsed = parse_yaml(text, name);
  if (!parsed.ok()) return sim::bad_input(parsed.error().message, name);
  const Mark source{std::make_shared<const std::string>(name), 0, 0};
  Node value = std::move(parsed).value();
  set_marks(value, source);
  return set_value(root, assignment.substr(0, equals), std::move(value), source);
}

void set_marks(Node& node, const Mark& mark) {
  node.mark = mark;
  for (Node& item : node.items) set_marks(item, mark);
  for (Entry& entry : node.entries) {
    entry.mark = mark;
    set_marks(entry.value, mark);
  }
}

std::string to_yaml(const Node& node) {
  YAML::Emitter out;
  emit_block(out, node);
  return std::string(out.c_str()) + "\n";
}

std::string to_flow_yaml(const Node& node) {
  if (node.kind == Node::Kind::scalar && !node.quoted) return node.scalar;
  YAML::Emitter out;
  out << YAML::Flow;
  emit(out, node);
  return out.c_str();
}

bool same_value(const Node& a, const Node& b) {
  const auto same_entry = [](const Entry& x, const Entry& y) {
    return x.key == y.key && same_value(x.value, y.value);
  };
  return a.kind == b.kind && a.quoted == b.quoted && a.scalar == b.scalar &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_value) &&
         std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    same_entry);
}

}  // namespace railyard::scenarios
