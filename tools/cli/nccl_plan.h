// What `railyard nccl plan` works on: a communicator on identical hosts or on a scenario's cluster,
// planned; and the three ways to print it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/nccl/cluster.h"
#include "algorithms/nccl/environment.h"
#include "algorithms/nccl/selection.h"
#include "sim/enum_table.h"
#include "sim/result.h"

namespace railyard::cli {

struct NcclPlan {
  std::string title;  // "4 x hgx-h100, 32 ranks"
  algorithms::nccl::Environment env;
  algorithms::nccl::Cluster cluster;
  algorithms::nccl::DataType type = algorithms::nccl::DataType::float32;
  std::vector<std::string> warnings;
};

// The sizes of nccl-tests' -b 8 -e 16G -f 2: its "size" column.
std::vector<std::int64_t> plan_sizes();

// The call of nccl-tests' size; at least one element for every rank.
algorithms::nccl::Call call_of_size(const NcclPlan& plan, algorithms::nccl::Function function,
                                    std::int64_t size);

// Keys as in NCCL's own decision dumps (comm, system, paths, localNets, graphs, rings, trees, nvls,
// tuning, selection). Trees and NVLS of all ranks up to 4 nodes, of rank 0 alone beyond.
nlohmann::ordered_json plan_json(const NcclPlan& plan);

// `paths` of it alone: [type, GB/s, hops] between GPUs, and between GPUs and network devices.
nlohmann::ordered_json paths_json(const algorithms::nccl::NodeTopology& node);

// Shaped like NCCL_DEBUG=INFO with the subsystems GRAPH and TUNING; then the choice by size.
std::string plan_text(const NcclPlan& plan);

// The choice by size as a CSV for NCCL's example tuner plugin, or as NCCL_* lines.
enum class PlanExport { none, tuner_csv, env };
std::string plan_export(const NcclPlan& plan, PlanExport format);

// A row of the choice by size: from one size of plan_sizes() to the last with the same choice.
struct ChoiceRange {
  algorithms::nccl::Function function = algorithms::nccl::Function::all_reduce;
  std::int64_t first = 0;
  std::int64_t last = 0;
  // At `first`; none where NCCL would refuse the call, and `error` says why.
  std::optional<algorithms::nccl::Choice> choice;
  std::string error;
};
std::vector<ChoiceRange> choice_ranges(const NcclPlan& plan);

}  // namespace railyard::cli

namespace railyard::sim {
template <>
struct EnumTable<cli::PlanExport> {
  static constexpr std::string_view kind = "export format";
  static constexpr std::array entries{EnumEntry{cli::PlanExport::none, "none"},
                                      EnumEntry{cli::PlanExport::tuner_csv, "tuner-csv"},
                                      EnumEntry{cli::PlanExport::env, "env"}};
};
}  // namespace railyard::sim
