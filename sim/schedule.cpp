#include "sim/schedule.h"

#include <algorithm>

namespace railyard::sim {
namespace {

std::int64_t div_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t align_up(std::int64_t a, std::int64_t b) { return div_up(a, b) * b; }

}  // namespace

std::uint32_t loop_count(const Work& work) {
  const std::int64_t per_loop = work.layout == Layout::rotating
                                    ? work.chunk.raw() * work.blocks * work.outer_blocks
                                    : work.chunk.raw();
  return static_cast<std::uint32_t>(div_up(work.size.raw(), per_loop));
}

namespace {

// What one loop of a rotating work covers.
Region loop_region(const Work& work, std::uint32_t loop) {
  const std::int64_t outer_chunk = work.chunk.raw() * work.blocks;
  const std::int64_t begin = outer_chunk * work.outer_blocks * loop;
  const std::int64_t rest = work.size.raw() - begin;
  const std::int64_t outer = std::min(
      outer_chunk,
      work.outer_blocks == 1 ? rest : align_up(div_up(rest, work.outer_blocks), work.align));
  const std::int64_t at = std::min(rest, outer * work.outer_block);
  return {bytes(begin + at), bytes(std::min(outer, rest - at))};
}

}  // namespace

Bytes loop_bytes(const Work& work, std::uint32_t loop) { return loop_region(work, loop).size; }

Region block_region(const Work& work, std::uint32_t loop, std::uint32_t block) {
  const std::int64_t chunk = work.chunk.raw();
  if (work.layout != Layout::rotating) {
    const std::int64_t begin = chunk * loop;
    const std::int64_t base = work.layout == Layout::per_rank ? work.stride.raw() * block : 0;
    return {work.offset + bytes(base + begin), bytes(std::min(chunk, work.size.raw() - begin))};
  }
  const Region all = loop_region(work, loop);
  const std::int64_t rest = all.size.raw();
  const std::int64_t size = std::min(chunk, align_up(div_up(rest, work.blocks), work.align));
  const std::int64_t at = std::min(rest, size * block);
  return {work.offset + all.offset + bytes(at), bytes(std::min(size, rest - at))};
}

std::uint32_t block_rank(const Schedule& schedule, const Work& work, std::uint32_t block) {
  return work.block_order == kIdentityOrder ? block
                                            : schedule.block_orders[work.block_order][block];
}

Region slice_region(const Work& work, Region region, std::uint32_t slice) {
  const std::int64_t total = region.size.raw();
  const std::int64_t even = align_up(div_up(total, work.slices_per_chunk), work.slice_align);
  const std::int64_t size =
      work.slices_per_chunk == 1 ? total : std::max(even, work.min_slice.raw());
  const std::int64_t begin = std::min(total, size * slice);
  return {region.offset + bytes(begin), bytes(std::min(size, total - begin))};
}

}  // namespace railyard::sim
