#include "calibrate/traces/intervals.h"

#include <algorithm>

namespace railyard::calibrate {

std::vector<Span> united(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.start_ns < b.start_ns; });
  std::vector<Span> out;
  for (const Span& each : spans) {
    if (each.end_ns <= each.start_ns) continue;
    if (out.empty() || each.start_ns > out.back().end_ns)
      out.push_back(each);
    else
      out.back().end_ns = std::max(out.back().end_ns, each.end_ns);
  }
  return out;
}

std::int64_t length(const std::vector<Span>& disjoint) {
  std::int64_t sum = 0;
  for (const Span& each : disjoint) sum += each.end_ns - each.start_ns;
  return sum;
}

std::int64_t common(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::int64_t start = std::max(a[i].start_ns, b[j].start_ns);
    const std::int64_t end = std::min(a[i].end_ns, b[j].end_ns);
    if (end > start) sum += end - start;
    if (a[i].end_ns < b[j].end_ns)
      ++i;
    else
      ++j;
  }
  return sum;
}

}  // namespace railyard::calibrate
