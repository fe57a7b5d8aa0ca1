#include "models/kv/blocks.h"

#include <doctest/doctest.h>

namespace railyard::models {
namespace {

TEST_CASE("kv blocks: handed out in order, returned last block first") {
  KvBlockPool pool(6);
  const KvBlockList first = pool.allocate(2);
  const KvBlockList second = pool.allocate(3);
  CHECK(first == KvBlockList{0, 1});
  CHECK(second == KvBlockList{2, 3, 4});
  CHECK(pool.allocate(2).empty());
  CHECK(pool.free() == 1);
  pool.release(second);
  pool.release(first);
  CHECK(pool.free() == 6);
  CHECK(pool.allocate(6) == KvBlockList{5, 4, 3, 2, 1, 0});
  CHECK(pool.total() == 6);
}

TEST_CASE("kv blocks: a run ends where either side is broken") {
  CHECK(kv_runs({10, 11, 12, 20, 21}, {50, 51, 52, 53, 54}) == std::vector<std::int64_t>{3, 2});
  CHECK(kv_runs({10, 11, 12}, {50, 60, 61}) == std::vector<std::int64_t>{1, 2});
  CHECK(kv_runs({5, 4, 3}, {0, 1, 2}) == std::vector<std::int64_t>{1, 1, 1});
  CHECK(kv_runs({0, 1, 2}, {7, 8, 9, 10}) == std::vector<std::int64_t>{3});  // answer's blocks
  CHECK(kv_runs({}, {}).empty());
}

TEST_CASE("kv blocks: slices, a short rest joins the last") {
  const sim::Bytes slice = sim::bytes(65'536);
  CHECK(kv_slices(sim::bytes(4096), slice) == 1);
  CHECK(kv_slices(sim::bytes(65'536), slice) == 1);
  CHECK(kv_slices(sim::bytes(65'536 + 16'384), slice) == 1);  // a quarter
  CHECK(kv_slices(sim::bytes(65'536 + 16'385), slice) == 2);
  CHECK(kv_slices(sim::bytes(2049 * 4096), slice) == 128);  // 32,784 tokens of one head
  CHECK(kv_slices(sim::bytes(1 << 30), sim::Bytes()) == 1);
}

TEST_CASE("kv blocks: NIXL's descriptors of a 70B model, merged and fragmented") {
  // ai-dynamo/nixl#1514: 80 layers x K and V x 118 blocks: about 160 merged, 18,880 not.
  KvBlockPool from(1000);
  KvBlockPool to(1000);
  const KvBlockList source = from.allocate(118);
  const KvBlockList target = to.allocate(118);
  CHECK(kv_runs(source, target).size() * 160 == 160);
  to.release(target);
  (void)to.allocate(882);  // now the returned ones come, in falling order
  CHECK(kv_runs(source, to.allocate(118)).size() * 160 == 18'880);
}

}  // namespace
}  // namespace railyard::models
