#include "scenarios/cluster_yaml.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/machine_yaml.h"
#include "scenarios/text_fence.h"

namespace railyard::scenarios {
namespace {

bool is_control(char c) { return (c >= 0 && c < ' ') || c == 0x7f; }

std::string comment(const std::string& text) {
  std::string out = "# " + text;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return out + "\n";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string list_of_quoted(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + quoted(text);
  return "[" + out + "]";
}

Result<void> check_name(std::string_view what, const std::string& text) {
  if (std::none_of(text.begin(), text.end(), is_control) && check_text(text, "").ok()) return {};
  return sim::bad_input(
      fmt::format("{} has a name that cannot be written: '{}'", what, printable(text, 60)));
}

Result<void> check_names(const WrittenFabric& fabric) {
  RAILYARD_TRY(check_name("the fabric's file", fabric.file));
  for (const std::string& table : fabric.tables) RAILYARD_TRY(check_name("a table's file", table));
  for (const std::string& adapter : fabric.adapters)
    RAILYARD_TRY(check_name("an adapter", adapter));
  for (const auto& [host, adapters] : fabric.by_host) {
    RAILYARD_TRY(check_name("a host", host));
    for (const std::string& adapter : adapters) RAILYARD_TRY(check_name("an adapter", adapter));
  }
  return {};
}

std::string fabric_yaml(const WrittenFabric& fabric) {
  std::string out = "  fabric:\n    file: " + quoted(fabric.file) + "\n";
  if (!fabric.tables.empty()) out += "    tables: " + list_of_quoted(fabric.tables) + "\n";
  if (!fabric.adapters.empty()) out += "    adapters: " + list_of_quoted(fabric.adapters) + "\n";
  if (!fabric.by_host.empty()) out += "    adapters_by_host:\n";
  for (const auto& [host, adapters] : fabric.by_host)
    out += "      " + quoted(host) + ": " + list_of_quoted(adapters) + "\n";
  return out;
}

}  // namespace

Result<std::string> cluster_yaml(const WrittenCluster& cluster) {
  if (!cluster.fabric.file.empty()) RAILYARD_TRY(check_names(cluster.fabric));
  const bool node = cluster.machine != nullptr;
  const bool fabric = !cluster.fabric.file.empty();
  std::string out = comment(fmt::format("The {} of {}.",
                                        node && fabric ? "cluster"
                                        : fabric       ? "fabric"
                                                       : "node",
                                        cluster.source));
  out += fmt::format("# Name this file in a scenario's `include:`, or copy the block{}.\n",
                     !fabric ? "; add `fabric:` for more nodes"
                     : node  ? ""
                             : "; `machine:` and `nodes:` are still to be stated");
  for (const std::string& line : cluster.comments) out += comment(line);
  if (node)
    for (const std::string& assumption : cluster.machine->assumptions)
      out += comment("Assumed: " + assumption + ".");
  out += "railyard: 1\ncluster:\n";
  if (cluster.nodes > 0) out += fmt::format("  nodes: {}\n", cluster.nodes);
  if (node && cluster.machine->hosts > 1)
    out += fmt::format("  nodes_per_nvlink_domain: {}\n", cluster.machine->hosts);
  if (node) out += "  machine:\n" + machine_yaml(cluster.machine->machine, cluster.machine->like);
  if (fabric) out += fabric_yaml(cluster.fabric);
  return out;
}

std::string cluster_yaml(const topologies::ImportedMachine& imported, const std::string& source) {
  auto text =
      cluster_yaml(WrittenCluster{.source = source, .machine = &imported, .nodes = imported.hosts});
  RAILYARD_CHECK(text.ok(), "a node has no names that could be refused");
  return std::move(text).value();
}

}  // namespace railyard::scenarios
