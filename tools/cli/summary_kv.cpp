// Disaggregated serving on the terminal.
#include <fmt/format.h>

#include "scenarios/kv_result.h"
#include "tools/cli/format.h"
#include "tools/cli/summary.h"
#include "tools/cli/table.h"

namespace railyard::cli {
namespace {

using scenarios::KvResult;
using scenarios::Quantiles;

void add(Table& table, std::string_view what, const Quantiles& times, std::string_view note) {
  table.add({std::string(what), human(times.p50), human(times.p90), human(times.p99),
             human(times.mean), std::string(note)});
}

std::string latencies(const KvResult& kv, const SummaryStyle& style) {
  Table table({{"", Align::left}, {"median"}, {"p90"}, {"p99"}, {"mean"}, {"", Align::left}});
  add(table, "time to first token", kv.ttft, "from arrival");
  add(table, "  queue", kv.queue, "for a prefill instance");
  add(table, "  prefill", kv.prefill, "");
  add(table, "  KV blocks", kv.blocks, "waited for room in the decode pool");
  add(table, "  KV transfer", kv.transfer, "behind prefill");
  add(table, "  first step", kv.first_step, "in the decode pool");
  add(table, "time per output token", kv.tpot, "after the first");
  add(table, "end to end", kv.end_to_end, "");
  add(table, "KV transfer, all of it", kv.transfer_alone, "with what prefill hides");
  return heading("Latency", style) + table.text();
}

std::string pools(const KvResult& kv, const SummaryStyle& style) {
  Table table({{"instance", Align::left}, {"busy"}});
  for (const scenarios::KvPoolRow& row : kv.pools) table.add({row.what, percent(row.utilization)});
  return heading("Pools", style) + table.text();
}

}  // namespace

std::string summary_kv(const KvResult& kv, const SummaryStyle& style) {
  const auto requests = static_cast<std::int64_t>(kv.requests.size());
  std::string text = fmt::format("{}: {} x TP{} prefill, {} x TP{} decode; KV cache by {} ({})\n",
                                 kv.model, kv.prefill_instances, kv.prefill_ranks,
                                 kv.decode_instances, kv.decode_ranks, kv.mode, kv.backend);
  text += fmt::format("{} requests, {} requests/s, {} output tokens/s\n", count(requests),
                      digits(kv.requests_per_second), digits(kv.output_tokens_per_second));
  text += fmt::format("KV moved: {} in {} descriptors, {:.1f} GB/s in the median transfer\n",
                      human(kv.moved), count(kv.descriptors), kv.transfer_gb_per_s);
  text += fmt::format("KV cache of an instance: {} tokens (prefill), {} tokens (decode)\n",
                      count(kv.prefill_capacity), count(kv.decode_capacity));
  text += latencies(kv, style);
  text += pools(kv, style);
  return text;
}

}  // namespace railyard::cli
