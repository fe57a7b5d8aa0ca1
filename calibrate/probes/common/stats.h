// Summaries of repeated measurements, and the straight line through them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace railyard::probe {

// Quantiles are interpolated between order statistics (position q (n - 1), as NumPy does), so one
// odd sample moves none of them by itself.
struct Summary {
  double median = 0, p10 = 0, p90 = 0, min = 0, max = 0;
  std::int64_t count = 0;
};

Summary summarize(std::vector<double> samples);  // of nothing: count 0

// time(bytes) = latency_us + bytes / bandwidth, over points of very different size.
//
// The sum of squared *relative* errors is least, so that a 10 % error weighs the same at 1 KB and
// at 1 GB: with u = 1/t and v = n/t, minimise sum (1 - a u - b v)^2, whose normal equations are
//   a S(uu) + b S(uv) = S(u),   a S(uv) + b S(vv) = S(v).
// A negative latency has no meaning: then a = 0 and b = S(v) / S(vv).
struct LineFit {
  double latency_us = 0;
  double bytes_per_second = 0;
  double worst_error = 0;  // largest |model / measured - 1|
  std::int64_t points = 0;
};

struct TimedBytes {
  double bytes, time_us;
};

// Nothing with fewer than two different sizes, or when no positive bandwidth explains the points.
std::optional<LineFit> fit_line(const std::vector<TimedBytes>& points);

}  // namespace railyard::probe
