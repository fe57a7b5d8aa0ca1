#include "calibrate/probes/common/stats.h"

#include <algorithm>
#include <cmath>

namespace railyard::probe {
namespace {

double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double fraction = position - static_cast<double>(below);
  return sorted[below] + fraction * (sorted[above] - sorted[below]);
}

}  // namespace

Summary summarize(std::vector<double> samples) {
  Summary summary;
  if (samples.empty()) return summary;
  std::sort(samples.begin(), samples.end());
  summary.median = quantile(samples, 0.5);
  summary.p10 = quantile(samples, 0.1);
  summary.p90 = quantile(samples, 0.9);
  summary.min = samples.front();
  summary.max = samples.back();
  summary.count = static_cast<std::int64_t>(samples.size());
  return summary;
}

std::optional<LineFit> fit_line(const std::vector<TimedBytes>& points) {
  double uu = 0, uv = 0, vv = 0, su = 0, sv = 0;
  bool different = false;
  LineFit fit;
  for (const TimedBytes& point : points) {
    if (point.time_us <= 0) continue;
    const double u = 1 / point.time_us, v = point.bytes / point.time_us;
    uu += u * u, uv += u * v, vv += v * v, su += u, sv += v;
    different = different || point.bytes != points.front().bytes;
    ++fit.points;
  }
  if (!different || vv <= 0) return std::nullopt;
  const double determinant = uu * vv - uv * uv;
  double latency = determinant > 0 ? (su * vv - sv * uv) / determinant : 0;
  double per_byte = determinant > 0 ? (sv * uu - su * uv) / determinant : sv / vv;
  if (latency < 0) latency = 0, per_byte = sv / vv;
  if (per_byte <= 0) return std::nullopt;
  fit.latency_us = latency;
  fit.bytes_per_second = 1e6 / per_byte;
  for (const TimedBytes& point : points) {
    if (point.time_us <= 0) continue;
    const double model = latency + per_byte * point.bytes;
    fit.worst_error = std::max(fit.worst_error, std::abs(model / point.time_us - 1));
  }
  return fit;
}

}  // namespace railyard::probe
