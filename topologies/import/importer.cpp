#include "topologies/import/importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "topologies/fabric_check.h"
#include "topologies/fabric_source.h"
#include "topologies/hardware_check.h"
#include "topologies/hardware_devices.h"
#include "topologies/import/fabric_graph.h"
#include "topologies/import/forwarding_tables.h"
#include "topologies/import/graph_xml.h"
#include "topologies/import/ibnetdiscover.h"
#include "topologies/import/nccl_xml.h"
#include "topologies/import/slurm_topology.h"
#include "topologies/import/smi_topo.h"
#include "topologies/import/text_file.h"
#include "topologies/import/xml_tree.h"

namespace railyard::topologies {
namespace {

using sim::Hardware;
using sim::Result;

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// What there is, also where no machine can be made of it.
struct Counts {
  std::size_t gpus = 0;
  std::size_t nics = 0;
  std::size_t nets = 0;
  std::size_t bridges = 0;
  std::size_t unknown = 0;
  std::map<std::uint32_t, std::size_t> nvlinks;  // links of a GPU -> GPUs
};

void count(const sim::HardwarePci& pci, Counts& out) {
  const PciRole role = role_of(pci);
  out.gpus += role == PciRole::gpu || role == PciRole::amd_gpu ? 1 : 0;
  out.nics += role == PciRole::nic ? 1 : 0;
  out.bridges += role == PciRole::bridge ? 1 : 0;
  out.unknown += role == PciRole::unknown ? 1 : 0;
  for (const sim::HardwareNic& nic : pci.nics) out.nets += nic.nets.size();
  if (pci.gpu) {
    std::uint32_t links = 0;
    for (const sim::HardwareNvlink& link : pci.gpu->nvlinks) links += link.count;
    if (links > 0) ++out.nvlinks[links];
  }
  for (const sim::HardwarePci& child : pci.children) count(child, out);
}

std::string hardware_summary(const Hardware& hardware) {
  Counts counts;
  std::size_t bare = 0;
  for (const sim::HardwareCpu& cpu : hardware.cpus) {
    for (const sim::HardwarePci& pci : cpu.pci) count(pci, counts);
    for (const sim::HardwareNic& nic : cpu.nics) bare += nic.nets.size();
  }
  const std::size_t hosts = hosts_of(hardware).size();
  std::string text = hosts > 1 ? plural(hosts, "host") + ", " : "";
  const bool ports = counts.nets > 0 && counts.nets != counts.nics;
  text += fmt::format(
      "{}, {}{}, {}, {}", plural(counts.gpus, "GPU"), plural(counts.nics, "NIC"),
      ports ? fmt::format(" with {}", plural(counts.nets, "port")) : "",
      counts.bridges == 1 ? "1 PCIe switch" : fmt::format("{} PCIe switches", counts.bridges),
      plural(hardware.cpus.size(), "NUMA node"));
  if (bare > 0) text += fmt::format(", {} without PCIe", plural(bare, "network device"));
  if (counts.unknown > 0)
    text += fmt::format(", {} without a class", plural(counts.unknown, "PCI device"));
  for (const auto& [links, gpus] : counts.nvlinks)
    text += fmt::format(", {} with {}", plural(gpus, "GPU"), plural(links, "NVLink"));
  return text;
}

void set_machine(Result<ImportedMachine> machine, ImportedFile& file) {
  if (machine.ok()) {
    file.machine = std::move(machine).value();
  } else {
    file.no_machine = machine.error().text();
  }
}

Result<ImportedFile> import_nccl_xml(std::string_view text, const std::string& name,
                                     const ImportOptions& options) {
  ImportNotes notes;
  ImportedFile file;
  RAILYARD_ASSIGN(const Hardware hardware, parse_nccl_xml(text, name, &notes));
  file.notes = notes.lines();
  file.summary = hardware_summary(hardware);
  file.findings.emplace();
  for (const Finding& finding : check_hardware(hardware))
    file.findings->push_back(finding.where + ": " + finding.what);
  set_machine(machine_of(hardware, options), file);
  return file;
}

// The matrix does not name its GPUs, but their NVLinks do: 18 or 8 since Hopper, 12 on Ampere, 6 on
// Volta. A row's sum where GPUs are wired in pairs, one cell where all end in an NVSwitch.
std::int32_t likely_generation(const SmiMatrix& matrix) {
  constexpr std::uint32_t kMost = 18;
  std::uint32_t cell = 0;
  std::uint32_t sum = 0;
  for (std::uint32_t row = 0; row < matrix.gpus; ++row) {
    std::uint32_t of_row = 0;
    for (std::uint32_t column = 0; column < matrix.gpus; ++column) {
      of_row += matrix.cell(row, column).nvlinks;
      cell = std::max<std::uint32_t>(cell, matrix.cell(row, column).nvlinks);
    }
    sum = std::max(sum, of_row);
  }
  const std::uint32_t links = sum <= kMost ? sum : cell;
  if (links > 12 || links == 8) return 90;
  return links == 5 || links == 6 ? 70 : 80;
}

Result<ImportedFile> import_smi_topo(std::string_view text, const std::string& name,
                                     const ImportOptions& options) {
  RAILYARD_ASSIGN(const SmiMatrix matrix, parse_smi_topo(text, name));
  ImportedFile file;
  file.notes = matrix.notes;
  file.summary = summary(matrix);
  file.findings = check(matrix);
  SmiAssumptions assumptions{.sm = likely_generation(matrix)};
  if (!options.like.empty()) {
    RAILYARD_ASSIGN(const MachineSpec like, find_machine(options.like));
    assumptions.sm = like.compute_capability;
  }
  const SmiHardware guess = hardware_of(matrix, assumptions);
  set_machine(machine_of(guess.hardware, options), file);
  if (!file.machine) return file;
  file.machine->machine.hardware.reset();  // its speeds are gaps, not what NCCL would find
  file.machine->borrowed.insert(file.machine->borrowed.begin(), "GPU model");
  file.machine->assumptions.insert(file.machine->assumptions.begin(), guess.unknowns.begin(),
                                   guess.unknowns.end());
  return file;
}

Result<ImportedFile> fabric(Result<FabricGraph> read) {
  if (!read.ok()) return read.error();
  ImportedFile file;
  file.notes = read.value().notes;
  file.summary = summary(read.value());
  return file;
}

Result<ImportedFile> import_ibnetdiscover(std::string_view text, const std::string& name,
                                          const ImportOptions& /*options*/) {
  RAILYARD_ASSIGN(FabricGraph graph, parse_ibnetdiscover(text, name));
  std::vector<std::string> findings;
  for (const Finding& finding : check_fabric(graph))
    findings.push_back(finding.where + ": " + finding.what);
  RAILYARD_ASSIGN(ImportedFile file, fabric(std::move(graph)));
  file.findings = std::move(findings);
  return file;
}

Result<ImportedFile> import_slurm(std::string_view text, const std::string& name,
                                  const ImportOptions& /*options*/) {
  return fabric(parse_slurm_topology(text, name));
}

Result<ImportedFile> import_forwarding(std::string_view text, const std::string& name,
                                       const ImportOptions& /*options*/) {
  ForwardingTables tables;
  RAILYARD_TRY(parse_forwarding_tables(text, name, tables));
  ImportedFile file;
  file.notes = tables.notes;
  file.summary = summary(tables);
  return file;
}

Result<ImportedFile> import_graph_xml(std::string_view text, const std::string& name,
                                      const ImportOptions& /*options*/) {
  ImportNotes notes;
  ImportedFile file;
  RAILYARD_ASSIGN(const GraphFile graphs, parse_graph_xml(text, name, {.notes = &notes}));
  file.notes = notes.lines();
  for (const sim::ChannelGraph& graph : graphs.graphs) {
    if (!file.summary.empty()) file.summary += "; ";
    const std::size_t gpus = graph.channels.empty() ? 0 : graph.channels.front().gpus.size();
    file.summary +=
        fmt::format("{}: {} of {}, {}/{} GB/s, {}/{}", sim::to_text(graph.kind),
                    plural(graph.channels.size(), "channel"), plural(gpus, "GPU"), graph.bw_intra,
                    graph.bw_inter, sim::to_text(graph.type_intra), sim::to_text(graph.type_inter));
  }
  return file;
}

// In the order in which they are tried.
constexpr std::array<Importer, 6> kImporters{{
    {"nccl-xml", "NCCL topology XML", ImportSubject::node, looks_like_nccl_xml, import_nccl_xml},
    {"nccl-graph", "NCCL graph XML", ImportSubject::channels, looks_like_graph_xml,
     import_graph_xml},
    {"smi-topo", "nvidia-smi topo -m", ImportSubject::node, looks_like_smi_topo, import_smi_topo},
    {"ibnetdiscover", "ibnetdiscover", ImportSubject::fabric, looks_like_ibnetdiscover,
     import_ibnetdiscover},
    {"forwarding-tables", "forwarding tables", ImportSubject::routes, looks_like_forwarding_tables,
     import_forwarding},
    {"slurm", "SLURM topology.conf or topology.yaml", ImportSubject::fabric,
     looks_like_slurm_topology, import_slurm},
}};

}  // namespace

std::span<const Importer> importers() { return kImporters; }

const Importer* detect_importer(std::string_view text) {
  for (const Importer& importer : kImporters)
    if (importer.looks_like(text)) return &importer;
  return nullptr;
}

std::size_t most_bytes(const Importer& importer) {
  const bool large =
      importer.subject == ImportSubject::fabric || importer.subject == ImportSubject::routes;
  return large ? kMaxFabricBytes : kMaxImportBytes;
}

Result<ImportedFile> import_file(const std::string& path, const ImportOptions& options) {
  RAILYARD_ASSIGN(const std::string text, read_text_file(path));
  return import_text(text, path, options);
}

Result<ImportedFile> import_text(std::string_view text, const std::string& name,
                                 const ImportOptions& options) {
  if (const Importer* importer = detect_importer(text))
    return importer->import(text, name, options);
  std::string kinds;
  for (const Importer& importer : kImporters)
    kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", importer.what);
  const std::string_view root = root_element(text);
  return sim::bad_input(fmt::format("not a kind of file that is known{}; known: {}",
                                    root.empty() ? "" : ": " + describe_root(root), kinds),
                        name);
}

}  // namespace railyard::topologies
