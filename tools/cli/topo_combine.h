// `railyard topo import NODE FABRIC TABLES... [-o CLUSTER.yaml]`: files of several kinds as one
// cluster. The node's NICs are found among the adapters of the fabric's hosts
// (topologies/fabric_match.h); what did not match is said line by line, in the written file too.
// Every route of the tables is walked before anything is written.
#pragma once

#include <string>
#include <vector>

#include "scenarios/cluster_yaml.h"
#include "sim/result.h"
#include "tools/cli/json_parts.h"
#include "topologies/import/importer.h"

namespace railyard::cli {

struct ReadFile {
  std::string path;
  const topologies::Importer* importer = nullptr;
  topologies::ImportedFile file;
  std::string text;  // of fabrics and tables
};

// The files by their part in a cluster; null or empty where there is none.
struct Parts {
  const ReadFile* machine = nullptr;
  const ReadFile* fabric = nullptr;
  std::vector<const ReadFile*> tables;
  std::vector<const ReadFile*> others;
};

// Refused: two machines, two fabrics, tables without a fabric.
sim::Result<Parts> parts_of(const std::vector<ReadFile>& files);

// What a node and a fabric are together.
struct Combined {
  topologies::ImportedMachine machine;  // with the NICs that are on the fabric
  topologies::FabricMatch match;
  topologies::AdapterMap names;
};
sim::Result<Combined> combine(const Parts& parts, const topologies::AdapterMap& names);

// One line for the cluster and one for each thing that did not match.
std::vector<std::string> lines_of(const Parts& parts, const Combined& combined);
Json json_of(const Parts& parts, const Combined& combined);

// The block to include. Paths are made relative to the file that it is written to.
sim::Result<std::string> cluster_text(const Parts& parts, const Combined* combined,
                                      const std::string& output);

}  // namespace railyard::cli
