#include "models/ddp/power_sgd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace railyard::models {
namespace {

LowRank matrix_of(const std::vector<std::int64_t>& shape, std::int64_t wanted) {
  LowRank matrix{shape.empty() ? 1 : shape.front(), 1, 0};
  for (std::size_t d = 1; d < shape.size(); ++d) matrix.columns *= shape[d];
  matrix.rank = std::min({matrix.rows, matrix.columns, wanted});
  return matrix;
}

bool worth_compressing(const LowRank& matrix, double min_compression_rate) {
  return static_cast<double>(matrix.p() + matrix.q()) * min_compression_rate <
         static_cast<double>(matrix.elements());
}

}  // namespace

std::int64_t PowerSgdBucket::uncompressed_elements() const {
  return std::accumulate(uncompressed.begin(), uncompressed.end(), std::int64_t{0});
}

std::int64_t PowerSgdBucket::p_elements() const {
  std::int64_t sum = 0;
  for (const LowRank& matrix : compressed) sum += matrix.p();
  return sum;
}

std::int64_t PowerSgdBucket::q_elements() const {
  std::int64_t sum = 0;
  for (const LowRank& matrix : compressed) sum += matrix.q();
  return sum;
}

PowerSgdBucket power_sgd_bucket(std::span<const std::vector<std::int64_t>> shapes,
                                const PowerSgdOptions& options) {
  PowerSgdBucket bucket;
  for (const std::vector<std::int64_t>& shape : shapes) {
    const LowRank matrix = matrix_of(shape, options.matrix_approximation_rank);
    if (worth_compressing(matrix, options.min_compression_rate))
      bucket.compressed.push_back(matrix);
    else
      bucket.uncompressed.push_back(matrix.elements());
  }
  return bucket;
}

LowRank power_sgd_square(std::int64_t elements, const PowerSgdOptions& options) {
  auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements)));
  while (side * side < elements) ++side;
  while (side > 1 && (side - 1) * (side - 1) >= elements) --side;
  return {side, side, options.matrix_approximation_rank};
}

sim::Result<void> check(const PowerSgdOptions& options) {
  if (options.matrix_approximation_rank < 1)
    return sim::bad_input("matrix_approximation_rank must be at least 1");
  if (!(options.min_compression_rate > 0) || !std::isfinite(options.min_compression_rate))
    return sim::bad_input("min_compression_rate must be a positive number");
  if ((options.use_error_feedback || options.warm_start) && options.start_iter <= 1)
    return sim::bad_input(
        fmt::format("start_powerSGD_iter must be above 1, not {}, with use_error_feedback or "
                    "warm_start: DDP rebuilds its buckets in the first two iterations",
                    options.start_iter));
  return {};
}

}  // namespace railyard::models
