#include "scenarios/kv_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard::scenarios {
namespace {

constexpr sim::Duration kNone{};

Quantiles quantiles(const std::vector<KvRequestRow>& rows, sim::Duration KvRequestRow::*what) {
  Quantiles out;
  std::vector<sim::Duration> times;
  sim::Int128 sum = 0;
  for (const KvRequestRow& row : rows) {
    times.push_back(row.*what);
    sum += (row.*what).count();
  }
  std::ranges::sort(times);
  const auto at = [&](std::size_t percent) {
    return times[std::max<std::size_t>((times.size() * percent + 99) / 100, 1) - 1];
  };
  out.p50 = at(50);
  out.p90 = at(90);
  out.p99 = at(99);
  out.mean = sim::Duration(static_cast<std::int64_t>(sum / static_cast<std::int64_t>(rows.size())));
  return out;
}

KvRequestRow row_of(const models::KvRequest& request, const models::RequestTimes& times) {
  KvRequestRow row;
  row.arrival = times.arrival.time_since_epoch();
  row.input_tokens = request.input_tokens;
  row.output_tokens = request.output_tokens;
  row.prefill_instance = times.prefill_instance;
  row.decode_instance = times.decode_instance;
  row.queue = times.prefill_start - times.arrival;
  row.prefill = times.prefill_end - times.prefill_start;
  row.blocks = std::max(kNone, times.transfer_start - times.prefill_end);
  row.transfer = times.transfer_end - std::max(times.transfer_start, times.prefill_end);
  row.first_step = times.first_token - times.transfer_end;
  row.ttft = times.first_token - times.arrival;
  if (request.output_tokens > 1)
    row.tpot = (times.end - times.first_token) / (request.output_tokens - 1);
  row.end_to_end = times.end - times.arrival;
  row.transfer_alone = times.transfer_end - times.transfer_start;
  row.setup = times.on_wire - times.transfer_start;
  row.wire = times.transfer_end - times.on_wire;
  row.posting = times.posting;
  row.moved = times.moved;
  row.descriptors = times.descriptors;
  return row;
}

double median_rate(const std::vector<KvRequestRow>& rows) {
  std::vector<double> rates;
  for (const KvRequestRow& row : rows) {
    const double seconds = sim::to_seconds(row.transfer_alone);
    if (seconds > 0) rates.push_back(static_cast<double>(row.moved.raw()) / seconds * 1e-9);
  }
  if (rates.empty()) return 0;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>((rates.size() - 1) / 2);
  std::ranges::nth_element(rates, middle);
  return *middle;
}

void add_quantiles(KvResult& out) {
  const auto of = [&](sim::Duration KvRequestRow::*what) { return quantiles(out.requests, what); };
  out.ttft = of(&KvRequestRow::ttft);
  out.queue = of(&KvRequestRow::queue);
  out.prefill = of(&KvRequestRow::prefill);
  out.blocks = of(&KvRequestRow::blocks);
  out.transfer = of(&KvRequestRow::transfer);
  out.first_step = of(&KvRequestRow::first_step);
  out.tpot = of(&KvRequestRow::tpot);
  out.end_to_end = of(&KvRequestRow::end_to_end);
  out.transfer_alone = of(&KvRequestRow::transfer_alone);
  out.setup = of(&KvRequestRow::setup);
  out.wire = of(&KvRequestRow::wire);
}

}  // namespace

void report_serving(const models::Serving& serving, const models::KvTransfers& transfers,
                    KvResult& out) {
  double tokens = 0;
  sim::Time first = sim::Time::max();
  sim::Time last{};
  for (std::size_t r = 0; r < serving.requests().size(); ++r) {
    const models::RequestTimes& times = serving.times()[r];
    out.requests.push_back(row_of(serving.requests()[r], times));
    out.moved += times.moved;
    out.descriptors += times.descriptors;
    tokens += static_cast<double>(serving.requests()[r].output_tokens);
    first = std::min(first, times.arrival);
    last = std::max(last, times.end);
  }
  add_quantiles(out);
  const double seconds = sim::to_seconds(last - first);
  out.requests_per_second = static_cast<double>(out.requests.size()) / seconds;
  out.output_tokens_per_second = tokens / seconds;
  out.transfer_gb_per_s = median_rate(out.requests);
  out.calls = transfers.calls();
  out.decode_steps = serving.decode_steps();
  out.mean_batch = serving.mean_batch();
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.prefill_instances); ++i)
    out.pools.push_back(
        {fmt::format("prefill {}", i), sim::to_seconds(serving.prefill_busy(i)) / seconds});
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.decode_instances); ++i)
    out.pools.push_back(
        {fmt::format("decode {}", i), sim::to_seconds(serving.decode_busy(i)) / seconds});
}

}  // namespace railyard::scenarios
