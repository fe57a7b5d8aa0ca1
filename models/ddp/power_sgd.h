// PowerSGD as a communication hook of DDP: what a bucket sends instead of its gradients.
//
// A gradient is viewed as a matrix of n rows (its first dimension) and m columns (all others). With
// rank r = min(n, m, matrix_approximation_rank) it is worth compressing if
//
//   (n + m) r min_compression_rate < n m
//
// and then costs n r elements of P and m r of Q; all others are sent whole. A bucket is three
// AllReduces, each behind the one before: the uncompressed tensors together, all P, all Q.
// batched_powerSGD views the whole bucket of E elements as a square of s = ceil(sqrt(E)) rows,
// zeros behind: P and Q of s r elements each, and nothing else.
//
// Until start_powerSGD_iter iterations are over, the bucket is divided and reduced as it is.
// Source: torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py of 1.13 to 2.x.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/result.h"

namespace railyard::models {

struct PowerSgdOptions {
  std::int64_t matrix_approximation_rank = 1;
  std::int64_t start_iter = 1000;  // start_powerSGD_iter
  double min_compression_rate = 2;
  bool use_error_feedback = true;
  bool warm_start = true;  // Q of the iteration before is where the next begins
};

struct LowRank {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t rank = 0;
  [[nodiscard]] std::int64_t elements() const { return rows * columns; }
  [[nodiscard]] std::int64_t p() const { return rows * rank; }
  [[nodiscard]] std::int64_t q() const { return columns * rank; }
  friend bool operator==(const LowRank&, const LowRank&) = default;
};

// A bucket's tensors, those of `uncompressed` in elements.
struct PowerSgdBucket {
  std::vector<LowRank> compressed;
  std::vector<std::int64_t> uncompressed;
  [[nodiscard]] std::int64_t uncompressed_elements() const;
  [[nodiscard]] std::int64_t p_elements() const;
  [[nodiscard]] std::int64_t q_elements() const;
};

// Shapes of the bucket's tensors in their order.
PowerSgdBucket power_sgd_bucket(std::span<const std::vector<std::int64_t>> shapes,
                                const PowerSgdOptions& options);

// The square that batched_powerSGD makes of a bucket of `elements` elements.
LowRank power_sgd_square(std::int64_t elements, const PowerSgdOptions& options);

// As PowerSGDState's constructor checks, and what could not be a rank or a rate.
sim::Result<void> check(const PowerSgdOptions& options);

}  // namespace railyard::models
