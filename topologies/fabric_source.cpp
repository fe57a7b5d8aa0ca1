#include "topologies/fabric_source.h"

#include "topologies/import/ibnetdiscover.h"
#include "topologies/import/slurm_topology.h"
#include "topologies/import/text_file.h"

namespace railyard::topologies {
namespace {

using sim::Result;

Result<FabricGraph> parse_graph(const NamedText& file) {
  if (looks_like_ibnetdiscover(file.second)) return parse_ibnetdiscover(file.second, file.first);
  if (looks_like_slurm_topology(file.second)) return parse_slurm_topology(file.second, file.first);
  return sim::bad_input(
      "no fabric: the output of ibnetdiscover (with or without -p) or a topology.conf or "
      "topology.yaml of SLURM is expected",
      file.first);
}

}  // namespace

Result<FabricSourcePtr> parse_fabric_source(const NamedText& graph,
                                            const std::vector<NamedText>& tables) {
  auto source = std::make_shared<FabricSource>();
  source->name = graph.first;
  RAILYARD_ASSIGN(source->graph, parse_graph(graph));
  for (const NamedText& table : tables)
    RAILYARD_TRY(parse_forwarding_tables(table.second, table.first, source->tables));
  return FabricSourcePtr(std::move(source));
}

Result<FabricSourcePtr> read_fabric_source(const std::string& graph_file,
                                           const std::vector<std::string>& table_files) {
  RAILYARD_ASSIGN(std::string graph, read_text_file(graph_file, kMaxFabricBytes));
  std::vector<NamedText> tables;
  for (const std::string& file : table_files) {
    RAILYARD_ASSIGN(std::string text, read_text_file(file, kMaxFabricBytes));
    tables.emplace_back(file, std::move(text));
  }
  return parse_fabric_source({graph_file, std::move(graph)}, tables);
}

}  // namespace railyard::topologies
