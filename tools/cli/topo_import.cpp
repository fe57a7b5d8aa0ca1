#include "tools/cli/topo_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "algorithms/nccl/node_topology.h"
#include "scenarios/cluster_yaml.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/json_parts.h"
#include "tools/cli/nccl_plan.h"
#include "tools/cli/text_output.h"
#include "tools/cli/topo_combine.h"
#include "topologies/fabric_source.h"
#include "topologies/import/importer.h"
#include "topologies/import/text_file.h"
#include "topologies/machine_hardware.h"

namespace railyard::cli {
namespace {

using sim::Result;
using topologies::ImportedFile;

// A name that a scenario accepts, from the file's.
std::string machine_name(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  constexpr std::size_t kLongest = 60;
  name = name.substr(0, kLongest);
  for (char& c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '_' || c == '.';
    if (!plain) c = '-';
  }
  if (name.empty() || topologies::find_machine(name).ok()) name = "imported-" + name;
  return name;
}

Result<ReadFile> read_file(const std::string& path, const std::string& like) {
  ReadFile read{.path = path};
  RAILYARD_ASSIGN(read.text, topologies::read_text_file(path, topologies::kMaxFabricBytes));
  read.importer = topologies::detect_importer(read.text);
  const std::size_t most =
      read.importer != nullptr ? topologies::most_bytes(*read.importer) : read.text.size();
  if (read.text.size() > most)
    return sim::bad_input(fmt::format("is larger than {} MiB, the most that is read of {}",
                                      most >> 20, read.importer->what),
                          path);
  const topologies::ImportOptions options{.name = machine_name(path), .like = like};
  RAILYARD_ASSIGN(read.file, topologies::import_text(read.text, path, options));
  if (read.importer->subject == topologies::ImportSubject::node) read.text.clear();
  return read;
}

std::string line_of(const ReadFile& read) {
  std::string line = fmt::format("{}: {}: {}", read.path, read.importer->what, read.file.summary);
  if (read.file.machine) {
    const auto& machine = *read.file.machine;
    std::vector<std::string> borrowed = machine.borrowed;
    std::sort(borrowed.begin(), borrowed.end());
    borrowed.erase(std::unique(borrowed.begin(), borrowed.end()), borrowed.end());
    if (!borrowed.empty())
      line += fmt::format("; not in the file, taken from {}: {}", machine.like,
                          fmt::join(borrowed, ", "));
  } else if (!read.file.no_machine.empty()) {
    line += fmt::format("; no machine can be made of it: {}", read.file.no_machine);
  }
  if (!read.file.notes.empty())
    line +=
        fmt::format("; {} note{}", read.file.notes.size(), read.file.notes.size() == 1 ? "" : "s");
  return line + "\n";
}

void collect_devs(const std::vector<sim::HardwarePci>& list, std::vector<std::int32_t>& devs) {
  for (const sim::HardwarePci& pci : list) {
    if (pci.gpu) devs.push_back(pci.gpu->dev);
    collect_devs(pci.children, devs);
  }
}

// The paths NCCL finds in a node of many; where it finds none, the reason.
Json paths_of(const topologies::MachineSpec& machine) {
  namespace nccl = algorithms::nccl;
  const auto hardware = topologies::hardware_of(machine);
  if (!hardware.ok()) return nullptr;
  std::vector<std::int32_t> devs;
  for (const sim::HardwareCpu& cpu : hardware.value().cpus) collect_devs(cpu.pci, devs);
  std::sort(devs.begin(), devs.end());
  nccl::NodeRequest request;
  request.inputs.hosts = {&hardware.value()};
  for (const std::int32_t dev : devs)
    request.inputs.ranks.push_back(
        {static_cast<std::int32_t>(request.inputs.ranks.size()), 0, dev});
  request.comm_ranks = static_cast<std::int32_t>(2 * devs.size());  // so that NICs count
  const auto node = nccl::NodeTopology::build(request, {}, {});
  return node.ok() ? Json(paths_json(node.value())) : Json(node.error().text());
}

Json json_of(const ReadFile& read) {
  Json out;
  out["file"] = read.path;
  out["kind"] = read.importer->name;
  out["summary"] = read.file.summary;
  out["notes"] = read.file.notes;
  if (!read.file.machine) {
    out["machine"] = nullptr;
    out["no_machine"] = read.file.no_machine;
    return out;
  }
  const topologies::ImportedMachine& imported = *read.file.machine;
  const topologies::MachineSpec& machine = imported.machine;
  Json& json = out["machine"];
  json["name"] = machine.name;
  json["like"] = imported.like;
  json["profile"] = machine.profile;
  json["hosts"] = imported.hosts;
  json["compute_capability"] = machine.compute_capability;
  json["gpus"] = machine.gpus.size();
  json["nics"] = machine.nics.size();
  json["pcie_switches"] = machine.switches.size();
  json["numa_nodes"] = machine.numa.size();
  json["nvlinks_per_gpu"] = machine.nvlinks_per_gpu;
  json["nvswitch"] = machine.nvswitch;
  json["nvlink_pairs"] = machine.pairs.size();
  json["assumptions"] = imported.assumptions;
  json["paths"] = paths_of(machine);
  return out;
}

// With one node and one fabric: what they are together, or why nothing.
struct Together {
  Parts parts;
  std::optional<Result<Combined>> combined;
};

Result<Together> put_together(const std::vector<ReadFile>& files,
                              const topologies::AdapterMap& names) {
  Together out;
  RAILYARD_ASSIGN(out.parts, parts_of(files));
  if (out.parts.machine != nullptr && out.parts.fabric != nullptr)
    out.combined = combine(out.parts, names);
  return out;
}

Result<void> write_cluster(const Together& together, const std::string& output) {
  if (together.parts.machine == nullptr && together.parts.fabric == nullptr)
    return sim::bad_input("-o has nothing to write: no file gives a machine or a fabric", output);
  if (together.combined && !together.combined->ok()) return together.combined->error();
  RAILYARD_ASSIGN(const std::string text,
                  cluster_text(together.parts,
                               together.combined ? &together.combined->value() : nullptr, output));
  return write_text(output, text);
}

void add_together(const Together& together, Json& list, std::string& text) {
  if (!together.combined) return;
  if (!together.combined->ok()) {
    const std::string why = together.combined->error().text();
    list.push_back({{"kind", "cluster"}, {"error", why}});
    text += "no cluster: " + why + "\n";
    return;
  }
  list.push_back(json_of(together.parts, together.combined->value()));
  for (const std::string& line : lines_of(together.parts, together.combined->value()))
    text += "cluster: " + line + "\n";
}

int report(const ImportReport& report) {
  std::fwrite(report.text.data(), 1, report.text.size(), stdout);
  for (const std::string& complaint : report.complaints) complain(complaint);
  return finish_output(report.complaints.empty() ? kDone : kBadInput);
}

}  // namespace

Result<ImportReport> import_report(const ImportArguments& arguments) {
  if (!arguments.like.empty()) RAILYARD_TRY(topologies::find_machine(arguments.like));
  topologies::AdapterMap names;
  if (!arguments.adapters.empty()) {
    RAILYARD_ASSIGN(names, scenarios::read_adapter_map(arguments.adapters));
  }
  ImportReport report;
  std::vector<ReadFile> files;
  Json list = Json::array();
  for (const std::string& path : arguments.files) {
    auto read = read_file(path, arguments.like);
    if (!read.ok()) {
      report.complaints.push_back(read.error().text());
      continue;
    }
    files.push_back(std::move(read).value());
    if (arguments.json) list.push_back(json_of(files.back()));
    report.text += line_of(files.back());
  }
  const bool write = !arguments.output.empty() && report.complaints.empty();
  const auto together = put_together(files, names);
  if (write && !together.ok()) return together.error();
  if (together.ok()) {
    if (write) RAILYARD_TRY(write_cluster(together.value(), arguments.output));
    add_together(together.value(), list, report.text);
  }
  if (arguments.json) report.text = dump(list);
  return report;
}

ImportReport check_report(const std::vector<std::string>& files) {
  ImportReport report;
  for (const std::string& path : files) {
    const auto read = read_file(path, "");
    if (!read.ok()) {
      report.complaints.push_back(read.error().text());
      continue;
    }
    const ImportedFile& file = read.value().file;
    if (!file.findings) {
      report.complaints.push_back(fmt::format("{}: {} describes nothing that could be checked",
                                              path, read.value().importer->what));
      continue;
    }
    for (const std::string& note : file.notes) report.text += note + "\n";
    for (const std::string& finding : *file.findings)
      report.text += fmt::format("{}: {}\n", path, finding);
    if (file.findings->empty()) report.text += fmt::format("{}: nothing found\n", path);
  }
  return report;
}

int import_command(const ImportArguments& arguments) {
  const auto result = import_report(arguments);
  if (!result.ok()) return fail(result.error());
  return report(result.value());
}

int check_command(const std::vector<std::string>& files) { return report(check_report(files)); }

}  // namespace railyard::cli
