// The importers as one table: which kinds of file there are, how each is recognised by its content,
// and what an import gives. A kind is one file in this folder (nccl_xml, graph_xml, ...) and one
// row in importer.cpp.
//
//   const Importer* importer = detect_importer(text);
//   RAILYARD_ASSIGN(const ImportedFile file, importer->import(text, "topo.xml", {}));
//   file.summary  // "8 GPUs (sm 90), 8 NICs, ..."
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware.h"
#include "sim/result.h"
#include "topologies/hardware_machine.h"

namespace railyard::topologies {

struct ImportedFile {
  std::string summary;                     // what was found, in one line
  std::vector<std::string> notes;          // "file:line: ..." of the reader
  std::optional<ImportedMachine> machine;  // a node that can be simulated
  std::string no_machine;                  // else why not; empty for kinds that describe none
  std::optional<std::vector<std::string>> findings;  // what looks wrong, where that can be said
};

// What a kind of file says about a cluster.
enum class ImportSubject { node, channels, fabric, routes };

struct Importer {
  std::string_view name;  // "nccl-xml"
  std::string_view what;  // "NCCL topology XML"
  ImportSubject subject;
  bool (*looks_like)(std::string_view text);
  sim::Result<ImportedFile> (*import)(std::string_view text, const std::string& name,
                                      const ImportOptions& options);
};

std::span<const Importer> importers();

// The kind of a text, by its content; null if it is none of them.
const Importer* detect_importer(std::string_view text);

// How large a file of a kind may be: fabrics list every port, tables every destination.
std::size_t most_bytes(const Importer& importer);

// Imports a text of any kind; an error names the kinds there are.
sim::Result<ImportedFile> import_text(std::string_view text, const std::string& name,
                                      const ImportOptions& options);
sim::Result<ImportedFile> import_file(const std::string& path, const ImportOptions& options);

}  // namespace railyard::topologies
