// A data-parallel training step on the terminal.
#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/format.h"
#include "tools/cli/summary.h"
#include "tools/cli/table.h"

namespace railyard::cli {
namespace {

using scenarios::BucketRow;
using scenarios::DdpResult;

constexpr std::size_t kLongList = 64;  // buckets; of a longer list both ends are shown
constexpr std::size_t kShownEnds = 16;

double share(sim::Duration part, sim::Duration whole) {
  return whole.count() == 0
             ? 0
             : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

// One unit for a column of times, so that they can be compared at a glance.
struct TimeUnit {
  std::string_view name;
  double picoseconds;
  [[nodiscard]] std::string operator()(sim::Duration time) const {
    return fmt::format("{:.3f}", static_cast<double>(time.count()) / picoseconds);
  }
};
TimeUnit unit_for(sim::Duration longest) {
  return longest.count() < 1'000'000'000 ? TimeUnit{"us", 1e6} : TimeUnit{"ms", 1e9};
}

std::string exposed_text(const DdpResult& ddp) {
  std::string text = fmt::format("{} of the step", percent(share(ddp.exposed, ddp.step_time)));
  if (ddp.exposing_bucket >= 0)
    text += fmt::format(", the largest part by bucket {}", ddp.exposing_bucket);
  return text;
}

std::string compute_text(const DdpResult& ddp) {
  std::string text = percent(share(ddp.compute, ddp.step_time)) + " of the step";
  const double slower = share(ddp.compute, ddp.compute_alone) - 1;
  if (ddp.compute_alone.count() > 0 && slower >= 0.0005)
    text += fmt::format("; {} slower than without communication", percent(slower));
  return text;
}

std::string totals(const DdpResult& ddp) {
  Table table({{"", Align::left}, {""}, {"", Align::left}});
  table.add(
      {"Step time", human(ddp.step_time),
       fmt::format("{} samples/s, bound by {}", digits(ddp.samples_per_second), ddp.bound_by)});
  table.add({"  forward", human(ddp.forward), ""});
  table.add({"  backward", human(ddp.backward), ""});
  table.add({"  the rest", human(ddp.after_backward), "reductions still under way, optimizer"});
  table.add({"", "", ""});
  table.add({"  compute", human(ddp.compute), compute_text(ddp)});
  table.add(
      {"  communication", human(ddp.communication),
       fmt::format("{} of it behind compute", percent(1 - share(ddp.exposed, ddp.communication)))});
  table.add({"    exposed", human(ddp.exposed), exposed_text(ddp)});
  const sim::Duration rest = ddp.step_time - ddp.compute - ddp.exposed;
  if (rest.count() > 0)
    table.add({"  neither", human(rest), "launches, host work, gaps between kernels"});
  return table.text("");
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

std::vector<std::string> cells(const BucketRow& bucket, std::size_t index, const TimeUnit& unit) {
  return {std::to_string(index),
          human(bucket.size),
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
  const bool all = style.full || n <= kLongList;
  for (std::size_t i = 0; i < n; ++i) {
    if (!all && i == kShownEnds) {
      table.add({"...", "", "", "", "", "", "", "", "", ""});
      i = n - kShownEnds;
    }
    table.add(cells(ddp.buckets[i], i, unit));
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
