#include "tools/cli/nccl_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/check.h"
#include "sim/enum_table.h"
#include "tools/cli/nccl_compare_parts.h"

namespace railyard::cli {
namespace {

namespace log = calibrate::nccl_log;
using compare_parts::Context;
using compare_parts::list;
using compare_parts::Tally;

void compare_counts(const Context& context, Comparison& comparison) {
  Tally tally("channel counts");
  const NcclPrediction& plan = context.plan;
  for (const std::size_t member : context.communicator.members) {
    const log::Rank& rank = context.log.ranks[member];
    if (rank.channels) {
      const log::ChannelCounts& counts = *rank.channels;
      const std::string of = fmt::format(" of rank {}", rank.rank);
      tally.add_number("collective channels" + of, plan.channels, counts.coll, counts.line);
      tally.add_number("NVLS channels" + of, plan.nvls_channels, counts.nvls, counts.line);
      tally.add_number("p2p channels" + of, plan.p2p_channels, counts.p2p, counts.line);
      tally.add_number("p2p channels per peer" + of, plan.p2p_channels_per_peer,
                       counts.p2p_per_peer, counts.line);
    }
    tally.add_number(fmt::format("p2p chunk of rank {}", rank.rank), plan.p2p_chunk, rank.p2p_chunk,
                     rank.start);
  }
  tally.move_to(comparison);
}

std::string describe(const sim::ChannelGraph& graph) {
  return fmt::format("{} channels, bw {:g}/{:g}, {}/{}, crossNic {}, sameChannels {}",
                     graph.channels.size(), graph.bw_intra, graph.bw_inter,
                     sim::to_text(graph.type_intra), sim::to_text(graph.type_inter),
                     graph.cross_nic, graph.same_channels ? 1 : 0);
}

// As the log prints it.
sim::ChannelGraph as_graph(const log::Graph& logged) {
  sim::ChannelGraph graph;
  graph.kind = logged.kind;
  graph.cross_nic = static_cast<std::int32_t>(logged.cross_nic);
  graph.same_channels = logged.same_channels;
  graph.bw_intra = logged.bw_intra;
  graph.bw_inter = logged.bw_inter;
  graph.type_intra = logged.type_intra;
  graph.type_inter = logged.type_inter;
  graph.channels.resize(static_cast<std::size_t>(
      std::clamp<std::int64_t>(logged.channel_count, 0, 1024)));  // absurd in a broken log only
  return graph;
}

struct SearchTallies {
  Tally summaries{"searches"}, orders{"search channels"};
};

void compare_search_channels(const sim::ChannelGraph& planned, const log::Graph& logged,
                             const std::string& what, Tally& orders) {
  for (std::size_t c = 0; c < logged.channels.size(); ++c) {
    const log::GraphChannel& channel = logged.channels[c];
    if (logged.bus_ids || c >= planned.channels.size()) {
      orders.skip();
      continue;
    }
    const std::vector<std::int32_t>& gpus = planned.channels[c].gpus;
    std::vector<std::int64_t> seen = channel.gpus;
    // Of these a plan knows the head; NCCL prints room for every GPU.
    const bool heads =
        logged.kind == sim::GraphKind::nvls || logged.kind == sim::GraphKind::collnet_direct;
    if (heads && seen.size() > gpus.size()) seen.resize(gpus.size());
    const bool same = std::equal(gpus.begin(), gpus.end(), seen.begin(), seen.end()) &&
                      planned.channels[c].nets == channel.nets;
    orders.add(same, [&] {
      return Difference{fmt::format("{} channel {}", what, c),
                        list(gpus) + " by nets " + list(planned.channels[c].nets),
                        list(seen) + " by nets " + list(channel.nets), channel.line};
    });
  }
}

// The plan's search of that kind on the rank's node; none: it does not say.
const sim::ChannelGraph* planned_search(const NcclPrediction& plan, std::int64_t rank,
                                        sim::GraphKind kind) {
  const auto number = static_cast<std::size_t>(rank);
  if (rank < 0 || number >= plan.node_of.size()) return nullptr;
  if (plan.node_of[number] >= plan.searches.size()) return nullptr;
  for (const sim::ChannelGraph& graph : plan.searches[plan.node_of[number]])
    if (graph.kind == kind) return &graph;
  return nullptr;
}

void compare_search(const NcclPrediction& plan, std::int64_t rank, const log::Graph& logged,
                    SearchTallies& tallies) {
  const sim::ChannelGraph* planned = planned_search(plan, rank, logged.kind);
  if (planned == nullptr) {
    tallies.summaries.skip();
    return;
  }
  const std::string what = fmt::format("{} search of rank {}", sim::to_text(logged.kind), rank);
  const std::string mine = describe(*planned), theirs = describe(as_graph(logged));
  tallies.summaries.add(mine == theirs, [&] {
    return Difference{what, mine, theirs, logged.line};
  });
  compare_search_channels(*planned, logged, what, tallies.orders);
}

void compare_searches(const Context& context, Comparison& comparison) {
  if (context.plan.searches.empty()) return;
  SearchTallies tallies;
  for (const std::size_t member : context.communicator.members) {
    const log::Rank& rank = context.log.ranks[member];
    for (const log::Graph& logged : rank.graphs)
      compare_search(context.plan, rank.rank, logged, tallies);
  }
  tallies.summaries.move_to(comparison);
  tallies.orders.move_to(comparison);
}

// What explains differences before any is looked at.
void add_notes(const Context& context, Comparison& comparison) {
  const NcclPrediction& plan = context.plan;
  for (const log::Version& version : context.log.versions)
    if (!plan.version.empty() && !version.text.starts_with(plan.version))
      comparison.notes.push_back(
          fmt::format("the plan is for NCCL {}, the log is of {}{} (line {})", plan.version,
                      version.rccl ? "RCCL " : "", version.text, version.line));
  if (plan.ranks >= 0 && context.communicator.rank_count >= 0 &&
      plan.ranks != context.communicator.rank_count)
    comparison.notes.push_back(fmt::format("the plan has {} ranks, the log's communicator {}",
                                           plan.ranks, context.communicator.rank_count));
  if (plan.nodes >= 0 && context.communicator.node_count >= 0 &&
      plan.nodes != context.communicator.node_count)
    comparison.notes.push_back(fmt::format("the plan has {} nodes, the log's communicator {}",
                                           plan.nodes, context.communicator.node_count));
  std::set<std::string> seen;
  for (const std::size_t member : context.communicator.members) {
    for (const log::Variable& variable :
         context.log.processes[context.log.ranks[member].process].variables) {
      const auto planned = plan.variables.find(variable.name);
      const bool same = planned != plan.variables.end() && planned->second == variable.value;
      if (same || !seen.insert(variable.name + "=" + variable.value).second) continue;
      comparison.notes.push_back(fmt::format(
          "the job ran with {}={} (line {}), the plan {}", variable.name, variable.value,
          variable.line,
          planned == plan.variables.end() ? "does not set it" : "has " + planned->second));
    }
  }
  if (context.communicator.rank_count >
      static_cast<std::int64_t>(context.communicator.members.size()))
    comparison.notes.push_back(fmt::format("the log has {} of {} ranks",
                                           context.communicator.members.size(),
                                           context.communicator.rank_count));
}

}  // namespace

bool Comparison::agrees() const {
  return std::all_of(kinds.begin(), kinds.end(),
                     [](const Agreement& kind) { return kind.differed == 0; });
}

std::size_t Comparison::compared() const {
  std::size_t facts = 0;
  for (const Agreement& kind : kinds) facts += kind.agreed + kind.differed;
  return facts;
}

Comparison compare(const NcclPrediction& plan, const log::Log& log, std::size_t communicator) {
  RAILYARD_CHECK(communicator < log.communicators.size(), "no such communicator in the log");
  const Context context{plan, log, log.communicators[communicator]};
  Comparison comparison;
  comparison.source = log.source;
  add_notes(context, comparison);
  compare_searches(context, comparison);
  compare_counts(context, comparison);
  compare_parts::compare_rings(context, comparison);
  compare_parts::compare_trees(context, comparison);
  compare_parts::compare_heads(context, comparison);
  compare_parts::compare_transports(context, comparison);
  compare_parts::compare_tuning(context, comparison);
  compare_parts::compare_choices(context, comparison);
  return comparison;
}

std::size_t main_communicator(const log::Log& log) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < log.communicators.size(); ++i)
    if (log.communicators[i].members.size() > log.communicators[best].members.size()) best = i;
  return best;
}

std::string to_text(const Comparison& comparison) {
  std::string out;
  for (const std::string& note : comparison.notes) out += "note: " + note + "\n";
  for (const Agreement& kind : comparison.kinds) {
    out += fmt::format("{:<24} {:>6} agree, {:>4} differ", kind.kind, kind.agreed, kind.differed);
    if (kind.not_comparable > 0) out += fmt::format(", {} not comparable", kind.not_comparable);
    out += '\n';
    for (const Difference& difference : kind.first)
      out += fmt::format("  {}: planned {}, the log has {} ({}:{})\n", difference.what,
                         difference.planned, difference.logged, comparison.source, difference.line);
    if (kind.differed > kind.first.size())
      out += fmt::format("  and {} more\n", kind.differed - kind.first.size());
  }
  if (comparison.compared() == 0) {
    out +=
        "nothing to compare: the log shows none of the decisions a plan makes (they need "
        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING,ENV)\n";
  }
  return out;
}

}  // namespace railyard::cli
