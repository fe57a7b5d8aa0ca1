// Collectives and independent flows on the terminal.
#include <fmt/format.h>

#include "tools/cli/flow_statistics.h"
#include "tools/cli/format.h"
#include "tools/cli/nccl_tests.h"
#include "tools/cli/summary.h"
#include "tools/cli/table.h"

namespace railyard::cli {
namespace {

using scenarios::CollectiveRow;
using scenarios::FlowResult;
using scenarios::RunResult;

constexpr std::size_t kSlowest = 5;

std::string block_title(const CollectiveRow& row) {
  std::string text = fmt::format("{} of {}, {} ranks", sim::to_text(row.collective), row.dtype,
                                 count(static_cast<std::int64_t>(row.ranks)));
  if (!row.group.empty() && row.group != scenarios::kWorld)
    text += fmt::format(" of group {}", row.group);
  if (sim::is_rooted(row.collective)) text += fmt::format(", root {}", row.root);
  return text;
}

std::string block(const CollectiveBlock& rows, const SummaryStyle& style) {
  Table table({{"size (B)"},
               {"elements"},
               {"algorithm", Align::left},
               {"protocol", Align::left},
               {"channels"},
               {"time (us)"},
               {"algbw (GB/s)"},
               {"busbw (GB/s)"}});
  for (const CollectiveRow* row : rows)
    table.add({std::to_string(row->size.raw()), std::to_string(row->count),
               std::string(sim::to_text(row->algorithm)), std::string(sim::to_text(row->protocol)),
               std::to_string(row->channels), nccl_tests_time(row->time),
               fmt::format("{:.2f}", row->algbw), fmt::format("{:.2f}", row->busbw)});
  std::string text = heading(block_title(*rows.front()), style) + table.text();
  if (rows.size() > 1) text += fmt::format("  average busbw {:.2f} GB/s\n", average_busbw(rows));
  return text;
}

double rate_gbps(const FlowResult& flow) {
  const double seconds = sim::to_seconds(flow.end - flow.start);
  return seconds > 0 ? static_cast<double>(flow.size.raw()) / seconds * 1e-9 : 0;
}

}  // namespace

std::string summary_collectives(const RunResult& result, const SummaryStyle& style) {
  std::string text;
  for (const CollectiveBlock& rows : collective_blocks(result.collectives))
    text += block(rows, style);
  return text;
}

std::string summary_flows(const RunResult& result, const SummaryStyle& style) {
  if (result.flows.empty()) return "";
  const FlowStatistics statistics = flow_statistics(result.flows);
  Table totals({{"", Align::left}, {""}, {"", Align::left}});
  totals.add({"flows", count(static_cast<std::int64_t>(statistics.flows)),
              human(statistics.bytes) + " in all"});
  totals.add({"makespan", human(statistics.makespan), "first start to last end"});
  totals.add({"completion", human(statistics.mean), "mean"});
  totals.add({"", human(statistics.p50), "median"});
  totals.add({"", human(statistics.p99), "99th percentile"});
  totals.add({"", human(statistics.longest), "longest"});
  Table slowest({{"slowest"}, {"from rank"}, {"to rank"}, {"size"}, {"start"}, {"took"}, {"GB/s"}});
  for (const std::size_t i : slowest_flows(result.flows, kSlowest)) {
    const FlowResult& flow = result.flows[i];
    slowest.add({fmt::format("#{}", i), std::to_string(flow.from), std::to_string(flow.to),
                 human(flow.size), human(flow.start), human(flow.end - flow.start),
                 fmt::format("{:.2f}", rate_gbps(flow))});
  }
  return heading("Traffic", style) + totals.text() + slowest.text();
}

}  // namespace railyard::cli
