// Scores of predictions against measurements: the data's own noise, spikes, quantiles of errors.
//
//   error = |predicted / measured - 1|, by sim::SizeBand
//
// A spike is a measured value above 1.3 x both neighbouring sizes' and above 1.25 x the same size's
// in the other column (in place against out of place); it is counted and left out of the scores.
// The rule looks at the measurements alone, never at a prediction.
#pragma once

#include <utility>
#include <vector>

#include "sim/units.h"

namespace railyard::calibrate {

struct MeasuredRow {
  sim::Bytes size;  // nccl-tests' "size" column
  double time_us = 0;
};

// Indices of rows that are spikes. Rows without a partner in `other` are never spikes.
std::vector<std::size_t> spikes(const std::vector<MeasuredRow>& rows,
                                const std::vector<MeasuredRow>& other);

// |in place / out of place - 1| of the sizes that both columns have, spikes left out.
std::vector<std::pair<sim::Bytes, double>> column_noise(const std::vector<MeasuredRow>& out,
                                                        const std::vector<MeasuredRow>& in);

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
