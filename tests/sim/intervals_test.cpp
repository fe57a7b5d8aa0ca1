#include "sim/intervals.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <vector>

using railyard::sim::Interval;
using railyard::sim::length;
using railyard::sim::uncovered;
using railyard::sim::united;

namespace {
using Set = std::vector<Interval<std::int64_t>>;
}

TEST_CASE("intervals: a union joins what touches and drops what is empty") {
  CHECK(united(Set{{5, 7}, {1, 3}, {3, 4}, {9, 9}, {6, 8}, {12, 10}}) == Set{{1, 4}, {5, 8}});
  CHECK(length(Set{{1, 4}, {5, 8}}) == 6);
  CHECK(united(Set{}).empty());
}

TEST_CASE("intervals: what a set leaves uncovered") {
  const Set cover{{1, 4}, {5, 8}};
  CHECK(uncovered(Interval<std::int64_t>{0, 10}, cover) == 4);
  CHECK(uncovered(Interval<std::int64_t>{2, 3}, cover) == 0);
  CHECK(uncovered(Interval<std::int64_t>{8, 9}, cover) == 1);
  CHECK(uncovered(Set{{0, 2}, {7, 9}}, cover) == 2);
  CHECK(uncovered(cover, Set{}) == 6);
}

// Against counting unit by unit.
TEST_CASE("intervals: random sets") {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
    const auto draw = [&] {
      Set parts;
      for (std::int64_t i = below(8); i > 0; --i) {
        const std::int64_t start = below(40);
        parts.push_back({start, start + below(10)});
      }
      return parts;
    };
    const auto within = [](const Set& parts, std::int64_t at) {
      for (const auto& each : parts)
        if (each.start <= at && at < each.end) return true;
      return false;
    };
    const Set a = draw();
    const Set b = draw();
    std::int64_t all = 0;
    std::int64_t alone = 0;
    for (std::int64_t at = 0; at < 60; ++at) {
      all += within(a, at) ? 1 : 0;
      alone += within(a, at) && !within(b, at) ? 1 : 0;
    }
    CHECK(length(united(a)) == all);
    CHECK(uncovered(united(a), united(b)) == alone);
  }
}
