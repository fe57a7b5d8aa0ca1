#include "tools/cli/topo_combine.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "topologies/cluster.h"
#include "topologies/import/text_lines.h"

namespace railyard::cli {
namespace {

using sim::bad_input;
using sim::Result;

constexpr std::size_t kMostNames = 32;  // in one line

Result<topologies::FabricSourcePtr> source_of(const Parts& parts) {
  std::vector<topologies::NamedText> tables;
  for (const ReadFile* table : parts.tables) tables.emplace_back(table->path, table->text);
  return topologies::parse_fabric_source({parts.fabric->path, parts.fabric->text}, tables);
}

// Routes and cables, as a scenario that includes the block would find them.
Result<void> try_cluster(const Combined& combined, topologies::FabricSourcePtr source) {
  topologies::ClusterSpec spec;
  spec.machine = combined.machine.machine.name;
  spec.custom = combined.machine.machine;
  spec.nodes = static_cast<std::uint32_t>(combined.match.hosts.size());
  spec.fabric.kind = topologies::FabricKind::imported;
  spec.fabric.source = std::move(source);
  spec.fabric.adapters = combined.match.adapters;
  spec.fabric.adapters_by_host = combined.names.by_host;
  const auto size = topologies::cluster_size(spec);
  if (!size.ok()) return size.error();
  return {};
}

std::string paths_of(const std::vector<const ReadFile*>& files) {
  std::vector<std::string> paths;
  for (const ReadFile* file : files) paths.push_back(file->path);
  return topologies::list_of(paths);
}

std::string relative_to(const std::string& file, const std::string& output) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path folder = fs::absolute(output, failed).parent_path();
  const fs::path found = fs::proximate(fs::absolute(file, failed), folder, failed);
  return failed ? file : found.string();
}

void describe_fabric(const Parts& parts, const std::string& output,
                     scenarios::WrittenCluster& out) {
  out.source += (out.source.empty() ? "" : " and ") + parts.fabric->path;
  out.fabric.file = relative_to(parts.fabric->path, output);
  for (const ReadFile* table : parts.tables)
    out.fabric.tables.push_back(relative_to(table->path, output));
}

}  // namespace

Result<Parts> parts_of(const std::vector<ReadFile>& files) {
  Parts parts;
  for (const ReadFile& file : files) {
    const topologies::ImportSubject subject = file.importer->subject;
    if (file.file.machine) {
      if (parts.machine != nullptr)
        return bad_input(fmt::format("-o writes one machine, but {} and {} both have one",
                                     parts.machine->path, file.path));
      parts.machine = &file;
    } else if (subject == topologies::ImportSubject::fabric) {
      if (parts.fabric != nullptr)
        return bad_input(fmt::format("-o writes one fabric, but {} and {} both are one",
                                     parts.fabric->path, file.path));
      parts.fabric = &file;
    } else if (subject == topologies::ImportSubject::routes) {
      parts.tables.push_back(&file);
    } else {
      parts.others.push_back(&file);
    }
  }
  if (!parts.tables.empty() && parts.fabric == nullptr)
    return bad_input("forwarding tables need the fabric that they route: the ibnetdiscover of it",
                     parts.tables.front()->path);
  return parts;
}

Result<Combined> combine(const Parts& parts, const topologies::AdapterMap& names) {
  RAILYARD_CHECK(parts.machine != nullptr && parts.fabric != nullptr, "a node and a fabric");
  Combined out;
  out.names = names;
  out.machine = *parts.machine->file.machine;
  RAILYARD_ASSIGN(topologies::FabricSourcePtr source, source_of(parts));
  RAILYARD_ASSIGN(out.match, topologies::match_fabric(*source, out.machine.machine, names));
  out.machine.machine = topologies::with_nics(std::move(out.machine.machine), out.match.nics);
  RAILYARD_TRY(try_cluster(out, std::move(source)));
  return out;
}

std::vector<std::string> lines_of(const Parts& parts, const Combined& combined) {
  const topologies::FabricMatch& match = combined.match;
  std::vector<std::string> lines;
  std::string first =
      fmt::format("{} node{} of {} NIC{}: {} on {}", match.hosts.size(),
                  match.hosts.size() == 1 ? "" : "s", match.nics.size(),
                  match.nics.size() == 1 ? "" : "s", parts.machine->path, parts.fabric->path);
  if (!parts.tables.empty()) first += ", routed by " + paths_of(parts.tables);
  lines.push_back(std::move(first));
  lines.push_back("hosts: " + topologies::list_of(match.hosts, kMostNames));
  if (!match.adapters.empty())
    lines.push_back("NICs: " + topologies::list_of(match.adapters, kMostNames));
  for (const std::string& note : match.notes) lines.push_back(note);
  for (const std::string& nic : match.not_cabled)
    lines.push_back(fmt::format("NIC {} of the node is not on the fabric and left out", nic));
  for (const std::string& adapter : match.not_of_node)
    lines.push_back(fmt::format("adapter {} is no NIC of the node", adapter));
  for (const std::string& host : match.left_out)
    lines.push_back(fmt::format("host left out: {}", host));
  for (const ReadFile* other : parts.others)
    lines.push_back(other->path + " has no part in the cluster");
  for (std::string& line : lines) line = topologies::excerpt(line, 2000);
  return lines;
}

Json json_of(const Parts& parts, const Combined& combined) {
  const topologies::FabricMatch& match = combined.match;
  Json out;
  out["kind"] = "cluster";
  out["node"] = parts.machine->path;
  out["fabric"] = parts.fabric->path;
  out["tables"] = Json::array();
  for (const ReadFile* table : parts.tables) out["tables"].push_back(table->path);
  out["hosts"] = match.hosts;
  out["nics"] = match.nics;
  out["adapters"] = match.adapters;
  out["notes"] = match.notes;
  out["nics_not_on_fabric"] = match.not_cabled;
  out["adapters_not_of_node"] = match.not_of_node;
  out["hosts_left_out"] = match.left_out;
  return out;
}

Result<std::string> cluster_text(const Parts& parts, const Combined* combined,
                                 const std::string& output) {
  scenarios::WrittenCluster written;
  if (parts.machine != nullptr) {
    written.source = parts.machine->path;
    written.machine = &*parts.machine->file.machine;
    written.nodes = written.machine->hosts;
  }
  if (combined != nullptr) {
    written.machine = &combined->machine;
    written.nodes = static_cast<std::uint32_t>(combined->match.hosts.size());
    written.comments = lines_of(parts, *combined);
    written.fabric.adapters = combined->match.adapters;
    written.fabric.by_host = combined->names.by_host;
  }
  if (parts.fabric != nullptr) describe_fabric(parts, output, written);
  return scenarios::cluster_yaml(written);
}

}  // namespace railyard::cli
