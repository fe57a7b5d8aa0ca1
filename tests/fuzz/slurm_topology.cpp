// Any bytes as a topology.conf or topology.yaml: a tree, or a one-line error; hostlists likewise.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "topologies/import/slurm_topology.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace topologies = railyard::topologies;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  topologies::looks_like_slurm_topology(text);
  const auto names = topologies::expand_hostlist(text.substr(0, text.find('\n')), 1000);
  if (names.ok()) require(names.value().size() <= 1000);
  if (!names.ok()) require(names.error().text().find('\n') == std::string::npos);
  const auto graph = topologies::parse_slurm_topology(text, "fuzz");
  if (!graph.ok()) {
    require(graph.error().text().find('\n') == std::string::npos);
    return 0;
  }
  // A forest: as many cables as nodes, less one for each root.
  require(graph.value().cables() < graph.value().nodes.size());
  for (const auto& node : graph.value().nodes)
    for (const auto& port : node.ports)
      require(graph.value().nodes[port.peer].port(port.peer_port)->peer_port == port.number);
  return 0;
}
