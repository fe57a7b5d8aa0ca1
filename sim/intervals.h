// Sets of disjoint intervals of time: how long something was going on, and how much of that while
// something else was. T is a point in time of any kind: Time, or a trace's nanoseconds.
#pragma once

#include <algorithm>
#include <vector>

namespace railyard::sim {

template <typename T>
struct Interval {
  T start{};
  T end{};
  friend bool operator==(const Interval&, const Interval&) = default;
};

// The union as disjoint intervals, ascending, without empty ones. O(n log n).
template <typename T>
std::vector<Interval<T>> united(std::vector<Interval<T>> parts) {
  std::ranges::sort(parts, {}, &Interval<T>::start);
  std::vector<Interval<T>> out;
  for (const Interval<T>& each : parts) {
    if (each.end <= each.start) continue;
    if (out.empty() || each.start > out.back().end)
      out.push_back(each);
    else
      out.back().end = std::max(out.back().end, each.end);
  }
  return out;
}

template <typename T>
auto length(const std::vector<Interval<T>>& disjoint) {
  decltype(T{} - T{}) sum{};
  for (const Interval<T>& each : disjoint) sum += each.end - each.start;
  return sum;
}

// Of `inner`, what no interval of a disjoint, ascending set covers. O(log n + those it meets).
template <typename T>
auto uncovered(const Interval<T>& inner, const std::vector<Interval<T>>& cover) {
  auto left = inner.end - inner.start;
  auto each = std::ranges::lower_bound(cover, inner.start, {}, &Interval<T>::end);
  for (; each != cover.end() && each->start < inner.end; ++each) {
    const T start = std::max(each->start, inner.start);
    const T end = std::min(each->end, inner.end);
    if (end > start) left -= end - start;
  }
  return left;
}

// Of a disjoint set, what another one does not cover.
template <typename T>
auto uncovered(const std::vector<Interval<T>>& inner, const std::vector<Interval<T>>& cover) {
  decltype(T{} - T{}) sum{};
  for (const Interval<T>& each : inner) sum += uncovered(each, cover);
  return sum;
}

}  // namespace railyard::sim
