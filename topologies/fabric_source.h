// A fabric as files describe it: the graph of ibnetdiscover or SLURM, and the forwarding tables of
// its switches if there are any. Read once, shared by every topology made from it.
//
//   RAILYARD_ASSIGN(spec.fabric.source, read_fabric_source("x.ibnet", {"opensm.fdbs"}));
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/result.h"
#include "topologies/import/fabric_graph.h"
#include "topologies/import/forwarding_tables.h"

namespace railyard::topologies {

inline constexpr std::size_t kMaxFabricBytes = std::size_t{256} << 20;

struct FabricSource {
  std::string name;  // of the file
  FabricGraph graph;
  ForwardingTables tables;  // no switches: none were given
};

using FabricSourcePtr = std::shared_ptr<const FabricSource>;
using NamedText = std::pair<std::string, std::string>;  // a name for errors, the text

// The form of the graph is told by its content.
sim::Result<FabricSourcePtr> parse_fabric_source(const NamedText& graph,
                                                 const std::vector<NamedText>& tables);
sim::Result<FabricSourcePtr> read_fabric_source(const std::string& graph_file,
                                                const std::vector<std::string>& table_files);

}  // namespace railyard::topologies
