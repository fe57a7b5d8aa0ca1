#include "models/host/data_loader.h"

#include <doctest/doctest.h>

namespace railyard::models {
namespace {

constexpr sim::Duration ms(std::int64_t n) { return sim::microseconds(n * 1000); }
sim::Time at(std::int64_t n) { return sim::Time(ms(n)); }

// Two workers, one batch ahead each. Batches 0 and 1 are ready at 100; whoever asks at once gets 0
// then, 1 without waiting, and each worker begins its next when its last was fetched: 2 and 3 at
// 200.
TEST_CASE(
    "data loader: a loop that is faster than its workers gets a batch every batch_time / workers") {
  DataLoader loader({.batch_time = ms(100), .workers = 2, .prefetch = 1});
  CHECK(loader.wait(at(0)) == ms(100));
  CHECK(loader.wait(at(100)) == ms(0));
  CHECK(loader.wait(at(100)) == ms(100));
  CHECK(loader.wait(at(200)) == ms(0));
  CHECK(loader.wait(at(250)) == ms(50));
}

TEST_CASE("data loader: a slow loop waits for its first batch alone") {
  DataLoader loader({.batch_time = ms(100), .workers = 2, .prefetch = 2});
  CHECK(loader.wait(at(0)) == ms(100));
  for (std::int64_t step = 1; step < 20; ++step) CHECK(loader.wait(at(100 + 51 * step)) == ms(0));
}

// One worker, two batches ahead. It makes 0, 1 by 200 and must stop: nobody has fetched. From 1000
// on batches 0 and 1 are there, the third was begun when the first was fetched.
TEST_CASE("data loader: workers stop when their queue is full") {
  DataLoader loader({.batch_time = ms(100), .workers = 1, .prefetch = 2});
  CHECK(loader.wait(at(1000)) == ms(0));
  CHECK(loader.wait(at(1000)) == ms(0));
  CHECK(loader.wait(at(1000)) == ms(100));
  CHECK(loader.wait(at(1100)) == ms(100));
}

TEST_CASE("data loader: without a batch time nothing waits") {
  DataLoader loader({});
  CHECK(loader.wait(at(0)) == ms(0));
  CHECK(loader.wait(at(0)) == ms(0));
}

}  // namespace
}  // namespace railyard::models
