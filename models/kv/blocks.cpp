#include "models/kv/blocks.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard::models {

KvBlockPool::KvBlockPool(std::int64_t blocks) : total_(blocks) {
  for (std::int64_t i = 0; i < blocks; ++i) free_.push_back(static_cast<std::uint32_t>(i));
}

KvBlockList KvBlockPool::allocate(std::int64_t blocks) {
  if (blocks > free()) return {};
  const auto end = free_.begin() + static_cast<std::ptrdiff_t>(blocks);
  KvBlockList taken(free_.begin(), end);
  free_.erase(free_.begin(), end);
  return taken;
}

void KvBlockPool::release(const KvBlockList& blocks) {
  free_.insert(free_.end(), blocks.rbegin(), blocks.rend());
  RAILYARD_CHECK(free() <= total_, "a block came back that was not out");
}

std::vector<std::int64_t> kv_runs(const KvBlockList& from, const KvBlockList& to) {
  std::vector<std::int64_t> runs;
  for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
    const bool neighbours = i > 0 && from[i] == from[i - 1] + 1 && to[i] == to[i - 1] + 1;
    if (!neighbours) runs.push_back(0);
    ++runs.back();
  }
  return runs;
}

std::int64_t kv_slices(sim::Bytes size, sim::Bytes slice) {
  if (slice.raw() == 0 || size <= slice) return 1;
  const std::int64_t rest = (size % slice).raw();
  return size / slice + (4 * rest > slice.raw() ? 1 : 0);
}

}  // namespace railyard::models
