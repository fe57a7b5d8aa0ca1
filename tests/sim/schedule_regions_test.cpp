#include <doctest/doctest.h>

#include <vector>

#include "sim/schedule.h"

namespace railyard::sim {
namespace {

using namespace literals;

Work rotating(std::int64_t size, std::int64_t chunk, std::uint32_t blocks, std::int64_t align) {
  Work work;
  work.layout = Layout::rotating;
  work.size = bytes(size);
  work.chunk = bytes(chunk);
  work.blocks = blocks;
  work.align = align;
  return work;
}

std::vector<std::int64_t> block_sizes(const Work& work, std::uint32_t loop) {
  std::vector<std::int64_t> sizes;
  for (std::uint32_t b = 0; b < work.blocks; ++b)
    sizes.push_back(block_region(work, loop, b).size.raw());
  return sizes;
}

std::vector<std::int64_t> slice_sizes(const Work& work, std::int64_t size) {
  std::vector<std::int64_t> sizes;
  for (std::uint32_t s = 0; s < work.slices_per_chunk; ++s)
    sizes.push_back(slice_region(work, {bytes(0), bytes(size)}, s).size.raw());
  return sizes;
}

using Sizes = std::vector<std::int64_t>;

TEST_CASE("schedule_regions: loops are the size over what one loop covers, rounded up") {
  CHECK(loop_count(rotating(0, 16, 4, 1)) == 0);
  CHECK(loop_count(rotating(1, 16, 4, 1)) == 1);
  CHECK(loop_count(rotating(64, 16, 4, 1)) == 1);
  CHECK(loop_count(rotating(65, 16, 4, 1)) == 2);
  Work work = rotating(65, 16, 4, 1);
  work.layout = Layout::per_rank;
  CHECK(loop_count(work) == 5);
  work.layout = Layout::linear;
  CHECK(loop_count(work) == 5);
  work.size = 16_TiB;
  work.chunk = 2_MiB;
  CHECK(loop_count(work) == 8'388'608);
}

// 4 blocks of 64: the first loop takes 256. Of the other 100, ceil(100 / 4) = 25 -> 32 aligned to
// 16: 32, 32, 32, 4.
TEST_CASE("schedule_regions: rotating shrinks the last loop's chunk, aligned to 16 bytes") {
  const Work work = rotating(356, 64, 4, 16);
  CHECK(block_sizes(work, 0) == Sizes{64, 64, 64, 64});
  CHECK(block_sizes(work, 1) == Sizes{32, 32, 32, 4});
  CHECK(block_region(work, 1, 3).offset == bytes(256 + 96));
  Work shifted = work;
  shifted.offset = bytes(1000);
  CHECK(block_region(shifted, 1, 3).offset == bytes(1352));
}

// 36 bytes over 8 ranks: ceil(36 / 8) = 5 -> 16: 16, 16, 4, and five empty blocks at the end.
TEST_CASE("schedule_regions: late blocks of a small message are empty") {
  const Work work = rotating(36, 1 << 20, 8, 16);
  CHECK(block_sizes(work, 0) == Sizes{16, 16, 4, 0, 0, 0, 0, 0});
  CHECK(block_region(work, 0, 7).offset == bytes(36));
}

// A loop that is exactly full is not shrunk; with one byte less it is (to what it was, by
// alignment).
TEST_CASE("schedule_regions: a full last loop") {
  CHECK(block_sizes(rotating(256, 64, 4, 16), 0) == Sizes{64, 64, 64, 64});
  CHECK(block_sizes(rotating(255, 64, 4, 16), 0) == Sizes{64, 64, 64, 63});
}

// The chunk is the largest operation, even where alignment would round the last loop's up beyond
// it.
TEST_CASE("schedule_regions: alignment never makes a block larger than the chunk") {
  CHECK(block_sizes(rotating(29, 10, 3, 16), 0) == Sizes{10, 10, 9});
}

TEST_CASE("schedule_regions: the blocks of all loops cover the part, once") {
  for (const std::int64_t size : {1, 15, 16, 17, 100, 255, 256, 257, 1000})
    for (const std::uint32_t blocks : {1U, 2U, 3U, 8U})
      for (const std::int64_t align : {1, 16}) {
        const Work work = rotating(size, 48, blocks, align);
        std::int64_t at = 0;
        for (std::uint32_t loop = 0; loop < loop_count(work); ++loop)
          for (std::uint32_t b = 0; b < blocks; ++b) {
            const Region region = block_region(work, loop, b);
            CHECK(region.offset == bytes(at));
            CHECK(region.size <= work.chunk);
            at += region.size.raw();
          }
        CHECK(at == size);
      }
}

TEST_CASE("schedule_regions: per_rank blocks lie a stride apart, one chunk of each per loop") {
  Work work = rotating(100, 64, 4, 16);
  work.layout = Layout::per_rank;
  work.stride = bytes(1000);
  work.offset = bytes(200);
  CHECK(block_region(work, 0, 3).offset == bytes(3200));
  CHECK(block_region(work, 0, 3).size == bytes(64));
  CHECK(block_region(work, 1, 3).offset == bytes(3264));
  CHECK(block_region(work, 1, 3).size == bytes(36));
}

TEST_CASE("schedule_regions: linear has one block, whatever its number") {
  Work work = rotating(100, 64, 4, 16);
  work.layout = Layout::linear;
  work.offset = bytes(8);
  CHECK(block_region(work, 1, 0).offset == bytes(72));
  CHECK(block_region(work, 1, 2).offset == bytes(72));
  CHECK(block_region(work, 1, 0).size == bytes(36));
}

// NCCL ring Simple: two slices per operation, each at least max slice / 32 = 32 KiB, whole 16
// elements. An operation of <= 32 KiB is one full slice and one empty slice.
TEST_CASE("schedule_regions: Simple's slices") {
  Work work;
  work.chunk = 2_MiB;
  work.slices_per_chunk = 2;
  work.min_slice = 32_KiB;
  work.slice_align = 64;
  CHECK(slice_sizes(work, 1) == Sizes{1, 0});
  CHECK(slice_sizes(work, 32'768) == Sizes{32'768, 0});
  CHECK(slice_sizes(work, 32'769) == Sizes{32'768, 1});
  CHECK(slice_sizes(work, 65'536) == Sizes{32'768, 32'768});
  CHECK(slice_sizes(work, 65'537) == Sizes{32'832, 32'705});  // 32769 -> 513 x 64
  CHECK(slice_sizes(work, 2'097'152) == Sizes{1'048'576, 1'048'576});
  CHECK(slice_sizes(work, 0) == Sizes{0, 0});
  const Region chunk{bytes(1'000'000), bytes(100)};
  CHECK(slice_region(work, chunk, 1).offset == bytes(1'000'100));
}

TEST_CASE("schedule_regions: one slice per operation is the operation") {
  Work work;
  work.min_slice = bytes(1000);
  work.slice_align = 64;
  CHECK(slice_sizes(work, 10) == Sizes{10});
  CHECK(slice_sizes(work, 0) == Sizes{0});
}

TEST_CASE("schedule_regions: slices cover their operation, once, for any count") {
  for (const std::uint32_t slices : {2U, 3U, 4U, 7U})
    for (const std::int64_t size : {0, 1, 16, 17, 63, 64, 65, 1000}) {
      Work work;
      work.slices_per_chunk = slices;
      work.slice_align = 16;
      std::int64_t at = 5;
      for (std::uint32_t s = 0; s < slices; ++s) {
        const Region region = slice_region(work, {bytes(5), bytes(size)}, s);
        CHECK(region.offset == bytes(at));
        at += region.size.raw();
      }
      CHECK(at == 5 + size);
    }
}

TEST_CASE("schedule_regions: a block order maps places to ranks") {
  Schedule schedule;
  schedule.block_orders = {{2, 0, 1}};
  Work work;
  CHECK(block_rank(schedule, work, 2) == 2);
  work.block_order = 0;
  CHECK(block_rank(schedule, work, 0) == 2);
  CHECK(block_rank(schedule, work, 2) == 1);
}

}  // namespace
}  // namespace railyard::sim
