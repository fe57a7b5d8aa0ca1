// A plan's choices in forms that NCCL itself reads.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>

#include "tools/cli/nccl_plan.h"

namespace railyard::cli {
namespace {

using algorithms::nccl::Algorithm;
using algorithms::nccl::Function;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// As the example plugin spells them.
std::string plugin_name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::collnet_direct: return "collnet_direct";
    case Algorithm::collnet_chain: return "collnet_chain";
    case Algorithm::nvls_tree: return "nvls_tree";
    default: return lower(sim::to_text(algorithm));
  }
}

// Bytes as the plugin is given them: AllGather and ReduceScatter count all ranks.
std::uint64_t plugin_bytes(const NcclPlan& plan, Function function, std::int64_t size) {
  return static_cast<std::uint64_t>(
      model_bytes(call_of_size(plan, function, size), plan.cluster.comm.info.ranks));
}

std::string tuner_csv(const NcclPlan& plan) {
  std::string out =
      "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,"
      "numPipeOps,regBuff\n";
  const algorithms::nccl::CommInfo& info = plan.cluster.comm.info;
  const std::vector<ChoiceRange> ranges = choice_ranges(plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const ChoiceRange& range = ranges[i];
    if (!range.choice) continue;
    const bool first = i == 0 || ranges[i - 1].function != range.function;
    const bool last = i + 1 == ranges.size() || ranges[i + 1].function != range.function;
    const std::uint64_t from = first ? 0 : plugin_bytes(plan, range.function, range.first);
    const std::string to =
        last ? "18446744073709551615"
             : fmt::format("{}", plugin_bytes(plan, range.function, ranges[i + 1].first) - 1);
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},{},{},-1,-1\n",
                   lower(sim::to_text(range.function)), from, to,
                   plugin_name(range.choice->algorithm),
                   lower(sim::to_text(range.choice->protocol)), range.choice->max_channels,
                   info.nodes, info.ranks);
  }
  return out;
}

// NCCL's variables know functions but no sizes: they allow what is chosen at some size, and NCCL's
// own model decides among it.
std::string env_lines(const NcclPlan& plan) {
  std::map<Function, std::set<std::string>> algorithms;
  std::map<Function, std::set<std::string>> protocols;
  for (const ChoiceRange& range : choice_ranges(plan)) {
    if (!range.choice) continue;
    algorithms[range.function].insert(lower(sim::to_text(range.choice->algorithm)));
    protocols[range.function].insert(lower(sim::to_text(range.choice->protocol)));
  }
  const auto list = [](const std::map<Function, std::set<std::string>>& allowed) {
    std::vector<std::string> entries;
    for (const auto& [function, names] : allowed)
      entries.push_back(fmt::format("{}:{}", lower(sim::to_text(function)), fmt::join(names, ",")));
    return fmt::format("{}", fmt::join(entries, ";"));
  };
  std::string out;
  for (const auto& [name, value] : plan.env.variables())
    if (name != "NCCL_ALGO" && name != "NCCL_PROTO")
      fmt::format_to(std::back_inserter(out), "{}={}\n", name, value);
  const std::int32_t channels = plan.cluster.comm.info.channels;
  fmt::format_to(std::back_inserter(out),
                 "NCCL_ALGO=\"{}\"\nNCCL_PROTO=\"{}\"\nNCCL_MIN_CTAS={}\nNCCL_MAX_CTAS={}\n",
                 list(algorithms), list(protocols), channels, channels);
  return out;
}

}  // namespace

std::string plan_export(const NcclPlan& plan, PlanExport format) {
  return format == PlanExport::env ? env_lines(plan) : tuner_csv(plan);
}

}  // namespace railyard::cli
