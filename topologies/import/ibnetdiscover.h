// The output of `ibnetdiscover` (a block for every node), of `ibnetdiscover -p` (a line for every
// port), and ibsim's net files, which are the first written by hand.
//
// Read: node kinds, GUIDs, descriptions, LIDs, cables, widths and speeds, the external port numbers
// of -g, the capability fields of -f. Said as notes: cables listed at one end, nodes without a
// block, doubled blocks and ports, unknown rates, lines that are none of the format's. Refused with
// their line: malformed lines, ends that contradict each other, a text without any node.
//
// Cost: O(text).
//
//   RAILYARD_ASSIGN(const FabricGraph graph, parse_ibnetdiscover(text, "fabric.ibnet"));
#pragma once

#include <string>
#include <string_view>

#include "sim/result.h"
#include "topologies/import/fabric_graph.h"

namespace railyard::topologies {

bool looks_like_ibnetdiscover(std::string_view text);
sim::Result<FabricGraph> parse_ibnetdiscover(std::string_view text, const std::string& name);

// The port lines of -p; parse_ibnetdiscover calls it where it meets one.
sim::Result<FabricGraph> parse_ibnetdiscover_ports(std::string_view text, const std::string& name);
bool is_ports_line(std::string_view line);

// "4xHDR", "4x", "HDR": what can be read of it.
void read_rate(std::string_view word, GraphPort& port);

}  // namespace railyard::topologies
