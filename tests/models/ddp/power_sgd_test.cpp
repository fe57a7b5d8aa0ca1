// PowerSGD's split of a bucket, worked out by hand.
#include <doctest/doctest.h>

#include "models/ddp/power_sgd.h"

using namespace railyard;
using namespace railyard::models;

namespace {

using Shapes = std::vector<std::vector<std::int64_t>>;

PowerSgdBucket split(const Shapes& shapes, std::int64_t rank, double rate = 2) {
  return power_sgd_bucket(shapes,
                          {.matrix_approximation_rank = rank, .min_compression_rate = rate});
}

}  // namespace

// ResNet-50's first convolution is 64 x 147: (64 + 147) x 1 x 2 = 422 < 9,408. Its bias-like vector
// of 64 is 64 x 1: (64 + 1) x 2 = 130 > 64. 4 x 4: 8 x 2 = 16 is not less than 16; 4 x 5: 18 < 20.
TEST_CASE("powerSGD: what is compressed, and to what") {
  const PowerSgdBucket bucket = split({{64, 3, 7, 7}, {64}, {4, 4}, {4, 5}}, 1);
  CHECK(bucket.compressed == std::vector<LowRank>{{64, 147, 1}, {4, 5, 1}});
  CHECK(bucket.uncompressed == std::vector<std::int64_t>{64, 16});
  CHECK(bucket.uncompressed_elements() == 80);
  CHECK(bucket.p_elements() == 64 + 4);
  CHECK(bucket.q_elements() == 147 + 5);
}

// 4 x 5 at rank 2: (4 + 5) x 2 x 2 = 36 > 20, whole. 64 x 147: 844 < 9,408.
TEST_CASE("powerSGD: a higher rank compresses fewer") {
  const PowerSgdBucket bucket = split({{64, 3, 7, 7}, {4, 5}}, 2);
  CHECK(bucket.compressed == std::vector<LowRank>{{64, 147, 2}});
  CHECK(bucket.p_elements() == 128);
  CHECK(bucket.q_elements() == 294);
  CHECK(bucket.uncompressed_elements() == 20);
}

// 3 x 1000 at rank 8 has rank 3 at most: 1003 x 3 x 0.9 = 2708.1 < 3000.
TEST_CASE(
    "powerSGD: the rank is at most the matrix's own, and a low rate compresses even vectors") {
  CHECK(split({{3, 1000}}, 8, 0.9).compressed == std::vector<LowRank>{{3, 1000, 3}});
  CHECK(split({{3, 1000}}, 8, 1).compressed.empty());  // 3009 > 3000
  // 100 x 1: 101 x 0.5 < 100, so P has 100 elements and Q one: more than before.
  const PowerSgdBucket vector = split({{100}}, 1, 0.5);
  CHECK(vector.p_elements() + vector.q_elements() == 101);
}

TEST_CASE("batched powerSGD: the smallest square that holds the bucket") {
  for (const auto& [elements, side] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1},
                                                          {10, 4},
                                                          {16, 4},
                                                          {17, 5},
                                                          {25'557'032, 5056},
                                                          {1'000'000'000'000, 1'000'000},
                                                          {1'000'000'000'001, 1'000'001}}) {
    const std::int64_t bucket = elements;  // clang++ captures no structured binding
    CAPTURE(bucket);
    const LowRank square = power_sgd_square(bucket, {.matrix_approximation_rank = 4});
    CHECK(square == LowRank{side, side, 4});
  }
}

TEST_CASE("powerSGD: PyTorch's own check of the first iteration") {
  CHECK(check(PowerSgdOptions{}).ok());
  CHECK(check({.start_iter = 2}).ok());
  CHECK(check({.start_iter = 0, .use_error_feedback = false, .warm_start = false}).ok());
  for (const bool feedback : {false, true}) {
    const auto bad =
        check({.start_iter = 1, .use_error_feedback = feedback, .warm_start = !feedback});
    REQUIRE_FALSE(bad.ok());
    CHECK(bad.error().message.find("start_powerSGD_iter must be above 1, not 1") !=
          std::string::npos);
  }
}
