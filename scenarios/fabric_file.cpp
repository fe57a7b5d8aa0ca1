// fabric: {file: x.ibnet, tables: y.fdbs}: a fabric as the tools of a real cluster list it.
// `adapters` names a host's NICs as the fabric does, `adapters_by_host` those of hosts that differ.
#include <array>
#include <filesystem>
#include <utility>

#include "scenarios/cluster_yaml.h"
#include "scenarios/sections.h"
#include "scenarios/text_fence.h"
#include "topologies/fabric_source.h"
#include "topologies/import/text_file.h"

namespace railyard::scenarios {
namespace {

namespace fs = std::filesystem;
using topologies::FabricKind;

constexpr std::array<std::string_view, 5> kImportedKeys{"file", "tables", "adapters",
                                                        "adapters_by_host", "hosts"};
constexpr std::array<std::string_view, 11> kShapeKeys{
    "levels",           "hosts_per_leaf",   "spines",
    "trunks",           "oversubscription", "hosts_per_pod",
    "cores_per_spine",  "core_trunks",      "core_oversubscription",
    "leaves_per_group", "global_links"};

// Relative to the file that the path was written in.
std::string path_of(const Node& written) {
  const Mark& mark = written.mark;
  const bool in_file = mark.source && mark.line > 0;
  return ((in_file ? fs::path(*mark.source).parent_path() : fs::path()) / written.scalar).string();
}

// One name or a list of them.
Result<void> decode_names(const Place& place, std::vector<std::string>& out) {
  if (place.node->kind != Node::Kind::scalar) return decode(place, out);
  out.resize(1);
  return decode(place, out.front());
}

// {host028: [mlx5_3, mlx5_2], host031: [...]}
Result<void> decode_host_adapters(const Place& place, topologies::HostAdapters& out) {
  RAILYARD_TRY(expect(place, Node::Kind::map));
  for (const Entry& entry : place.node->entries) {
    const std::string path =
        (place.path.empty() ? "" : place.path + ".") + printable(entry.key, 60);
    const Place value{&entry.value, path};
    RAILYARD_TRY(decode(value, out[entry.key]));
  }
  return {};
}

Result<topologies::NamedText> read(const Place& place, Scenario& scenario) {
  const std::string path = path_of(*place.node);
  auto text = topologies::read_text_file(path, topologies::kMaxFabricBytes);
  if (!text.ok()) return at(place, text.error());
  scenario.inputs.push_back({path, fnv1a(text.value()), text.value().size()});
  return topologies::NamedText{path, std::move(text).value()};
}

const Node* fabric_of(const Node& root) {
  const Node* cluster = root.find("cluster");
  return cluster != nullptr ? cluster->find("fabric") : nullptr;
}

}  // namespace

void read_fabric_kind(MapReader& reader, topologies::FabricSpec& out) {
  const auto file = reader.find("file");
  if (!file) {
    reader.required("kind", out.kind);
  } else if (reader.take(decode(*file, out.file)) && !reader.optional("kind", out.kind)) {
    out.kind = FabricKind::imported;
  }
  if (const auto tables = reader.find("tables")) reader.take(decode_names(*tables, out.tables));
  reader.optional("adapters", out.adapters);
  if (const auto map = reader.find("adapters_by_host"))
    reader.take(decode_host_adapters(*map, out.adapters_by_host));
  reader.optional("hosts", out.hosts);
  const bool imported = out.kind == FabricKind::imported;
  if (imported && !file) reader.take(reader.place().error("an imported fabric needs 'file'"));
  const auto refuse = [&](std::string_view key, std::string_view why) {
    if (const auto found = reader.find(key)) reader.take(found->error(why));
  };
  if (imported) {
    for (const std::string_view key : kShapeKeys)
      refuse(key, "an imported fabric has the shape that its file tells");
    if (!out.tables.empty()) refuse("routing", "the forwarding tables decide the routes");
  } else {
    for (const std::string_view key : kImportedKeys)
      refuse(key, "this is for fabrics of kind 'imported' only");
  }
}

Result<topologies::AdapterMap> read_adapter_map(const std::string& path) {
  RAILYARD_ASSIGN(const std::string text, read_text_file(path));
  RAILYARD_ASSIGN(const Node root, parse_yaml(text, path));
  topologies::AdapterMap out;
  RAILYARD_TRY(decode_host_adapters({&root, ""}, out.by_host));
  if (const auto all = out.by_host.find("*"); all != out.by_host.end()) {
    out.all = std::move(all->second);
    out.by_host.erase(all);
  }
  return out;
}

Result<void> load_fabric(Scenario& scenario, const Document& document) {
  topologies::FabricSpec& fabric = scenario.cluster.fabric;
  if (fabric.kind != FabricKind::imported) return {};
  const Node* node = fabric_of(document.root);
  RAILYARD_CHECK(node != nullptr && node->find("file") != nullptr, "decoding saw fabric.file");
  const Place file{node->find("file"), "cluster.fabric.file"};
  RAILYARD_ASSIGN(const topologies::NamedText graph, read(file, scenario));
  std::vector<topologies::NamedText> tables;
  if (const Node* list = node->find("tables")) {
    const Place place{list, "cluster.fabric.tables"};
    const bool one = list->kind == Node::Kind::scalar;
    for (std::size_t i = 0; i < (one ? 1 : list->items.size()); ++i) {
      RAILYARD_ASSIGN(topologies::NamedText text, read(one ? place : place.item(i), scenario));
      tables.push_back(std::move(text));
    }
  }
  auto source = topologies::parse_fabric_source(graph, tables);
  if (!source.ok()) return source.error();  // placed in the foreign file
  fabric.source = std::move(source).value();
  return {};
}

void make_fabric_paths_absolute(Node& root) {
  Node* cluster = root.find("cluster");
  Node* fabric = cluster != nullptr ? cluster->find("fabric") : nullptr;
  if (fabric == nullptr || fabric->find("file") == nullptr) return;
  const auto fix = [](Node& node) {
    std::error_code failed;
    node.scalar = fs::absolute(path_of(node), failed).string();
  };
  fix(*fabric->find("file"));
  Node* tables = fabric->find("tables");
  if (tables == nullptr) return;
  if (tables->kind == Node::Kind::scalar) fix(*tables);
  for (Node& item : tables->items) fix(item);
}

}  // namespace railyard::scenarios
