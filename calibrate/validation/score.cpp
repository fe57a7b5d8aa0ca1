#include "calibrate/validation/score.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace railyard::calibrate {
namespace {

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

std::vector<std::size_t> spikes(const std::vector<MeasuredRow>& rows,
                                const std::vector<MeasuredRow>& other) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (is_spike(rows, i, other)) found.push_back(i);
  return found;
}

std::vector<std::pair<sim::Bytes, double>> column_noise(const std::vector<MeasuredRow>& out,
                                                        const std::vector<MeasuredRow>& in) {
  const std::vector<std::size_t> spikes_out = spikes(out, in);
  const std::vector<std::size_t> spikes_in = spikes(in, out);
  std::vector<std::pair<sim::Bytes, double>> noise;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const MeasuredRow* partner = row_of(in, out[i].size);
    if (partner == nullptr || std::ranges::find(spikes_out, i) != spikes_out.end()) continue;
    const auto at = static_cast<std::size_t>(partner - in.data());
    if (std::ranges::find(spikes_in, at) != spikes_in.end()) continue;
    noise.emplace_back(out[i].size, std::abs(partner->time_us / out[i].time_us - 1));
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
