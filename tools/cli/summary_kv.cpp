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
  return heading("Latency", style) + table.text();
}

std::string transfers(const KvResult& kv, const SummaryStyle& style) {
  Table table({{"", Align::left}, {"median"}, {"p90"}, {"p99"}, {"mean"}, {"", Align::left}});
  add(table, "whole transfer", kv.transfer_alone, "with what prefill hides");
  add(table, "  setup", kv.setup, "thread, call, first contact, transfers before it");
  add(table, "  wire", kv.wire, "first byte to last, shared with everything else there");
  return heading("KV transfer of a request", style) + table.text();
}

std::string beside(const KvResult& kv, const SummaryStyle& style) {
  if (kv.beside.empty()) return "";
  Table table({{"collective", Align::left}, {"ranks"}, {"calls"}, {"alone"}, {"beside"}, {""}});
  for (const scenarios::KvBesideRow& row : kv.beside) {
    const double slower = row.calls > 0 && row.alone.count() > 0
                              ? sim::to_seconds(row.mean) / sim::to_seconds(row.alone) - 1
                              : 0;
    table.add({row.what, std::to_string(row.ranks), count(row.calls), human(row.alone),
               row.calls > 0 ? human(row.mean) : "-", change(slower)});
  }
  return heading("Collectives beside the serving (mean time of a call)", style) + table.text();
}

std::string pools(const KvResult& kv, const SummaryStyle& style) {
  Table table({{"instance", Align::left}, {"busy"}});
  for (const scenarios::KvPoolRow& row : kv.pools) table.add({row.what, percent(row.utilization)});
  return heading("Pools", style) + table.text();
}

}  // namespace

std::string summary_kv(const KvResult& kv, const SummaryStyle& style) {
  const auto requests = static_cast<std::int64_t>(kv.requests.size());
  std::string text =
      fmt::format("{}: {} x TP{} prefill, {} x TP{} decode; KV cache by {}\n{}: {}\n", kv.model,
                  kv.prefill_instances, kv.prefill_ranks, kv.decode_instances, kv.decode_ranks,
                  kv.mode, kv.library, kv.backends);
  text += fmt::format(
      "{} requests, {} requests/s, {} output tokens/s; {:.1f} sequences in a decode step\n",
      count(requests), digits(kv.requests_per_second), digits(kv.output_tokens_per_second),
      kv.mean_batch);
  text += fmt::format(
      "KV cache: {} per token, {} of them on each prefill rank;\n"
      "an instance holds {} tokens (prefill), {} (decode)\n",
      human(kv.token), human(kv.token_of_rank), count(kv.prefill_capacity),
      count(kv.decode_capacity));
  text += fmt::format(
      "moved {} in {} calls with {} descriptors ({} per request),\n"
      "{:.1f} GB/s in the median transfer\n",
      human(kv.moved), count(kv.calls), count(kv.descriptors),
      count(kv.descriptors / std::max<std::int64_t>(requests, 1)), kv.transfer_gb_per_s);
  text +=
      fmt::format("registered once before the first request: {} in {} regions per rank, about {}\n",
                  human(kv.registered), count(kv.registered_regions), human(kv.registration));
  text += latencies(kv, style);
  text += transfers(kv, style);
  text += beside(kv, style);
  text += pools(kv, style);
  return text;
}

}  // namespace railyard::cli
