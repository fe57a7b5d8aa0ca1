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
  Json beside = Json::array();
  for (const scenarios::KvBesideRow& row : kv.beside)
    beside.push_back({{"collective", row.what},
                      {"ranks", row.ranks},
                      {"calls", row.calls},
                      {"mean_us", exact_us(row.mean)},
                      {"alone_us", exact_us(row.alone)}});
  out["kv"] = {{"model", kv.model},
               {"mode", kv.mode},
               {"library", kv.library},
               {"backends", kv.backends},
               {"prefill_instances", kv.prefill_instances},
               {"prefill_tensor_parallel", kv.prefill_ranks},
               {"decode_instances", kv.decode_instances},
               {"decode_tensor_parallel", kv.decode_ranks},
               {"prefill_capacity_tokens", kv.prefill_capacity},
               {"decode_capacity_tokens", kv.decode_capacity},
               {"token_bytes", kv.token.raw()},
               {"token_bytes_per_rank", kv.token_of_rank.raw()},
               {"registered_bytes_per_rank", kv.registered.raw()},
               {"registered_regions_per_rank", kv.registered_regions},
               {"registration_us", exact_us(kv.registration)},
               {"requests", kv.requests.size()},
               {"requests_per_second", kv.requests_per_second},
               {"output_tokens_per_second", kv.output_tokens_per_second},
               {"moved_bytes", kv.moved.raw()},
               {"descriptors", kv.descriptors},
               {"calls", kv.calls},
               {"transfer_gb_per_s", kv.transfer_gb_per_s},
               {"decode_steps", kv.decode_steps},
               {"mean_batch", kv.mean_batch},
               {"ttft", quantiles(kv.ttft)},
               {"queue", quantiles(kv.queue)},
               {"prefill", quantiles(kv.prefill)},
               {"blocks", quantiles(kv.blocks)},
               {"transfer", quantiles(kv.transfer)},
               {"first_step", quantiles(kv.first_step)},
               {"tpot", quantiles(kv.tpot)},
               {"end_to_end", quantiles(kv.end_to_end)},
               {"transfer_alone", quantiles(kv.transfer_alone)},
               {"setup", quantiles(kv.setup)},
               {"wire", quantiles(kv.wire)},
               {"pools", std::move(pools)},
               {"beside", std::move(beside)}};
}

std::string requests_csv(const scenarios::KvResult& kv) {
  std::string text =
      "arrival_us,input_tokens,output_tokens,prefill_instance,decode_instance,queue_us,prefill_us,"
      "blocks_us,transfer_us,first_step_us,ttft_us,tpot_us,end_to_end_us,transfer_alone_us,"
      "setup_us,wire_us,posting_us,moved_bytes,descriptors\n";
  const auto us = [](sim::Duration time) { return fmt::format("{}", exact_us(time)); };
  for (const scenarios::KvRequestRow& row : kv.requests) {
    text += fmt::format("{},{},{},{},{}", us(row.arrival), row.input_tokens, row.output_tokens,
                        row.prefill_instance, row.decode_instance);
    for (const sim::Duration time :
         {row.queue, row.prefill, row.blocks, row.transfer, row.first_step, row.ttft, row.tpot,
          row.end_to_end, row.transfer_alone, row.setup, row.wire, row.posting})
      text += "," + us(time);
    text += fmt::format(",{},{}\n", row.moved.raw(), row.descriptors);
  }
  return text;
}

}  // namespace railyard::cli
