// Sets of disjoint intervals of nanoseconds: how long something was going on, and how much of that
// time something else was.
#pragma once

#include <cstdint>
#include <vector>

namespace railyard::calibrate {

struct Span {
  std::int64_t start_ns = 0, end_ns = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

// The union as disjoint spans, ascending, without empty ones. O(n log n).
std::vector<Span> united(std::vector<Span> spans);
std::int64_t length(const std::vector<Span>& disjoint);
// Length of the common part of two such sets. O(n + m).
std::int64_t common(const std::vector<Span>& a, const std::vector<Span>& b);

}  // namespace railyard::calibrate
