// `railyard topo show SCENARIO|MACHINE`: what the cluster of a scenario, or a machine of the
// catalogue, looks like.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/enum_table.h"
#include "sim/result.h"

namespace railyard::cli {

enum class TopologyFormat { text, tree, matrix, dot };

struct TopologyArguments {
  std::string what;               // a scenario's path or name, or a machine's name
  std::vector<std::string> sets;  // for a scenario
  std::optional<std::uint32_t> nodes;
  TopologyFormat format = TopologyFormat::text;
};

sim::Result<std::string> topology_text(const TopologyArguments& arguments);

int topology_command(const TopologyArguments& arguments);

}  // namespace railyard::cli

namespace railyard::sim {
template <>
struct EnumTable<cli::TopologyFormat> {
  static constexpr std::string_view kind = "topology format";
  static constexpr std::array entries{
      EnumEntry{cli::TopologyFormat::text, "text"}, EnumEntry{cli::TopologyFormat::tree, "tree"},
      EnumEntry{cli::TopologyFormat::matrix, "matrix"}, EnumEntry{cli::TopologyFormat::dot, "dot"}};
};
}  // namespace railyard::sim
