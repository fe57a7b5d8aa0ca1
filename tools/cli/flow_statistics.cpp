#include "tools/cli/flow_statistics.h"

#include <algorithm>
#include <numeric>

namespace railyard::cli {
namespace {

using scenarios::FlowResult;

sim::Duration nearest_rank(const std::vector<sim::Duration>& sorted, std::size_t hundredths) {
  const std::size_t rank = (sorted.size() * hundredths + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

FlowStatistics flow_statistics(const std::vector<FlowResult>& flows) {
  FlowStatistics out;
  if (flows.empty()) return out;
  std::vector<sim::Duration> times;
  sim::Int128 sum = 0;
  sim::Duration first = flows.front().start;
  sim::Duration last = flows.front().end;
  for (const FlowResult& flow : flows) {
    times.push_back(flow.end - flow.start);
    sum += times.back().count();
    first = std::min(first, flow.start);
    last = std::max(last, flow.end);
    out.bytes += flow.size;
  }
  std::sort(times.begin(), times.end());
  const auto n = static_cast<sim::Int128>(flows.size());
  out.flows = flows.size();
  out.makespan = last - first;
  out.mean = sim::Duration(static_cast<std::int64_t>((sum + n / 2) / n));
  out.p50 = nearest_rank(times, 50);
  out.p99 = nearest_rank(times, 99);
  out.longest = times.back();
  return out;
}

std::vector<std::size_t> slowest_flows(const std::vector<FlowResult>& flows, std::size_t n) {
  std::vector<std::size_t> order(flows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t kept = std::min(n, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      const auto length_a = flows[a].end - flows[a].start;
                      const auto length_b = flows[b].end - flows[b].start;
                      return length_a != length_b ? length_a > length_b : a < b;
                    });
  order.resize(kept);
  return order;
}

}  // namespace railyard::cli
