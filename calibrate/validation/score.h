// Scores of predictions against measurements: errors by size band, the data's own noise, spikes.
//
//   error = |predicted / measured - 1|;   bands by message size: S < 64 KiB <= M <= 16 MiB < L
//
// A spike is a measured value above 1.3 x both neighbouring sizes' and above 1.25 x the same size's
// in the other column (in place against out of place); it is counted and left out of the scores.
// The rule looks at the measurements alone, never at a prediction.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "calibrate/validation/measured_run.h"
#include "sim/enum_table.h"

namespace railyard::calibrate {

enum class Band { small, medium, large };
Band band_of(sim::Bytes size);

// Indices of rows that are spikes. Rows without a partner in `other` are never spikes.
std::vector<std::size_t> spikes(const std::vector<MeasuredRow>& rows,
                                const std::vector<MeasuredRow>& other);

// |in place / out of place - 1| of the sizes that both columns have, spikes left out.
std::vector<std::pair<sim::Bytes, double>> column_noise(const MeasuredRun& run);

struct ErrorSummary {
  std::size_t count = 0;
  double median = 0;
  double p90 = 0;
  double worst = 0;
};

// Quantiles by linear interpolation between order statistics; of nothing, zeros. O(n log n).
double quantile(std::vector<double> values, double share);
ErrorSummary summarize(const std::vector<double>& errors);

}  // namespace railyard::calibrate

namespace railyard::sim {
template <>
struct EnumTable<calibrate::Band> {
  static constexpr std::string_view kind = "size band";
  static constexpr std::array entries{EnumEntry{calibrate::Band::small, "S"},
                                      EnumEntry{calibrate::Band::medium, "M"},
                                      EnumEntry{calibrate::Band::large, "L"}};
};
}  // namespace railyard::sim
