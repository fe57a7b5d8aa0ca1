#include "tools/cli/result_kv.h"

#include <fmt/format.h>

#include "tools/cli/format.h"

namespace railyard::cli {
namespace {

Json quantiles(const scenarios::Quantiles& times) {
  return {{"p50_us", exact_us(times.p50)},
          {"p90_us", exact_us(times.p90)},
          {"p99_us", exact_us(times.p99)},
          {"mean_us", exact_us(times.mean)}};
}

}  // namespace

void add_kv(Json& out, const scenarios::KvResult& kv) {
  Json pools = Json::array();
  for (const scenarios::KvPoolRow& row : kv.pools)
    pools.push_back({{"instance", row.what}, {"utilization", row.utilization}});
  out["kv"] = {{"model", kv.model},
               {"mode", kv.mode},
               {"backend", kv.backend},
               {"requests", kv.requests.size()},
               {"requests_per_second", kv.requests_per_second},
               {"output_tokens_per_second", kv.output_tokens_per_second},
               {"moved_bytes", kv.moved.raw()},
               {"descriptors", kv.descriptors},
               {"transfer_gb_per_s", kv.transfer_gb_per_s},
               {"decode_steps", kv.decode_steps},
               {"ttft", quantiles(kv.ttft)},
               {"queue", quantiles(kv.queue)},
               {"prefill", quantiles(kv.prefill)},
               {"blocks", quantiles(kv.blocks)},
               {"transfer", quantiles(kv.transfer)},
               {"first_step", quantiles(kv.first_step)},
               {"tpot", quantiles(kv.tpot)},
               {"end_to_end", quantiles(kv.end_to_end)},
               {"transfer_alone", quantiles(kv.transfer_alone)},
               {"pools", std::move(pools)}};
}

std::string requests_csv(const scenarios::KvResult& kv) {
  std::string text =
      "arrival_us,input_tokens,output_tokens,prefill_instance,decode_instance,queue_us,prefill_us,"
      "blocks_us,transfer_us,first_step_us,ttft_us,tpot_us,end_to_end_us,transfer_alone_us,"
      "moved_bytes,descriptors\n";
  const auto us = [](sim::Duration time) { return static_cast<double>(time.count()) * 1e-6; };
  for (const scenarios::KvRequestRow& row : kv.requests)
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", us(row.arrival), row.input_tokens,
        row.output_tokens, row.prefill_instance, row.decode_instance, us(row.queue),
        us(row.prefill), us(row.blocks), us(row.transfer), us(row.first_step), us(row.ttft),
        us(row.tpot), us(row.end_to_end), us(row.transfer_alone), row.moved.raw(), row.descriptors);
  return text;
}

}  // namespace railyard::cli
