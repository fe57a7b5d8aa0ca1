#include "calibrate/validation/score.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace railyard::calibrate {
namespace {

constexpr std::int64_t kSmall = 64 * 1024;
constexpr std::int64_t kLarge = 16 * 1024 * 1024;
constexpr double kAboveNeighbours = 1.3;
constexpr double kAboveOther = 1.25;

const MeasuredRow* row_of(const std::vector<MeasuredRow>& rows, sim::Bytes size) {
  const auto found = std::ranges::find(rows, size, &MeasuredRow::size);
  return found == rows.end() ? nullptr : &*found;
}

bool is_spike(const std::vector<MeasuredRow>& rows, std::size_t i,
              const std::vector<MeasuredRow>& other) {
  const MeasuredRow* partner = row_of(other, rows[i].size);
  if (partner == nullptr || rows.size() < 2) return false;
  if (rows[i].time_us <= kAboveOther * partner->time_us) return false;
  const bool above_before = i == 0 || rows[i].time_us > kAboveNeighbours * rows[i - 1].time_us;
  const bool above_after =
      i + 1 == rows.size() || rows[i].time_us > kAboveNeighbours * rows[i + 1].time_us;
  return above_before && above_after;
}

}  // namespace

Band band_of(sim::Bytes size) {
  if (size.raw() < kSmall) return Band::small;
  return size.raw() <= kLarge ? Band::medium : Band::large;
}

std::vector<std::size_t> spikes(const std::vector<MeasuredRow>& rows,
                                const std::vector<MeasuredRow>& other) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (is_spike(rows, i, other)) found.push_back(i);
  return found;
}

std::vector<std::pair<sim::Bytes, double>> column_noise(const MeasuredRun& run) {
  const std::vector<std::size_t> out = spikes(run.rows, run.rows_in_place);
  const std::vector<std::size_t> in = spikes(run.rows_in_place, run.rows);
  std::vector<std::pair<sim::Bytes, double>> noise;
  for (std::size_t i = 0; i < run.rows.size(); ++i) {
    const MeasuredRow* partner = row_of(run.rows_in_place, run.rows[i].size);
    if (partner == nullptr || std::ranges::find(out, i) != out.end()) continue;
    const auto at = static_cast<std::size_t>(partner - run.rows_in_place.data());
    if (std::ranges::find(in, at) != in.end()) continue;
    noise.emplace_back(run.rows[i].size, std::abs(partner->time_us / run.rows[i].time_us - 1));
  }
  return noise;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

ErrorSummary summarize(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  return {errors.size(), quantile(errors, 0.5), quantile(errors, 0.9),
          *std::ranges::max_element(errors)};
}

}  // namespace railyard::calibrate
