#include "tests/sim/mutation.h"

#include <doctest/doctest.h>

#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

tests::MutationCounts mutate(const Schedule& schedule) {
  const Expansion expansion = expand(schedule);
  const Promise promise = promise_of(schedule);
  REQUIRE(check_dataflow(expansion, promise).ok());
  REQUIRE(tests::NumberRun(expansion, promise).keeps_promise());
  const tests::MutationCounts counts =
      tests::run_mutations(expansion, promise, tests::CountStricter::yes);
  CHECK(counts.wrongly_accepted == std::vector<std::string>{});
  return counts;
}

// Equivalent are swaps of a lane's last operation in a loop (a receive) with the first of the next
// (a send), which do not touch each other's data.
TEST_CASE("mutation: every change of small schedules is refused or moves the same data") {
  tests::MutationCounts counts;
  for (std::uint32_t n = 2; n <= 5; ++n) {
    counts += mutate(tests::ring_all_reduce(n, 8 * n, 4).done());
    counts += mutate(tests::ring_all_gather(n, 8, 4).done());
    counts += mutate(tests::ring_reduce_scatter(n, 8, 4).done());
    counts += mutate(tests::broadcast_chain(n, 8, 4).done());
  }
  counts += mutate(tests::tree_of_three(12, 4).done());
  MESSAGE("refused " << counts.refused << ", of them right in the end " << counts.stricter
                     << "; equivalent " << counts.equivalent);
  CHECK(counts.refused > 1000);
}

TEST_CASE("mutation: doing the same local copy twice is equivalent, and so is moving nothing") {
  tests::HandSchedule hand(tests::call_of(Collective::broadcast, 8), 1);
  hand.work(tests::linear_work(8, 4));
  hand.lane(0, {tests::op(Primitive::copy)}, LaneRole::local);
  // Two copies: 2 duplicates and 1 swap change nothing; 2 drops and 8 shifts do.
  const tests::MutationCounts counts = mutate(hand.done());
  CHECK(counts.equivalent == 3);
  CHECK(counts.refused == 10);
  CHECK(counts.stricter == 0);

  tests::HandSchedule slices = tests::broadcast_chain(2, 4, 4);
  slices.raw().works[0].slices_per_chunk = 2;
  slices.raw().works[0].min_slice = bytes(4);
  // The empty slices of both ends: 2 shifts of the root's input, 2 of its output, 2 of the leaf's.
  CHECK(mutate(slices.done()).equivalent == 6);
}

}  // namespace
}  // namespace railyard::sim
