// A data-parallel training step on the terminal.
#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/format.h"
#include "tools/cli/step_table.h"
#include "tools/cli/summary.h"
#include "tools/cli/table.h"

namespace railyard::cli {
namespace {

using scenarios::BucketRow;
using scenarios::DdpResult;

constexpr std::size_t kLongList = 64;  // buckets; of a longer list both ends are shown
constexpr std::size_t kShownEnds = 16;

std::string totals(const DdpResult& ddp) {
  std::string exposing;
  if (ddp.exposing_bucket >= 0)
    exposing = fmt::format(", the largest part by bucket {}", ddp.exposing_bucket);
  return step_table(ddp, exposing, "reductions still under way, optimizer");
}

std::string iteration_role(const DdpResult& ddp, std::size_t index) {
  const int number = static_cast<int>(index) + 1;
  if (!ddp.rebuild_before_iteration) return number == 1 ? "first" : "";
  if (number < *ddp.rebuild_before_iteration) return "before the buckets are rebuilt";
  if (number == *ddp.rebuild_before_iteration) return "buckets rebuilt before it";
  return "";
}

std::string iterations(const DdpResult& ddp, const SummaryStyle& style) {
  if (ddp.iterations.empty()) return "";
  Table table({{""}, {""}, {""}, {"", Align::left}});
  for (std::size_t i = 0; i < ddp.iterations.size(); ++i) {
    std::string role = iteration_role(ddp, i);
    if (i + 1 == ddp.iterations.size()) role += role.empty() ? "steady" : "; taken as steady";
    const std::size_t buckets = i < ddp.bucket_bytes.size() ? ddp.bucket_bytes[i].size() : 0;
    table.add({std::to_string(i + 1), human(ddp.iterations[i]),
               fmt::format("{} bucket{}", buckets, buckets == 1 ? "" : "s"), role});
  }
  return heading("Iterations", style) + table.text();
}

std::vector<std::string> cells(const BucketRow& bucket, std::size_t index, const TimeUnit& unit,
                               bool compressed) {
  return {std::to_string(index),
          compressed ? fmt::format("{} as {}", human(bucket.size), human(bucket.sent))
                     : human(bucket.size),
          std::to_string(bucket.parameters),
          unit(bucket.ready),
          unit(bucket.start),
          unit(bucket.end),
          fmt::format("{} {}", sim::to_text(bucket.algorithm), sim::to_text(bucket.protocol)),
          std::to_string(bucket.channels),
          fmt::format("{:.2f}", bucket.busbw),
          unit(bucket.exposed)};
}

std::string buckets(const DdpResult& ddp, const SummaryStyle& style) {
  if (ddp.buckets.empty()) return "";
  const TimeUnit unit = unit_for(ddp.step_time);
  const auto titled = [&](std::string_view what) { return fmt::format("{} {}", what, unit.name); };
  Table table({{"#"},
               {"size"},
               {"tensors"},
               {titled("ready")},
               {titled("start")},
               {titled("end")},
               {"algorithm", Align::left},
               {"ch"},
               {"busbw GB/s"},
               {titled("exposed")}});
  const std::size_t n = ddp.buckets.size();
  const bool compressed =
      std::ranges::any_of(ddp.buckets, [](const BucketRow& row) { return row.sent != row.size; });
  const bool all = style.full || n <= kLongList;
  for (std::size_t i = 0; i < n; ++i) {
    if (!all && i == kShownEnds) {
      table.add({"...", "", "", "", "", "", "", "", "", ""});
      i = n - kShownEnds;
    }
    table.add(cells(ddp.buckets[i], i, unit, compressed));
  }
  std::string text =
      heading("Gradient buckets of the steady iteration, times from its start", style) +
      table.text();
  if (!all)
    text +=
        fmt::format("  {} of {} buckets are not shown: --full shows all\n", n - 2 * kShownEnds, n);
  return text;
}

}  // namespace

std::string summary_ddp(const DdpResult& ddp, const SummaryStyle& style) {
  std::string text = fmt::format("{}, {} parameters\n\n", ddp.model, count(ddp.model_parameters));
  text += totals(ddp);
  text += iterations(ddp, style);
  text += buckets(ddp, style);
  return text;
}

}  // namespace railyard::cli
