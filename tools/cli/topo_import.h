// `railyard topo import FILE... [-o CLUSTER.yaml] [--json]` and `railyard topo check FILE...`:
// files of other tools that describe machines.
//
// import: one line per file that says what was found and what the file could not say; a node and a
// fabric become one cluster (topo_combine.h); -o writes the node, the fabric or the cluster. check:
// one line per finding, or that there is none.
#pragma once

#include <string>
#include <vector>

#include "sim/result.h"

namespace railyard::cli {

struct ImportArguments {
  std::vector<std::string> files;
  std::string output;      // empty: nothing is written
  std::string like;        // a catalogue machine; empty: the nearest
  std::string adapters{};  // a file: {host: [adapters in NIC order]}
  bool json = false;
};

// Text for standard output; a file that cannot be used is a line of `complaints`.
struct ImportReport {
  std::string text;
  std::vector<std::string> complaints;
};
sim::Result<ImportReport> import_report(const ImportArguments& arguments);
ImportReport check_report(const std::vector<std::string>& files);

int import_command(const ImportArguments& arguments);
int check_command(const std::vector<std::string>& files);

}  // namespace railyard::cli
