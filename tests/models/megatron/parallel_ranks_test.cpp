// Which ranks are parallel with which: groups written out by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/megatron/parallel_ranks.h"

namespace railyard::models {
namespace {

using Ranks = std::vector<std::vector<std::uint32_t>>;

Ranks ranks_of(const ParallelSizes& sizes, ParallelGroup kind, std::int64_t number = 0) {
  Ranks found;
  for (const RankGroup& group : parallel_groups(sizes))
    if (group.kind == kind && group.number == number) found.push_back(group.ranks);
  return found;
}

// The example of core/parallel_state.py: 16 GPUs, tensor 2, pipeline 4.
TEST_CASE("parallel ranks: 16 ranks, tensor 2, pipeline 4, data 2") {
  const ParallelSizes sizes{.tensor = 2, .pipeline = 4, .expert_tensor = 2, .world = 16};
  REQUIRE(check_sizes(sizes).ok());
  CHECK(sizes.data() == 2);
  CHECK(ranks_of(sizes, ParallelGroup::tensor) ==
        Ranks{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}});
  CHECK(ranks_of(sizes, ParallelGroup::data, 0) == Ranks{{0, 2}, {1, 3}});
  CHECK(ranks_of(sizes, ParallelGroup::data, 3) == Ranks{{12, 14}, {13, 15}});
  CHECK(ranks_of(sizes, ParallelGroup::pair, 0) ==
        Ranks{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}});
  CHECK(ranks_of(sizes, ParallelGroup::pair, 1) == Ranks{{4, 8}, {5, 9}, {6, 10}, {7, 11}});
  CHECK(ranks_of(sizes, ParallelGroup::embedding) == Ranks{{0, 12}, {1, 13}, {2, 14}, {3, 15}});
  CHECK(stage_of(sizes, 3) == 0);
  CHECK(stage_of(sizes, 4) == 1);
}

TEST_CASE("parallel ranks: context between tensor and data, experts across both") {
  const ParallelSizes sizes{.tensor = 2,
                            .context = 2,
                            .expert = 2,
                            .expert_tensor = 2,
                            .sequence_parallel = true,
                            .world = 8};
  REQUIRE(check_sizes(sizes).ok());
  CHECK(ranks_of(sizes, ParallelGroup::context) == Ranks{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(ranks_of(sizes, ParallelGroup::data) == Ranks{{0, 2, 4, 6}, {1, 3, 5, 7}});
  CHECK(ranks_of(sizes, ParallelGroup::expert) == Ranks{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(ranks_of(sizes, ParallelGroup::expert_data) == Ranks{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  const ParallelSizes whole{
      .tensor = 2, .expert = 4, .expert_tensor = 1, .sequence_parallel = true, .world = 8};
  REQUIRE(check_sizes(whole).ok());
  CHECK(ranks_of(whole, ParallelGroup::expert) == Ranks{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(ranks_of(whole, ParallelGroup::expert_data) == Ranks{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
}

TEST_CASE("parallel ranks: no rank is in two pairs of one number") {
  for (const std::int64_t q : {2, 3, 4, 5, 6, 7}) {
    const ParallelSizes sizes{.pipeline = q, .virtual_pipeline = 2, .world = 2 * q};
    std::size_t pairs = 0;
    for (std::int64_t number = 0; number < 3; ++number) {
      std::vector<std::uint32_t> all;
      for (const auto& pair : ranks_of(sizes, ParallelGroup::pair, number)) {
        ++pairs;
        CHECK(pair[1] == (pair[0] + 2) % (2 * q));
        for (const std::uint32_t rank : pair) {
          CHECK(std::ranges::find(all, rank) == all.end());
          all.push_back(rank);
        }
      }
    }
    CHECK(pairs == static_cast<std::size_t>(2 * q));  // a ring, for both ranks of a stage
  }
}

std::string problem(const ParallelSizes& sizes) {
  const auto checked = check_sizes(sizes);
  return checked.ok() ? "" : checked.error().where + ": " + checked.error().message;
}

TEST_CASE("parallel ranks: sizes that Megatron refuses") {
  CHECK(problem({.tensor = 3, .expert_tensor = 3, .world = 8}) ==
        "tensor_model_parallel_size: tensor 3 x context 1 x pipeline 1 = 3 ranks do not divide a "
        "world of 8");
  CHECK(problem({.pipeline = 3, .world = 8}).starts_with("pipeline_model_parallel_size: "));
  CHECK(problem({.expert = 3, .world = 8}) ==
        "expert_model_parallel_size: expert 3 x expert tensor 1 = 3 ranks do not divide the 8 of a "
        "pipeline stage");
  CHECK(problem({.tensor = 4, .expert_tensor = 2, .world = 8})
            .starts_with("expert_tensor_parallel_size: 2 is neither"));
  CHECK(problem({.sequence_parallel = true, .world = 8}).starts_with("sequence_parallel: "));
  CHECK(problem({.tensor = 2, .expert = 2, .expert_tensor = 2, .world = 8})
            .starts_with("expert_model_parallel_size: beside tensor parallelism"));
  CHECK(problem({.virtual_pipeline = 2, .world = 8})
            .starts_with("virtual_pipeline_model_parallel_size: "));
}

}  // namespace
}  // namespace railyard::models
