#include "calibrate/traces/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "sim/collective.h"
#include "sim/intervals.h"

namespace railyard::calibrate {
namespace {

void measure(const GpuTrace& trace, TraceStep& step) {
  using Span = sim::Interval<std::int64_t>;  // ns
  std::vector<Span> compute, communication, all;
  for (std::size_t i = step.first; i < step.last; ++i) {
    const Activity& each = trace.activities[i];
    const Span span{each.start_ns, each.end_ns};
    (each.kind == ActivityKind::collective ? communication : compute).push_back(span);
    all.push_back(span);
  }
  compute = sim::united(std::move(compute));
  communication = sim::united(std::move(communication));
  step.compute_ns = sim::length(compute);
  step.communication_ns = sim::length(communication);
  step.exposed_ns = sim::uncovered(communication, compute);
  step.overlap_ns = step.communication_ns - step.exposed_ns;
  step.idle_ns =
      std::max<std::int64_t>(0, step.duration_ns() - sim::length(sim::united(std::move(all))));
}

std::size_t first_from(const GpuTrace& trace, std::int64_t ns) {
  const auto at = std::partition_point(trace.activities.begin(), trace.activities.end(),
                                       [&](const Activity& a) { return a.issued_ns() < ns; });
  return static_cast<std::size_t>(at - trace.activities.begin());
}

TraceSteps profiler_steps(const GpuTrace& trace) {
  TraceSteps out;
  out.source = StepSource::profiler;
  for (const KinetoStep& each : trace.facts.steps) {
    if (!out.steps.empty()) {
      if (out.steps.back().start_ns == each.start_ns) continue;  // the same on another thread
      out.steps.back().end_ns = each.start_ns;
    }
    TraceStep step;
    step.name = each.name;
    step.start_ns = each.start_ns;
    step.end_ns = each.end_ns;
    out.steps.push_back(std::move(step));
  }
  std::erase_if(out.steps, [](const TraceStep& step) { return step.end_ns <= step.start_ns; });
  for (TraceStep& step : out.steps) {
    step.first = first_from(trace, step.start_ns);
    step.last = first_from(trace, step.end_ns);
  }
  return out;
}

std::int64_t last_end(const GpuTrace& trace) {
  std::int64_t end = trace.activities.front().end_ns;
  for (const Activity& each : trace.activities)
    end = std::max({end, each.end_ns, each.issued_ns()});
  return end;
}

std::vector<std::uint64_t> fingerprints(const GpuTrace& trace) {
  std::vector<std::uint64_t> out;
  for (const Activity& each : trace.activities) {
    std::uint64_t value = each.name;
    if (each.kind == ActivityKind::collective && !trace.facts.collectives.empty())
      value ^= static_cast<std::uint64_t>(trace.call(each).bytes.value_or(-1)) << 20U;
    out.push_back(value);
  }
  return out;
}

TraceSteps pattern_steps(const GpuTrace& trace) {
  TraceSteps out;
  const std::size_t period = period_of(fingerprints(trace));
  const std::size_t n = trace.activities.size();
  const std::size_t length = period == 0 ? n : period;
  out.source = period == 0 ? StepSource::whole : StepSource::pattern;
  for (std::size_t first = 0; first < n; first += length) {
    if (period != 0 && first + length > n) break;  // the last one is not whole
    TraceStep step;
    step.name = period == 0 ? "whole trace" : fmt::format("iteration {}", out.steps.size() + 1);
    step.first = first;
    step.last = first + length;
    step.start_ns = trace.activities[first].issued_ns();
    step.end_ns = step.last < n ? trace.activities[step.last].issued_ns() : last_end(trace);
    out.steps.push_back(std::move(step));
  }
  return out;
}

std::size_t collectives_of(const GpuTrace& trace, const TraceStep& step) {
  const auto begin = trace.activities.begin();
  return static_cast<std::size_t>(
      std::count_if(begin + static_cast<std::ptrdiff_t>(step.first),
                    begin + static_cast<std::ptrdiff_t>(step.last),
                    [](const Activity& a) { return a.kind == ActivityKind::collective; }));
}

double busbw_of(const KinetoCollective& call, std::int64_t ns) {
  if (!call.collective || !call.bytes || call.group_size < 2 || ns <= 0) return 0;
  return static_cast<double>(*call.bytes) / static_cast<double>(ns) *
         sim::bus_bandwidth_factor(*call.collective, static_cast<std::size_t>(call.group_size));
}

}  // namespace

std::size_t period_of(const std::vector<std::uint64_t>& sequence) {
  const std::size_t n = sequence.size();
  if (n < 2) return 0;
  std::vector<std::size_t> border(n, 0);  // of the prefix that ends here: Knuth, Morris, Pratt
  for (std::size_t i = 1, k = 0; i < n; ++i) {
    while (k > 0 && sequence[i] != sequence[k]) k = border[k - 1];
    if (sequence[i] == sequence[k]) ++k;
    border[i] = k;
  }
  const std::size_t period = n - border.back();
  return 2 * period <= n ? period : 0;
}

TraceSteps find_steps(const GpuTrace& trace) {
  TraceSteps out = profiler_steps(trace);
  if (out.steps.empty()) out = pattern_steps(trace);
  for (TraceStep& step : out.steps) measure(trace, step);
  return out;
}

const TraceStep& TraceSteps::typical(const GpuTrace& trace) const {
  std::vector<std::pair<std::size_t, const TraceStep*>> all;
  for (const TraceStep& step : steps) all.emplace_back(collectives_of(trace, step), &step);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const std::size_t usual = all[all.size() / 2].first;
  std::erase_if(all, [&](const auto& each) { return each.first != usual; });
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->duration_ns(), a.second->start_ns) <
           std::pair(b.second->duration_ns(), b.second->start_ns);
  });
  return *all[(all.size() - 1) / 2].second;
}

std::vector<CollectiveRow> collective_rows(const GpuTrace& trace) {
  using Key = std::tuple<std::string, std::string, std::int64_t, std::string, std::int64_t>;
  std::map<Key, std::size_t> row_of;
  std::vector<CollectiveRow> rows;
  std::vector<std::vector<std::int64_t>> times;
  std::vector<const KinetoCollective*> examples;
  for (const KinetoCollective& call : trace.facts.collectives) {
    CollectiveRow row;
    row.name = call.name.empty() ? call.kernel : call.name;
    row.group = call.group;
    row.ranks = call.group_size;
    row.bytes = call.bytes.value_or(-1);
    row.dtype = call.dtype;
    const auto [place, added] =
        row_of.emplace(Key(row.name, row.group, row.bytes, row.dtype, row.ranks), rows.size());
    if (added) {
      rows.push_back(std::move(row));
      times.emplace_back();
      examples.push_back(&call);
    }
    times[place->second].push_back(call.end_ns - call.start_ns);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    rows[i].count = times[i].size();
    for (const std::int64_t ns : times[i]) rows[i].total_ns += ns;
    rows[i].shortest_ns = times[i].front();
    rows[i].median_ns = times[i][(times[i].size() - 1) / 2];
    rows[i].busbw = busbw_of(*examples[i], rows[i].shortest_ns);
  }
  return rows;
}

}  // namespace railyard::calibrate
